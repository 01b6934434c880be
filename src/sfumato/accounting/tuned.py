"""The best of a hidden number of runs: what it costs at each Rényi order to release that and nothing else.

Proof: docs/proofs/tuning.md
"""

from collections.abc import Iterable
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.events import Tuned
from sfumato.core.hidden_runs import expected_runs

__all__ = ["spread", "tuned_loss"]


def tuned_loss(base: Fraction, spread: Fraction, event: Tuned, order: Fraction) -> Fraction:
    """ε(λ) + spread + ln E[K]/(λ − 1), rounded up: the loss of the best of K runs, each of which loses ``base``.

    >>> from sfumato.core.events import Gaussian
    >>> run = Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(25))
    >>> search = Tuned(events=(run,), eta=Fraction(1), gamma=Fraction(1, 10), most=40)
    >>> float(round(tuned_loss(Fraction(1, 5), Fraction(1), search, Fraction(10)), 3))  # 0.2 + 1 + ln(9.4)/9
    1.449
    """
    mean = expected_runs(event.eta, event.gamma, event.most)
    return base + spread + max(Fraction(0), enclosures.log(mean).high) / (order - 1)


def spread(losses: Iterable[tuple[Fraction, Fraction]], event: Tuned) -> Fraction:
    """(1 + η)·((1 − 1/λ̂)·ε̂ + ln(1/γ)/λ̂) at the best of the orders λ̂ with their losses ε̂, or at λ̂ = 1; rounded up."""
    if event.most == 1:
        return Fraction(0)
    log = -enclosures.log(event.gamma).low
    found = [log, *((1 - 1 / order) * loss + log / order for order, loss in losses)]
    return (1 + event.eta) * min(found)
