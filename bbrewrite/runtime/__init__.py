"""Building generated source, keeping the products, loading them and calling them with arrays."""
