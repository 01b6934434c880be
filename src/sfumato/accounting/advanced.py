"""Advanced composition: less than the sum of ε, for a little more δ.

It holds for ε and δ that were fixed beforehand; for sums chosen on the way there are filters.
Proof: docs/proofs/advanced_composition.md
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from sfumato.accounting.composition import loss_of
from sfumato.accounting.event_counts import event_counts
from sfumato.core import enclosures
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact, natural, non_negative, positive, probability
from sfumato.core.guarantees import Approximate
from sfumato.errors import Refused

__all__ = ["compose", "delta", "epsilon", "textbook"]


def compose(events: PrivacyEvent | Iterable[PrivacyEvent], *, slack: Exact) -> Approximate:
    """ε = Σ εᵢ tanh(εᵢ/2) + √(2 ln(1/δ̃) Σ εᵢ²), δ = Σ δᵢ + δ̃, with δ̃ = ``slack``; or the plain sum where that is less.

    Guarantee: (ε, δ)-DP for all together, rounded up.
    Assumes: each event's ε and δ were fixed beforehand; its question may depend on earlier outputs.
    Proof: docs/proofs/advanced_composition.md

    >>> from sfumato.core.events import Repeated, Stated
    >>> step = Stated(guarantee=Approximate(epsilon=Fraction("0.05"), delta=Fraction("1e-8")))
    >>> total = compose(Repeated(event=step, times=1440), slack=1e-7)
    >>> float(round(total.epsilon, 3)), float(total.delta)
    (12.572, 1.45e-05)
    """
    room, (plain, drift, squares, own) = _slack(slack), _sums(event_counts(events))
    return Approximate(epsilon=min(plain, drift + _spread(squares, room)), delta=min(Fraction(1), own + room))


def textbook(*, epsilon: Exact, delta: Exact, times: int, slack: Exact) -> Approximate:
    """ε√(2T ln(1/δ̃)) + Tε(e^ε − 1) and Tδ + δ̃: the formula of the textbooks (Dwork and Roth 2014), looser than compose.

    >>> float(round(textbook(epsilon=0.05, delta=1e-8, times=1440, slack=1e-7).epsilon, 4))
    14.4642
    """
    step, own = non_negative(epsilon, "epsilon"), probability(delta, "delta")
    count, room = natural(times, "times"), _slack(slack)
    drift = count * step * (enclosures.exp(step).high - 1)
    return Approximate(
        epsilon=_spread(count * step**2, room) + drift,
        delta=min(Fraction(1), count * own + room),
    )


def epsilon(events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact) -> Fraction:
    """The ε at a total δ: what the events' own δ leave is the slack."""
    asked = probability(delta, "delta")
    plain, drift, squares, own = _sums(event_counts(events))
    if asked < own:
        raise Refused(f"no ε goes with δ = {asked}: the events' own δ add up to {own}. Ask for more than that.")
    if asked == own:
        return plain
    return min(plain, drift + _spread(squares, asked - own))


def delta(events: PrivacyEvent | Iterable[PrivacyEvent], *, epsilon: Exact) -> Fraction:
    """The δ at ε: Σ δᵢ + e^(−(ε − drift)²/(2Σεᵢ²)), rounded up; Σ δᵢ from the plain sum on, and 1 up to the drift."""
    asked = non_negative(epsilon, "epsilon")
    plain, drift, squares, own = _sums(event_counts(events))
    if asked >= plain:
        return min(Fraction(1), own)
    beyond = max(Fraction(0), asked - drift)
    return min(Fraction(1), own + enclosures.exp(-(beyond**2) / (2 * squares)).high)


def _slack(slack: Exact) -> Fraction:
    return positive(probability(slack, "slack"), "slack")


def _spread(squares: Fraction, room: Fraction) -> Fraction:
    """√(2 ln(1/δ̃) Σεᵢ²), rounded up."""
    return enclosures.sqrt(-2 * squares * enclosures.log(room).low).high


def _sums(events: Counter[PrivacyEvent]) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Σε, Σε tanh(ε/2) rounded up, Σε², Σδ."""
    plain = drift = squares = delta = Fraction(0)
    for event, times in events.items():
        each, own = loss_of(event)
        power = enclosures.exp(each).high
        plain, squares = plain + times * each, squares + times * each**2
        drift, delta = drift + times * each * (power - 1) / (power + 1), delta + times * own
    return plain, drift, squares, delta
