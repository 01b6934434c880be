"""Attention within a row: the matrices of nn.MultiheadAttention. What is built of linear layers needs no rule."""

import math
from collections.abc import Callable
from typing import Any  # layers of torch, by attributes that only some have

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.learning.engine.record import ForwardRecord, Site
from sfumato.learning.given import Tree

__all__ = ["TYPES", "forward", "third", "unfit"]

TYPES: tuple[type[nn.Module], ...] = (nn.MultiheadAttention,)


def unfit(layer: nn.Module) -> str | None:
    """Why a layer of these types has no rule after all."""
    if not getattr(layer, "_qkv_same_embed_dim", False):
        return "keys or values have another width than queries"
    if getattr(layer, "bias_k", None) is not None or getattr(layer, "add_zero_attn", False):
        return "it adds further keys"
    return None


def third(name: str, at: int) -> str:
    """What one of the three matrices within a parameter is called."""
    return f"{name} {at}"


def forward(layer: Any, name: str, record: ForwardRecord) -> Callable[..., Tree]:
    """The layer's forward pass, with each product written down."""

    def project(inputs: Tensor, at: int) -> Tensor:
        width = layer.embed_dim
        rows = slice(at * width, (at + 1) * width)
        bias = None if layer.in_proj_bias is None else layer.in_proj_bias[rows]
        return record.linear(Site(layer=name, matrix=str(at)), inputs, layer.in_proj_weight[rows], bias)

    def run(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,  # noqa: FBT001, FBT002
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,  # noqa: FBT001, FBT002
        is_causal: bool = False,  # noqa: FBT001, FBT002
    ) -> tuple[Tensor, Tensor | None]:
        if not layer.batch_first:
            query, key, value = (part.transpose(0, 1) for part in (query, key, value))
        heads = layer.num_heads
        q, k, v = (_heads(project(part, at), heads) for at, part in enumerate((query, key, value)))
        scores = q @ k.transpose(-2, -1) / math.sqrt(layer.head_dim)
        if is_causal and attn_mask is None:
            raise ValueError("is_causal is a hint and needs attn_mask; nothing was computed.")
        if attn_mask is not None:
            added = _added(attn_mask, scores)
            scores = scores + (added.reshape(-1, heads, *added.shape[1:]) if added.dim() == 3 else added)
        if key_padding_mask is not None:
            scores = scores + _added(key_padding_mask, scores)[:, None, None]
        weights = F.dropout(torch.softmax(scores, -1), layer.dropout, layer.training)
        joined = (weights @ v).transpose(1, 2).flatten(2)
        last = layer.out_proj
        output = record.linear(Site(layer=f"{name}.out_proj".lstrip(".")), joined, last.weight, last.bias)
        told = (weights.mean(1) if average_attn_weights else weights) if need_weights else None
        return output if layer.batch_first else output.transpose(0, 1), told

    return run


def _heads(values: Tensor, heads: int) -> Tensor:
    return values.reshape(*values.shape[:2], heads, -1).transpose(1, 2)


def _added(mask: Tensor, scores: Tensor) -> Tensor:
    """A mask as what is added to scores."""
    return torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask, -math.inf) if mask.dtype == torch.bool else mask
