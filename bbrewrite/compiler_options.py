"""The options with which generated C++ is compiled, here and where a user takes it. Running a compiler is not here."""

from __future__ import annotations

# Contraction would make results depend on what the compiler fuses; the sources say where a product and a sum are one.
OPTIONS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
# GCC takes loops over a few vectors of terms for copies of memory, in moves half as wide: reading a vector then waits
# for two of them. Clang has no such option. How fast tiles of products are must not depend on where they happen to lie.
OPTIONS_OF_GCC = ("-fno-tree-loop-distribute-patterns", "-falign-functions=64", "-falign-loops=64")
