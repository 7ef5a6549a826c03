# RMSNorm, then the SwiGLU feed-forward network of Llama-like models.
program rmsnorm_swiglu
index m = 128, d = 1024, f = 2816, e = d
input  X[m, d] : f32
weight W1[d, f], W3[d, f], W2[f, e], g[d] : f32

H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
output Y[m, e] = sum[f](G[m, f] * W2[f, e])
