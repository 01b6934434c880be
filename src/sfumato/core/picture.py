"""What a picture of a result shows, as plain numbers and words: drawn above (:mod:`sfumato.reports.plots`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sfumato.core.description import Word

__all__ = ["Picture", "PictureRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRow:
    """One mark: a place on the horizontal axis (or a name, in a forest plot), a value, and the ends of its interval."""

    at: float | str
    value: float
    low: float | None = None
    high: float | None = None
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One drawing. ``forest``: estimates by name with their intervals; ``steps`` and ``lines``: curves with bands.

    ``reference`` is a value that is marked, such as a hazard ratio of 1; ``log`` puts values on a logarithmic axis.
    """

    kind: Literal["forest", "steps", "lines"]
    rows: Sequence[PictureRow]
    title: Word
    across: Word
    """The title of the horizontal axis: time of a curve, the estimate of a forest plot."""
    upward: Word | None = None
    """The title of the vertical axis of a curve."""
    lines: tuple[Word, ...] = ()
    """What stands under the title: the confidence and what the intervals cover."""
    reference: float | None = None
    log: bool = False
    within: tuple[float, float] | None = None
    """The range of the values, where it is known, such as 0 to 1 for a share."""
