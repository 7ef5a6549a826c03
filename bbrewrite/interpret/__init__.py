"""NumPy executors: the meaning of block programs and of kernels, and the target where no compiler is found."""
