# Causal attention with a KV cache: query m stands at position m + size(n) - size(m).
program causal_attention
index b = 2, h = 4, m = 256, n = 512, d = 64, l = 64

input  Q[b, h, m, d], K[b, h, n, d], V[b, h, n, l] : f32
S[b, h, m, n] = sum[d](Q[b, h, m, d] * K[b, h, n, d]) / sqrt(size(d))
C[b, h, m, n] = where(n <= m + size(n) - size(m), S[b, h, m, n], -inf)
P[b, h, m, n] = softmax[n](C[b, h, m, n])
output O[b, h, m, l] = sum[n](P[b, h, m, n] * V[b, h, n, l])
