# One layer of a Llama-like decoder: attention with rotary positions and grouped queries, and a gated network.
# The halves of a head that a rotation mixes are an index of their own, s: the other half is 1 - s.
program decoder_layer
index m = 256, n = m, c = 512, e = c
index h = 8, g = 2
index s = 2, r = 32, l = 64
index f = 1408

input  X[m, c] : f32
weight g1[c], Wq[c, h, s, r], Wk[c, g, s, r], Wv[c, g, l], Wo[h, l, e] : f32
weight g2[c], W1[c, f], W3[c, f], W2[f, e] : f32

def angle[r](position) = position * exp(-log(10000) * r / size(r))

A[m, c] = rms_norm[c](X[m, c]) * g1[c]
Q[h, s, m, r] = sum[c](A[m, c] * Wq[c, h, s, r])
K[g, s, m, r] = sum[c](A[m, c] * Wk[c, g, s, r])
V[g, m, l] = sum[c](A[m, c] * Wv[c, g, l])
QR[h, s, m, r] = Q[h, s, m, r] * cos(angle[r](m)) + where(s == 0, -1, 1) * Q[h, 1 - s, m, r] * sin(angle[r](m))
KR[g, s, m, r] = K[g, s, m, r] * cos(angle[r](m)) + where(s == 0, -1, 1) * K[g, 1 - s, m, r] * sin(angle[r](m))
S[h, m, n] = sum[s, r](QR[h, s, m, r] * KR[h / 4, s, n, r]) / sqrt(2 * size(r))
P[h, m, n] = softmax[n](where(n <= m, S[h, m, n], -inf))
O[h, m, l] = sum[n](P[h, m, n] * V[h / 4, n, l])
Y[m, e] = X[m, e] + sum[h, l](O[h, m, l] * Wo[h, l, e])

B[m, c] = rms_norm[c](Y[m, c]) * g2[c]
G[m, f] = silu(sum[c](B[m, c] * W1[c, f])) * sum[c](B[m, c] * W3[c, f])
output Z[m, e] = Y[m, e] + sum[f](G[m, f] * W2[f, e])
