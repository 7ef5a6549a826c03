"""Extraction: from a frozen e-graph to the lists that are stored and the terms that make them."""
