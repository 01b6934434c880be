"""Privacy loss distributions: the tight accountant, for plans that are fixed beforehand.

Guarantee: ε and δ are upper bounds. What is rounded is rounded outward, and the float error of the FFT is bounded and
added; the two assumptions about NumPy and SciPy on which that rests are in docs/proofs/pld.md.
Assumes: the list of events was fixed before the first output was seen. For releases that are chosen on the way, use a
filter: :mod:`sfumato.accounting.filters`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.accounting import lattice, tilted
from sfumato.accounting.basic import loss_of
from sfumato.accounting.counted import counted
from sfumato.accounting.dots import Dots, atoms, connect, reach, rounded_step
from sfumato.accounting.profiles import Array, Pair, Profile, float_down, float_up, gaussian, pair_of
from sfumato.core import enclosures
from sfumato.core.events import DiscreteGaussian, DiscreteLaplace, Gaussian, PrivacyEvent, Stated
from sfumato.core.exact import Exact, non_negative, positive, probability
from sfumato.core.guarantees import GDP, ZCDP, Approximate
from sfumato.errors import Refused, Unsupported

__all__ = ["LEAST_DELTA", "delta", "epsilon"]

LEAST_DELTA = Fraction(1, 10**20)  # the floor under δ: below it the tails of the tables are no longer resolved
PRECISION = 5e-5  # the share of ε that the grid may add
MOST_POINTS = 1 << 22
FAR = 14.0

_TILTS = 2.0 ** (np.arange(-12, 33) / 3)
_DOWN = np.array([-16.0, -4.0, -1.0, -0.25, 0.0])
_SHARES = 2.0 ** (np.arange(-64, 1) / 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One law of a composition in one direction, and the range of losses that is resolved."""

    profile: Profile
    times: int
    bottom: float
    top: float


def epsilon(events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact, precision: float = PRECISION) -> Fraction:
    """The ε of all events together at δ, rounded up.

    Assumes: the events were fixed beforehand. Proof: docs/proofs/pld.md

    >>> from sfumato.core.events import PoissonSampled
    >>> step = PoissonSampled(rate=Fraction(1, 100), event=Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)))
    >>> 6.187 < epsilon([step] * 10_000, delta=1e-5) < 6.190
    True
    """
    asked = positive(probability(delta, "delta"), "delta")
    found = counted(events)
    merged = _merged(found)
    if isinstance(merged, GDP):
        return merged.epsilon_at(asked)
    _above_floor(asked)
    target = float_down(asked)
    plain = _plain(found)
    if plain is not None and plain.delta <= asked:
        return min(plain.epsilon, _largest(merged, target, precision))
    return _largest(merged, target, precision)


def delta(events: PrivacyEvent | Iterable[PrivacyEvent], *, epsilon: Exact, precision: float = PRECISION) -> Fraction:
    """The δ of all events together at ε, rounded up; never below the floor of 1e-20 unless basic composition says so.

    >>> float(round(delta(Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)), epsilon=1), 6))
    0.126937
    """
    asked = non_negative(epsilon, "epsilon")
    found = counted(events)
    merged = _merged(found)
    if isinstance(merged, GDP):
        return merged.delta_at(asked)
    plain = _plain(found)
    if plain is not None and plain.epsilon <= asked:
        return plain.delta
    target = float_down(asked)
    values = [_composed(parts, precision, epsilon=target).delta(target) for parts in _directions(merged)]
    return max(LEAST_DELTA, *(Fraction(value) for value in values))


def _plain(found: Counter[PrivacyEvent]) -> Approximate | None:
    """Basic composition, where every event has an ε and a δ: never worse at its own δ."""
    try:
        losses = [(times, loss_of(event)) for event, times in found.items()]
    except Unsupported:
        return None
    epsilon = sum((times * each for times, (each, _) in losses), Fraction(0))
    own = sum((times * more for times, (_, more) in losses), Fraction(0))
    return Approximate(epsilon=epsilon, delta=min(Fraction(1), own))


def _largest(merged: Sequence[tuple[Pair, int]], target: float, precision: float) -> Fraction:
    return max(_solved(parts, target, precision) for parts in _directions(merged))


def _above_floor(asked: Fraction) -> None:
    if asked < LEAST_DELTA:
        raise Refused(
            f"δ = {float(asked):.3g} is below the floor of {float(LEAST_DELTA):.0e} under which floats do not resolve "
            'the tails; nothing was accounted. Ask for a larger δ, or use method="zcdp" or "rdp".'
        )


def _merged(found: Counter[PrivacyEvent]) -> GDP | list[tuple[Pair, int]]:
    """The distinct laws with their multiplicities; Gaussians become one, and alone they are exact."""
    pairs: list[tuple[Pair, int]] = []
    mu_squared, rho = Fraction(0), Fraction(0)
    shift, excess = Fraction(0), Fraction(0)
    for event, times in found.items():
        match event:
            case Gaussian():
                mu_squared += times * event.l2_squared / event.sigma_squared
            case Stated(guarantee=GDP(mu=mu)):
                mu_squared += times * mu**2
            case Stated(guarantee=ZCDP(rho=more)):
                rho += times * more
            case DiscreteGaussian() if (cover := _cover(event)) is not None:
                mu_squared += times * cover.mu_squared
                shift, excess = shift + times * cover.shift, excess + times * cover.excess
            case DiscreteLaplace(l1=l1) if l1 < 1:
                pass
            case _:
                pairs.append((pair_of(event), times))
    if rho:
        pairs.append((pair_of(Stated(guarantee=ZCDP(rho=rho))), 1))
    if not pairs and not shift:
        return GDP(mu=enclosures.sqrt(mu_squared).high)
    if mu_squared:
        pairs.append((_covering(mu_squared, shift, excess), 1))
    return pairs


def _cover(event: DiscreteGaussian) -> lattice.Smooth | None:
    squared = math.floor(event.l2_squared)
    if squared == 0 or lattice.enumerable(squared, event.sigma_squared):
        return None
    return lattice.smoothed(squared, event.sigma_squared)


def _covering(mu_squared: Fraction, shift: Fraction, excess: Fraction) -> Pair:
    """A Gaussian, and what the lattice adds: (1 + excess)·δ(ε − shift), for all covered events together."""
    inner = gaussian(mu_squared)
    if not shift:
        return Pair(remove=inner, add=inner)
    moved, factor = float_up(shift), math.exp(float_up(excess)) * (1 + 2.0**-50)

    def profile(epsilon: Array) -> Array:
        return np.minimum(1.0, inner(epsilon - moved - 2.0**-46 * np.abs(epsilon)) * factor)

    return Pair(remove=profile, add=profile)


def _directions(pairs: Sequence[tuple[Pair, int]]) -> list[list[tuple[Profile, Profile, int]]]:
    removing = [(pair.remove, pair.add, times) for pair, times in pairs]
    if all(pair.symmetric for pair, _ in pairs):
        return [removing] if removing else []
    return [removing, [(pair.add, pair.remove, times) for pair, times in pairs]]


def _solved(parts: Sequence[tuple[Profile, Profile, int]], target: float, precision: float) -> Fraction:
    found = _composed(parts, precision, delta=target).epsilon(target)
    if math.isinf(found):
        raise Refused(
            f"no ε up to 512 for each event goes with δ = {target:.3g}; nothing was accounted. Ask for a larger δ."
        )
    return Fraction(max(0.0, found))


def _composed(
    profiles: Sequence[tuple[Profile, Profile, int]],
    precision: float,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
) -> tilted.Composition:
    """Choose tilt, grid and window by a coarse pilot, then compose; a poor choice costs tightness, never validity."""
    total = sum(times for _, _, times in profiles)
    tail = 1e-6 * (1e-20 if delta is None else delta) / total
    parts = [
        _Part(profile=ahead, times=times, bottom=reach(back, 1e-9 / total), top=reach(ahead, tail))
        for ahead, back, times in profiles
    ]
    pilot = _moments(parts, np.concatenate([_TILTS, _DOWN]))
    moments, lower = pilot[: len(_TILTS)], pilot[len(_TILTS) :]
    if epsilon is None:
        goal = -math.log(delta or 1.0)
        saddle = int(np.argmin((moments + goal) / _TILTS))
        reached = float((moments[saddle] + goal) / _TILTS[saddle])
    else:
        saddle = int(np.argmin(moments - _TILTS * epsilon))
        goal, reached = min(50.0, max(0.0, float(_TILTS[saddle] * epsilon - moments[saddle]))), epsilon
    ends = (moments + goal + FAR) / _TILTS  # Chernoff: about a millionth of δ lies above
    highest = int(np.argmin(ends))
    least = -math.fsum(part.times * part.bottom for part in parts)
    most = math.fsum(part.times * part.top for part in parts)
    tilt, bottom, top = _narrowest(moments, lower, goal=goal, reached=reached, within=(least, most))
    top = max(top, min(float(ends[highest]), most))
    margin = 0.02 * (top - bottom) + 1e-9
    wanted = math.sqrt(12 * precision * max(reached, 1e-3) / (float(_TILTS[saddle]) * total))
    widest = max(top - bottom + 2 * margin, *(part.top + part.bottom for part in parts))
    spread = math.sqrt(240 * precision * _curvature(moments, saddle) / total)
    wanted = min(wanted, max(spread, widest / 2**16))
    step = rounded_step(max(min(wanted, (top - bottom) / 512), widest / MOST_POINTS))
    start = math.floor((bottom - margin) / step)
    size = 1 << max(9, math.ceil(math.log2((top + margin) / step - start)))
    window = tilted.Window(start=start, size=size, tilt=tilt, tail_tilt=float(_TILTS[highest]))
    made = [(_connected(part, step), part.times) for part in parts]
    return tilted.compose(made, window)


def _curvature(moments: Array, place: int) -> float:
    """About the variance of the tilted law: the second difference of its log-moments."""
    here = min(max(place, 1), len(_TILTS) - 2)
    left, middle, right = (float(tilt) for tilt in _TILTS[here - 1 : here + 2])
    below, at, above = (float(moment) for moment in moments[here - 1 : here + 2])
    return max(1e-12, 2 * ((above - at) / (right - middle) - (at - below) / (middle - left)) / (right - left))


def _narrowest(
    moments: Array, lower: Array, *, goal: float, reached: float, within: tuple[float, float]
) -> tuple[float, float, float]:
    """The tilt with the narrowest window among those that cost the float error at most e^6, and that window.

    The tilted law is to lie inside up to e^(−FAR) by Chernoff, on both sides: near a change of phase, as sampled
    Gaussians have it, the best tilt for δ would spread it over two places far apart.
    """
    eligible = np.flatnonzero(moments - _TILTS * reached + goal <= 6.0)
    windows = []
    for place in eligible if len(eligible) else [int(np.argmin(moments - _TILTS * reached))]:
        tilt, here = float(_TILTS[place]), float(moments[place])
        above = (moments[place + 1 :] - here + FAR) / (_TILTS[place + 1 :] - tilt)
        top = max(reached, min(within[1], float(np.min(above, initial=math.inf))))
        bottom = min(reached, max(within[0], float(np.max((here - lower - FAR) / (tilt - _DOWN)))))
        windows.append((top - bottom, tilt, bottom, top))
    return min(windows)[1:]


def _connected(part: _Part, step: float) -> Dots:
    low, high = math.floor(-part.bottom / step), math.ceil(part.top / step)
    return connect(part.profile, low=low, high=high, step=step)


def _moments(parts: Sequence[_Part], tilts: Array) -> Array:
    """Σ times·ln E[e^(tilt·loss)] for each tilt, from a coarse pilot of each part; only choices are made by it."""
    total = np.zeros(len(tilts))
    for part in parts:
        grid = np.concatenate([-part.bottom * _SHARES[::-1], np.zeros(1), part.top * _SHARES])
        masses, _ = atoms(part.profile, grid)
        kept = masses > 0
        exponents = tilts[:, None] * grid[kept] + np.log(masses[kept])
        largest = exponents.max(axis=1)
        total += part.times * (largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))
    return total
