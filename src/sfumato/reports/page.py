"""A release as one web page: no script, nothing loaded from elsewhere, readable in twenty years.

Everything that comes from the release is escaped, and the page forbids itself scripts and the network besides.
"""

import io
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from html import escape
from pathlib import Path

from sfumato.core.exact import fraction_text
from sfumato.core.extras import need
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Statement
from sfumato.core.units import Family, Relation, User
from sfumato.engines.expressions import AllOf, AnyOf, Expression, Literal, Missing, Not, OneOf, Operator, Text, Truth
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.mechanisms import Laplace
from sfumato.reports.catalogue import LANGUAGES, message, messages
from sfumato.tables.queries.count import Count

__all__ = ["page", "snippet", "write"]

MOST_ROWS, MOST_POINTS = 2_000, 100
CONFIDENCE = Fraction(19, 20)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --paper: #fdfdfb; --ink: #22262b; --quiet: #5f6872; --line: #dfe3e8; --mark: #1f3a5f;
        --card: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16191d; --ink: #e4e6e8; --quiet: #9aa4af; --line: #30363d; --mark: #a9c4e6; --card: #ffffff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.6;
       font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Noto Sans CJK SC", sans-serif; }
main, nav { max-width: 44rem; margin: 0 auto; padding: 0 1.25rem; }
nav { display: flex; gap: 1rem; padding-top: 1.25rem; font-size: .9rem; }
a { color: var(--mark); }
section { padding: 2rem 0 2.5rem; border-bottom: 1px solid var(--line); }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .75rem; color: var(--mark); overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2.25rem 0 .75rem; color: var(--mark); }
p { margin: 0 0 .9rem; overflow-wrap: anywhere; }
.tagline { margin: 0 0 .25rem; font-size: .85rem; color: var(--quiet); letter-spacing: .04em; }
.asked { font-size: 1.15rem; }
figure { margin: 0 0 1.5rem; padding: 1rem; background: var(--card); border: 1px solid var(--line);
         border-radius: .5rem; }
figure svg { display: block; width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: left; font-weight: 400; }
thead th { color: var(--quiet); font-size: .85rem; vertical-align: bottom; }
td, thead th:nth-last-child(-n+3) { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: minmax(8rem, auto) 1fr; gap: .4rem 1.25rem; margin: 0; font-size: .95rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
details { margin: 1.5rem 0 3rem; }
summary { cursor: pointer; color: var(--mark); }
details p { margin-top: .9rem; font-size: .9rem; color: var(--quiet); }
pre { overflow-x: auto; padding: 1rem; border: 1px solid var(--line); border-radius: .5rem; font-size: .8rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; } }
@media print { nav { display: none; } section { break-after: page; border: 0; } }
"""
SIGNS = {Operator.UNEQUAL: "≠", Operator.AT_MOST: "≤", Operator.AT_LEAST: "≥"}


def page(release: Release, languages: Sequence[str] = ("en", "zh")) -> str:
    """Write the page, a part for each language and the certificate at the end.

    Without the ``plots`` extra the page has no picture. Public: all of it, as all of a release is.
    """
    if not languages:
        raise InvalidInput("a page needs a language: 'en', 'zh' or both; nothing was written.")
    first, said = languages[0], only_release(release).statement
    facts = {"dataset": said.dataset.name, "edition": said.dataset.edition}
    title = _text(first, "page.title", **facts)
    parts = [
        "<!doctype html>",
        f'<html lang="{LANGUAGES[first]}">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        *(_contents(languages) if len(languages) > 1 else ()),
        "<main>",
        *(_section(release, language) for language in languages),
        _certificate(release, languages),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def write(release: Release, path: Path, languages: Sequence[str]) -> Path:
    """Write the page to a file."""
    path.write_text(page(release, languages), encoding="utf-8")
    return path


def snippet(release: Release) -> str:
    """A small table for notebooks."""
    return _table(only_release(release), "en")


def _contents(languages: Sequence[str]) -> Iterator[str]:
    yield "<nav>"
    for language in languages:
        tag = LANGUAGES[language]
        yield f'<a href="#{tag}" lang="{tag}">{escape(message(language, "page.language"))}</a>'
    yield "</nav>"


def _section(release: Release, language: str) -> str:
    said = release.statement
    words = [f"<p>{escape(paragraph)}</p>" for paragraph in release.explain(language).split("\n\n")]
    if any(value < 0 for value in release.values):
        words.append(f"<p>{_text(language, 'page.negative')}</p>")
    facts = (
        f"<dt>{_text(language, f'fact.{name}')}</dt><dd>{escape(fact)}</dd>" for name, fact in _facts(release, language)
    )
    title = _text(language, "page.title", dataset=said.dataset.name, edition=said.dataset.edition)
    return "\n".join(
        [
            f'<section id="{LANGUAGES[language]}" lang="{LANGUAGES[language]}">',
            f'<p class="tagline">{_text(language, "page.tagline")}</p>',
            f"<h1>{title}</h1>",
            f'<p class="asked">{escape(_asked(said, language))}</p>',
            words[0],
            f"<h2>{_text(language, 'page.numbers')}</h2>",
            _picture(release, language),
            _table(release, language),
            f"<h2>{_text(language, 'page.meaning')}</h2>",
            *words[1:],
            f"<h2>{_text(language, 'page.facts')}</h2>",
            "<dl>",
            *facts,
            "</dl>",
            "</section>",
        ]
    )


def _picture(release: Release, language: str) -> str:
    """The plot as inline SVG; nothing where the plots extra is missing or the points would be too many to see."""
    if len(release.values) > MOST_POINTS:
        return ""
    try:
        need("vl_convert", "pip install 'sfumato[plots]'")
        chart = release.plot(language=language)
    except MissingExtra:
        return ""
    drawing = io.StringIO()
    chart.save(drawing, format="svg")
    label = _text(language, "page.picture")
    return f'<figure role="img" aria-label="{label}">{drawing.getvalue()}</figure>'


def _table(release: Release, language: str) -> str:
    labels = release.statement.query.labels()
    heads = [*labels, *(_column(name, language) for name in (release.statement.query.measure, "low", "high"))]
    rows = [
        "<tr>"
        + "".join(f'<th scope="row">{escape(str(column[place]))}</th>' for column in labels.values())
        + "".join(f"<td>{number:,}</td>" for number in (value, low, high))
        + "</tr>"
        for place, (value, (low, high)) in enumerate(zip(release.values, release.interval(CONFIDENCE), strict=True))
        if place < MOST_ROWS
    ]
    note = ""
    if len(release.values) > MOST_ROWS:
        shown, numbers = f"{MOST_ROWS:,}", f"{len(release.values):,}"
        note = f"<p>{_text(language, 'page.first', shown=shown, numbers=numbers)}</p>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return "\n".join(
        [
            '<div class="wide"><table>',
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody></table></div>",
            note,
        ]
    )


def _facts(release: Release, language: str) -> Iterator[tuple[str, str]]:
    """The names of facts and the facts, as plain text."""
    said = release.statement

    def say(identifier: str, **facts: object) -> str:
        return message(language, identifier, **facts)

    unit, limit = said.unit, said.limit
    named = say(f"unit.{unit.KIND.removeprefix('unit.')}", size=unit.size if isinstance(unit, Family) else 1)
    if isinstance(unit, User | Family):
        named = say("fact.unit_column", unit=named, column=unit.column)
    yield "unit", named
    yield "relation", say("relation.add_remove" if unit.relation is Relation.ADD_REMOVE else "relation.replace")
    yield (
        "limit",
        say("fact.limit_none")
        if limit is None
        else say("fact.limit_person", groups=limit.groups, rows=limit.rows_per_group),
    )
    yield "epsilon", fraction_text(said.spend.epsilon)
    yield "delta", fraction_text(said.spend.delta)
    yield "margin", _margin(said, language)
    yield "noise", _noise(said, language)
    if said.sensitivity.l1 is not None:
        yield "sensitivity", say("fact.sensitivity_l1", l1=fraction_text(said.sensitivity.l1.value))
    account = said.account
    state = say("fact.account_state", name=account.name, spent=account.spent, total=account.budget)
    yield "account", state
    yield "ledger", say("fact.ledger_memory") if account.ledger.startswith("none") else account.ledger
    yield "issued", said.issued
    yield "identifier", said.identifier
    yield "code", said.code
    signature = release.certificate.document.get("signature")
    if isinstance(signature, dict):
        yield "key", str(signature.get("key"))


def _asked(said: Statement, language: str) -> str:
    """What was asked, in one line, with the condition spelled out."""
    condition = said.query.where if isinstance(said.query, Count) else None
    if condition is None:
        rows = message(language, "page.rows_all")
    else:
        rows = message(language, "page.rows_where", condition=_condition(condition, language))
    columns = " × ".join(said.query.labels())
    return message(language, "page.rows_by", rows=rows, columns=columns) if columns else rows


def _margin(said: Statement, language: str) -> str:
    numbers, margin = len(said.values), said.law.margin(CONFIDENCE)
    if numbers == 1:
        return message(language, "fact.margin_one", margin=margin)
    return message(language, "fact.margin_many", margin=margin, joint=said.law.margin(CONFIDENCE, numbers=numbers))


def _noise(said: Statement, language: str) -> str:
    if isinstance(said.mechanism, Laplace):
        return message(language, "noise.laplace", scale=fraction_text(said.mechanism.scale))
    return said.mechanism.KIND


def _condition(expression: Expression, language: str) -> str:
    """Write a predicate as people read it: ``diagnosis = “ILI”``."""
    match expression:
        case Not():
            return message(language, "condition.not", part=_condition(expression.part, language))
        case AllOf() | AnyOf():
            joined = "condition.and" if isinstance(expression, AllOf) else "condition.or"
            parts = (_bracketed(part, language) for part in expression.parts)
            return reduce(lambda left, right: message(language, joined, left=left, right=right), parts)
        case Missing():
            return message(language, "condition.missing", column=expression.column)
        case OneOf():
            values = ", ".join(_constant(constant, language) for constant in expression.constants)
            return message(language, "condition.one_of", column=expression.column, values=values)
    sign = SIGNS.get(expression.operator, expression.operator.value)
    return f"{expression.column} {sign} {_constant(expression.constant, language)}"


def _bracketed(part: Expression, language: str) -> str:
    words = _condition(part, language)
    return message(language, "condition.bracket", part=words) if isinstance(part, AllOf | AnyOf) else words


def _constant(constant: Literal, language: str) -> str:
    match constant:
        case Text():
            return message(language, "condition.text", value=constant.value)
        case Truth():
            return message(language, "condition.true" if constant.value else "condition.false")
    return str(constant.value)


def _certificate(release: Release, languages: Sequence[str]) -> str:
    titles = " · ".join(_text(language, "page.certificate") for language in languages)
    command = "sfumato verify ili.json --key key.pub"
    notes = (
        f'<p lang="{LANGUAGES[language]}">{_text(language, "page.check", command=command)}</p>'
        for language in languages
    )
    text = escape(release.certificate.to_json())
    return "\n".join([f"<details><summary>{titles}</summary>", *notes, f"<pre>{text}</pre>", "</details>"])


def _column(name: str, language: str) -> str:
    return messages(language).get(f"column.{name}", name)


def _text(language: str, identifier: str, **facts: object) -> str:
    return escape(message(language, identifier, **facts))
