"""Attacks and their outcomes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfumato.audit.bounds import epsilon_lower_bound, exact_epsilon

__all__ = ["Attack", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was claimed and what was proven: the claim is refuted where the proven lower bound lies above it."""

    name: str
    kind: str
    method: str
    epsilon: float
    delta: float
    proven: float
    confidence: float

    @property
    def refuted(self) -> bool:
        """Whether the claim cannot be true (with the stated confidence; a hair of float rounding is allowed for)."""
        return self.proven > self.epsilon * (1 + 1e-9) + 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Two neighbouring inputs put through one mechanism: as exact finite laws, or as samplers of a number.

    ``kind`` names the mechanism attacked; ``here`` and ``there`` take a number of samples (``exact``: none) and return
    the outputs (the probabilities) for the two inputs. ``share`` is how much of the claim the attack must prove on a
    sound mechanism, or it has become blunt; 0 where it looks for something else than the whole loss.
    """

    name: str
    kind: str
    epsilon: float
    delta: float
    here: Callable[[int], Any]
    there: Callable[[int], Any]
    exact: bool = False
    share: float = 0.9

    def run(self, *, samples: int, alpha: float) -> Verdict:
        """Attack; an exact attack needs no samples and leaves no doubt."""
        if self.exact:
            proven, method, confidence = exact_epsilon(self.here(0), self.there(0), delta=self.delta), "exact loss", 1.0
        else:
            proven = epsilon_lower_bound(self.here(samples), self.there(samples), delta=self.delta, alpha=alpha)
            method, confidence = f"{samples:,} samples", 1 - alpha
        return Verdict(
            name=self.name,
            kind=self.kind,
            method=method,
            epsilon=self.epsilon,
            delta=self.delta,
            proven=proven,
            confidence=confidence,
        )
