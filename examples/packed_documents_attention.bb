# Causal attention over documents packed into one sequence: a position sees its own document only. `D` has the document
# of each position; blocks without a common document are skipped at run time.
program packed_documents_attention
index h = 4, m = 512, n = m, d = 64, l = 64

input  Q[h, m, d], K[h, n, d], V[h, n, l] : f32
input  D[m] : i32
S[h, m, n] = sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d))
C[h, m, n] = where(n <= m and D[m] == D[n], S[h, m, n], -inf)
output O[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
