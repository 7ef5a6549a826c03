# LayerNorm, a two-layer network with GELU, and the residual connection around both.
program layernorm_mlp
index m = 256, d = 512, f = 2048, e = d

input  X[m, d] : f32
weight g[d], b[d], W1[d, f], b1[f], W2[f, e], b2[e] : f32
H[m, d] = layer_norm[d](X[m, d]) * g[d] + b[d]
A[m, f] = gelu(sum[d](H[m, d] * W1[d, f]) + b1[f])
output Y[m, e] = sum[f](A[m, f] * W2[f, e]) + b2[e] + X[m, e]
