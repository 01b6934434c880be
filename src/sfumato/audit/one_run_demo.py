"""The demonstration of an audit of one run: a vault of its own, invented people, and a certificate like any other."""

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from sfumato.core.budget import Budget
from sfumato.core.units import record

if TYPE_CHECKING:
    from sfumato.learning.trained import Trained

__all__ = ["demonstrated"]

POPULATION = 10_000


def demonstrated(
    *,
    canaries: int,
    weights: int = 2_000,
    score: Literal["gradient", "loss"] = "gradient",
    epsilon: Fraction = Fraction(4),
    delta: Fraction = Fraction(1, 100_000),
    confidence: Fraction = Fraction(19, 20),
) -> "Trained":
    """A trained model of invented people, with canaries."""
    from sfumato.core.extras import need

    need("torch", "pip install 'sfumato[learning]'")
    from sfumato.learning.canary_demo import demonstration
    from sfumato.vault import Vault

    vault = Vault(
        unit=record(relation="add/remove"),
        budget=Budget(epsilon=epsilon, delta=delta),
        name="demonstration",
        population=POPULATION,
    )
    return demonstration(
        vault.trainer,
        canaries=canaries,
        weights=weights,
        score=score,
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
    )
