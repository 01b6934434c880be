"""A release as a table for the terminal, each number with a bar whose light end is its error."""

from rich.table import Table

from sfumato.core.release import Release

__all__ = ["bar", "table"]

WIDTH = 26


def table(release: Release) -> Table:
    """Lay out the labels, the numbers and their 95% intervals; all bars share one scale."""
    intervals = release.interval()
    labels = release.statement.query.labels()
    most = max(1, *(high for _, high in intervals))
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in labels:
        drawn.add_column(column, no_wrap=True)
    drawn.add_column(release.statement.query.measure, justify="right", no_wrap=True)
    drawn.add_column("95% interval", justify="right", no_wrap=True)
    drawn.add_column(f"0 to {most:,}", no_wrap=True, style="cyan")
    for place, (value, (low, high)) in enumerate(zip(release.values, intervals, strict=True)):
        drawn.add_row(
            *(str(column[place]) for column in labels.values()),
            f"{value:,}",
            f"{low:,} to {high:,}",
            bar(low, high, most=most),
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
