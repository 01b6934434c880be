"""Asking: the form of a question, its offer before anything is charged, and the step that hands it in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from sfumato.core.exact import decimal_down, decimal_up
from sfumato.core.query import Query
from sfumato.core.units import describe
from sfumato.engines.expressions import Type
from sfumato.errors import SfumatoError
from sfumato.reports.words.rendering import render as words_of
from sfumato.server.asking.desk import QuestionDesk, desk_of, open_desk
from sfumato.server.asking.form import MEASURES, MOST_CONDITIONS, OPERATORS, QuestionForm, group_choices, value_columns
from sfumato.server.asking.offers import AskableDataset, Offer, OfferDecision, Precision
from sfumato.server.pages.board_ask import address_of_request
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService, Visitor
from sfumato.tables.column_facts import ColumnFacts

__all__ = ["MENU", "ROUTES", "attach", "router"]

router = APIRouter()
ANALYSTS = frozenset({ServiceRole.ANALYST})
ROUTES = {"ask": ANALYSTS, "ask.form": ANALYSTS, "ask.offer": ANALYSTS, "ask.submit": ANALYSTS}
MENU = (MenuLink(route="ask", words="asking.menu", place=30, roles=ANALYSTS, about="asking.about"),)
MOST_SIGNS = 20_000
BY_FORM, BY_SQL = "form", "sql"
Say = Callable[..., str]


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
class FormChoice:
    """Something to choose in a list."""

    value: str
    words: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRow:
    """One line of the form about which rows count."""

    place: int
    columns: tuple[FormChoice, ...]
    operators: tuple[FormChoice, ...]
    value: str


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
class RaiseLink:
    """A request for a higher cap of an account, by how much, and the form of the board with that filled in."""

    account: str
    epsilon: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferView:
    """An offer as the page shows it; amounts are written out."""

    offer: Offer
    question: str
    limited: str
    epsilon: str
    price: str
    left: str
    after: str
    exact: str
    fields: tuple[tuple[str, str], ...]
    """Of the form, to be handed in with it."""
    projects: tuple[FormChoice, ...]
    dataset: str
    deadline: str
    sql_address: str
    less_address: str
    raises: tuple[RaiseLink, ...]
    """Requests to the board that together would make room, where more was asked for than is left."""
    firm: tuple[str, ...]
    """Budgets that lack something and are not of whoever asks: of the data, of the people, of accounts above."""


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
    sql_address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPage:
    """The offer by itself, which a script puts into the page."""

    offer: OfferView | None
    wrong: str


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


def question_words(say: Say, query: Query) -> str:
    """What a question asks, in the language of whoever reads it; names of columns stay as they are."""
    by, where = ", ".join(query.labels()), getattr(query, "where", None)
    names = ", ".join(query.names)
    asked = say("asking.asked_by" if by else "asking.asked_all", names=names, dataset=query.dataset.name, by=by)
    return asked if where is None else say("asking.asked_where", asked=asked, where=str(where))


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
        columns=tuple(_column(column, say) for column in held.schema.columns),
        form=_form(held, dataset, fields, desk, visitor, say),
        offer=view,
        wrong=wrong,
        form_address=address,
        sql_address=f"{address}?mode=sql",
    )
    return render(request, "ask/form.html", page)


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
    say = request.app.state.service.words(visitor.lang).say
    kept = {name: value for name, value in fields.items() if name not in ("margin", "by", "epsilon", "project", "keep")}
    by_cost = {**kept, "by": "epsilon"}
    in_sql = {name: fields[name] for name in ("account", "margin", "epsilon", "by", "rows") if fields.get(name)}
    view = OfferView(
        offer=found,
        question=question_words(say, found.query),
        limited="" if found.limited is None else words_of(found.limited, visitor.lang),
        epsilon=decimal_up(found.epsilon),
        price=decimal_up(found.price.epsilon),
        left=decimal_down(found.left.epsilon),
        after=decimal_down(max(found.left.epsilon - found.price.epsilon, Fraction(0))),
        exact=str(found.epsilon),
        fields=tuple({**by_cost, "epsilon": str(found.epsilon), "account": found.account}.items()),
        projects=tuple(
            FormChoice(value=each.name, words=each.title, chosen=each.name == fields.get("project"))
            for each in desk.projects.of(visitor)
        ),
        dataset=dataset,
        deadline=f"{max(1, round(desk.queue.slots.length))}",
        sql_address=f"{address}?{urlencode({'mode': BY_SQL, 'sql': found.sql or '', **in_sql})}",
        less_address=f"{address}?{urlencode({**by_cost, 'epsilon': decimal_down(found.left.epsilon)})}#offer",
        raises=_raises(request, desk, visitor, found, say),
        firm=tuple(
            say(f"asking.balance_{row.kind}", name=row.name)
            for row in found.balances
            if found.decision is OfferDecision.OVER
            and not row.fits
            and not (row.kind == "account" and visitor.may_charge(row.name))
        ),
    )
    return view, ""


def _raises(request: Request, desk: QuestionDesk, visitor: Visitor, found: Offer, say: Say) -> tuple[RaiseLink, ...]:
    """The requests that would make room in accounts: of those that lack something, each by what it lacks."""
    if found.decision is not OfferDecision.OVER or desk.service.ledger.board() is None:
        return ()
    question = question_words(say, found.query)
    margins = ", ".join(f"{column.name} ±{column.margin}" for column in found.columns if column.margin is not None)
    choice = say("asking.raise_choice", price=decimal_up(found.price.epsilon), left=decimal_down(found.left.epsilon))
    choice = f"{choice} {say('asking.raise_margins', margins=margins)}" if margins else choice
    links = []
    for row in found.balances:
        if row.kind != "account" or row.fits or not visitor.may_charge(row.name):
            continue
        asked = {"action": "raise", "account": row.name, "subject": question, "choice": choice}
        asked["epsilon"] = decimal_up(row.missing.epsilon) if row.missing.epsilon else ""
        asked["delta"] = decimal_up(row.missing.delta) if row.missing.delta else ""
        address = address_of_request(request, **asked)
        links.append(RaiseLink(account=row.name, epsilon=decimal_up(row.missing.epsilon), address=address))
    return tuple(links)


def _form(
    held: AskableDataset, dataset: str, fields: Mapping[str, str], desk: QuestionDesk, visitor: Visitor, say: Say
) -> FormView:
    schema = held.schema
    comparable = [column.name for column in schema.columns if column.name != schema.unit]
    groups = group_choices(schema)

    def chosen(name: str, values: Sequence[tuple[str, str]], first: str | None = None) -> tuple[FormChoice, ...]:
        said = fields.get(name, values[0][0] if values and first is None else first or "")
        return tuple(FormChoice(value=value, words=words, chosen=value == said) for value, words in values)

    def condition(prefix: str, place: int) -> ConditionRow:
        return ConditionRow(
            place=place,
            columns=chosen(f"{prefix}column", [("", "—"), *((name, name) for name in comparable)], ""),
            operators=chosen(f"{prefix}operator", [(each, each) for each in OPERATORS], "="),
            value=fields.get(f"{prefix}value", ""),
        )

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
        measures=chosen("measure", [(each, say(f"asking.measure_{each}")) for each in measures]),
        values=chosen("value", [(column.name, column.name) for column in value_columns(schema)], ""),
        groups=tuple(chosen(f"group{place}", [("", say("asking.no_group")), *named], "") for place in (1, 2)),
        conditions=tuple(condition(f"where{place}_", place) for place in range(1, MOST_CONDITIONS + 1)),
        share=condition("share_", 0),
        sql=fields.get("sql") or f'SELECT COUNT(*) AS n\nFROM "{dataset}"',
        by="epsilon" if fields.get("by") == "epsilon" or (epsilon and not margin) else "margin",
        margin=margin or ("" if epsilon else "20"),
        epsilon=epsilon,
        rows=fields.get("rows", ""),
        joint=fields.get("joint", "") == "on",
        delta=fields.get("delta", ""),
        accounts=chosen("account", [(path, path) for path in desk.accounts(visitor)]),
        keys=tuple(dict.fromkeys(str(key) for column in schema.columns for key in column.keys[:60]))[:200],
    )


def _column(column: ColumnFacts, say: Say) -> tuple[str, str, str]:
    if column.keys:
        listed = ", ".join(str(key) for key in column.keys[:6])
        said = f"{listed}, …" if len(column.keys) > 6 else listed
    elif column.bounds is not None:
        low, high = column.bounds
        said = say("asking.column_range", low=str(low), high=str(high))
    else:
        said = ""
    return column.name, say(f"asking.type_{_TYPES.get(column.type, 'text')}"), said


_TYPES = {
    Type.TEXT: "text",
    Type.WHOLE: "whole",
    Type.NUMBER: "number",
    Type.TRUTH: "truth",
    Type.DATE: "date",
    Type.TIME: "time",
}
