"""Soundness of rules: random well-typed instances, evaluated exactly; a shrunk counterexample where one fails."""
