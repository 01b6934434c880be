"""The picture of a live stream: its totals with the band of their margins, as the points of one drawing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sfumato.server.live.feeds import LiveStream, StreamPoint

__all__ = ["Mark", "StreamDrawing", "drawn"]

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 900, 340, 104, 16, 22, 40
MOST_POINTS = 600
STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A mark on an axis, and what it says; one that is ``minor`` says it where there is room."""

    at: float
    words: str
    minor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDrawing:
    """The points of the line and of its band, and the marks of both axes."""

    wide: int
    high: int
    left: int
    right: int
    top: int
    bottom: int
    line: str
    band: str
    end: tuple[float, float]
    levels: tuple[Mark, ...]
    times: tuple[Mark, ...]


def drawn(stream: LiveStream, points: Sequence[StreamPoint]) -> StreamDrawing | None:
    """The drawing of what was released so far; none before the second step."""
    if len(points) < 2:
        return None
    every = max(1, -(-len(points) // MOST_POINTS))
    chosen = [*points[:-1:every], points[-1]]
    low = min(0.0, min(each.total - each.margin for each in chosen))
    high = max(1.0, max(each.total + each.margin for each in chosen))
    marks = _levels(low, high)
    low, high = min(low, marks[0]), max(high, marks[-1])
    first, last = chosen[0].step, chosen[-1].step

    def across(step: int) -> float:
        return round(LEFT + (WIDE - LEFT - RIGHT) * (step - first) / (last - first), 1)

    def up(value: float) -> float:
        return round(TOP + (HIGH - TOP - BOTTOM) * (high - value) / (high - low), 1)

    upper = [f"{across(each.step)},{up(each.total + each.margin)}" for each in chosen]
    lower = [f"{across(each.step)},{up(each.total - each.margin)}" for each in reversed(chosen)]
    return StreamDrawing(
        wide=WIDE,
        high=HIGH,
        left=LEFT,
        right=WIDE - RIGHT,
        top=TOP,
        bottom=HIGH - BOTTOM,
        line=" ".join(f"{across(each.step)},{up(each.total)}" for each in chosen),
        band=" ".join([*upper, *lower]),
        end=(across(last), up(chosen[-1].total)),
        levels=tuple(
            Mark(at=up(value), words=f"{value:,.0f}", minor=bool(round(value / (marks[1] - marks[0])) % 2))
            for value in marks
        ),
        times=tuple(
            Mark(at=across(step), words=when(stream, step)) for step in sorted({first, (first + last) // 2, last})
        ),
    )


def when(stream: LiveStream, step: int) -> str:
    """When a step ends, in UTC, as short as its length allows."""
    moment = stream.clock.begins(step) + timedelta(seconds=stream.every)
    if stream.every >= 86_400:
        return moment.strftime("%Y-%m-%d")
    return moment.strftime("%m-%d %H:%M") if stream.every >= 60 else moment.strftime("%H:%M:%S")


def _levels(low: float, high: float) -> list[float]:
    """Four to eight round values from at most the lowest to at least the highest."""
    wanted, size = (high - low) / 4, 1.0
    while size * 10 <= wanted:
        size *= 10
    step = size * max(each for each in STEPS if size * each <= max(wanted, 1))
    first, last = int(low // step), -int(-high // step)
    return [place * step for place in range(first, last + 1)]
