"""A release as a few lines of text, for whoever prints it: its first numbers, what was spent and who is protected."""

from collections.abc import Callable, Sequence

from sfumato.core.release import Release, only_release
from sfumato.core.terminal import harmless_text, text_width
from sfumato.core.units import Relation
from sfumato.errors import Unsupported
from sfumato.reports.amounts import written
from sfumato.reports.catalogue import message
from sfumato.reports.columns import AnswerColumn, columns_of
from sfumato.reports.particulars import asked, particulars, protected
from sfumato.reports.words.facts import Span
from sfumato.reports.words.figures import span_line

__all__ = ["printed", "protection"]

MOST_ROWS = 10
MOST_COLUMNS = 6
WIDEST = 32


def printed(release: Release, language: str = "en") -> str:
    """The first 10 rows with their intervals, what was spent, who is protected, and what of each person counts.

    Made from the release alone; whatever could move a cursor is spelled out.
    """
    said = only_release(release).statement
    lines = [_charge(release, language), _guarded(release, language)]
    try:
        title = asked(said, language)
        table = _table(release, language)
        limit = _limit(release, language)
    except Unsupported:  # a kind of data that has no words: its numbers are still there
        title, table, limit = "", [" ".join(map(str, said.values[:MOST_ROWS]))], ""
    if limit:
        lines.append(message(language, "printed.limit", limit=limit))
    head = message(language, "printed.of", asked=title, dataset=said.dataset.name) if title else said.dataset.name
    return "\n".join(harmless_text(line) for line in (head, *table, *lines))


def protection(release: Release, language: str) -> tuple[str, str]:
    """What its answer cost, whether it was delivered again or not, and who is protected; a line each."""
    spend = written(only_release(release).statement.spend, language)
    return message(language, "printed.spent", spend=spend), _guarded(release, language)


def _charge(release: Release, language: str) -> str:
    """What this delivery cost."""
    spent = "printed.repeated" if release.repeated else "printed.spent"
    amount = release.statement.spend if release.repeated else release.charged
    return message(language, spent, spend=written(amount, language))


def _guarded(release: Release, language: str) -> str:
    unit = release.statement.unit
    relation = "add_remove" if unit.relation is Relation.ADD_REMOVE else "replace"
    return message(language, f"printed.protected_{relation}", unit=protected(unit, language, told_by=True))


def _limit(release: Release, language: str) -> str:
    """What of one person counts at the most; empty where there is no limit, or where it can cut nothing."""
    words: Callable[[str], str] | None = getattr(release, "limit_words", None)
    if words is not None:
        return words(language)
    if release.statement.limit is None:
        return ""
    return next(text for name, text in particulars(release, language) if name == "limit")


def _table(release: Release, language: str) -> list[str]:
    """The names and numbers of the first rows, one line each, and a line for each column that was chosen by rank."""
    found = columns_of(release)
    if not found:
        return [message(language, "fact.margin_model")]
    total, shown = len(found[0].values), found[:MOST_COLUMNS]
    places = range(min(total, MOST_ROWS))
    columns: list[tuple[Sequence[str], bool]] = [  # the texts of each, and whether they stand on the right
        ([name, *(str(values[place]) for place in places)], False) for name, values in release.labels.items()
    ]
    for column in shown:
        columns.append(([column.name, *(column.text(place) for place in places)], not column.named))
        if not column.chosen:
            ends = (_ends(column, place, language) for place in places)
            columns.append(([_heading(column, found, language), *ends], True))
    lines = _aligned(columns)
    if total > MOST_ROWS:
        lines.append(message(language, "printed.more", more=f"{total - MOST_ROWS:,}"))
    if len(found) > MOST_COLUMNS:
        lines.append(message(language, "printed.columns", names=", ".join(each.name for each in found[MOST_COLUMNS:])))
    if any(column.sampled for column in shown):
        lines.append(message(language, "population.printed"))
    return [*lines, *(span_line(Span.of(column), language) for column in shown if column.rank is not None)]


def _heading(column: AnswerColumn, beside: Sequence[AnswerColumn], language: str) -> str:
    """What an interval is for, where a column of the release estimates a population."""
    if not any(each.sampled for each in beside):
        return message(language, "printed.interval")
    return message(language, "population.interval" if column.sampled else "population.interval_data")


def _ends(column: AnswerColumn, place: int, language: str) -> str:
    ends = column.interval(place)
    if ends is None:
        return message(language, "page.interval_untold" if column.ends is None else "page.interval_open")
    return message(language, "page.interval", low=ends[0], high=ends[1])


def _aligned(columns: Sequence[tuple[Sequence[str], bool]]) -> list[str]:
    """Columns of texts side by side, each as wide as its widest."""
    cut = [([_cut(harmless_text(text)) for text in texts], right) for texts, right in columns]
    widths = [max(map(text_width, texts)) for texts, _ in cut]
    rows = range(len(cut[0][0]) if cut else 0)
    return [
        "  ".join(
            " " * (width - text_width(texts[row])) + texts[row]
            if right
            else texts[row] + " " * (width - text_width(texts[row]))
            for (texts, right), width in zip(cut, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
