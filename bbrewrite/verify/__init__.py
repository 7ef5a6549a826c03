"""Trust: results are compared with the float64 reference."""
