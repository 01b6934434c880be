"""The totals of a closed stream, worked out from what was released: post-processing."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sfumato import laws
from sfumato.core.exact import Exact, natural
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.inference.figure import Derived
from sfumato.laws.margins import level_of
from sfumato.streams.buffers import Buffers
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.total import RunningTotal

if TYPE_CHECKING:
    from sfumato.streams.measured import Floats

__all__ = ["Series", "margins"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series(Derived):
    """The total after each step that was told, with intervals that cover the noise."""

    totals: tuple[float, ...]
    squares: tuple[float, ...]
    sizes: tuple[float, ...]
    mechanism: SeriesNoise
    labels: Mapping[str, tuple[str | int | bool, ...]]
    measure: str
    sources: tuple[Release, ...]

    @classmethod
    def of(cls, release: Release) -> "Series":
        """Work out the totals of a release."""
        import numpy as np

        from sfumato.streams.measured import reader_of

        said = only_release(release).statement
        mechanism, query = said.mechanism, said.query
        if not isinstance(mechanism, SeriesNoise) or not isinstance(query, RunningTotal):
            raise InvalidInput("this is no release of a stream of totals; nothing was done.")
        told, groups = query.told if query.kept else 0, max(1, len(query.groups))
        numbers = np.array(said.values, dtype=np.int64).reshape(-1, groups)
        read = [reader_of(mechanism.strategy).read(numbers[:, place], told) for place in range(groups)]
        totals, squares, sizes = (np.stack(part, axis=1).ravel().tolist() for part in zip(*read, strict=True))
        labels = {name: tuple(column) for name, column in query.labels().items()}
        return cls(
            totals=tuple(totals),
            squares=tuple(squares),
            sizes=tuple(sizes),
            mechanism=mechanism,
            labels=labels,
            measure="total",
            sources=(release,),
        )

    @property
    def values(self) -> tuple[float, ...]:
        """The totals."""
        return self.totals

    def interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[Any, Any]]:
        """Low and high for each total; with ``joint`` all of them hold at once, by the union bound."""
        import numpy as np

        level = level_of(confidence)
        level = 1 - (1 - level) / len(self.totals) if joint and self.totals else level
        found = margins(self.mechanism, np.array(self.squares), np.array(self.sizes), level)
        return [(total - margin, total + margin) for total, margin in zip(self.totals, found.tolist(), strict=True)]


def margins(mechanism: SeriesNoise, squares: "Floats", sizes: "Floats", level: Fraction) -> "Floats":
    """By how much a total Σ b·z errs at most with a confidence, from Σ b² and Σ |b|; rounded up.

    Gaussian: Σ b·z is within Σ |b|/2 lattice units of a Gaussian of σ²·Σ b²; what the strategy itself rounds is
    added. Laplace: the exact law of a sum where it has few terms with factor 1, else Bernstein's bound.
    """
    import numpy as np

    unit = 2.0**mechanism.strategy.bits
    extra = mechanism.strategy.slack / 2 if isinstance(mechanism.strategy, Buffers) else 0.0
    if mechanism.norm == "l2":
        factor = float(_normal(level)) * float(mechanism.noise)
        return np.asarray((factor * np.sqrt(squares) + (0.5 + extra) * sizes) / unit * (1 + 1e-9))
    whole = np.array_equal(squares, sizes)
    found = [
        float(_laplace(mechanism.noise, round(size), level))
        if whole
        else _bernstein(mechanism.noise, square, size, level)
        for square, size in zip(squares.tolist(), sizes.tolist(), strict=True)
    ]
    return (np.array(found) + extra * sizes) / unit * (1 + 1e-9)


@lru_cache(maxsize=256)
def _normal(level: Fraction) -> Fraction:
    return laws.Gaussian(sigma=Fraction(1)).margin(level)


EXACT_TERMS = 24


@lru_cache(maxsize=1024)
def _laplace(scale: Fraction, terms: int, level: Fraction) -> Fraction:
    """The margin of a sum of so many independent errors of one scale."""
    if natural(terms, "terms") > EXACT_TERMS:
        return Fraction(_bernstein(scale, float(terms), 1.0, level))
    law = laws.DiscreteLaplace(scale=scale)
    return (
        Fraction(laws.Sum(parts=(law,) * terms, cells=512).margin(level)) if terms > 1 else Fraction(law.margin(level))
    )


def _bernstein(scale: Fraction, squares: float, largest: float, level: Fraction) -> float:
    """m with 2·exp(h(λ) − λ·m) ≤ 1 − level for the best λ: E exp(λ·b·z) ≤ 1/(1 − λ²·b²·s²) for Laplace of scale s.

    Σ −ln(1 − λ²b²s²) ≤ λ²s²Σb²/(1 − λ²s²·max b²); the discrete law of scale s has no larger moments than the
    continuous one. ``largest`` bounds |b|.
    """
    import math

    s, room = float(scale), math.log(2 / float(1 - level))
    best = math.inf
    for share in (k / 64 for k in range(1, 64)):
        rate = share / (s * largest)
        best = min(best, (rate**2 * s**2 * squares / (1 - share**2) + room) / rate)
    return best * (1 + 1e-9)
