# Self-attention from one activation: X is read as queries (m) and as keys and values (n).
program self_attention
index m = 512, n = m, e = 256, d = 64, l = 64

input  X[m, e] : f32
weight WQ[e, d], WK[e, d], WV[e, l] : f32
Q[m, d] = sum[e](X[m, e] * WQ[e, d])
K[n, d] = sum[e](X[n, e] * WK[e, d])
V[n, l] = sum[e](X[n, e] * WV[e, l])
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
output O[m, l] = sum[n](softmax[n](S[m, n]) * V[n, l])
