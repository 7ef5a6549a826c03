program layernorm_matmul
index m = 512, k = 1024, n = 1024
input  X[m, k] : f32
weight W[k, n] : f32
H[m, k] = layer_norm[k](X[m, k])
output Y[m, n] = sum[k](H[m, k] * W[k, n])
