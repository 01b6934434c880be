"""The factor of each unit."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sfumato.learning.engine.bounds import CROWD, FAINTEST

__all__ = ["Factors", "factors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What each unit's gradient is multiplied by, and its norm before that. Sensitive."""

    factors: Tensor
    norms: Tensor
    counted: Tensor


def factors(squared: Tensor, spread: Tensor | None, present: Tensor, clip: float) -> Factors:
    """min(1, clip / norm, CROWD · clip / spread) for units that are present and finite, and 0 for the others.

    Factors below FAINTEST are 0 as well: in single precision they would be rounded by more than a part of themselves.

    ``squared`` are squared norms in double precision. ``spread`` are the squares of the sums of absolute values behind
    them, where some layer is summed as products of many places.
    """
    counted = present & torch.isfinite(squared)
    norms = squared.sqrt()
    found = clip / norms.clamp(min=clip)
    if spread is not None:
        counted = counted & torch.isfinite(spread)
        found = torch.minimum(found, CROWD * clip / spread.sqrt().clamp(min=CROWD * clip))
    found = torch.where(found < FAINTEST, 0.0, found)
    return Factors(factors=torch.where(counted, found, 0.0), norms=torch.where(counted, norms, 0.0), counted=counted)
