"""Rule files: from text to checked, immutable rules."""
