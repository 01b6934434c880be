"""Attacks on mechanisms of networks that show more than one number: exact laws of all that is shown together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp

from sfumato.audit.laws import flipped
from sfumato.audit.verdict import Attack
from sfumato.core.foreign import Array
from sfumato.mechanisms.chosen_cap import ChosenCap
from sfumato.mechanisms.exponential import PermuteAndFlip
from sfumato.mechanisms.noisy_cells import NoisyCells
from sfumato.mechanisms.noisy_local_sensitivity import NoisyLocalSensitivity

__all__ = ["around", "capped", "guided", "scaled", "some_cells"]


def around(centre: int, scale: Fraction, low: int, high: int) -> Array:
    """The law of a whole number with Laplace noise that is held to [low, high]: what lies beyond is at the ends.

    >>> around(0, Fraction(1), -1, 1).round(3).tolist()
    [0.269, 0.462, 0.269]
    """
    import numpy as np

    q = exp(-1 / scale)
    numbers = np.arange(low, high + 1)
    law = (1 - q) / (1 + q) * q ** np.abs(numbers - centre)
    for end, outward in ((0, centre - low), (-1, high - centre)):
        law[end] = q**outward / (1 + q) if outward >= 0 else 1 - q ** (1 - outward) / (1 + q)
    return law


def guided(noise: NoisyLocalSensitivity, guide: int, *, shift: int | None = None) -> Array:
    """The law of the guide that is shown, from its least value on; ``shift`` is that of a broken one."""
    least, most = noise.guides
    return around(guide + (noise.shift if shift is None else shift), 1 / noise.guide, least, most)


def scaled(
    name: str,
    noise: NoisyLocalSensitivity,
    here: tuple[int, int],
    there: tuple[int, int],
    *,
    epsilon: float,
    shift: int | None = None,
    bare: bool = False,
    share: float = 0.9,
    reach: int = 800,
) -> Attack:
    """Two graphs by their counts and guides: the law of the guide and the count that are shown.

    ``shift`` and ``bare`` break it: ``bare`` takes the scale from the exact guide and still shows a noisy one.
    """

    def law(count: int, guide: int) -> Array:
        import numpy as np

        least, most = noise.guides
        scales = [noise.scale(guide if bare else shown) for shown in range(least, most + 1)]
        counts = np.array([around(count, scale, -reach, reach) for scale in scales])
        return (guided(noise, guide, shift=shift)[:, None] * counts).ravel()

    return Attack(
        name=name,
        kind=NoisyLocalSensitivity.KIND,
        epsilon=epsilon,
        delta=float(noise.delta),
        here=lambda _: law(*here),
        there=lambda _: law(*there),
        exact=True,
        share=share,
    )


def capped(
    name: str, mechanism: ChosenCap, *, epsilon: float, scale_at: Callable[[int], Fraction] | None = None
) -> Attack:
    """A node with as many edges as the largest cap comes: it is in the way of all smaller caps, and counts at each.

    ``scale_at`` is the noise of a broken one.
    """
    chooser = PermuteAndFlip(epsilon=mechanism.choice, spread=Fraction(mechanism.spread))
    scales = [(mechanism.scale if scale_at is None else scale_at)(cap) for cap in mechanism.caps]

    def law(in_the_way: Sequence[int], numbers: Sequence[int]) -> Array:
        import numpy as np

        chosen = flipped(chooser.exponents(mechanism.scores(in_the_way)))
        parts = [
            chance * around(number, scale, -400, 400)
            for chance, number, scale in zip(chosen, numbers, scales, strict=True)
        ]
        return np.concatenate(parts)

    many = len(mechanism.caps)
    return Attack(
        name=name,
        kind=ChosenCap.KIND,
        epsilon=epsilon,
        delta=0.0,
        here=lambda _: law([3] * (many - 1) + [0], [0] * many),
        there=lambda _: law([4] * (many - 1) + [0], list(mechanism.moves)),
        exact=True,
    )


def some_cells(name: str, noise: NoisyCells, *, epsilon: float, scale: Fraction | None = None) -> Attack:
    """No cell is 1, or the first is: the law of the noisy count and of which cells are shown. ``scale`` breaks it."""
    drawn = noise if scale is None else replace(noise, scale=scale)

    def law(ones: int) -> Array:
        import numpy as np

        counts = around(drawn.count_step * ones, drawn.scale, -120, 120)
        shown = []
        for noisy in range(-120, 121):
            zero, one = drawn.chances(drawn.threshold(noisy))
            sets = np.ones(1)
            for cell in range(drawn.cells):
                chance = one if cell < ones else zero
                sets = np.concatenate((sets * (1 - chance), sets * chance))
            shown.append(sets)
        return (counts[:, None] * np.array(shown)).ravel()

    return Attack(
        name=name,
        kind=NoisyCells.KIND,
        epsilon=epsilon,
        delta=0.0,
        here=lambda _: law(0),
        there=lambda _: law(1),
        exact=True,
    )
