# Grouped-query attention: four query heads share one head of keys and values.
program grouped_query_attention
index b = 2, h = 8, g = 2, m = 256, n = 256, d = 64, l = 64

input  Q[b, h, m, d], K[b, g, n, d], V[b, g, n, l] : f32
S[b, h, m, n] = sum[d](Q[b, h, m, d] * K[b, h / 4, n, d]) / sqrt(size(d))
P[b, h, m, n] = softmax[n](S[b, h, m, n])
output O[b, h, m, l] = sum[n](P[b, h, m, n] * V[b, h / 4, n, l])
