"""Lowering: from a checked array program to a block program, one list of blocks an array operator."""
