"""Planning: from a frozen e-graph to kernels, by a cost model of data movement and work."""
