"""Blocks that span a whole extent: the loops over them have a single iteration, and are left out.

What stood in loops one after another then stands in one list of statements, whose steps over the same rows can be
merged. The kernel means the same.
"""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.codegen.passes.spliced import without_loops
from bbrewrite.plan.kernel import Kernel


def without_single_iterations(kernel: Kernel) -> Kernel:
    """The kernel without loops over indices along which its blocks are whole."""
    return replace(kernel, body=without_loops(kernel.body, kernel.whole)) if kernel.whole else kernel
