program losses
index m = 256, k = 256, n
input  X[m, k], W[k, n] : f32
input  T[m] : i32
Z[m, n] = sum[k](X[m, k] * W[k, n])
L[m] = logsumexp[n](Z[m, n]) - sum[n](where(n == T[m], Z[m, n], 0))
output loss = mean[m](L[m])
output A[m, n] = log_softmax[n](Z[m, n] * 2)
output B[m] = variance[n](Z[m, n])
output C[m, k] = l2_norm[k](X[m, k])
output D[m, k] = softmax[m](X[m, k])
