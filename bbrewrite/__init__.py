"""bbrewrite: block-level operator fusion as text rules over an e-graph.

This package file only states the version; the stages live in the sub-packages, in the order in
which data flows: `lang` (text to array programs), `lower` (array to block programs), `rules` (rule
text to egglog), `egraph` (saturation), `plan` (extraction and scheduling), `codegen`, `runtime`,
`verify` and `cli`. `core` holds the forms that the stages exchange.
"""

__version__ = "0.1.0"
