"""Scheduling: the cheapest nest, block sizes and local lists for each kernel, each found once."""
