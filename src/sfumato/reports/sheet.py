"""The numbers of a release as an HTML table, each with its interval."""

from collections.abc import Sequence
from html import escape

from sfumato.core.release import Release
from sfumato.reports.catalogue import message
from sfumato.reports.columns import Column, columns_of
from sfumato.reports.particulars import column
from sfumato.reports.words.rendering import render

__all__ = ["sheet"]

LONG = 40


def sheet(release: Release, language: str, *, most: int) -> str:
    """The table, of at most so many rows, with a word about those left out; all text is escaped.

    One column has its interval in two columns beside it; several have theirs under each number. Names that were chosen
    stand at the head of their rows, as labels do.
    """
    labels = release.statement.query.labels()
    found = columns_of(release)
    names, columns = [each for each in found if each.named], [each for each in found if not each.named]
    total = len(found[0].values)
    shown = min(total, most)
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in labels)
    heads += "".join(f'<th scope="col">{escape(each.name)}</th>' for each in names)
    heads += "".join(f'<th scope="col" class="number">{head}</th>' for head in _heads(release, columns, language))
    alone = len(columns) == 1
    rows = [
        "<tr>"
        + "".join(f'<th scope="row">{escape(str(label[place]))}</th>' for label in labels.values())
        + "".join(f'<th scope="row">{escape(each.text(place))}</th>' for each in names)
        + "".join(f"<td>{cell}</td>" for each in columns for cell in _cells(each, place, language, alone=alone))
        + "</tr>"
        for place in range(shown)
    ]
    # A long table scrolls in a window of its own, which the keyboard must be able to reach.
    window = 'class="wide"' if shown <= LONG else 'class="wide long" tabindex="0"'
    parts = [f"<div {window}><table>", f"<thead><tr>{heads}</tr></thead>", "<tbody>", *rows, "</tbody></table></div>"]
    if total > most:
        name = "page.first" if release.statement.query.measure is not None else "page.cells"
        note = message(language, name, shown=f"{most:,}", numbers=f"{total:,}")
        parts.append(f"<p>{escape(note)}</p>")
    return "\n".join(parts)


def _heads(release: Release, columns: Sequence[Column], language: str) -> list[str]:
    """The names of the columns, with what each of them is."""
    heads = []
    for each in columns:
        if each.measured is None:
            heads.append(escape(each.name if each.figure is not None else column(each.name, language)))
        else:
            words = render(each.measured.words, language)
            heads.append(f"{escape(each.name)}<br><small>{escape(words)}</small>")
    ends = [escape(column(end, language)) for end in ("low", "high")]
    return [*heads, *ends] if len(columns) == 1 and not columns[0].chosen else heads


def _cells(each: Column, place: int, language: str, *, alone: bool) -> list[str]:
    """A number and its interval: three cells, or one with the interval under the number."""
    if each.chosen:
        return [escape(each.text(place))]
    ends = each.interval(place)
    nothing = message(language, "page.interval_untold" if each.ends is None else "page.interval_open")
    if alone:
        low, high = ends or (nothing, nothing)
        return [escape(each.text(place)), escape(low), escape(high)]
    under = nothing if ends is None else message(language, "page.interval", low=ends[0], high=ends[1])
    return [f"{escape(each.text(place))}<br><small>{escape(under)}</small>"]
