"""Questions that were asked: when the answer is there, the answer itself, its pictures and files, and all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sfumato.core.exact import decimal_up
from sfumato.core.release import Release, presenter_of
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.reports.words import AUDIENCES
from sfumato.server.asking.desk import desk_of
from sfumato.server.asking.results import (
    DOWNLOADS,
    AnswerTable,
    Headline,
    download,
    headline,
    page_picture,
    result_table,
)
from sfumato.server.jobs.queue import Job, JobOutcome
from sfumato.server.pages.work_results import work_address, work_file, work_page
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.visitors import AskedBy, AskedService
from sfumato.server.works.answers import read_again, work_of
from sfumato.server.works.downloads import study_picture
from sfumato.server.works.forms import WorkForm

__all__ = ["MENU", "ROUTES", "EndedPage", "router", "waiting_page"]

router = APIRouter()
ANALYSTS = frozenset({ServiceRole.ANALYST})
ROUTES = {"questions": ANALYSTS, "question": ANALYSTS, "question.picture": ANALYSTS, "question.download": ANALYSTS}
MENU = (
    MenuLink(route="questions", words="asking.history_menu", place=31, roles=ANALYSTS, about="asking.history_about"),
)
PUBLIC = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A question in a list."""

    address: str
    title: str
    account: str
    asked: str
    outcome: str
    ready: str
    price: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """The questions of somebody, the latest first."""

    jobs: tuple[JobRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPage:
    """A question whose answer is not there yet: only when it will be is said."""

    title: str
    ready: str
    zone: str
    seconds: int
    account: str
    epsilon: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedPage:
    """A question without an answer: a refusal that charged nothing, or a failure."""

    title: str
    refused: bool
    words: str
    ask_address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage:
    """An answer."""

    title: str
    asked: str
    account: str
    dataset: str
    edition: str
    charged: str
    stored: bool
    table: AnswerTable
    limited: str
    cuts: bool
    headline: Headline | None
    picture: str
    paragraphs: tuple[str, ...]
    protection: tuple[str, ...]
    audiences: tuple[tuple[str, str, bool], ...]
    """Each with its name, the address of the words for it, and whether it is shown."""
    downloads: tuple[tuple[str, str], ...]
    identifier: str
    sql: str
    again_address: str


@router.get("/questions", name="questions")
def history(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """What somebody asked."""
    jobs = desk_of(service).asked_by(visitor)
    return render(request, "ask/history.html", HistoryPage(jobs=tuple(job_row(request, job) for job in jobs)))


@router.get("/questions/{name}", name="question")
def question(*, request: Request, name: str, service: AskedService, visitor: AskedBy) -> Response:
    """A question: when its answer is ready, the answer, or why there is none."""
    desk = desk_of(service)
    job = desk.job(visitor, name)
    if job.outcome is JobOutcome.PENDING:
        return waiting_page(request, job, service.now())
    if job.outcome is not JobOutcome.RELEASED:
        ended = EndedPage(
            title=job.title,
            refused=job.outcome is JobOutcome.REFUSED,
            words=job.words,
            ask_address=_again(request, job, work_of(desk, job)),
        )
        return render(request, "ask/ended.html", ended)
    form = work_of(desk, job)
    if form is not None:
        return work_page(request, desk, read_again(desk, job, form), visitor.lang)
    audience = request.query_params.get("audience", PUBLIC)
    shown = _result(request, job, desk.release(job), visitor.lang, audience if audience in AUDIENCES else PUBLIC)
    return render(request, "ask/result.html", shown)


@router.get("/questions/{name}/picture.{ending}", name="question.picture")
def pictured(
    *,
    request: Request,
    name: str,
    ending: str,
    theme: str = "light",
    narrow: bool = False,
    service: AskedService,
    visitor: AskedBy,
) -> Response:
    """The picture of an answer."""
    desk = desk_of(service)
    job = desk.job(visitor, name)
    release, form = desk.release(job), work_of(desk, job)
    if ending != "svg":
        raise InvalidInput("the picture of a page is svg; nothing was drawn. Others are among the files.")
    if form is None:
        body = page_picture(release, language=_short(visitor.lang), theme=theme, narrow=narrow)
    else:
        answer = read_again(desk, job, form)
        body = study_picture(answer, language=_short(visitor.lang), theme=theme, narrow=narrow)
    return Response(body, media_type="image/svg+xml", headers={"Cache-Control": "no-store, private"})


@router.get("/questions/{name}/download/{kind}", name="question.download")
def downloaded(
    *,
    request: Request,
    name: str,
    kind: str,
    service: AskedService,
    visitor: AskedBy,
) -> Response:
    """A file of an answer."""
    desk = desk_of(service)
    job = desk.job(visitor, name)
    address = service.settings.address.rstrip("/")
    release, form = desk.release(job), work_of(desk, job)
    if form is None:
        made = download(release, job, kind, language=_short(visitor.lang), address=address)
    else:
        made = work_file(desk, read_again(desk, job, form), kind, language=_short(visitor.lang), address=address)
    kept = {"Content-Disposition": f"attachment; filename*=UTF-8''{_quoted(made.name)}"}
    return Response(made.body, media_type=made.kind, headers=kept)


def job_row(request: Request, job: Job) -> JobRow:
    """A question as a list shows it."""
    return JobRow(
        address=request.app.url_path_for("question", name=job.name),
        title=job.title,
        account=job.account,
        asked=_day(job.made),
        outcome=job.outcome.value,
        ready=_time(job.ends),
        price="" if job.charged is None else decimal_up(job.charged.epsilon),
    )


def waiting_page(request: Request, job: Job, now: float) -> Response:
    """The page of a question before its deadline: it says when that is, and nothing of the outcome."""
    seconds = max(1, round(job.ends - now + 0.5))
    page = WaitingPage(
        title=job.title,
        ready=_time(job.ends),
        zone="UTC",
        seconds=seconds,
        account=job.account,
        epsilon=decimal_up(job.spend.epsilon),
    )
    answer = render(request, "ask/waiting.html", page)
    answer.headers["Refresh"] = str(seconds)
    return answer


def _result(request: Request, job: Job, release: Release, language: str, audience: str) -> AnswerPage:
    say: Callable[..., str] = request.app.state.service.words(language).say
    url = request.app.url_path_for
    address = url("question", name=job.name)
    charged = job.charged or release.charged
    return AnswerPage(
        title=job.title,
        asked=_day(job.made),
        account=job.account,
        dataset=release.statement.dataset.name,
        edition=release.statement.dataset.edition,
        charged=decimal_up(charged.epsilon),
        stored=not charged.epsilon,
        table=result_table(release),
        limited=release.limit_words(_short(language)),
        cuts=release.limit_cuts(),
        headline=headline(release, _short(language)),
        picture=f"{url('question.picture', name=job.name, ending='svg')}?lang={language}",
        paragraphs=_words(release, language, audience),
        protection=_protection(release, language),
        audiences=tuple(
            (say(f"asking.audience_{each}"), f"{address}?{urlencode({'audience': each})}#words", each == audience)
            for each in AUDIENCES
        ),
        downloads=tuple(
            (say(f"asking.download_{kind}"), url("question.download", name=job.name, kind=kind))
            for kind in DOWNLOADS
            if kind != "notebook" or job.sql is not None
        ),
        identifier=release.statement.identifier,
        sql=job.sql or "",
        again_address=_again(request, job),
    )


def _words(release: Release, language: str, audience: str) -> tuple[str, ...]:
    try:
        return tuple(part for part in release.explain(_short(language), audience).split("\n\n") if part)
    except SfumatoError:  # a kind of answer that has no words for these readers
        return ()


def _protection(release: Release, language: str) -> tuple[str, ...]:
    return tuple(presenter_of(release).protection(release, _short(language)))


def _again(request: Request, job: Job, form: WorkForm | None = None) -> str:
    if form is not None:
        return work_address(request, job, form)
    address = request.app.url_path_for("ask.form", dataset=job.dataset)
    if job.sql is None:
        return str(address)
    fields = {"mode": "sql", "sql": job.sql, "account": job.account, "by": "epsilon", "epsilon": str(job.spend.epsilon)}
    return f"{address}?{urlencode(fields)}"


def _short(language: str) -> str:
    return "en" if language == "en" else "zh"


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S")


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _quoted(name: str) -> str:
    return quote(name, safe="")
