"""Attacks on streams: a unit that counts in some steps, put through the strategy and the noise that run."""

from collections.abc import Callable, Sequence

from sfumato import noise
from sfumato.accounting import epsilon as accounted
from sfumato.audit.verdict import Attack
from sfumato.core.foreign import Array
from sfumato.core.sensitivity import Sensitivity
from sfumato.streams.noise import SeriesNoise

__all__ = ["claimed", "series", "told"]


def claimed(mechanism: SeriesNoise, *, delta: float) -> float:
    """The ε that a stream claims at a δ for a unit that counts by 1 in each step of its pattern."""
    event, one = mechanism.loss(Sensitivity.of(linf=1)), float(delta)
    return float(accounted([event], delta=one) if one else accounted([event], delta=0, method="basic"))


def series(name: str, mechanism: SeriesNoise, unit: Sequence[int], *, delta: float = 0.0) -> Attack:
    """A stream of zeros, and one with what ``unit`` counts in its steps: along the way it moves the measurements.

    Gaussian noise: the exact law of Σ D·y. Laplace: Σ |y − D| − |y| as drawn, which is the loss itself.
    """
    import numpy as np

    move, epsilon = _measured(mechanism, unit) - _measured(mechanism, [0] * len(unit)), claimed(mechanism, delta=delta)
    if mechanism.norm == "l2":
        return Attack(
            name=name,
            kind=SeriesNoise.KIND,
            epsilon=epsilon,
            delta=delta,
            here=lambda _: _projected(mechanism, move, moved=False),
            there=lambda _: _projected(mechanism, move, moved=True),
            exact=True,
            share=0.7,
        )

    def losses(values: Sequence[int]) -> Callable[[int], Array]:
        def drawn(size: int) -> Array:
            outputs = told(mechanism, values)(size)
            return np.abs(outputs - move).sum(axis=1) - np.abs(outputs).sum(axis=1)

        return drawn

    return Attack(
        name=name,
        kind=SeriesNoise.KIND,
        epsilon=epsilon,
        delta=delta,
        here=losses([0] * len(unit)),
        there=losses(unit),
        share=0.7,
    )


def told(mechanism: SeriesNoise, values: Sequence[int]) -> Callable[[int], Array]:
    """What a stream of these values releases, as often as asked."""

    def drawn(size: int) -> Array:
        exact = _measured(mechanism, values)
        return exact + mechanism.drawn(size * len(exact), noise.SystemWords()).reshape(size, len(exact))

    return drawn


def _measured(mechanism: SeriesNoise, values: Sequence[int]) -> Array:
    import numpy as np

    from sfumato.streams.strategy_encoder import encoder_of

    return encoder_of(mechanism.strategy).measure(np.array(values, dtype=np.int64))


def _projected(mechanism: SeriesNoise, move: Array, *, moved: bool) -> Array:
    """The law of Σ D·y for y the rounded Gaussian noise alone, or moved by D."""
    import numpy as np
    from scipy.special import ndtr

    sigma = float(mechanism.noise)
    ends = np.arange(-int(14 * sigma) - 1, int(14 * sigma) + 3) - 0.5
    single = np.diff(ndtr(ends / sigma))
    law = np.ones(1)
    for step in (abs(int(one)) for one in move if one):
        spread = np.zeros(step * (len(single) - 1) + 1)
        spread[::step] = single
        law = np.convolve(law, spread)
    beside = np.zeros(int((move * move).sum()))
    return np.concatenate([beside, law] if moved else [law, beside])
