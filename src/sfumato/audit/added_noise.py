"""The attacks on a mechanism that adds noise to whole numbers, made from its declaration alone.

They need nothing but what the mechanism offers and its law: the loss of that law, draws against it, and supports; the
same mechanism calibrated for too large an ε is the broken copy. What has attacks written for it has those instead.
"""

from dataclasses import replace
from fractions import Fraction

from sfumato.audit.drawn import noise
from sfumato.audit.numbers import noisy
from sfumato.audit.supports import support
from sfumato.audit.verdict import Attack, Drawn
from sfumato.core.foreign import Array
from sfumato.core.query import Law
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.laws.margins import WholeNumberLaw
from sfumato.mechanisms.added_noise import AddedNoise

__all__ = ["DELTA", "MOVE", "attacks_on", "masses"]

MOVE = 3
MOVED = Sensitivity.of(l0=1, l1=MOVE, l2_squared=MOVE**2, linf=MOVE)
DELTA = Fraction(1, 100_000)
BEYOND = 1 - Fraction(1, 10**9)  # what lies further out is one cell on each side
TOO_LARGE = Fraction(10, 7)


def attacks_on(kind: type[AddedNoise]) -> tuple[tuple[Attack | Drawn, ...], tuple[Attack | Drawn, ...]]:
    """Attacks on what it offers at ε = 1 for a number that moves by 3, and on broken copies that they must refute.

    >>> from sfumato.mechanisms import Laplace
    >>> [len(attacks) for attacks in attacks_on(Laplace)]
    [3, 2]
    """
    name, flaw = kind.KIND.removeprefix("mechanism.").replace("_", " "), f"at {TOO_LARGE} of its ε"
    delta = Fraction(0) if kind.PURE else DELTA
    sound, weak = (kind.least(MOVED, epsilon=epsilon, delta=delta) for epsilon in (Fraction(1), TOO_LARGE))
    if sound is None or weak is None:
        raise InvalidInput(f"{kind.KIND} offers no noise for one number that moves by {MOVE}; it cannot be attacked.")

    def loss(label: str, mechanism: AddedNoise) -> Attack:
        return Attack(
            name=label,
            kind=kind.KIND,
            epsilon=1.0,
            delta=float(delta),
            here=lambda _: masses(mechanism.law, 0),
            there=lambda _: masses(mechanism.law, MOVE),
            exact=True,
        )

    drawn = replace(noise(name, kind.KIND, sound.law, noisy(sound, 0), noisy(weak, 0), delta=float(delta)), flaw=flaw)
    sides = support(name, kind.KIND, epsilon=1.0, delta=float(delta), here=noisy(sound, 0), there=noisy(sound, MOVE))
    return (loss(name, sound), drawn, sides), (loss(f"{name} {flaw}", weak), drawn.twin)


def masses(law: Law, moved: int) -> Array:
    """The probabilities of a number that is 0 or ``moved``, with noise: from below all that counts to above it."""
    import numpy as np

    if not isinstance(law, WholeNumberLaw):
        raise InvalidInput(f"{type(law).__name__} is no law on whole numbers to be attacked; no verdict was given.")
    reach = int(law.margin(BEYOND)) + MOVE
    tails: list[Fraction] = [law.tail(size).high for size in range(2 * reach + 1)]  # type: ignore[attr-defined]  # each has one

    def above(size: int) -> Fraction:
        """P(z > size), of a symmetric law."""
        return tails[size] / 2 if size >= 0 else 1 - tails[-size - 1] / 2

    upper = [above(size - moved) for size in range(-reach, reach)]
    return np.array([float(high - low) for high, low in zip([Fraction(1), *upper], [*upper, Fraction(0)], strict=True)])
