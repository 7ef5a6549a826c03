"""Masks: which blocks conditions hide, what of a loop is left, and what entries are known to be."""
