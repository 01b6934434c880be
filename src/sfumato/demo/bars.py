"""Bars for the terminal: numbers whose light end is their error, and a budget by what it was spent on."""

import math
from collections.abc import Sequence
from fractions import Fraction

from rich.table import Table

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up
from sfumato.core.release import Release
from sfumato.inference import Ratio

__all__ = ["bar", "share_table", "spent_bar", "table"]

WIDTH = 26
SPENT, LEFT = "█▓▒░", "·"


def table(release: Release, *, width: int = WIDTH) -> Table:
    """Lay out the labels, the numbers and their 95% intervals; all bars share one scale."""
    intervals = release.interval()
    labels = release.statement.query.labels()
    most = max(1, *(high for _, high in intervals))
    drawn = _columns([*labels, release.statement.query.names[0], "95% interval"], numbers=2)
    if width:
        drawn.add_column(f"0 to {most:,}", no_wrap=True, style="cyan")
    for place, (value, (low, high)) in enumerate(zip(release.values, intervals, strict=True)):
        drawn.add_row(
            *(str(column[place]) for column in labels.values()),
            f"{value:,}",
            f"{low:,} to {high:,}",
            *([bar(low, high, most=most, width=width)] if width else []),
        )
    return drawn


def share_table(share: Ratio, *, width: int = WIDTH) -> Table:
    """Lay out shares and their 95% intervals in per cent, rounded outward; no interval where the noise allows any."""
    drawn = _columns([*share.labels, "share", "95% interval"], numbers=2)
    if width:
        drawn.add_column("0 to 100%", no_wrap=True, style="cyan")
    for place, (value, (low, high)) in enumerate(zip(share.values, share.interval(), strict=True)):
        known = math.isfinite(low) and math.isfinite(high)
        floor, ceiling = (math.floor(1000 * low), math.ceil(1000 * high)) if known else (0, 1000)
        drawn.add_row(
            *(str(column[place]) for column in share.labels.values()),
            f"{value:.1%}" if known else "unknown",
            f"{floor / 10:.1f} to {ceiling / 10:.1f}%" if known else "any",
            *([bar(floor, min(ceiling, 1000), most=1000, width=width)] if width else []),
        )
    return drawn


def bar(low: int, high: int, *, most: int, width: int = WIDTH) -> str:
    """Draw an interval as a bar from 0, solid up to ``low`` and light up to ``high``; below 0 nothing is drawn.

    >>> bar(40, 60, most=100, width=10), bar(-5, 8, most=100, width=10), bar(-9, -1, most=100, width=10)
    ('████░░', '░', '')
    """
    solid = max(0, low) * width // most
    light = -(-max(0, high) * width // most) - solid
    return "█" * solid + "░" * light


def spent_bar(charges: Sequence[Fraction], budget: Budget, *, width: int = 40) -> str:
    """Draw a budget of ε as a bar: a stretch for each charge, in turn █, ▓, ▒ and ░, and dots for what is left.

    >>> spent_bar([Fraction(1, 2), Fraction(1, 2)], Budget(epsilon=2), width=8)
    '██▓▓···· 1 of 2'
    """
    ends = [int(sum(charges[: place + 1], Fraction(0)) / budget.epsilon * width) for place in range(len(charges))]
    drawn = "".join(
        SPENT[place % len(SPENT)] * (end - start)
        for place, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
    )
    total = sum(charges, Fraction(0))
    return f"{drawn:{LEFT}<{width}} {decimal_up(total)} of {decimal_up(budget.epsilon)}"


def _columns(names: Sequence[str], *, numbers: int) -> Table:
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for place, name in enumerate(names):
        drawn.add_column(name, justify="right" if place >= len(names) - numbers else "left", no_wrap=True)
    return drawn
