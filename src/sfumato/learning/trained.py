"""What a training run comes to: a model, its release, and what it cost."""

from dataclasses import dataclass
from fractions import Fraction

from torch import nn

from sfumato.core.release import Release
from sfumato.learning.sealed_canaries import RevealedCanaries

__all__ = ["Trained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A trained model and what it cost. Public: all of it.

    ``release`` has the certificate, which identifies the weights by their digest; ``curve`` is the ε after some of the
    steps, at the δ of the run. ``canaries`` are those of the run, with their coins, where there were any.
    """

    model: nn.Module
    release: Release
    epsilon: Fraction
    delta: Fraction
    curve: tuple[tuple[int, Fraction], ...]
    canaries: RevealedCanaries | None = None
