"""The factor of each unit."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sfumato.learning.engine.bounds import CROWD

__all__ = ["Factors", "factors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What each unit's gradient is multiplied by, and its norm before that. Sensitive."""

    factors: Tensor
    norms: Tensor
    counted: Tensor


def factors(squared: Tensor, spread: Tensor | None, present: Tensor, clip: float) -> Factors:
    """min(1, clip / norm, CROWD · clip / spread) for units that are present and finite, and 0 for the others.

    ``squared`` are squared norms in double precision. ``spread`` are the squares of the sums of absolute values behind
    them, where some layer is summed as products of many places.
    """
    counted = present & torch.isfinite(squared)
    norms = squared.sqrt()
    found = clip / norms.clamp(min=clip)
    if spread is not None:
        counted = counted & torch.isfinite(spread)
        found = torch.minimum(found, CROWD * clip / spread.sqrt().clamp(min=CROWD * clip))
    return Factors(factors=torch.where(counted, found, 0.0), norms=torch.where(counted, norms, 0.0), counted=counted)
