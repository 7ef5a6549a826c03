# RMSNorm, then queries, keys and values: three outputs from one pass over X, keys and values narrower than queries.
program rmsnorm_qkv
index m = 512, c = 1024, d = 1024, e = 256, l = e

input  X[m, c] : f32
weight g[c], WQ[c, d], WK[c, e], WV[c, l] : f32
H[m, c] = rms_norm[c](X[m, c]) * g[c]
output Q[m, d] = sum[c](H[m, c] * WQ[c, d])
output K[m, e] = sum[c](H[m, c] * WK[c, e])
output V[m, l] = sum[c](H[m, c] * WV[c, l])
