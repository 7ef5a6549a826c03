"""Programs as Python functions: what `bbrewrite.compile` is made of. Only `stages.py` imports the stages."""
