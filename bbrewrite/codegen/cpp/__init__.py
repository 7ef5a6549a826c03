"""Prints kernels as C++ with OpenMP."""
