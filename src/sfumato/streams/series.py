"""The totals of a closed stream, worked out from what was released: post-processing."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.exact import Exact
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.laws.margins import level_of
from sfumato.streams.margins import StreamMargins
from sfumato.streams.noise import SeriesNoise

__all__ = ["Series"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Series(Derived):
    """The total after each step that was released, with intervals that cover the noise."""

    totals: tuple[float, ...]
    squares: tuple[float, ...]
    sizes: tuple[float, ...]
    mechanism: SeriesNoise
    labels: Mapping[str, tuple[str | int | bool, ...]]
    measure: str
    sources: tuple[Release, ...]

    @classmethod
    def of(cls, release: Release, *, told: int, groups: int) -> "Series":
        """Compute the totals of a release from its number of released steps and its number of groups."""
        import numpy as np

        from sfumato.streams.reconstruction import reconstruction_of

        said = only_release(release).statement
        mechanism = said.mechanism
        if not isinstance(mechanism, SeriesNoise):
            raise InvalidInput("this is not a release of a stream of totals; nothing was done.")
        numbers = np.array(said.values, dtype=np.int64).reshape(-1, groups)
        read = [reconstruction_of(mechanism.strategy).read(numbers[:, place], told) for place in range(groups)]
        totals, squares, sizes = (np.stack(part, axis=1).ravel().tolist() for part in zip(*read, strict=True))
        labels = {name: tuple(column) for name, column in said.query.labels().items()}
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

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high for each total; with ``joint`` all of them hold at once, by the union bound."""
        import numpy as np

        level = level_of(confidence)
        level = 1 - (1 - level) / len(self.totals) if joint and self.totals else level
        found = StreamMargins(self.mechanism).at(np.array(self.squares), np.array(self.sizes), level)
        return [(total - margin, total + margin) for total, margin in zip(self.totals, found.tolist(), strict=True)]
