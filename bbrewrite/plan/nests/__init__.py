"""Loop nests: from a kernel's term, a loop order and what is kept local to the kernel form."""
