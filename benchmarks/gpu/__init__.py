"""What to do on the day a GPU is at hand, in 8 minutes: conformance, generated kernels, sanitizer, times."""
