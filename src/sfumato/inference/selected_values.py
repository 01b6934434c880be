"""What the exponential mechanism chose: quantiles, names of groups. It has no noise distribution, so no interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.columns import Value
from sfumato.core.exact import Exact
from sfumato.core.release import Release
from sfumato.errors import Unsupported
from sfumato.inference.derived import Derived, Label

__all__ = ["SelectedValues"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SelectedValues(Derived):
    """Values that a mechanism chose by their score.

    ``rank_margin`` is how far from its place, counted in rows, each chosen value can be with 95% confidence, whatever
    the data; None where that means nothing.
    """

    measured: ClassVar[bool] = False
    chosen: tuple[Value, ...]
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]
    rank_margin: int | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The values, in the order of the labels."""
        return self.chosen

    @property
    def method(self) -> str:
        """How the values were chosen."""
        return "a choice by score"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[Value, Value]]:
        """There is none."""
        if self.rank_margin is None:
            raise Unsupported(
                f"{self.measure!r} was chosen and not measured: it has no noise distribution, so no interval follows "
                "from one."
            )
        raise Unsupported(
            f"{self.measure!r} was chosen by the exponential mechanism: it has no noise distribution, so no interval "
            "follows from one. Its rank is bounded: see rank_margin. Counts by value have intervals, and their "
            "quantiles too: sfumato.inference.quantile(counts, 0.5)."
        )
