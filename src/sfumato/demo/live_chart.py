"""A chart for the terminal that grows: a true line, what was released of it, and how sure that is.

Only for generated data: a chart that shows the truth beside the release is no release.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ALARM", "BOTH", "RELEASED", "TRUE", "UNSURE", "Point", "chart"]

TRUE, RELEASED, BOTH, UNSURE, ALARM = "─", "●", "◉", "░", "▲"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A true number, what was released of it, and the margin at 95% confidence."""

    true: float
    released: float
    margin: float


def chart(
    points: Sequence[Point], *, top: float, steps: int, width: int, height: int = 8, alarms: Sequence[int] = ()
) -> list[str]:
    """Draw points from 0 to ``top`` over ``steps`` steps, those that are still to come left empty.

    Where there are more steps than columns, a column shows the last of its steps. A point beyond the edge is drawn on
    it. The steps of ``alarms``, from 1, are marked on a line of their own below.

    >>> rising = [Point(true=number, released=number + 1, margin=1) for number in (0, 2, 4)]
    >>> print("\\n".join(chart(rising, top=4, steps=4, width=4, height=5, alarms=[1])))
    4 ┤ ░◉
      │ ●
      │░─
      │●
    0 ┤─
      ▲
    """
    across = min(width, steps)
    ends = [(place + 1) * steps // across for place in range(across)]  # the step that each column shows
    cells = [[" "] * across for _ in range(height)]

    def row(number: float) -> int:
        return min(max(round(number / top * (height - 1)), 0), height - 1)

    for place, end in enumerate(ends):
        if end > len(points):
            break
        point = points[end - 1]
        for line in range(row(point.released - point.margin), row(point.released + point.margin) + 1):
            cells[line][place] = UNSURE
        true, released = row(point.true), row(point.released)
        cells[true][place] = TRUE
        cells[released][place] = BOTH if released == true else RELEASED
    marks = {height - 1: f"{top:,.0f}", 0: "0"}
    room = max(len(mark) for mark in marks.values())
    drawn = [
        f"{marks.get(line, ''):>{room}} {'┤' if line in marks else '│'}{''.join(cells[line])}".rstrip()
        for line in reversed(range(height))
    ]
    begins = [0, *ends]
    raised = "".join(
        ALARM if any(begins[place] < step <= end for step in alarms) else " " for place, end in enumerate(ends)
    )
    return [*drawn, f"{'':>{room}}  {raised}".rstrip()]
