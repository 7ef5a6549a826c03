program alignment
index m = 33, n = 17, k = 5, j = m
input A[m, k], B[n, k], C[m, n], D[n, m], u[m], v[n], w[k], z, E[m, j] : f32
output O1[m, n] = C[m, n] + D[n, m]
output O2[n, m] = C[m, n] * u[m] - v[n] / C[m, n]
output O3[m, n] = u[m] * v[n]
output O4[m, n] = u[m] - v[n]
output O5[m, n] = maximum(C[m, n], v[n])
output O6[m, n] = u[m]
output O7[m, n] = 3
output O8[m, n] = sum[k](A[m, k] * B[n, k] * w[k] * u[m] / v[n] * C[m, n] * z)
output O9[m] = sum[n, k](A[m, k] * B[n, k] * v[n])
output P1[m, n] = max[k](A[m, k] + B[n, k])
output P2[m, k] = A[m, k] / sum[k](A[m, k])
output P3[m] = A[m, 2] + C[size(m) - 1 - m, 3]
output P4[m] = E[m, m]
output P5[m, n] = exp(m - n) * C[m, n]
output P6 = prod[n](2)
output P7[n] = sum[m](A[m, 0] * C[m, n])
