"""The cost model: what happens in a built nest, and what that costs on a target."""
