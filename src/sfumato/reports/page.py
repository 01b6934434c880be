"""A release as one web page: no script, nothing loaded from elsewhere, readable in twenty years.

This module gathers what stands on the page; ``templates/page.html`` lays it out and escapes it, and the page forbids
itself scripts and the network besides. It shows one language at a time: a plain link leads to the other one, and the
page's style shows what the address points into. A browser that is too old for that, and a PDF, have all languages one
after another. In the dark it is dark, on a phone narrow, on paper light.
"""

import re
import shlex
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from sfumato.core.query import Dataset
from sfumato.core.release import Release, only_release, whole
from sfumato.core.statement import Statement
from sfumato.errors import InvalidInput
from sfumato.reports.amounts import amount
from sfumato.reports.browser import find, print_pdf
from sfumato.reports.catalogue import LANGUAGES, message, messages
from sfumato.reports.columns import AnswerColumn, columns_of, described, magnitude, shared_margins
from sfumato.reports.drawings import Drawing, drawing, paint
from sfumato.reports.limited import covers
from sfumato.reports.particulars import asked, particulars
from sfumato.reports.publication import Draft, Grounds, Publication, standing
from sfumato.reports.rendering import Markup, render
from sfumato.reports.sheet import Sheet, sheet
from sfumato.reports.snippet import snippet
from sfumato.reports.words import AUDIENCES, Span
from sfumato.reports.words.figures import one_line, span_figure
from sfumato.reports.words.rendering import render as say

__all__ = [
    "Card",
    "Face",
    "file_name",
    "language_switch",
    "page",
    "page_style",
    "pdf",
    "saved_certificate",
    "snippet",
    "write",
    "write_text",
    "wrong_ending",
]

MOST_ROWS, MOST_POINTS, MOST_AT_A_GLANCE = 2_000, 300, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A figure that most readers ask for first, and what it is."""

    figure: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """What a draft says on its face: that it is one, and what is missing."""

    head: str
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """What the page says in one language, as plain text; the template has the order and escapes it.

    ``draft`` is None for what is on record for publication, and ``recorded`` empty for a draft.
    """

    language: str
    title: str
    asked: str
    lead: str
    unit: str
    draft: Face | None
    recorded: str
    cards: tuple[Card, ...]
    heading: str
    picture: Drawing | None
    table: Sheet | None
    covers: str
    meaning: tuple[str, ...]
    drawings: tuple[Drawing | None, ...]
    readers: tuple[tuple[str, tuple[str, ...]], ...]
    facts: tuple[tuple[str, str], ...]

    def say(self, identifier: str, **facts: object) -> str:
        """A message in the language of this part."""
        return _text(self.language, identifier, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The certificate to save and to read; ``link`` holds the file itself, which needs no script.

    ``save`` and ``read`` are by language; ``check`` says how to verify it, before and after the ``command``.
    """

    name: str
    text: str
    link: str
    command: str
    save: tuple[tuple[str, str], ...]
    read: tuple[tuple[str, str], ...]
    check: tuple[tuple[str, str, str], ...]


def page(
    release: Release,
    languages: Sequence[str] = ("en", "zh"),
    *,
    grounds: Grounds | None = None,
    unfolded: bool = False,
) -> str:
    """Write the page, a part for each language and the certificate at the end.

    The first language is the one that the page opens in. ``grounds`` are the reason and the legal basis on record;
    without both, the page says that it is a draft. ``unfolded`` opens what a reader would open by hand and shows all
    languages, for a PDF. Without the ``plots`` extra the page has no pictures. Public: all of it, as a release is.
    """
    if isinstance(languages, str) or not languages:
        raise InvalidInput("a page needs a list of languages: 'en', 'zh' or both; nothing was written.")
    only_release(release)
    languages = tuple(dict.fromkeys(LANGUAGES[known] for known in languages if messages(known)))
    shown = standing(release, Grounds() if grounds is None else grounds, languages)
    return render(
        "page.html",
        parts=[_part(shown, language) for language in languages],
        certificate=saved_certificate(release, languages),
        style=page_style(),
        switch=language_switch(languages),
        switched=len(languages) > 1 and not unfolded,
        unfolded=unfolded,
    )


def pdf(
    release: Release, path: str | Path, languages: Sequence[str] = ("en", "zh"), *, grounds: Grounds | None = None
) -> Path:
    """Print the page, unfolded, with the browser that is installed; without one, an error says what to do."""
    find()  # so that a missing browser is reported at once
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
            raise wrong_ending(target, ending)
    return write_text(text, target)


def wrong_ending(target: Path, ending: str) -> InvalidInput:
    """The error for a file that is neither a web page nor paper."""
    return InvalidInput(
        f"{target.name} is to be a {ending or 'file without an ending'}, and reports are written as .html or "
        ".pdf. Nothing was written. Choose one of these endings."
    )


def write_text(text: str, target: Path) -> Path:
    """Write a page, and say what is wrong with its place where that fails."""
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
def page_style() -> Markup:
    """The style of a page, with the colours of both themes."""
    text = resources.files("sfumato.reports").joinpath("style.css").read_text("utf-8")
    return Markup(f"{paint()}\n{text}")


@cache
def language_switch(languages: tuple[str, ...]) -> Markup:
    """Style that hides every language but one: the one that the address points into, else the first.

    A link to a part of the page in some language thus shows that language, with no script, from a bookmark too.
    """
    first, *others = languages
    pointed = {other: f':has(main [lang="{other}"]:target, main [lang="{other}"] :target)' for other in others}
    hidden = [
        *(f'body{into} main [lang="{first}"]:not(nav a)' for into in pointed.values()),
        *(f'body:not({into}) main [lang="{other}"]:not(nav a)' for other, into in pointed.items()),
    ]
    rules = [f"{', '.join(hidden)} {{ display: none; }}", ".each > [lang] + [lang]::before { content: none; }"]
    text = "\n".join(["@supports selector(:has(a)) {", *rules, "}"])
    return Markup(text)


def _part(shown: Publication | Draft, language: str) -> PagePart:
    release = shown.release
    said = release.statement
    lead, *words = _paragraphs(shown, language)
    columns = columns_of(release)
    if any(value < 0 for column in columns if column.counts for value in column.values):
        words.append(message(language, "page.negative"))
    facts = tuple((name, one_line(fact)) for name, fact in particulars(release, language))
    return PagePart(
        language=language,
        title=_text(language, "page.title", dataset=said.dataset.name, edition=said.dataset.edition),
        asked=asked(said, language),
        lead=lead,
        unit=dict(facts)["unit"],
        draft=_draft(shown, language),
        recorded=shown.recorded(language) if isinstance(shown, Publication) else "",
        cards=(*_margins(release, language), *_amounts(said, language)),
        heading=_heading(columns),
        picture=_picture(release, columns, language),
        table=sheet(release, language, most=MOST_ROWS) if columns else None,
        covers=covers(release, language, measured=any(not column.chosen for column in columns), columns=columns),
        meaning=tuple(words),
        drawings=tuple(drawing(release, kind, language) for kind in ("people", "noise")),
        readers=tuple(
            (reader, tuple(_paragraphs(shown, language, reader))) for reader in AUDIENCES if reader != "public"
        ),
        facts=facts,
    )


def _draft(shown: Publication | Draft, language: str) -> Face | None:
    if isinstance(shown, Publication):
        return None
    head, rest = shown.grounds.words(language)
    return Face(head=head, rest=rest)


def _heading(columns: Sequence[AnswerColumn]) -> str:
    """What stands over the answer: it is a model, names that were chosen, or numbers."""
    return "page.model" if not columns else "page.answer" if columns[0].named else "page.numbers"


def _picture(release: Release, columns: Sequence[AnswerColumn], language: str) -> Drawing | None:
    """The picture that the query names; none where there is more than can be seen, or nothing to draw."""
    plot = described(release.statement).plot
    numbers = len(columns[0].values) if columns else 1
    crowded = plot == "intervals" and numbers > MOST_POINTS
    return None if crowded or not numbers else drawing(release, plot, language)


def _amounts(said: Statement, language: str) -> Iterator[Card]:
    """What the release cost, and how much of the privacy budget is used."""
    yield Card(figure=amount(said.spend, language), words=message(language, "page.card_loss"))
    spent, total = amount(said.account.spent, language), amount(said.account.budget, language)
    yield Card(figure=spent, words=message(language, "page.card_budget", total=total))


def _margins(release: Release, language: str) -> Iterator[Card]:
    """The figures that the query names; else the margin of each number or, of several columns, of the first few."""
    release, first = whole(release), described(release.statement).glance
    if first:
        yield from (Card(figure=say(figure, language), words=message(language, words)) for figure, words in first)
        return
    shared = shared_margins(release)
    if shared is not None:
        yield Card(figure=f"±{magnitude(shared[0], 4)}", words=message(language, "page.card_margin"))
        return
    for column in [each for each in columns_of(release) if not each.named][:MOST_AT_A_GLANCE]:
        words = _text(language, "page.card_column", name=column.name)
        yield Card(figure=span_figure(Span.of(column), language), words=words)


def _paragraphs(shown: Publication | Draft, language: str, audience: str = "public") -> list[str]:
    return shown.text(language, audience).split("\n\n")


def saved_certificate(release: Release, languages: Sequence[str]) -> Saved:
    """The certificate as a page holds it: to save, to read, and how to verify it."""
    text, name = release.certificate.to_json(), file_name(release.statement.dataset, release.statement.identifier)
    # The command stands in an element of its own; a sign that no message holds marks its place.
    checks = [(language, message(language, "page.check", command="\0").partition("\0")) for language in languages]
    return Saved(
        name=name,
        text=text,
        link=f"data:application/json;base64,{b64encode(text.encode()).decode()}",
        command=f"sfumato verify {shlex.quote(name)} --key key.pub",
        save=tuple((language, message(language, "page.save")) for language in languages),
        read=tuple((language, message(language, "page.read_certificate")) for language in languages),
        check=tuple((language, before, after) for language, (before, _, after) in checks),
    )


def _text(language: str, identifier: str, **facts: object) -> str:
    """A message for the page; what it is filled with can neither break lines nor turn the text around."""
    plain = {name: one_line(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
    return message(language, identifier, **plain)
