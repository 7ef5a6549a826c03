"""Random masked programs: conditions over the positions m and n and over documents, in sums, extremes and softmax."""

from __future__ import annotations

from hypothesis import strategies as st

# Each is a condition over m and n, with numbers to fill in; p is an input, D and L are integers from tensors.
_COMPARISONS = (
    "n <= m + {a}",
    "m - n < {b}",
    "n < {b}",
    "n < p",
    "m >= n - {a}",
    "n != m",
    "n == m + {a}",
    "2 * n <= m + {a}",
    "3 * n - {b} > 2 * m",
    "n <= m + size(n) - size(m)",
    "D[m] == F[n]",
    "n < L[m]",
    "n + m >= {b}",
    "floor(m / 3) == floor(n / 3)",
    "floor((m + {a}) / 4) <= floor((2 * n - {b}) / 5)",
)


def comparisons() -> st.SearchStrategy[str]:
    """One comparison with its numbers."""

    def filled(text: str, a: int, b: int) -> str:
        return text.format(a=a, b=b)

    return st.builds(filled, st.sampled_from(_COMPARISONS), st.integers(0, 3), st.integers(0, 9))


def conditions() -> st.SearchStrategy[str]:
    """Comparisons under `and`, `or` and `not`."""
    return st.recursive(
        comparisons(),
        lambda inner: (
            st.builds("({} and {})".format, inner, inner)
            | st.builds("({} or {})".format, inner, inner)
            | st.builds("(not {})".format, inner)
        ),
        max_leaves=4,
    )


BODIES = {
    "sum": "output O[m] : f64 = sum[n](where({c}, X[m, n], 0))",
    "max": "output O[m] : f64 = max[n](where({c}, X[m, n], -inf))",
    "min": "output O[m] : f64 = min[n](where({c}, X[m, n], inf))",
    "hidden where true": "output O[m] : f64 = sum[n](where({c}, 0, X[m, n]))",
    "added": "output O[m, l] : f64 = sum[n](softmax[n](X[m, n] + where({c}, 0, -inf)) * V[n, l])",
    "by hand": "E[m, n] : f64 = exp(where({c}, X[m, n], -inf) - max[n](where({c}, X[m, n], -inf)))\n"
    "output O[m, l] : f64 = sum[n](E[m, n] * V[n, l]) / sum[n](E[m, n])",
    "softmax": "output O[m, l] : f64 = sum[n](softmax[n](where({c}, X[m, n], -inf)) * V[n, l])",
    "product": "output O[m, l] : f64 = sum[n](where({c}, X[m, n], 0) * V[n, l])",
    "two masks": "output O[m] : f64 = sum[n](where({c}, X[m, n], 0) + where(n < 3, X[m, n], 0))",
    "logsumexp": "output O[m] : f64 = logsumexp[n](where({c}, X[m, n], -inf))",
}


def masked_program(form: str, condition: str, m: int = 7, n: int = 7) -> str:
    """A program of one of the forms; D and F have the documents of positions m and n."""
    return (
        f"program test\nindex m = {m}, n = {n}, l = 3\n"
        "input X[m, n], V[n, l] : f64\ninput D[m], F[n], L[m], p : i32\n" + BODIES[form].format(c=condition) + "\n"
    )
