"""Attacks on noise for single numbers, on choices and on alarms."""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from secrets import SystemRandom
from typing import Protocol

from sfumato import noise
from sfumato.audit import laws
from sfumato.audit.verdict import Attack
from sfumato.core.foreign import Array
from sfumato.mechanisms import Gaussian, Laplace, NoisyThreshold, QuantileChoice, SparseVector

__all__ = [
    "by_likelihood",
    "choice",
    "drawn_gaussian",
    "gaps",
    "gaussian",
    "laplace",
    "mean_of_gradients",
    "median",
    "noisy",
    "shown",
    "sparse",
    "threshold",
    "touched",
]

Law = Callable[[int], Array]


class Additive(Protocol):
    """A mechanism that adds independent noise to each number."""

    def add_noise(self, exact: Sequence[int], words: noise.Words) -> tuple[int, ...]:
        """Add fresh noise to each number."""
        ...


def noisy(mechanism: Additive, exact: int) -> Law:
    """A number put through a shipped mechanism, as often as asked."""
    import numpy as np

    return lambda size: np.array(mechanism.add_noise([exact] * size, noise.SystemWords()))


def shown(rule: NoisyThreshold, count: int) -> Law:
    """The noisy counts of keys that all have this count, where they are shown."""
    import numpy as np

    return lambda size: np.array(list(rule.show(dict.fromkeys(range(size), count), noise.SystemWords()).values()))


def gaps(run: SparseVector, value: int) -> Law:
    """The gaps of first alarms at a threshold of 0, from an eightieth of the watches asked for: each is opened anew."""
    import numpy as np

    def drawn(size: int) -> Array:
        readings = (run.watch(0, words=noise.SystemWords()).check(value) for _ in range(max(100, size // 80)))
        return np.array([reading.gap for reading in readings if reading.gap is not None])

    return drawn


def laplace(name: str, scale: Fraction) -> Attack:
    """One number that a unit moves by 1; the half-line below 0 shows the whole loss."""

    here, there = (noisy(Laplace(l1=Fraction(1), scale=scale), shift) for shift in (0, 1))
    return Attack(name=name, kind=Laplace.KIND, epsilon=1.0, delta=0.0, here=here, there=there)


def gaussian(name: str, moved: int, sigma: float, epsilon: float, delta: float) -> Attack:
    """One number that a unit moves by ``moved``: the exact laws."""

    def law(shift: int) -> Law:
        return lambda _: laws.gaussian(shift, sigma, reach=moved + int(40 * sigma) + 2)

    return Attack(
        name=name, kind=Gaussian.KIND, epsilon=epsilon, delta=delta, here=law(0), there=law(moved), exact=True
    )


def drawn_gaussian(name: str, mechanism: Gaussian, epsilon: float, delta: float) -> Attack:
    """One number that a unit moves by 1, as drawn; by the curve: its loss at δ lies in tails that are rarely seen."""
    here, there = (noisy(mechanism, shift) for shift in (0, 1))
    return Attack(
        name=name, kind=Gaussian.KIND, epsilon=epsilon, delta=delta, here=here, there=there, share=0.6, curve=True
    )


def by_likelihood(
    name: str,
    kind: str,
    stated: tuple[Array, Array],
    draws: tuple[Callable[[noise.SystemWords], int], Callable[[noise.SystemWords], int]],
    *,
    share: float,
    most: int = 4_000,
) -> Attack:
    """Outcomes of two neighbours, drawn one by one and ordered by the likelihood ratio of their stated laws.

    No event tells the neighbours apart better than one of all outcomes above some ratio. Where the draws follow other
    laws than the stated ones the bound holds all the same, and is only less sharp.
    """
    import numpy as np

    here, there = (np.maximum(np.asarray(law, dtype=np.float64), 1e-300) for law in stated)
    ratio = np.log(here / there)

    def outputs(draw: Callable[[noise.SystemWords], int]) -> Law:
        def drawn(size: int) -> Array:
            words = noise.SystemWords()
            return ratio[[draw(words) for _ in range(size)]]

        return drawn

    return Attack(
        name=name,
        kind=kind,
        epsilon=1.0,
        delta=0.0,
        here=outputs(draws[0]),
        there=outputs(draws[1]),
        share=share,
        most=most,
    )


def mean_of_gradients(name: str, *, claimed: int, moved: int) -> Attack:
    """A noised sum of clipped gradients whose sensitivity was claimed as ``claimed`` clips and is ``moved`` clips."""
    noise_of_claim = Gaussian.calibrated(l2=claimed, epsilon=1, delta=1e-5)
    return gaussian(name, moved, float(noise_of_claim.sigma), 1.0, 1e-5)


def touched(batch: int, negatives: int) -> int:
    """How many anchors one sample touches when each draws its negatives at random: its own, its pair, and more."""
    chance = SystemRandom()
    drawn = Counter(
        other for anchor in range(batch) for other in chance.sample([x for x in range(batch) if x != anchor], negatives)
    )
    return 2 + max(drawn.values())


def median(name: str, mechanism: QuantileChoice) -> Attack:
    """A lower median: one row more at the bottom brings a wide gap nearer and takes a narrow one further away."""

    def law(at_bottom: int) -> Law:
        counts = [0] * (mechanism.steps + 1)
        counts[0], counts[-100], counts[-1] = at_bottom, 10, 10
        return lambda _: laws.softmax(mechanism.exponents(counts))

    return Attack(name=name, kind=QuantileChoice.KIND, epsilon=1.0, delta=0.0, here=law(19), there=law(20), exact=True)


def choice(name: str, kind: str, epsilon: float, law: Callable[[tuple[int, ...]], Array]) -> Attack:
    """Three candidates whose scores a unit moves apart as far as it can."""
    return Attack(
        name=name,
        kind=kind,
        epsilon=epsilon,
        delta=0.0,
        here=lambda _: law((40, 1, 40)),
        there=lambda _: law((41, 0, 41)),
        exact=True,
    )


def sparse(name: str, run: SparseVector, *, query_scale: Fraction | None = None, alarms: int | None = None) -> Attack:
    """Silent queries that the unit makes louder, loud ones that it makes quieter."""

    def law(silent: int, loud: int) -> Law:
        return lambda _: laws.pattern(
            silent=silent,
            loud=loud,
            threshold=0,
            alarms=run.alarms if alarms is None else alarms,
            threshold_scale=run.threshold_scale,
            query_scale=run.query_scale if query_scale is None else query_scale,
        )

    epsilon = float(run.event.guarantee.epsilon)  # type: ignore[union-attr]  # its guarantee is pure
    return Attack(
        name=name, kind=SparseVector.KIND, epsilon=epsilon, delta=0.0, here=law(0, 1), there=law(1, 0), exact=True
    )


def threshold(name: str, rule: NoisyThreshold, keys: int, delta: float) -> Attack:
    """A person with keys that nobody else has, against the same data without that person, where they cannot appear."""

    def law(*, present: bool) -> Law:
        event = rule.loss(keys).events[1]
        shown = float(event.guarantee.delta) if present else 0.0  # type: ignore[union-attr]  # it has an approximate guarantee
        return lambda _: [shown, 1 - shown]

    return Attack(
        name=name,
        kind=NoisyThreshold.KIND,
        epsilon=float(rule.keys * rule.most / rule.scale),
        delta=delta,
        here=law(present=True),
        there=law(present=False),
        exact=True,
        share=0.0,
    )
