"""The result of a study, and synthetic rows with their quality page, as pages; all of it follows from one release."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any  # what JSON holds
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import Response

from sfumato.core.exact import decimal_up
from sfumato.core.release import presenter_of
from sfumato.errors import Refused
from sfumato.server.asking.desk import QuestionDesk
from sfumato.server.asking.results import Download, Headline
from sfumato.server.jobs.queue import Job
from sfumato.server.rendering import render
from sfumato.server.works.answers import WorkAnswer, study_pages, study_result
from sfumato.server.works.downloads import (
    ROW_FILES,
    STUDY_FILES,
    code_lines,
    row_file,
    study_file,
    study_headline,
)
from sfumato.server.works.forms import WorkForm
from sfumato.server.works.row_process import PAGE
from sfumato.studies.printing import ResultPage, TextTable, kept_rows

__all__ = ["work_address", "work_file", "work_page"]

COMING_BACK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    """A table of a result, with as many rows as a page has room for."""

    name: str
    heads: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    more: int
    """How many rows there are besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """One result: its facts, its tables, and what a reader must know."""

    title: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[ShownTable, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFacts:
    """What every work shows of its charge and its certificate."""

    title: str
    asked: str
    account: str
    dataset: str
    edition: str
    charged: str
    stored: bool
    limited: str
    protection: tuple[str, ...]
    identifier: str
    downloads: tuple[tuple[str, str], ...]
    code: str
    again_address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPage:
    """The result of a study."""

    facts: WorkFacts
    headline: Headline | None
    picture: str
    parts: tuple[ShownPart, ...]
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPage:
    """Synthetic rows: a few of them, and their quality page."""

    facts: WorkFacts
    shown: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MakingPage:
    """Rows that are being made of an answer, or could not be."""

    facts: WorkFacts
    failed: bool


def work_page(request: Request, desk: QuestionDesk, answer: WorkAnswer, language: str) -> Response:
    """The page of a work."""
    if answer.is_study:
        return _study(request, answer, language)
    folder = desk.files.made(answer)
    if folder is None:
        failed = desk.files.failed(answer)
        facts = _facts(request, answer, language, ("certificate", "notebook", "code"))
        found = render(request, "works/making.html", MakingPage(facts=facts, failed=failed))
        if not failed:
            found.headers["Refresh"] = str(COMING_BACK)
        return found
    shown = json.loads((folder / PAGE).read_text("utf-8"))[_short(language)]
    page = RowsPage(facts=_facts(request, answer, language, tuple(ROW_FILES)), shown=shown)
    return render(request, "works/rows.html", page)


def work_file(desk: QuestionDesk, answer: WorkAnswer, kind: str, *, language: str, address: str) -> Download:
    """A file of a work."""
    if answer.is_study:
        return study_file(answer, kind, language=language, address=address)
    folder = desk.files.made(answer)
    if folder is None and kind in ("csv", "parquet", "schema", "quality"):
        raise Refused("the rows are being made of the answer; nothing is lost and nothing more is charged. Come back.")
    return row_file(answer, folder or desk.service.folder, kind, address=address)


def work_address(request: Request, job: Job, form: WorkForm) -> str:
    """Where something similar is asked."""
    address = request.app.url_path_for("work.form", dataset=job.dataset, kind=form.kind)
    said = {**form.fields, "account": job.account, "by": "epsilon", "epsilon": str(job.spend.epsilon)}
    if job.spend.delta:
        said["delta"] = str(job.spend.delta)
    return f"{address}?{urlencode({name: text for name, text in said.items() if text})}"


def _study(request: Request, answer: WorkAnswer, language: str) -> Response:
    result, short = study_result(answer), _short(language)
    url = request.app.url_path_for
    page = StudyPage(
        facts=_facts(request, answer, language, tuple(STUDY_FILES)),
        headline=study_headline(answer, short),
        picture=f"{url('question.picture', name=answer.job.name, ending='svg')}?lang={language}",
        parts=tuple(_parts(study_pages(result, short))),
        paragraphs=tuple(part for part in result.explain(short).split("\n\n") if part),
    )
    return render(request, "works/study.html", page)


def _parts(pages: Sequence[ResultPage]) -> Iterator[ShownPart]:
    """The parts of a result; what a reader must know is said where it comes up first."""
    said: set[str] = set()
    for page in pages:
        notes = tuple(note for note in page.notes if note not in said)
        said.update(notes)
        tables = tuple(map(_table, page.tables))
        yield ShownPart(title=page.title, facts=page.facts, tables=tables, notes=notes)


def _table(table: TextTable) -> ShownTable:
    rows = kept_rows(table)
    return ShownTable(
        name=table.name,
        heads=tuple((column.name, column.number) for column in table.columns),
        rows=tuple(tuple(column.texts[row] for column in table.columns) for row in rows),
        more=table.rows - len(rows),
    )


def _facts(request: Request, answer: WorkAnswer, language: str, kinds: tuple[str, ...]) -> WorkFacts:
    say, url = request.app.state.service.words(language).say, request.app.url_path_for
    job, release = answer.job, answer.release
    charged = job.charged or release.charged
    return WorkFacts(
        title=job.title,
        asked=datetime.fromtimestamp(job.made, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        account=job.account,
        dataset=release.statement.dataset.name,
        edition=release.statement.dataset.edition,
        charged=decimal_up(charged.epsilon),
        stored=not charged.epsilon,
        limited=release.limit_words(_short(language)),
        protection=tuple(presenter_of(release).protection(release, _short(language))),
        identifier=release.statement.identifier,
        downloads=tuple(
            (say(f"works.file_{kind}"), str(url("question.download", name=job.name, kind=kind))) for kind in kinds
        ),
        code="\n".join(code_lines(answer)),
        again_address=work_address(request, job, answer.form),
    )


def _short(language: str) -> str:
    return "en" if language == "en" else "zh"
