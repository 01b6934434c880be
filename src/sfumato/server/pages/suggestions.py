"""A steward asks for a limit or for bounds: a charged private release, priced before, taken over into the declaration.

No page of these shows a value of the data: an answer is a release like any other, read off the ledger.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.core.documents import parse
from sfumato.core.exact import decimal_down, decimal_up
from sfumato.errors import SfumatoError
from sfumato.reports.declarations import DECLARATIONS
from sfumato.server.asking.desk import QuestionDesk, desk_of
from sfumato.server.asking.offers import BalanceRow, Offer, Precision
from sfumato.server.asking.results import AnswerTable, result_table
from sfumato.server.asking.suggestions import (
    BOUNDS,
    LIMIT,
    SuggestionForm,
    kind_of,
    numeric,
    restated,
    suggestion_words,
)
from sfumato.server.datasets.registry import HeldDataset
from sfumato.server.jobs.queue import Job, JobOutcome
from sfumato.server.pages.account import written
from sfumato.server.pages.results import EndedPage, waiting_page
from sfumato.server.rendering import render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService, Visitor

__all__ = ["ROUTES", "router"]

router = APIRouter()
STEWARD = frozenset({ServiceRole.STEWARD})
NAMES = ("suggest", "suggest_ask", "suggestion", "suggestion_certificate", "suggestion_take")
ROUTES = dict.fromkeys((f"data.{name}" for name in NAMES), STEWARD)
FIELDS = ("kind", "account", "epsilon", "most", "planned", "by1", "by2", "column")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionPrice:
    """What a suggestion would cost and what is left, before it is asked for."""

    kind: str
    price: str
    left: str
    after: str
    open: bool
    stored: bool
    refusal: str
    balances: tuple[BalanceRow, ...]
    seconds: int
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSuggestion:
    """A suggestion that was asked for."""

    address: str
    title: str
    asked: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestPage:
    """The two forms, the price of what one of them says, and what was asked before."""

    name: str
    limit: str
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    accounts: tuple[str, ...]
    said: Mapping[str, str]
    offer: SuggestionPrice | None
    wrong: str
    asked: tuple[AskedSuggestion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionPage:
    """A suggestion that was released."""

    name: str
    edition: str
    title: str
    kind: str
    suggested: str
    charged: str
    account: str
    table: AnswerTable
    paragraphs: tuple[str, ...]
    identifier: str
    job: str
    standing: bool
    taken: bool


@router.get("/data/{name}/suggest", name="data.suggest")
def suggest(*, request: Request, name: str, service: AskedService, visitor: AskedBy) -> Response:
    """The forms, and the price of what they say."""
    return _shown(request, service, visitor, name, _fields(dict(request.query_params)))


@router.post("/data/{name}/suggest", name="data.suggest_ask")
def suggest_ask(
    *,
    request: Request,
    name: str,
    service: AskedService,
    visitor: AskedBy,
    kind: Annotated[str, Form(max_length=10)],
    account: Annotated[str, Form(max_length=500)] = "",
    epsilon: Annotated[str, Form(max_length=40)] = "",
    most: Annotated[str, Form(max_length=40)] = "",
    planned: Annotated[str, Form(max_length=40)] = "",
    by1: Annotated[str, Form(max_length=200)] = "",
    by2: Annotated[str, Form(max_length=200)] = "",
    column: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Hand in what was offered; what does not fit is shown again with its price."""
    said = (kind, account, epsilon, most, planned, by1, by2, column)
    fields = dict(zip(FIELDS, said, strict=True))
    desk = desk_of(service)
    _open(service, name)
    try:
        offer = _offer(desk, visitor, name, fields)
        if offer.open:
            job = desk.ask(visitor, offer, title=_title(request, visitor, fields))
            return RedirectResponse(request.app.url_path_for("data.suggestion", name=name, job=job.name), 303)
    except SfumatoError as wrong:
        return _shown(request, service, visitor, name, fields, wrong=str(wrong))
    return _shown(request, service, visitor, name, fields)


@router.get("/data/{name}/suggestions/{job}", name="data.suggestion")
def suggestion(*, request: Request, name: str, job: str, service: AskedService, visitor: AskedBy) -> Response:
    """A suggestion: when it will be there, what it is, or why there is none."""
    desk, found = desk_of(service), _job(service, visitor, name, job)
    if found.outcome is JobOutcome.PENDING:
        return waiting_page(request, found, service.now())
    if found.outcome is not JobOutcome.RELEASED:
        again = request.app.url_path_for("data.suggest", name=name)
        refused = found.outcome is JobOutcome.REFUSED
        return render(
            request,
            "ask/ended.html",
            EndedPage(title=found.title, refused=refused, words=found.words, ask_address=str(again)),
        )
    return _answered(request, service, desk, visitor, found)


@router.get("/data/{name}/suggestions/{job}/certificate", name="data.suggestion_certificate")
def certificate(*, name: str, job: str, service: AskedService, visitor: AskedBy) -> Response:
    """The certificate of a suggestion."""
    found = _job(service, visitor, name, job)
    text = desk_of(service).certificate(found)
    kept = {"Content-Disposition": f'attachment; filename="{found.release}.json"'}
    return Response(text, media_type="application/json", headers=kept)


@router.post("/data/{name}/suggestions/{job}/take", name="data.suggestion_take")
def take(*, request: Request, name: str, job: str, service: AskedService, visitor: AskedBy) -> Response:
    """Take a suggestion over into the declaration: what the stored answer says, whatever the form holds."""
    release = desk_of(service).release(_job(service, visitor, name, job))
    schema, said = restated(_open(service, name).schema, release)
    identifier = release.statement.identifier
    service.datasets.restate(name, schema, release=identifier, said=said, by=str(visitor.name))
    return RedirectResponse(request.app.url_path_for("data.show", name=name), 303)


# ----------------------------------------------------------------------------------------------------- what is shown


def _open(service: Service, name: str) -> HeldDataset:
    held = service.datasets.get(name)
    if held is None:
        raise HTTPException(404)
    return held


def _job(service: Service, visitor: Visitor, name: str, job: str) -> Job:
    """A suggestion about a dataset; of other questions nothing is said here."""
    found = desk_of(service).job(visitor, job)
    if found.dataset != name or _kind(found) is None:
        raise HTTPException(404)
    return found


def _kind(job: Job) -> str | None:
    return kind_of(DECLARATIONS.decode(parse(job.query), "question"))


def _fields(said: Mapping[str, str]) -> dict[str, str]:
    return {name: said[name][:500] for name in FIELDS if name in said}


def _offer(desk: QuestionDesk, visitor: Visitor, name: str, fields: Mapping[str, str]) -> Offer:
    form = SuggestionForm.read(fields)
    account = desk.account(visitor, fields.get("account"))
    question = form.question(desk.asker, account, name)
    return desk.asker.offer(account, name, question, Precision(epsilon=form.epsilon))


def _title(request: Request, visitor: Visitor, fields: Mapping[str, str]) -> str:
    say = request.app.state.service.words(visitor.lang).say
    by = ", ".join(fields[each] for each in ("by1", "by2") if fields.get(each))
    if fields.get("kind") == BOUNDS:
        return str(say("data.bounds_title", column=fields.get("column", "")))
    return str(say("data.limit_title_by", by=by) if by else say("data.limit_title"))


def _shown(
    request: Request, service: Service, visitor: Visitor, name: str, fields: dict[str, str], *, wrong: str = ""
) -> Response:
    desk, held, price = desk_of(service), _open(service, name), None
    if fields.get("kind") and not wrong:
        try:
            price = _priced(desk, _offer(desk, visitor, name, fields), fields)
        except SfumatoError as refused:
            wrong = str(refused)
    limit = held.schema.limit
    mine = [job for job in desk.asked_by(visitor) if job.dataset == name and _kind(job) is not None]
    page = SuggestPage(
        name=name,
        limit="" if limit is None else f"{limit.groups} × {limit.rows_per_group}",
        columns=tuple(column.name for column in numeric(held.schema)),
        groups=tuple(held.schema.keys),
        accounts=desk.accounts(visitor),
        said=fields,
        offer=price,
        wrong=wrong,
        asked=tuple(
            AskedSuggestion(
                address=request.app.url_path_for("data.suggestion", name=name, job=job.name),
                title=job.title,
                asked=written(job.made),
                outcome=job.outcome.value,
            )
            for job in mine
        ),
    )
    return render(request, "data/suggest.html", page, status=422 if wrong else 200)


def _priced(desk: QuestionDesk, offer: Offer, fields: Mapping[str, str]) -> SuggestionPrice:
    return SuggestionPrice(
        kind=BOUNDS if fields.get("kind") == BOUNDS else LIMIT,
        price=decimal_up(offer.price.epsilon),
        left=decimal_down(offer.left.epsilon),
        after=decimal_down(max(offer.left.epsilon - offer.price.epsilon, offer.price.epsilon * 0)),
        open=offer.open,
        stored=offer.decision.value == "stored",
        refusal=offer.refusal,
        balances=offer.balances,
        seconds=max(1, round(desk.queue.slots.length)),
        fields=tuple({**fields, "account": offer.account}.items()),
    )


def _answered(request: Request, service: Service, desk: QuestionDesk, visitor: Visitor, job: Job) -> Response:
    release, held = desk.release(job), _open(service, job.dataset)
    identifier = release.statement.identifier
    taken = any(each.release == identifier for each in service.datasets.restated(held.name, held.edition))
    short = "en" if visitor.lang == "en" else "zh"
    page = SuggestionPage(
        name=job.dataset,
        edition=job.edition,
        title=job.title,
        kind=_kind(job) or LIMIT,
        suggested=suggestion_words(release),
        charged=decimal_up((job.charged or release.charged).epsilon),
        account=job.account,
        table=result_table(release),
        paragraphs=tuple(part for part in release.explain(short, "public").split("\n\n") if part),
        identifier=identifier,
        job=job.name,
        standing=held.edition == job.edition,
        taken=taken,
    )
    return render(request, "data/suggestion.html", page)
