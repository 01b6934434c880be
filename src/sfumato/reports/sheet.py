"""The numbers of a release as an HTML table, each with its interval."""

from html import escape

from sfumato.core.release import Release
from sfumato.reports.catalogue import message
from sfumato.reports.particulars import CONFIDENCE, column

__all__ = ["sheet"]

LONG = 40


def sheet(release: Release, language: str, *, most: int) -> str:
    """The table, of at most so many rows, with a word about those left out; all text is escaped."""
    labels = release.statement.query.labels()
    shown = list(zip(release.values, release.interval(CONFIDENCE), strict=True))[:most]
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in labels)
    numbers = (release.statement.query.names[0], "low", "high")
    heads += "".join(f'<th scope="col" class="number">{escape(column(name, language))}</th>' for name in numbers)
    rows = [
        "<tr>"
        + "".join(f'<th scope="row">{escape(str(label[place]))}</th>' for label in labels.values())
        + "".join(f"<td>{number:,}</td>" for number in (value, low, high))
        + "</tr>"
        for place, (value, (low, high)) in enumerate(shown)
    ]
    # A long table scrolls in a window of its own, which the keyboard must be able to reach.
    window = 'class="wide"' if len(shown) <= LONG else 'class="wide long" tabindex="0"'
    parts = [f"<div {window}><table>", f"<thead><tr>{heads}</tr></thead>", "<tbody>", *rows, "</tbody></table></div>"]
    if len(release.values) > most:
        note = message(language, "page.first", shown=f"{most:,}", numbers=f"{len(release.values):,}")
        parts.append(f"<p>{escape(note)}</p>")
    return "\n".join(parts)
