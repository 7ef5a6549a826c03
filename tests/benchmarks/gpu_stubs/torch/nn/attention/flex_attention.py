"""FlexAttention without masks: making one fails, as it does where Triton is missing."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def create_block_mask(*_: Any) -> Any:
    raise RuntimeError("no Triton here\nand a long explanation")


def flex_attention(q: Tensor, k: Tensor, v: Tensor, block_mask: None) -> Tensor:
    return scaled_dot_product_attention(q, k, v, False)
