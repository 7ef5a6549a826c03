# A decoder of 32 layers, each as in decoder_layer.bb: `repeat` makes its body once for each, on the weights of that layer.
program decoder
index layer = 32
index m = 64, n = m, c = 128, e = c
index h = 4, g = 2
index s = 2, r = 16, l = 32
index f = 352

input  X[m, c] : f32
weight g1[layer, c], Wq[layer, c, h, s, r], Wk[layer, c, g, s, r], Wv[layer, c, g, l], Wo[layer, h, l, e] : f32
weight g2[layer, c], W1[layer, c, f], W3[layer, c, f], W2[layer, f, e], g3[c] : f32

def angle[r](position) = position * exp(-log(10000) * r / size(r))

repeat layer
    carry H[m, c] = X[m, c]
    A[m, c] = rms_norm[c](H[m, c]) * g1[layer, c]
    Q[h, s, m, r] = sum[c](A[m, c] * Wq[layer, c, h, s, r])
    K[g, s, m, r] = sum[c](A[m, c] * Wk[layer, c, g, s, r])
    V[g, m, l] = sum[c](A[m, c] * Wv[layer, c, g, l])
    QR[h, s, m, r] = Q[h, s, m, r] * cos(angle[r](m)) + where(s == 0, -1, 1) * Q[h, 1 - s, m, r] * sin(angle[r](m))
    KR[g, s, m, r] = K[g, s, m, r] * cos(angle[r](m)) + where(s == 0, -1, 1) * K[g, 1 - s, m, r] * sin(angle[r](m))
    S[h, m, n] = sum[s, r](QR[h, s, m, r] * KR[h / 2, s, n, r]) / sqrt(2 * size(r))
    P[h, m, n] = softmax[n](where(n <= m, S[h, m, n], -inf))
    O[h, m, l] = sum[n](P[h, m, n] * V[h / 2, n, l])
    Y[m, e] = H[m, e] + sum[h, l](O[h, m, l] * Wo[layer, h, l, e])
    B[m, c] = rms_norm[c](Y[m, c]) * g2[layer, c]
    G[m, f] = silu(sum[c](B[m, c] * W1[layer, c, f])) * sum[c](B[m, c] * W3[layer, c, f])
    next H[m, e] = Y[m, e] + sum[f](G[m, f] * W2[layer, f, e])

output Z[m, c] = rms_norm[c](H[m, c]) * g3[c]
