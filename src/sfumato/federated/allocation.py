"""How a total ε is divided among clients that take part in different numbers of rounds with different sensitivities.

The least total variance of Laplace noise, Σ of 2Δ_i²/ε_i² under Σ R_i·ε_i = ε, depends on what is counted: the noise of
each participation, or that of each client once. Powers of 2/3 are not rational: they are rounded down, so that the
total is kept exactly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput

__all__ = ["CountedNoise", "RoundAllocation", "allocate"]

_DIGITS = 10**12


class CountedNoise(Enum):
    """What the total variance counts, and in which currency."""

    PARTICIPATION = "participation"
    """ε_i ∝ Δ_i^(2/3): the noise of every round that a client takes part in."""
    CLIENT = "client"
    """ε_i ∝ (Δ_i²/R_i)^(1/3): the noise of each client once, however often it takes part."""
    ZCDP = "zcdp"
    """ρ_i ∝ Δ_i, so that σ_i² = Δ_i²/(2ρ_i) ∝ Δ_i: Gaussian noise of every participation, with Σ R_i·ρ_i = ρ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAllocation:
    """``each[i]`` is what client i spends in one of its rounds: ε_i, or ρ_i."""

    rounds: tuple[int, ...]
    sensitivities: tuple[Fraction, ...]
    counted: CountedNoise
    each: tuple[Fraction, ...]

    @property
    def by_client(self) -> tuple[Fraction, ...]:
        """What the people of each client spend: R_i·ε_i. Where clients hold disjoint people it is their guarantee."""
        return tuple(count * one for count, one in zip(self.rounds, self.each, strict=True))

    @property
    def total(self) -> Fraction:
        """Σ R_i·ε_i: the guarantee of a person who is with all clients, and a cap by policy where nobody is."""
        return sum(self.by_client, Fraction(0))

    def variance(self) -> Fraction:
        """The total variance that was made small: 2Δ²/ε² of Laplace noise, Δ²/(2ρ) of Gaussian noise."""
        gaussian, once = self.counted is CountedNoise.ZCDP, self.counted is CountedNoise.CLIENT
        each = (
            (1 if once else count) * (size**2 / (2 * one) if gaussian else 2 * size**2 / one**2)
            for count, size, one in zip(self.rounds, self.sensitivities, self.each, strict=True)
        )
        return sum(each, Fraction(0))


def allocate(
    *,
    rounds: Sequence[int],
    sensitivities: Sequence[Exact],
    total: Exact,
    counted: CountedNoise = CountedNoise.PARTICIPATION,
) -> RoundAllocation:
    """Divide a total ε (or ρ) so that the total variance of all noise is least.

    Guarantee: Σ R_i·ε_i is at most the total, exactly, and less than it by rounding alone.

    >>> found = allocate(rounds=(1, 5, 20), sensitivities=(0.5, 1, 4), total=3)
    >>> [float(round(one, 4)) for one in found.each]
    [0.0337, 0.0535, 0.1349]
    """
    whole = positive(total, "total")
    counts = tuple(natural(count, "rounds") for count in rounds)
    sizes = tuple(positive(size, "sensitivities") for size in sensitivities)
    if not counts or len(counts) != len(sizes):
        raise InvalidInput("every client has a number of rounds and a sensitivity; nothing was allocated.")
    weights = [_weight(counted, count, size) for count, size in zip(counts, sizes, strict=True)]
    scale = whole / sum(count * weight for count, weight in zip(counts, weights, strict=True))
    each = tuple(Fraction(math.floor(scale * weight * _DIGITS), _DIGITS) for weight in weights)
    if not all(each):
        raise InvalidInput(
            "some client would be left with nothing: its part of the total is too small. Nothing was done."
        )
    return RoundAllocation(rounds=counts, sensitivities=sizes, counted=counted, each=each)


def _weight(counted: CountedNoise, rounds: int, size: Fraction) -> Fraction:
    match counted:
        case CountedNoise.PARTICIPATION:
            return _cube_root(size**2)
        case CountedNoise.CLIENT:
            return _cube_root(size**2 / rounds)
    return size


def _cube_root(value: Fraction) -> Fraction:
    """The cube root to about eighteen digits: any weights near it keep the total, and are near the least variance."""
    scaled = value * _DIGITS**6
    found = round(float(value) ** (1 / 3) * float(_DIGITS) ** 2)
    for _ in range(4):
        found = (2 * found + math.floor(scaled / max(found, 1) ** 2)) // 3
    return Fraction(max(found, 1), _DIGITS**2)
