program convolution
index p = 72, m = 70, i = 3, c = 5, o = 6
input  X[p, c] : f32
weight W[i, c, o] : f32
output Y[m, o] = relu(sum[i, c](X[m + i, c] * W[i, c, o]))
output Z[m, c] = where(m > 0, X[m - 1, c], 0) + X[2 * m / 3, c]
