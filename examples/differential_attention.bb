# Differential attention: the difference of two softmaxes weighs the values.
program differential_attention
index m = 512, n = m, d = 64, l = 64

input  Q1[m, d], K1[n, d], Q2[m, d], K2[n, d], V[n, l] : f32
weight lambda : f32
S1[m, n] = sum[d](Q1[m, d] * K1[n, d]) / sqrt(size(d))
S2[m, n] = sum[d](Q2[m, d] * K2[n, d]) / sqrt(size(d))
P[m, n] = softmax[n](S1[m, n]) - lambda * softmax[n](S2[m, n])
output O[m, l] = sum[n](P[m, n] * V[n, l])
