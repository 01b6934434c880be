"""The data dictionary of synthetic rows, as Markdown: for each column what it is, how it was made, what is not kept."""

import re
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.description import Listed, Phrase, Word, phrase, plain
from sfumato.core.release import Release, presenter_of
from sfumato.core.spreadsheet import harmless_cell
from sfumato.core.terminal import harmless_text
from sfumato.synthesis.columns import BinnedColumn, ListedColumn, SyntheticColumn
from sfumato.synthesis.declared import Cell, DeclaredRows, NeverRule, bins_of, kind_of

if TYPE_CHECKING:
    from sfumato.synthesis.result import SyntheticTable

__all__ = [
    "about_column",
    "as_code",
    "as_text",
    "counted_words",
    "dictionary",
    "has_formulas",
    "limit_words",
    "made_words",
]


def dictionary(
    made: "SyntheticTable", declared: DeclaredRows, language: str, *, file: str, form: str, beside: dict[str, str]
) -> str:
    """The dictionary of the rows in a file of a folder; ``beside`` names the other files there, by what they are.

    Guarantee: a function of the release and of what was declared. Names and values are set as code, so that nothing in
    them becomes a heading, a link or HTML.
    """
    say = _Speaker(made, language)
    named = {name: as_code(other) for name, other in beside.items()}
    parts = [
        f"# {harmless_text(say(phrase('dictionary.title', data=as_text(made.release.statement.dataset.name))))}",
        say(phrase("dictionary.rows", file=as_code(file))),
        say(phrase("dictionary.about", **named)),
        say(Phrase("dictionary.sources")),
        *counted_words(made, declared, language),
    ]
    if form == "csv" and has_formulas(declared):
        parts.append(say(Phrase("dictionary.formula")))
    parts.append(f"## {say(Phrase('dictionary.columns'))}")
    for column in declared.columns:
        lines = [say(word) for word in about_column(column, _made(made, column.name))]
        parts += [f"### {as_code(column.name)}", "\n".join(f"- {line}" for line in lines)]
    parts.append(f"## {say(Phrase('dictionary.rules'))}")
    rules = [_never(rule) for rule in declared.never]
    rules += [
        phrase("dictionary.at_least", larger=as_code(larger), smaller=as_code(smaller))
        for larger, smaller in declared.at_least
    ]
    parts.append("\n".join(f"- {say(rule)}" for rule in rules) if rules else say(Phrase("dictionary.no_rules")))
    return "\n\n".join(parts) + "\n"


class _Speaker:
    """Words of the release's presenter in one language."""

    def __init__(self, made: "SyntheticTable", language: str) -> None:
        self._presenter, self._language = presenter_of(made.release), language

    def __call__(self, word: Word) -> str:
        return self._presenter.words(word, self._language)


def counted_words(made: "SyntheticTable", declared: DeclaredRows, language: str) -> list[str]:
    """Which rows of the data count: those of a condition, and of each person as many as the limit has."""
    where = phrase("dictionary.where", condition=as_code(declared.condition))
    return [
        *([_Speaker(made, language)(where)] if declared.condition else []),
        *limit_words(made.release, language),
    ]


def limit_words(release: Release, language: str) -> list[str]:
    """How much of each person counts, where there is a limit."""
    limit = release.limit_words(language)
    said = phrase("dictionary.limit", limit=as_text(limit))
    return [presenter_of(release).words(said, language)] if limit else []


def about_column(column: SyntheticColumn, how: Word) -> list[Word]:
    """What a column is, ``how`` it was made, and what is not kept of it."""
    kind = kind_of(column)
    if isinstance(column, BinnedColumn):
        bins = bins_of(column)
        ends = {"low": _end(bins[0][0]), "high": _end(bins[-1][1]), "number": f"{len(bins):,}"}
        each = tuple(phrase("dictionary.bin", low=_end(low), high=_end(high)) for low, high in bins)
        shape = "bins" if column.whole else "bins_open"
        what = [phrase(f"dictionary.kind_binned_{kind}", **ends), phrase(f"dictionary.{shape}", bins=Listed(each))]
    else:
        values = Listed(tuple(_value(value) for value in column.values))
        number = {} if kind == "truth" else {"number": f"{len(column.values):,}"}
        what = [phrase(f"dictionary.kind_{kind}", **number), phrase("dictionary.values", values=values)]
    binned = isinstance(column, BinnedColumn)
    return [
        *what,
        Phrase("dictionary.missing" if column.missing else "dictionary.not_missing"),
        how,
        *([Phrase("dictionary.binned")] if binned else []),
        Phrase(f"dictionary.not_kept_{'binned' if binned else 'listed'}"),
    ]


def _made(made: "SyntheticTable", name: str) -> Word:
    """Which columns it was measured with, and how exactly."""
    tables = [(each.columns, each.noise) for each in made.quality.marginals if name in each.columns]
    return made_words(name, tables)


def made_words(name: str, tables: Sequence[tuple[Sequence[str], float]], *, unit: str = "rows") -> Word:
    """The same, from the columns and the noise of each table that a column is in; noise in rows or in persons."""
    others = dict.fromkeys(other for columns, _ in tables for other in columns if other != name)
    least, most = (f"{end(noise for _, noise in tables):,.3g}" for end in (min, max))
    group = "dictionary" if unit == "rows" else "related"
    if not others:
        return phrase(f"{group}.made_alone", noise=least)
    columns = Listed(tuple(map(as_code, others)))
    if least == most:
        return phrase(f"{group}.made_alike", columns=columns, noise=least)
    return phrase(f"{group}.made_with", columns=columns, least=least, most=most)


def _never(rule: NeverRule) -> Word:
    (one, these), (two, those) = rule
    return phrase("dictionary.never", one=as_code(one), these=_any_of(these), two=as_code(two), those=_any_of(those))


def _any_of(values: Sequence[Cell]) -> Word:
    first, *others = map(_value, values)
    found: Word = first
    for other in others:
        found = phrase("dictionary.or", left=found, right=other)
    return found


def _value(value: Cell) -> Word:
    if value is None:
        return Phrase("dictionary.empty")
    if isinstance(value, bool):
        return Phrase(f"dictionary.{str(value).lower()}")
    return as_code(str(value))


def _end(end: float | date) -> str:
    return end.isoformat() if isinstance(end, date) else plain(Fraction(repr(end)))


def has_formulas(declared: DeclaredRows) -> bool:
    """Whether a name or a value would be taken for a formula by a spreadsheet."""
    texts = [column.name for column in declared.columns]
    for column in declared.columns:
        if isinstance(column, ListedColumn):
            texts += [value for value in column.values if isinstance(value, str)]
    return any(harmless_cell(text) != text for text in texts)


def as_code(text: str) -> str:
    """A name or a value as code of Markdown, on one line, with nothing in it that ends the code.

    >>> as_code("age"), as_code("a`b"), as_code("a" + chr(10) + "# b")
    ('`age`', '`` a`b ``', '`a\\\\n# b`')
    """
    line = harmless_text(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"`{line}`" if not longest and line.strip() == line and line else f"{fence} {line} {fence}"


def as_text(text: str) -> str:
    """A name inside a sentence of Markdown: signs that mean something there are escaped.

    >>> as_text("a*b <i>")
    'a\\\\*b \\\\<i\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>&~$])", r"\\\1", harmless_text(text))
