# Causal attention with sinks: a learned logit for each head joins the denominator, and nothing is attended to.
program attention_sinks
index h = 4, m = 512, n = m, d = 64, l = 64

input  Q[h, m, d], K[h, n, d], V[h, n, l] : f32
weight sink[h] : f32
S[h, m, n] = sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d))
C[h, m, n] = where(n <= m, S[h, m, n], -inf)
M[h, m] = maximum(max[n](C[h, m, n]), sink[h])
E[h, m, n] = exp(C[h, m, n] - M[h, m])
Z[h, m] = sum[n](E[h, m, n]) + exp(sink[h] - M[h, m])
output O[h, m, l] = sum[n](E[h, m, n] * V[h, n, l]) / Z[h, m]
