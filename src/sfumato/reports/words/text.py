"""A finished explanation: what, risk, error and budget, none of them empty."""

from dataclasses import dataclass

from sfumato.errors import Refused

__all__ = ["POINTS", "Explanation"]

POINTS = ("what", "risk", "error", "budget")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one reader reads, in paragraphs under four points, in the order in which that reader asks.

    A text with an empty point or paragraph is refused: nothing is published with a hole in it.

    >>> order = ("budget", "risk", "error")
    >>> Explanation(what=("A number.",), risk=("Little.",), error=("±6",), budget=("Half.",), order=order).paragraphs
    ('A number.', 'Half.', 'Little.', '±6')
    """

    what: tuple[str, ...]
    risk: tuple[str, ...]
    error: tuple[str, ...]
    budget: tuple[str, ...]
    order: tuple[str, ...] = POINTS[1:]

    def __post_init__(self) -> None:
        for point in POINTS:
            paragraphs = getattr(self, point)
            if not paragraphs or not all(paragraph.strip() for paragraph in paragraphs):
                raise Refused(
                    f"the explanation has nothing under {point!r}; it was not made, and nothing is published."
                )
        if sorted(self.order) != sorted(POINTS[1:]):
            raise Refused("an explanation names risk, error and budget, each once; it was not made.")

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """All paragraphs, the first about what was released."""
        return tuple(paragraph for point in ("what", *self.order) for paragraph in getattr(self, point))

    def __str__(self) -> str:
        return "\n\n".join(self.paragraphs)
