"""Programs in which a sum depends on a reduction over its own loop, and programs with several outputs of one tensor.

Each is written from definitions, as its users write it. All must come out as one kernel; how many loops over the index
of the reduction it has says how often what the loop reads is passed over. Extents are such that what a second loop
would read again, or another kernel store, is no longer near.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cascade:
    """A program; `loops` are the loops over `index` in its only kernel that do more than load."""

    text: str
    index: str
    loops: int


_SCORES = """\
program scores
index m = 256, n = 256, d = 64, l = 64
input Q[m, d], K[n, d], V[n, l], U[n, l] : f32
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
"""
_TWO_SCORES = """\
program two_scores
index m = 4096, n = 4096, d = 64, l = 64
input Q[m, d], K[n, d], R[m, d], L[n, d], V[n, l], lam : f32
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
T[m, n] = sum[d](R[m, d] * L[n, d]) / sqrt(size(d))
"""
_HEADS = """\
program heads
index h = 4, m = 256, n = m, d = 64, l = 64
input Q[h, m, d], K[h, n, d], V[h, n, l], b[h, m, n], s[h] : f32
S[h, m, n] = sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d))
"""
_ROWS = """\
program rows
index m = 64, k = 2000000
input X[m, k] : f32
"""

CASCADES = {
    "logsumexp": Cascade(f"{_ROWS}output L[m] = logsumexp[k](X[m, k])", "k", 1),
    "log_softmax": Cascade(f"{_ROWS}output P[m, k] = log_softmax[k](X[m, k])", "k", 2),
    "cross_entropy": Cascade(
        """\
program cross_entropy
index m = 256, k = 256, n = 8000
input X[m, k] : f32, T[m] : i32
weight W[k, n] : f32
Z[m, n] = sum[k](X[m, k] * W[k, n])
output L[m] = logsumexp[n](Z[m, n]) - sum[n](where(n == T[m], Z[m, n], 0))
""",
        "n",
        1,
    ),
    "sink": Cascade(
        f"""{_HEADS}\
C[h, m, n] = where(n <= m, S[h, m, n], -inf)
M[h, m] = maximum(max[n](C[h, m, n]), s[h])
E[h, m, n] = exp(C[h, m, n] - M[h, m])
Z[h, m] = sum[n](E[h, m, n]) + exp(s[h] - M[h, m])
output O[h, m, l] = sum[n](E[h, m, n] * V[h, n, l]) / Z[h, m]
""",
        "n",
        1,
    ),
    "sink_first": Cascade(
        f"""{_HEADS}\
M[h, m] = maximum(s[h], max[n](S[h, m, n]))
E[h, m, n] = exp(S[h, m, n] - M[h, m])
output O[h, m, l] = sum[n](E[h, m, n] * V[h, n, l]) / (exp(s[h] - M[h, m]) + sum[n](E[h, m, n]))
""",
        "n",
        1,
    ),
    "slopes": Cascade(
        f"""{_HEADS}\
C[h, m, n] = where(n <= m, S[h, m, n] - s[h] * (m - n), -inf)
output O[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
""",
        "n",
        1,
    ),
    "bias": Cascade(
        f"{_HEADS}output O[h, m, l] = sum[n](softmax[n](tanh(S[h, m, n]) + b[h, m, n]) * V[h, n, l])", "n", 1
    ),
    "softcap_window": Cascade(
        f"""{_HEADS}\
C[h, m, n] = where(n <= m and m - n < 100, 50 * tanh(S[h, m, n] / 50), -inf)
output O[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
""",
        "n",
        1,
    ),
    "softmin": Cascade(
        f"""{_SCORES}\
W[m, n] = exp(min[n](S[m, n]) - S[m, n])
output O[m, l] = sum[n](W[m, n] * V[n, l]) / sum[n](W[m, n])
""",
        "n",
        1,
    ),
    "squared_weights": Cascade(f"{_SCORES}output O[m, l] = sum[n](softmax[n](S[m, n]) ^ 2 * V[n, l])", "n", 1),
    "difference": Cascade(
        f"""{_TWO_SCORES}\
P[m, n] = softmax[n](S[m, n]) - lam * softmax[n](T[m, n])
output O[m, l] = sum[n](P[m, n] * V[n, l])
""",
        "n",
        1,
    ),
    "mixture": Cascade(
        f"{_TWO_SCORES}output O[m, l] = sum[n]((softmax[n](S[m, n]) + softmax[n](T[m, n])) * V[n, l])", "n", 1
    ),
    "two_temperatures": Cascade(
        f"""{_SCORES}\
output O[m, l] = sum[n](softmax[n](S[m, n]) * V[n, l]) + sum[n](softmax[n](2 * S[m, n]) * U[n, l])
""",
        "n",
        1,
    ),
    "two_values": Cascade(
        f"""{_SCORES}\
P[m, n] = softmax[n](S[m, n])
output A[m, l] = sum[n](P[m, n] * V[n, l])
output B[m, l] = sum[n](P[m, n] * U[n, l])
""",
        "n",
        1,
    ),
    "variance": Cascade(f"{_ROWS}output v[m] = variance[k](X[m, k])", "k", 1),
    "moments": Cascade(
        f"""{_ROWS}\
mu[m] = mean[k](X[m, k])
c[m] = sum[k]((X[m, k] - mu[m]) ^ 2)
output z[m] = mu[m] / sqrt(c[m] / size(k) + 1e-5)
""",
        "k",
        1,
    ),
    "layer_norm": Cascade(f"{_ROWS}output Y[m, k] = layer_norm[k](X[m, k])", "k", 2),
    "batch_norm": Cascade(
        "program columns\nindex m = 200000, c = 64\ninput X[m, c] : f32\noutput Y[m, c] = layer_norm[m](X[m, c])",
        "m",
        2,
    ),
    "three_projections": Cascade(
        """\
program three_projections
index m = 256, k = 512, d = 512
input X[m, k] : f32
weight A[k, d], B[k, d], C[k, d] : f32
H[m, k] = rms_norm[k](X[m, k])
output Q[m, d] = sum[k](H[m, k] * A[k, d])
output K[m, d] = sum[k](H[m, k] * B[k, d])
output V[m, d] = sum[k](H[m, k] * C[k, d])
""",
        "k",
        1,
    ),
    "projections_of_unequal_widths": Cascade(
        """\
program projections
index m = 256, k = 512, d = 512, e = 128, l = 128
input X[m, k] : f32
weight A[k, d], B[k, e], C[k, l] : f32
H[m, k] = rms_norm[k](X[m, k])
output Q[m, d] = sum[k](H[m, k] * A[k, d])
output K[m, e] = sum[k](H[m, k] * B[k, e])
output V[m, l] = sum[k](H[m, k] * C[k, l])
""",
        "k",
        4,  # the statistics, then one for each width, over one local row of X
    ),
    "gate_and_up": Cascade(
        """\
program gate_and_up
index m = 256, k = 512, f = 512
input X[m, k] : f32
weight A[k, f], B[k, f] : f32
H[m, k] = rms_norm[k](X[m, k])
output G[m, f] = silu(sum[k](H[m, k] * A[k, f]))
output U[m, f] = sum[k](H[m, k] * B[k, f])
""",
        "k",
        1,
    ),
}
