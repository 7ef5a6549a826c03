"""The texts of the three programs of the paper, at the sizes for which their plans are stated."""

ATTENTION = """\
program attention
index m = 4096, n = 4096, d = 64, l = 64
input  Q[m, d], K[n, d], V[n, l] : f32
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
P[m, n] = softmax[n](S[m, n])
output O[m, l] = sum[n](P[m, n] * V[n, l])
"""

LAYERNORM_MATMUL = """\
program layernorm_matmul
index m = 512, k = 1024, n = 1024
input  X[m, k] : f32
weight W[k, n] : f32
N[m, k] = layer_norm[k](X[m, k])
output Y[m, n] = sum[k](N[m, k] * W[k, n])
"""

RMSNORM_SWIGLU = """\
program rmsnorm_swiglu
index m = 128, d = 1024, f = 2816, e = d
input  X[m, d] : f32
weight W1[d, f], W3[d, f], W2[f, e], g[d] : f32
H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
output Y[m, e] = sum[f](G[m, f] * W2[f, e])
"""

HEADLINE = {"attention": ATTENTION, "layernorm_matmul": LAYERNORM_MATMUL, "rmsnorm_swiglu": RMSNORM_SWIGLU}
SMALL = {
    "attention": {"m": 70, "n": 130, "d": 20, "l": 24},
    "layernorm_matmul": {"m": 33, "k": 150, "n": 70},
    "rmsnorm_swiglu": {"m": 20, "d": 72, "f": 140, "e": 72},
}
