# Inference-time batch normalisation and ReLU in half precision; the declared fact lets rules divide by s.
program batch_norm_relu
index m = 1024, c = 256

input  X[m, c] : f16
weight mu[c], s[c], gamma[c], beta[c] : f16
assume positive(s)
N[m, c] = (X[m, c] - mu[c]) / s[c]
output Y[m, c] = relu(N[m, c] * gamma[c] + beta[c])
