# LayerNorm followed by a linear layer.
program layernorm_matmul
index m = 512, k = 1024, n = 1024

input  X[m, k] : f32
weight W[k, n], g[k], b[k] : f32
H[m, k] = layer_norm[k](X[m, k]) * g[k] + b[k]
output Y[m, n] = sum[k](H[m, k] * W[k, n])
