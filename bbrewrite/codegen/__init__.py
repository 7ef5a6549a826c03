"""Code generation: from the kernel form to source text that a compiler takes."""
