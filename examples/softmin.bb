# Attention by distance: the nearest key weighs most, relative to a running minimum.
program softmin
index m = 512, n = m, d = 64, l = 64

input  Q[m, d], K[n, d], V[n, l] : f32
D[m, n] = sum[d]((Q[m, d] - K[n, d])^2)
W[m, n] = exp(min[n](D[m, n]) - D[m, n])
output O[m, l] = sum[n](W[m, n] * V[n, l]) / sum[n](W[m, n])
