"""Choosing plans by measurement: `search.py` looks for the fastest, `store.py` remembers it for later runs."""
