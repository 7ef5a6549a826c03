"""Runs compiled CUDA kernels without a GPU, from their PTX, and checks every access and every synchronisation."""
