"""The numbers of a release on a terminal and for programs, each with its interval."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.cli.output import harmless
from sfumato.core.columns import Value
from sfumato.core.rounding import rounded, short

if TYPE_CHECKING:
    from rich.table import Table

    from sfumato.core.release import Release

__all__ = ["answer_table", "document", "figures"]


def answer_table(release: "Release", confidence: Fraction, *, most: int | None = None) -> "Table":
    """The labels of each group, its numbers, and the interval of each, rounded outward; the first ``most`` groups."""
    from rich.table import Table
    from rich.text import Text

    from sfumato.core.exact import decimal_down
    from sfumato.core.release import population_intervals, shown_columns
    from sfumato.reports.columns import described

    percent = f"{decimal_down(100 * confidence)}% interval"
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    labels = release.labels
    for name in labels:
        drawn.add_column(Text(harmless(name)))
    shown = shown_columns(release, confidence)
    counts = {name for name, known in described(release.statement).measured.items() if known.counts}
    cells: list[list[str]] = []
    sampled = population_intervals(release, confidence)
    for name, values, noise in shown:
        ends = sampled.get(name, noise)
        drawn.add_column(Text(harmless(name)), justify="right")
        if ends is None:  # chosen, not measured
            cells.append([harmless(short(value)) for value in values])
            continue
        which = ", population" if name in sampled else ", these data" if sampled else ""
        drawn.add_column(percent + which, justify="right", no_wrap=True)
        texts = [figures(value, pair, whole=name in counts) for value, pair in zip(values, ends, strict=True)]
        cells += [[text[0] for text in texts], [text[1] for text in texts]]
    for place in range(len(cells[0]))[:most]:
        groups = [Text(harmless(str(column[place]))) for column in labels.values()]
        drawn.add_row(*groups, *(Text(column[place]) for column in cells))
    return drawn


def figures(value: Value, ends: tuple[Value, Value], *, whole: bool = False) -> tuple[str, str]:
    """A number and its interval as texts, with as many digits as its margin makes worth reading.

    >>> figures(1234, (1228, 1240)), figures(Fraction(1, 3), (0.2, 0.456)), figures(0.5, (-math.inf, 2.0))
    (('1,234', '1,228 to 1,240'), ('0.33', '0.20 to 0.46'), ('unknown', 'any'))
    """
    texts = rounded(value, *ends, whole=whole)
    return ("unknown", "any") if texts is None else (texts[0], f"{texts[1]} to {texts[2]}")


def document(release: "Release", confidence: Fraction) -> dict[str, object]:
    """The same for programs; what the noise leaves open is null, and so are the ends of what was chosen.

    ``data_low`` and ``data_high`` hold the figure of these data, under the ``limit`` where that is not null; what
    estimates a population has ``population_low`` and ``population_high`` too, for sampling and noise together.
    """
    from sfumato.core.release import population_intervals, shown_columns

    columns: dict[str, dict[str, list[Value] | None]] = {}
    sampled = population_intervals(release, confidence)
    for name, values, ends in shown_columns(release, confidence):
        sides = None if ends is None else [[_plain(end) for end in side] for side in zip(*ends, strict=True)]
        low, high = sides or (None, None)
        columns[name] = {"values": [_plain(value) for value in values], "data_low": low, "data_high": high}
        if sampled.get(name):
            least, most = ([_plain(end) for end in side] for side in zip(*sampled[name], strict=True))
            columns[name] |= {"population_low": least, "population_high": most}
    labels = {name: list(column) for name, column in release.labels.items()}
    return {"labels": labels, "columns": columns, "limit": release.limit_words() or None}


def _plain(value: Value) -> Value:
    if isinstance(value, float | Fraction):
        return float(value) if math.isfinite(value) else None
    return value
