# Attention over one head. Fused, the score matrix never reaches global memory.
program attention
index m = 4096, n = 4096, d = 64, l = 64

input  Q[m, d], K[n, d], V[n, l] : f32
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
P[m, n] = softmax[n](S[m, n])
output O[m, l] = sum[n](P[m, n] * V[n, l])
