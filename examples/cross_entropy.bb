# Mean cross-entropy of a linear classifier; T holds the right class of each row.
program cross_entropy
index m = 256, k = 256, n = 1000

input  X[m, k] : f32
input  T[m] : i32
weight W[k, n] : f32
Z[m, n] = sum[k](X[m, k] * W[k, n])
L[m] = logsumexp[n](Z[m, n]) - sum[n](where(n == T[m], Z[m, n], 0))
output loss = mean[m](L[m])
