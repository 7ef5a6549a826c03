program batched_attention
index b = 2, m = 100, h = 8, g = 2, n = m, d = 64, l = 64
input Q[b, m, h, d], K[b, n, g, d], V[b, n, g, l] : f16
S[b, h, m, n] = sum[d](Q[b, m, h, d] * K[b, n, h / 4, d])
C[b, h, m, n] = where(n <= m and m - n < 128, S[b, h, m, n], -inf)
output O[b, m, h, l] = sum[n](softmax[n](C[b, h, m, n]) * V[b, n, h / 4, l])
