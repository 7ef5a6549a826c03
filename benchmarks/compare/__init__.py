"""Our kernels beside the libraries that a user would call instead, timed in one process."""
