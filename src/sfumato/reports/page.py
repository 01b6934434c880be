"""A release as one web page: no script, nothing loaded from elsewhere, readable in twenty years.

Everything that comes from the release is escaped, and the page forbids itself scripts and the network besides. In the
dark it is dark, on a phone narrow, on paper light and unfolded.
"""

import re
import shlex
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path

from sfumato.core.query import Dataset
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Statement
from sfumato.errors import InvalidInput
from sfumato.laws import LadderBound
from sfumato.reports.amounts import amount
from sfumato.reports.browser import find, print_pdf
from sfumato.reports.catalogue import LANGUAGES, message, messages
from sfumato.reports.columns import Column, columns_of, described, magnitude, shared_margins
from sfumato.reports.drawings import drawing, paint
from sfumato.reports.particulars import asked, particulars
from sfumato.reports.publication import Draft, Grounds, Publication, standing
from sfumato.reports.sheet import sheet
from sfumato.reports.snippet import snippet
from sfumato.reports.words import AUDIENCES, Span
from sfumato.reports.words.figures import one_line, span_figure
from sfumato.reports.words.rendering import render

__all__ = ["file_name", "page", "pdf", "snippet", "write"]

MOST_ROWS, MOST_POINTS, MOST_AT_A_GLANCE = 2_000, 300, 4
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(
    release: Release,
    languages: Sequence[str] = ("en", "zh"),
    *,
    grounds: Grounds | None = None,
    unfolded: bool = False,
) -> str:
    """Write the page, a part for each language and the certificate at the end.

    ``grounds`` are the reason and the legal basis on record; without both, the page says that it is a draft.
    ``unfolded`` opens what a reader would open by hand, for paper. Without the ``plots`` extra the page has no
    pictures. Public: all of it, as all of a release is.
    """
    if isinstance(languages, str) or not languages:
        raise InvalidInput("a page needs a list of languages: 'en', 'zh' or both; nothing was written.")
    said = only_release(release).statement
    languages = tuple(dict.fromkeys(LANGUAGES[known] for known in languages if messages(known)))
    first = languages[0]
    shown = standing(release, Grounds() if grounds is None else grounds, languages)
    mark = f"{_text(first, 'publication.draft')} · " if isinstance(shown, Draft) else ""
    title = _text(first, "page.title", dataset=said.dataset.name, edition=said.dataset.edition)
    parts = [
        "<!doctype html>",
        f'<html lang="{first}">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<title>{mark}{title}</title>",
        f"<style>{_style()}</style>",
        "</head>",
        "<body>",
        *(_contents(languages) if len(languages) > 1 else ()),
        "<main>",
        *(_section(shown, language, unfolded=unfolded) for language in languages),
        _certificate(release, languages, unfolded=unfolded),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def pdf(
    release: Release, path: str | Path, languages: Sequence[str] = ("en", "zh"), *, grounds: Grounds | None = None
) -> Path:
    """Print the page, unfolded, with the browser that is installed; without one, an error says what to do."""
    find()  # so that a missing browser is told at once
    return print_pdf(page(release, languages, grounds=grounds, unfolded=True), path)


def write(
    release: Release, path: str | Path, languages: Sequence[str] = ("en", "zh"), *, grounds: Grounds | None = None
) -> Path:
    """Write the page as ``.html`` or ``.pdf``, by the ending of the path, and return the path."""
    target = Path(path)
    match target.suffix.lower():
        case ".pdf":
            return pdf(release, target, languages, grounds=grounds)
        case ".html" | ".htm":
            text = page(release, languages, grounds=grounds)
        case ending:
            raise InvalidInput(
                f"{target.name} is to be a {ending or 'file without an ending'}, and reports are written as .html or "
                ".pdf. Nothing was written. Choose one of these endings."
            )
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise InvalidInput(
            f"{target} cannot be written: {wrong.strerror or wrong}. Nothing was written. Choose another path."
        ) from None
    return target


def file_name(dataset: Dataset, identifier: str) -> str:
    """A name for the certificate's file: dataset, version and the first signs of the identifier.

    >>> file_name(Dataset(name="ward visits", edition="2026/10"), "8f14e45fceea167a")
    'ward-visits-2026-10-8f14e45f.json'
    """
    words = re.sub(r"[^\w.-]+", "-", f"{dataset.name[:40]}-{dataset.edition[:20]}").strip("-.")
    return f"{words or 'release'}-{identifier[:8]}.json"


@cache
def _style() -> str:
    text = resources.files("sfumato.reports").joinpath("style.css").read_text("utf-8")
    return f"\n{paint()}\n{text}"


def _contents(languages: Sequence[str]) -> Iterator[str]:
    yield "<nav>"
    for language in languages:
        yield f'<a href="#{language}" lang="{language}" hreflang="{language}">{_text(language, "page.language")}</a>'
    yield f'<a href="#certificate">{" · ".join(_text(language, "page.certificate") for language in languages)}</a>'
    yield "</nav>"


def _section(shown: Publication | Draft, language: str, *, unfolded: bool) -> str:
    release = shown.release
    said = release.statement
    lead, *words = _paragraphs(shown, language)
    columns = columns_of(release)
    measured = not any(column.chosen for column in columns)
    if any(value < 0 for column in columns if column.counts for value in column.values):
        words.append(f"<p>{_text(language, 'page.negative')}</p>")
    facts = (
        f"<dt>{_text(language, f'fact.{name}')}</dt><dd>{escape(one_line(fact))}</dd>"
        for name, fact in particulars(release, language)
    )
    return "\n".join(
        [
            f'<section id="{language}" lang="{language}">',
            *_draft(shown, language),
            f'<p class="tagline">{_text(language, "page.tagline")}</p>',
            f"<h1>{_text(language, 'page.title', dataset=said.dataset.name, edition=said.dataset.edition)}</h1>",
            f'<p class="asked">{escape(asked(said, language))}</p>',
            lead,
            *_glance(release, language),
            *_recorded(shown, language),
            f"<h2>{_text(language, _heading(columns))}</h2>",
            _picture(release, columns, language),
            sheet(release, language, most=MOST_ROWS) if columns else "",
            f"<h2>{_text(language, 'page.meaning')}</h2>",
            *words,
            drawing(release, "people", language),
            drawing(release, "noise", language) if measured and _one_law(said) else "",
            f"<h2>{_text(language, 'page.readers')}</h2>",
            *_readers(shown, language, unfolded=unfolded),
            f"<h2>{_text(language, 'page.facts')}</h2>",
            "<dl>",
            *facts,
            "</dl>",
            "</section>",
        ]
    )


def _draft(shown: Publication | Draft, language: str) -> Iterator[str]:
    """On its face: that this is a draft, and what is missing."""
    if isinstance(shown, Draft):
        head, rest = (escape(words) for words in shown.grounds.words(language))
        yield f'<p class="draft" role="note"><strong>{head}</strong> {rest}</p>'


def _recorded(shown: Publication | Draft, language: str) -> Iterator[str]:
    """What was put on record for the publication."""
    if isinstance(shown, Publication):
        yield f'<p class="recorded">{escape(shown.recorded(language))}</p>'


def _heading(columns: Sequence[Column]) -> str:
    """What stands over the answer: it is a model, names that were chosen, or numbers."""
    return "page.model" if not columns else "page.answer" if columns[0].named else "page.numbers"


def _picture(release: Release, columns: Sequence[Column], language: str) -> str:
    """The numbers as a picture; none where there are too many, none at all, or where names were chosen."""
    description = described(release.statement)
    if description.plot != "intervals":
        return drawing(release, description.plot, language) if description.pictured else ""
    measured = not any(column.chosen for column in columns)
    return drawing(release, "intervals", language) if measured and len(columns[0].values) <= MOST_POINTS else ""


def _one_law(said: Statement) -> bool:
    """Whether all numbers err by one law, which can be drawn."""
    return not isinstance(said.law, LadderBound) and described(said).scattered is None


def _glance(release: Release, language: str) -> Iterator[str]:
    """What most readers ask first."""
    said = release.statement
    account = said.account
    yield '<ul class="glance">'
    for figure, words in (
        *_margins(release, language),
        (amount(said.spend, language), _text(language, "page.glance_epsilon")),
        (
            f"{amount(account.spent, language)} / {amount(account.budget, language)}",
            _text(language, "page.glance_spent"),
        ),
    ):
        yield f"<li><b>{escape(figure)}</b><span>{words}</span></li>"
    yield "</ul>"


def _margins(release: Release, language: str) -> Iterator[tuple[str, str]]:
    """The margin of each number; where there are several columns, of the first few. Of a model, its size."""
    glance = described(release.statement).glance
    if glance:
        yield from ((render(figure, language), _text(language, words)) for figure, words in glance)
        return
    shared = shared_margins(release)
    if shared is not None:
        yield f"±{magnitude(shared[0], 4)}", _text(language, "page.glance_margin")
        return
    for column in [each for each in columns_of(release) if not each.named][:MOST_AT_A_GLANCE]:
        yield span_figure(Span.of(column), language), _text(language, "page.glance_column", name=column.name)


def _readers(shown: Publication | Draft, language: str, *, unfolded: bool) -> Iterator[str]:
    """The words for each reader but the public, whom the page itself speaks to."""
    for reader in AUDIENCES:
        if reader != "public":
            yield f"<details{' open' if unfolded else ''}><summary>{_text(language, f'page.reader_{reader}')}</summary>"
            yield f"<div>{''.join(_paragraphs(shown, language, reader))}</div></details>"


def _paragraphs(shown: Publication | Draft, language: str, audience: str = "public") -> list[str]:
    return [f"<p>{escape(words)}</p>" for words in shown.text(language, audience).split("\n\n")]


def _certificate(release: Release, languages: Sequence[str], *, unfolded: bool) -> str:
    """The certificate to save and to read; a link that holds the file itself needs no script."""
    text, name = release.certificate.to_json(), file_name(release.statement.dataset, release.statement.identifier)
    command = f"sfumato verify {shlex.quote(name)} --key key.pub"
    both = [
        " · ".join(_text(language, f"page.{word}") for language in languages)
        for word in ("certificate", "save", "read_certificate")
    ]
    notes = (
        f'<p lang="{language}">'
        + escape(message(language, "page.check", command="\0")).replace("\0", f"<code>{escape(command)}</code>")
        + "</p>"
        for language in languages
    )
    data = b64encode(text.encode()).decode()
    link = f'<a class="save" download="{escape(name)}" href="data:application/json;base64,{data}">{both[1]}</a>'
    return "\n".join(
        [
            '<div class="certificate" id="certificate">',
            f"<h2>{both[0]}</h2>",
            link,
            *notes,
            f"<details{' open' if unfolded else ''}><summary>{both[2]}</summary>",
            f"<pre>{escape(text)}</pre></details>",
            "</div>",
        ]
    )


def _text(language: str, identifier: str, **facts: object) -> str:
    """A message for the page; what it is filled with can neither break lines nor turn the text around."""
    plain = {name: one_line(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
    return escape(message(language, identifier, **plain))
