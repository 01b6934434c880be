"""Asking: the form of a question, its offer before anything is charged, and the step that hands it in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from sfumato.core.units import describe
from sfumato.errors import SfumatoError
from sfumato.server.asking.desk import QuestionDesk, desk_of, open_desk
from sfumato.server.asking.form import MEASURES, MOST_CONDITIONS, QuestionForm, group_choices, value_columns
from sfumato.server.asking.offers import AskableDataset, Offer, Precision
from sfumato.server.pages.offer_view import (
    ConditionRow,
    FormChoice,
    OfferPage,
    OfferView,
    Say,
    choices_of,
    column_words,
    condition_row,
    offer_view,
    question_words,
    suggested,
)
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService, Visitor
from sfumato.server.works.kinds import KINDS

__all__ = ["MENU", "ROUTES", "attach", "router", "ways_of"]

router = APIRouter()
ANALYSTS = frozenset({ServiceRole.ANALYST})
ROUTES = {"ask": ANALYSTS, "ask.form": ANALYSTS, "ask.offer": ANALYSTS, "ask.submit": ANALYSTS}
MENU = (MenuLink(route="ask", words="asking.menu", place=30, roles=ANALYSTS, about="asking.about"),)
MOST_SIGNS = 20_000
BY_FORM, BY_SQL = "form", "sql"


def attach(service: Service) -> None:
    """Have the lanes of a service run while it does."""
    open_desk(service)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCard:
    """A dataset that can be asked."""

    address: str
    name: str
    edition: str
    columns: int
    persons: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetsPage:
    """The datasets to choose from."""

    datasets: tuple[DatasetCard, ...]
    accounts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FormView:
    """The form with what was said in it."""

    dataset: str
    mode: str
    measures: tuple[FormChoice, ...]
    values: tuple[FormChoice, ...]
    groups: tuple[tuple[FormChoice, ...], ...]
    conditions: tuple[ConditionRow, ...]
    share: ConditionRow
    sql: str
    by: str
    margin: str
    epsilon: str
    rows: str
    joint: bool
    delta: str
    accounts: tuple[FormChoice, ...]
    keys: tuple[str, ...]
    """Declared values of columns, as suggestions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPage:
    """The form of a dataset, and the offer for what it says."""

    dataset: str
    edition: str
    persons: str
    columns: tuple[tuple[str, str, str], ...]
    """Names, types and what is declared of them."""
    form: FormView
    offer: OfferView | None
    wrong: str
    form_address: str
    ways: tuple[tuple[str, str, bool], ...]
    """Ways to ask: each with its words, its address, and whether it is this one."""


@router.get("/ask", name="ask")
def datasets(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """The datasets to choose from; where there is one, its form."""
    desk = desk_of(service)
    cards = tuple(
        DatasetCard(
            address=request.app.url_path_for("ask.form", dataset=name),
            name=name,
            edition=str(held.schema.edition),
            columns=len(held.schema.columns),
            persons=str(held.schema.unit),
        )
        for name, held in desk.datasets.items()
        if "/" not in name
    )
    return render(request, "ask/datasets.html", DatasetsPage(datasets=cards, accounts=bool(desk.accounts(visitor))))


@router.get("/ask/{dataset}", name="ask.form")
def form(*, request: Request, dataset: str, service: AskedService, visitor: AskedBy) -> Response:
    """The form, and the offer for what it says so far."""
    return _shown(request, desk_of(service), visitor, dataset, _fields(request.query_params.multi_items()))


@router.get("/ask/{dataset}/offer", name="ask.offer")
def offer(*, request: Request, dataset: str, service: AskedService, visitor: AskedBy) -> Response:
    """The offer alone; the same that the page shows without a script."""
    desk, fields = desk_of(service), _fields(request.query_params.multi_items())
    view, wrong = _offered(request, desk, visitor, dataset, fields)
    return render(request, "ask/offer.html", OfferPage(offer=view, wrong=wrong))


@router.post("/ask/{dataset}", name="ask.submit")
async def submit(*, request: Request, dataset: str, service: AskedService, visitor: AskedBy) -> Response:
    """Hand the question in, or keep it as a draft; what does not fit is shown again with what would."""
    sent = await request.form()
    fields = _fields([(name, value) for name, value in sent.multi_items() if isinstance(value, str)])
    return await run_in_threadpool(_submitted, request, desk_of(service), visitor, dataset, fields)


def _submitted(
    request: Request, desk: QuestionDesk, visitor: Visitor, dataset: str, fields: dict[str, str]
) -> Response:
    project = fields.pop("project", "") or None
    keep = fields.pop("keep", "")
    say = request.app.state.service.words(visitor.lang).say
    try:
        found = made_offer(desk, visitor, dataset, fields)
        if keep:
            draft = desk.projects.project(str(project), visitor)
            desk.projects.save(visitor, draft, dataset=dataset, title=question_words(say, found.query), fields=fields)
            return RedirectResponse(request.app.url_path_for("project", name=draft.name), 303)
        if found.open:
            job = desk.ask(visitor, found, title=question_words(say, found.query), project=project)
            return RedirectResponse(request.app.url_path_for("question", name=job.name), 303)
    except SfumatoError as wrong:
        return _shown(request, desk, visitor, dataset, fields, wrong=str(wrong))
    return _shown(request, desk, visitor, dataset, fields)


def made_offer(desk: QuestionDesk, visitor: Visitor, dataset: str, fields: Mapping[str, str]) -> Offer:
    """The offer for what fields say; refused in words that help where they say nothing that can be asked."""
    account = desk.account(visitor, fields.get("account"))
    held = desk.asker.held(dataset)
    sql = fields.get("sql", "").strip() if fields.get("mode") == BY_SQL else ""
    sql = sql or QuestionForm.read(dataset, fields).to_sql(held.schema)
    question = desk.asker.question(account, dataset, sql)
    return desk.asker.offer(account, dataset, question, Precision.read(fields), sql=sql)


def _fields(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What a form says: each name once, bounded, without the token of the form and the language."""
    found: dict[str, str] = {}
    for name, value in pairs[:60]:
        if name not in ("form_token", "lang") and len(name) <= 40:
            found[name] = value[:MOST_SIGNS]
    return found


def _shown(
    request: Request, desk: QuestionDesk, visitor: Visitor, dataset: str, fields: dict[str, str], *, wrong: str = ""
) -> Response:
    held = desk.asker.held(dataset)
    say = request.app.state.service.words(visitor.lang).say
    view = None
    if not wrong and _asked(fields):
        view, wrong = _offered(request, desk, visitor, dataset, fields)
    accounts = desk.accounts(visitor)
    unit = desk.service.ledger.balance(accounts[0]).unit if accounts else None
    address = request.app.url_path_for("ask.form", dataset=dataset)
    page = AskPage(
        dataset=dataset,
        edition=str(held.schema.edition),
        persons=str(held.schema.unit) if unit is None else describe(unit),
        columns=tuple(column_words(column, say) for column in held.schema.columns),
        form=_form(held, dataset, fields, desk, visitor, say),
        offer=view,
        wrong=wrong,
        form_address=address,
        ways=ways_of(request, dataset, BY_SQL if fields.get("mode") == BY_SQL else BY_FORM, say),
    )
    return render(request, "ask/form.html", page)


def ways_of(request: Request, dataset: str, here: str, say: Say) -> tuple[tuple[str, str, bool], ...]:
    """All ways to ask a dataset, as links: each with its words, its address, and whether it is this one."""
    url = request.app.url_path_for
    address = url("ask.form", dataset=dataset)
    found = [(BY_FORM, "asking", str(address)), (BY_SQL, "asking", f"{address}?mode=sql")]
    found += [(kind, "works", str(url("work.form", dataset=dataset, kind=kind))) for kind in KINDS]
    return tuple((say(f"{group}.by_{way}"), place, way == here) for way, group, place in found)


def _asked(fields: Mapping[str, str]) -> bool:
    """Whether a form says enough to be answered with an offer."""
    return bool(fields.get("margin") or fields.get("epsilon"))


def _offered(
    request: Request, desk: QuestionDesk, visitor: Visitor, dataset: str, fields: dict[str, str]
) -> tuple[OfferView | None, str]:
    try:
        found = made_offer(desk, visitor, dataset, fields)
    except SfumatoError as wrong:
        return None, str(wrong)
    address = request.app.url_path_for("ask.form", dataset=dataset)
    in_sql = {name: fields[name] for name in ("account", "margin", "epsilon", "by", "rows") if fields.get(name)}
    view = offer_view(
        request,
        desk,
        visitor,
        found,
        fields,
        question=question_words(request.app.state.service.words(visitor.lang).say, found.query),
        address=address,
        action=request.app.url_path_for("ask.submit", dataset=dataset),
        in_sql=f"{address}?{urlencode({'mode': BY_SQL, 'sql': found.sql or '', **in_sql})}",
    )
    return view, ""


def _form(
    held: AskableDataset, dataset: str, fields: Mapping[str, str], desk: QuestionDesk, visitor: Visitor, say: Say
) -> FormView:
    schema = held.schema
    groups = group_choices(schema)

    def group_words(column: str, step: str) -> str:
        if not step:
            return column
        return say(
            f"asking.group_{step}" if step in ("month", "year") else "asking.group_bands", column=column, width=step
        )

    named = [(choice.code, group_words(choice.column, choice.step)) for choice in groups]
    measures = [measure for measure in MEASURES if measure not in ("sum", "mean", "median") or value_columns(schema)]
    margin, epsilon = fields.get("margin", ""), fields.get("epsilon", "")
    return FormView(
        dataset=dataset,
        mode=BY_SQL if fields.get("mode") == BY_SQL else BY_FORM,
        measures=choices_of(fields, "measure", [(each, say(f"asking.measure_{each}")) for each in measures]),
        values=choices_of(fields, "value", [(column.name, column.name) for column in value_columns(schema)], ""),
        groups=tuple(
            choices_of(fields, f"group{place}", [("", say("asking.no_group")), *named], "") for place in (1, 2)
        ),
        conditions=tuple(
            condition_row(fields, schema, f"where{place}_", place) for place in range(1, MOST_CONDITIONS + 1)
        ),
        share=condition_row(fields, schema, "share_", 0),
        sql=fields.get("sql") or f'SELECT COUNT(*) AS n\nFROM "{dataset}"',
        by="epsilon" if fields.get("by") == "epsilon" or (epsilon and not margin) else "margin",
        margin=margin or ("" if epsilon else "20"),
        epsilon=epsilon,
        rows=fields.get("rows", ""),
        joint=fields.get("joint", "") == "on",
        delta=fields.get("delta", ""),
        accounts=choices_of(fields, "account", [(path, path) for path in desk.accounts(visitor)]),
        keys=suggested(schema),
    )
