# Attention with capped logits in a sliding window, as in Gemma 2; a `def` of the user's own.
program softcap_window_attention
index h = 4, m = 512, n = m, d = 64, l = 64

def softcap(x, c) = c * tanh(x / c)

input  Q[h, m, d], K[h, n, d], V[h, n, l] : f32
S[h, m, n] = softcap(sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d)), 50)
C[h, m, n] = where(n <= m and m - n < 128, S[h, m, n], -inf)
output O[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
