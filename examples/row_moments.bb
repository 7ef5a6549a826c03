# Mean and standard deviation of long rows, in one pass over X however large the mean is.
program row_moments
index m = 64, k = 100000

input  X[m, k] : f32
output mu[m] = mean[k](X[m, k])
output sigma[m] = sqrt(mean[k]((X[m, k] - mu[m])^2))
