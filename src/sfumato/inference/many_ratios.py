"""The intervals of many ratios at once: the searches of all of them go on side by side, and end at the same numbers.

A search for an end asks some thirty times whether a ratio is too rare, and each answer is yes or no. Here all questions
of one turn are asked together, in arrays. Where an answer is so near that rounding could turn it, and where the closed
form does not hold, the ratio is searched by itself (:func:`sfumato.inference.ratio.ratio_ends`). So the same questions
are given the same answers, and the ends, which are exact multiples of a step from the centre, are the same numbers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import is_
from typing import TYPE_CHECKING

from sfumato.inference.continuous_bound import APART, COARSE, ROUNDING, SHORT, UNIT, width_of
from sfumato.inference.linear_combination import LinearCombination

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Truths = npt.NDArray[np.bool_]

__all__ = ["many_ends"]

Pair = tuple[LinearCombination, LinearCombination]
Ends = tuple[float, float]
FEW = 16  # fewer are searched one by one
DOUBLE = 1e-15  # as in the search by itself
NEAR = 1e-6  # an answer is trusted where it is further from turning than this share of the doubt
LOST = 1e-12  # and than this share of the weights, which double precision does not tell
LEAST = -290  # powers of ten below it are no longer precise
REST = 1e-8  # how much of a deviation rounding may move a ratio


def many_ends(
    pairs: Sequence[Pair], level: Fraction, *, by_itself: Callable[[Pair], Ends], halvings: int
) -> list[Ends]:
    """Low and high of each true ratio, the same as ``by_itself`` gives them after ``halvings`` halvings."""
    found: list[Ends | None] = [None] * len(pairs)
    if len(pairs) >= FEW:
        try:
            import numpy as np
        except ImportError:  # only the arrays need it
            return [by_itself(pair) for pair in pairs]
        with np.errstate(all="ignore"):  # what is not a number is searched by itself
            for places, held in _alike(pairs):
                for place, ends in zip(places, _searched(held, level, halvings), strict=True):
                    found[place] = ends
    return [by_itself(pair) if ends is None else ends for pair, ends in zip(pairs, found, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Ratios that hold as many noises of one kind: coefficients over and under, sizes of the noise, and the values."""

    gaussian: bool
    over: "Floats"
    under: "Floats"
    sizes: "Floats"
    top: "Floats"
    bottom: "Floats"
    exact: list[tuple[Fraction, Fraction]]


def _alike(pairs: Sequence[Pair]) -> list[tuple[list[int], _Held]]:
    """The ratios that a closed form is known for, put together with others of their kind."""
    import numpy as np

    widths: dict[int, tuple[bool, float] | None] = {}
    floats: dict[int, float] = {0: 0.0}

    def near(coefficient: Fraction | None) -> float:
        """As a double; the cells of one answer share their coefficients, and their law."""
        known = 0 if coefficient is None else id(coefficient)
        if known not in floats:
            floats[known] = float(coefficient or 0)
        return floats[known]

    kinds: dict[tuple[bool, int], tuple[list[int], list[list[float]], list[list[float]], list[list[float]]]] = {}
    for place, (over, under) in enumerate(pairs):
        noises = list(under.noises)
        same = len(noises) == len(over.noises) and all(map(is_, noises, over.noises))
        if not same:
            noises = list(dict.fromkeys((*over.noises, *noises)))
        known = []
        for noise in noises:
            law = id(noise.law)
            if law not in widths:
                widths[law] = width_of(noise.law)
            known.append(widths[law])
        first = known[0] if known else None
        if first is None or any(width is None or width[0] is not first[0] for width in known):
            continue
        if not first[0] and len(known) > SHORT:
            continue
        places, above, below, sizes = kinds.setdefault((first[0], len(known)), ([], [], [], []))
        places.append(place)
        if same:
            above.append(list(map(near, over.noises.values())))
            below.append(list(map(near, under.noises.values())))
        else:
            above.append([near(over.noises.get(noise)) for noise in noises])
            below.append([near(under.noises.get(noise)) for noise in noises])
        sizes.append([width[1] for width in known if width is not None])
    return [
        (
            places,
            _Held(
                gaussian=gaussian,
                over=np.array(above),
                under=np.array(below),
                sizes=np.array(sizes),
                top=np.array([float(pairs[place][0].value) for place in places]),
                bottom=np.array([float(pairs[place][1].value) for place in places]),
                exact=[(pairs[place][0].value, pairs[place][1].value) for place in places],
            ),
        )
        for (gaussian, _), (places, above, below, sizes) in kinds.items()
    ]


def _searched(held: _Held, level: Fraction, halvings: int) -> "list[Ends | None]":
    """The ends of all of them; None where one is to be searched by itself."""
    import numpy as np

    open_, sure = _rare(held, held.under, np.abs(held.bottom), level)
    open_ = ~open_
    centre = held.top / held.bottom
    _, _, deviation, known = _tail(held, held.over - centre[:, None] * held.under)
    guess = deviation / np.abs(held.bottom)
    power = np.floor(np.log10(guess)) - 2
    digits = guess / 10.0**power
    # A size that lies on the border of two powers or of two digits is for the search by itself.
    clear = (np.abs(digits % 1 - 0.5) > NEAR) & (digits > 100 * (1 + NEAR)) & (digits < 1000 * (1 - NEAR))
    sure &= open_ | (known & clear & np.isfinite(centre) & (power > LEAST))
    step = np.rint(digits) * 10.0**power
    reached = []
    for side in (-1.0, 1.0):
        far, certain = _walked(held, centre, side * step, sure & ~open_, level, halvings)
        sure &= open_ | certain
        reached.append(far)
    steps: dict[tuple[float, float], Fraction] = {}
    found: list[Ends | None] = []
    columns = (sure, open_, power, np.rint(digits), *reached)
    rows = zip(*(column.tolist() for column in columns), held.exact, strict=True)
    for trusted, anything, exponent, digit, low, high, (over, under) in rows:
        if not trusted:
            found.append(None)
        elif anything:
            found.append((-math.inf, math.inf))
        else:
            if (exponent, digit) not in steps:
                steps[exponent, digit] = Fraction(10) ** int(exponent) * max(1, int(digit))
            size = steps[exponent, digit]
            found.append((_moved(over, under, size, -low), _moved(over, under, size, high)))
    return found


def _walked(
    held: _Held, centre: "Floats", step: "Floats", asked: "Truths", level: Fraction, halvings: int
) -> "tuple[Floats, Truths]":
    """How many steps from the centre the end lies, and where that is certain."""
    import numpy as np

    inside, outside, sure = np.zeros(centre.size), np.ones(centre.size), asked.copy()
    going = asked.copy()
    while going.any():
        rare, certain = _left_over(held, centre + step * outside, level)
        sure &= certain | ~going
        going &= ~rare & sure & (outside < 2.0**60)
        inside, outside = np.where(going, outside, inside), np.where(going, 2 * outside, outside)
    for _ in range(halvings):
        middle = (inside + outside) / 2
        rare, certain = _left_over(held, centre + step * middle, level)
        sure &= certain
        inside, outside = np.where(rare, inside, middle), np.where(rare, middle, outside)
    return outside, sure & (outside < 2.0**40)


def _left_over(held: _Held, ratio: "Floats", level: Fraction) -> "tuple[Truths, Truths]":
    """Whether what is left over at a ratio is rarer than the level allows, and whether that is certain."""
    import numpy as np

    moved = ratio * held.bottom
    room = np.abs(held.top) + np.abs(moved)
    return _rare(
        held, held.over - ratio[:, None] * held.under, np.abs(held.top - moved) - DOUBLE * room, level, room=room
    )


def _rare(
    held: _Held, coefficients: "Floats", distance: "Floats", level: Fraction, *, room: "Floats | None" = None
) -> "tuple[Truths, Truths]":
    """Whether noise with these coefficients lies within a distance with this probability, and whether it is certain."""
    import numpy as np

    scales, slack, deviation, known = _tail(held, coefficients)
    left = (distance - slack) * (1 - ROUNDING)
    if held.gaussian:
        tail, lost = _erfc(left / (deviation * math.sqrt(2))), np.zeros(left.size)
    else:
        squares = scales * scales
        weights = np.ones_like(scales)
        for place in range(scales.shape[1]):
            for other in range(scales.shape[1]):
                if other != place:
                    weights[:, place] *= squares[:, place] / (squares[:, place] - squares[:, other])
        tail = (weights * np.exp(-left[:, None] / scales)).sum(axis=1)
        lost = np.abs(weights).sum(axis=1)
        tail = tail + UNIT * lost
    within = np.where(left > 0, 1 - tail - ROUNDING, 0.0)
    doubt = float(1 - level)
    near = NEAR * doubt + LOST * (1 + lost)
    certain = known & (np.abs(within - float(level)) > near) & np.isfinite(within)
    if room is not None:
        certain &= DOUBLE * 10 * room < REST * deviation
    return within >= float(level), certain


def _tail(held: _Held, coefficients: "Floats") -> "tuple[Floats, Floats, Floats, Truths]":
    """The scales taken apart, how far the lattice moves, the standard deviation, and where the closed form holds."""
    import numpy as np

    sizes = np.abs(coefficients)
    slack = (sizes * (0.5 if held.gaussian else 1.0)).sum(axis=1)
    scales = np.sort(sizes * held.sizes, axis=1)
    if not held.gaussian:
        for place in range(1, scales.shape[1]):
            scales[:, place] = np.maximum(scales[:, place], scales[:, place - 1] * APART)
    deviation = np.sqrt((scales * scales).sum(axis=1) * (1 if held.gaussian else 2))
    known = (deviation > 0) & (slack < COARSE * deviation * (1 - NEAR)) & np.isfinite(deviation)
    return scales, slack, deviation, known


def _erfc(values: "Floats") -> "Floats":
    import numpy as np

    return np.array([math.erfc(value) for value in values])


def _moved(over: Fraction, under: Fraction, step: Fraction, steps: float) -> float:
    """The centre over/under and a number of steps, rounded once; whole numbers divide exactly to the nearest double."""
    many, parts = float(steps).as_integer_ratio()
    top, bottom = over.numerator * under.denominator, over.denominator * under.numerator
    more = step.denominator * parts
    return (top * more + step.numerator * many * bottom) / (bottom * more)
