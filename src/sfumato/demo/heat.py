"""A release over two keys as a table of shaded cells, for the terminal.

Honest about noise: a cell whose 95% interval includes 0 gets a dot in place of a shade, as nobody at all would fit too.
Readable without colour, and narrow where the terminal is: then the shades stay and the numbers go.
"""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.core.release import Release
from sfumato.errors import Unsupported

__all__ = ["heat", "shade"]

SHADES = "░▒▓█"
EMPTY = "·"
STYLES = {EMPTY: "dim", "░": "", "▒": "cyan", "▓": "yellow", "█": "bold red"}
CELL, SHORT = 7, 2


def heat(release: Release, *, width: int) -> RenderableType:
    """Lay out the cells, a row for each value of the first key; ``width`` is what the terminal has."""
    labels = release.statement.query.labels()
    if len(labels) != 2:
        raise Unsupported("a table of shaded cells needs two keys; nothing was drawn.")
    (down, lines), (_, across) = labels.items()
    rows = list(dict.fromkeys(str(line) for line in lines))
    columns = list(dict.fromkeys(str(column) for column in across))
    most = max(1, *release.values)
    cells = list(zip(release.values, (low for low, _ in release.interval()), strict=True))
    label = max(len(down), *map(len, rows))
    full = label + len(columns) * (CELL + 1) <= width
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column(down, no_wrap=True)
    for column in columns:
        table.add_column(_short(column, CELL if full else SHORT), justify="right", no_wrap=True)
    for place, name in enumerate(rows):
        here = cells[place * len(columns) : (place + 1) * len(columns)]
        table.add_row(name, *(_cell(value, low, most, full=full) for value, low in here))
    steps = ", ".join(f"{sign} to {most * (place + 1) // len(SHADES):,}" for place, sign in enumerate(SHADES))
    key = [f"{steps}; {EMPTY} the interval includes 0, so the cell may be empty"]
    if not full:
        key.append("; ".join(f"{_short(column, SHORT)} {column}" for column in columns))
    return Group(table, Text(), *(Text(line, style="dim") for line in key))


def shade(value: int, low: int, most: int) -> str:
    """The sign of a cell: a quarter of the largest number for each step, and a dot where 0 is not ruled out.

    >>> shade(10, 4, 100), shade(60, 54, 100), shade(100, 94, 100), shade(5, -1, 100)
    ('░', '▓', '█', '·')
    """
    if low <= 0:
        return EMPTY
    return SHADES[min(len(SHADES) - 1, value * len(SHADES) // most)]


def _cell(value: int, low: int, most: int, *, full: bool) -> Text:
    sign = shade(value, low, most)
    return Text(f"{sign}{value:>{CELL - 1},}" if full else sign * SHORT, style=STYLES[sign])


def _short(text: str, most: int) -> str:
    """Cut a heading to size; the last sign shows that something is missing where there is room for it."""
    if len(text) <= most:
        return text
    return text[:most] if most < 4 else text[: most - 1] + "…"
