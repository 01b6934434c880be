"""A release as a small table for notebooks."""

from sfumato.core.release import Release, only_release
from sfumato.core.units import Relation
from sfumato.reports.amounts import written
from sfumato.reports.catalogue import message
from sfumato.reports.columns import columns_of
from sfumato.reports.limited import covers
from sfumato.reports.particulars import margins, protected
from sfumato.reports.rendering import render
from sfumato.reports.sheet import sheet
from sfumato.reports.view_notes import view_notes

__all__ = ["snippet"]

MOST_ROWS = 50


def snippet(release: Release, language: str = "en") -> str:
    """The first 50 numbers with their intervals, and a line about the guarantee; escaped, with no style of its own."""
    said = only_release(release).statement
    relation = "add_remove" if said.unit.relation is Relation.ADD_REMOVE else "replace"
    line = message(
        language,
        f"page.snippet_{relation}",
        spend=written(said.spend, language),
        unit=protected(said.unit, language),
        margins=margins(release, language),
    )
    table = sheet(release, language, most=MOST_ROWS) if columns_of(release) else None
    measured = any(not column.chosen for column in columns_of(release))
    covered = "" if table is None else covers(release, language, measured=measured, columns=columns_of(release))
    notes = " ".join([line, *view_notes(release, language)])
    return render("snippet.html", table=table, line=notes, covers=covered)
