"""Programs that several tests parse."""

from __future__ import annotations

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program

TABLE = builtin_table()

ATTENTION = """program attention
index m = 4096, n = 4096, d = 64, l = 64        # loop indices and their default extents
block m = 64, n = 64                            # optional; block sizes not given are chosen by the tool

input  Q[m, d], K[n, d], V[n, l] : f32
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
P[m, n] = softmax[n](S[m, n])
output O[m, l] = sum[n](P[m, n] * V[n, l])
"""

RMSNORM_SWIGLU = """program rmsnorm_swiglu
index m = 128, d = 1024, f = 2816, e = d        # e has d's extent but is another loop
input  X[m, d] : f32
weight W1[d, f], W3[d, f], W2[f, e], g[d] : f32 # constant from call to call

H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
output Y[m, e] = sum[f](G[m, f] * W2[f, e])
"""

LAYERS = """program layers
index layer = 3, again = 2, m = 8, d = 4, e = d
input  X[m, d] : f32, s : f16
weight W[layer, d, e], g[layer, d], v[again] : f32

repeat layer                                    # two values go from layer to layer
    carry H[m, d] = X[m, d]
    carry t : f32 = s
    A[m, d] = rms_norm[d](H[m, d]) * g[layer, d]
    # what A is worth
    B[m, e] : bf16 = where(layer == 0, 1, t) * sum[d](A[m, d] * W[layer, d, e])
    next H[m, e] = H[m, e] + B[m, e]
    next t = t / 2 + max[m, d](
        # inner
        A[m, d]
    )
    # the last of the body
# behind it
Y[m, d] = H[m, d] * t
repeat again
    carry C[m, d] = Y[m, d]

    next C[m, d] = C[m, d] * v[again]
output Z[m, d] = C[m, d] - Y[m, d]
output T = t
"""

BLOCK_ATTENTION = """block program attention
index m = 4096 by 64, n = 4096 by 64, d = 64 by 64, l = 64 by 64
input Q[m, d], K[n, d], V[n, l] : f32
S = map m: map n: (reduce sum d: dot(Q[m, d], K[n, d])) / sqrt(size(d))
M = map m: reduce max n: row_max(S[m, n])
E = map m: map n: exp(row_shift(S[m, n], where(M[m] == -inf, 0, -M[m])))
c = map m: reduce sum n: row_sum(E[m, n])
P = map m: map n: row_scale(E[m, n], where(c[m] == 0, 0, recip(c[m])))
output O = map m: map l: reduce sum n: dot(P[m, n], transpose(V[n, l]))
"""


def array_program(text: str) -> ArrayProgram:
    program = parse_program(Source("program.bb", text), TABLE)
    assert isinstance(program, ArrayProgram)
    return program


def block_program(text: str) -> BlockProgram:
    program = parse_program(Source("program.bb", text), TABLE)
    assert isinstance(program, BlockProgram)
    return program
