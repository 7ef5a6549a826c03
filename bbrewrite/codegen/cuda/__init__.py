"""Prints kernel programs as CUDA C++, from the same kernel form as the C++ that runs on processors."""
