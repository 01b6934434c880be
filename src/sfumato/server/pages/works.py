"""Studies and synthetic rows by form: what is chosen, its offer before anything is charged, and the step that asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from sfumato.core.units import describe
from sfumato.engines.expressions import Type
from sfumato.errors import NotDeclared, SfumatoError
from sfumato.server.asking.desk import QuestionDesk, desk_of
from sfumato.server.asking.form import MOST_CONDITIONS
from sfumato.server.pages.ask import ways_of
from sfumato.server.pages.offer_view import (
    ConditionRow,
    FormChoice,
    OfferPage,
    OfferView,
    PlannedRow,
    Say,
    choices_of,
    column_words,
    condition_row,
    offer_view,
    suggested,
)
from sfumato.server.rendering import render
from sfumato.server.roles import ServiceRole
from sfumato.server.visitors import AskedBy, AskedService, Visitor
from sfumato.server.works.forms import NUMBERS, RegressionForm, SurvivalForm, WorkForm
from sfumato.server.works.kinds import KINDS, kept, read
from sfumato.server.works.offers import BY_ROWS, WorkOffer, offered
from sfumato.server.works.synthetic_form import SyntheticForm
from sfumato.synthesis.preview import SynthesisPreview
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema

__all__ = ["ROUTES", "router", "work_words"]

router = APIRouter()
ANALYSTS = frozenset({ServiceRole.ANALYST})
ROUTES = {"work.form": ANALYSTS, "work.offer": ANALYSTS, "work.submit": ANALYSTS}
MOST_FIELDS, LONGEST_NAME, LONGEST = 400, 300, 500
MOST_USED = 20_000
MOST_GROUPS, BINS = 20, "8"
MOST_PLANNED = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedColumn:
    """A column that may be taken, with its range and its bins."""

    name: str
    said: str
    used: bool
    low: str
    high: str
    bins: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFields:
    """The form with what was said in it."""

    kind: str
    times: tuple[FormChoice, ...]
    event: ConditionRow
    until: str
    steps: str
    groups: tuple[FormChoice, ...]
    outcomes: tuple[FormChoice, ...]
    events: tuple[FormChoice, ...]
    columns: tuple[UsedColumn, ...]
    rows_made: str
    conditions: tuple[ConditionRow, ...]
    keys: tuple[str, ...]
    by: str
    epsilon: str
    delta: str
    rows: str
    accounts: tuple[FormChoice, ...]
    possible: bool
    """Whether the declared columns suffice for such a work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPage:
    """The form of a work, and the offer for what it says."""

    dataset: str
    edition: str
    persons: str
    columns: tuple[tuple[str, str, str], ...]
    form: WorkFields
    offer: OfferView | None
    wrong: str
    form_address: str
    offer_address: str
    ways: tuple[tuple[str, str, bool], ...]


@router.get("/ask/{dataset}/as/{kind}", name="work.form")
def form(*, request: Request, dataset: str, kind: str, service: AskedService, visitor: AskedBy) -> Response:
    """The form, and the offer for what it says so far."""
    return _shown(request, desk_of(service), visitor, dataset, kind, _fields(request.query_params.multi_items()))


@router.get("/ask/{dataset}/as/{kind}/offer", name="work.offer")
def offer(*, request: Request, dataset: str, kind: str, service: AskedService, visitor: AskedBy) -> Response:
    """The offer alone; the same that the page shows without a script."""
    fields = _fields(request.query_params.multi_items())
    view, wrong = _offered(request, desk_of(service), visitor, dataset, kind, fields)
    return render(request, "ask/offer.html", OfferPage(offer=view, wrong=wrong))


@router.post("/ask/{dataset}/as/{kind}", name="work.submit")
async def submit(*, request: Request, dataset: str, kind: str, service: AskedService, visitor: AskedBy) -> Response:
    """Hand the work in, or keep it as a draft; what does not fit is shown again with what would."""
    sent = await request.form()
    fields = _fields([(name, value) for name, value in sent.multi_items() if isinstance(value, str)])
    return await run_in_threadpool(_submitted, request, desk_of(service), visitor, dataset, kind, fields)


def _submitted(
    request: Request, desk: QuestionDesk, visitor: Visitor, dataset: str, kind: str, fields: dict[str, str]
) -> Response:
    project, keep = fields.pop("project", "") or None, fields.pop("keep", "")
    url = request.app.url_path_for
    try:
        found = _made(desk, visitor, dataset, kind, fields)
        title = work_words(request.app.state.service.words(visitor.lang).say, found.form)
        if keep:
            draft = desk.projects.project(str(project), visitor)
            desk.projects.save(visitor, draft, dataset=dataset, title=title, fields={**fields, "work": kind})
            return RedirectResponse(url("project", name=draft.name), 303)
        if found.offer.open:
            job = desk.ask(visitor, found.offer, title=title, project=project, limit=found.limit, work=kept(found.form))
            return RedirectResponse(url("question", name=job.name), 303)
    except SfumatoError as wrong:
        return _shown(request, desk, visitor, dataset, kind, fields, wrong=str(wrong))
    return _shown(request, desk, visitor, dataset, kind, fields)


def _made(desk: QuestionDesk, visitor: Visitor, dataset: str, kind: str, fields: Mapping[str, str]) -> WorkOffer:
    account = desk.account(visitor, fields.get("account"))
    desk.asker.held(dataset)
    return offered(desk.asker, account, read(kind, dataset, fields), fields)


def work_words(say: Say, form: WorkForm) -> str:
    """What a work is about, in the language of whoever reads it; names of columns stay as they are."""
    if isinstance(form, SurvivalForm):
        said = {"time": form.time, "dataset": form.dataset, "by": form.by}
        return say("works.asked_survival_by" if form.by else "works.asked_survival", **said)
    if isinstance(form, RegressionForm):
        said = {"outcome": form.outcome, "covariates": ", ".join(form.covariates), "dataset": form.dataset}
        return say(f"works.asked_{form.kind}", **said)
    if isinstance(form, SyntheticForm):
        return say("works.asked_synthetic", columns=", ".join(form.columns), dataset=form.dataset)
    return form.kind


def _fields(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What a form says, bounded, without the token of the form; ``use`` may be said several times, in a line each."""
    found: dict[str, str] = {}
    for name, value in pairs[:MOST_FIELDS]:
        if name == "use":
            found[name] = f"{found[name]}\n{value}"[:MOST_USED] if name in found else value[:MOST_USED]
        elif name not in ("form_token", "lang") and len(name) <= LONGEST_NAME:
            found[name] = value[:LONGEST].strip()
    return found


def _shown(
    request: Request,
    desk: QuestionDesk,
    visitor: Visitor,
    dataset: str,
    kind: str,
    fields: dict[str, str],
    *,
    wrong: str = "",
) -> Response:
    if kind not in KINDS:
        raise NotDeclared("there is no form of this kind; nothing was done.")
    schema = desk.asker.held(dataset).schema
    say = request.app.state.service.words(visitor.lang).say
    view = None
    if not wrong and (fields.get("epsilon") or fields.get("by") == BY_ROWS):
        view, wrong = _offered(request, desk, visitor, dataset, kind, fields)
    accounts = desk.accounts(visitor)
    unit = desk.service.ledger.balance(accounts[0]).unit if accounts else None
    url = request.app.url_path_for
    page = WorkPage(
        dataset=dataset,
        edition=str(schema.edition),
        persons=str(schema.unit) if unit is None else describe(unit),
        columns=tuple(column_words(column, say) for column in schema.columns),
        form=_form(schema, kind, fields, accounts, say),
        offer=view,
        wrong=wrong,
        form_address=url("work.form", dataset=dataset, kind=kind),
        offer_address=url("work.offer", dataset=dataset, kind=kind),
        ways=ways_of(request, dataset, kind, say),
    )
    return render(request, "works/form.html", page)


def _offered(
    request: Request, desk: QuestionDesk, visitor: Visitor, dataset: str, kind: str, fields: dict[str, str]
) -> tuple[OfferView | None, str]:
    try:
        found = _made(desk, visitor, dataset, kind, fields)
    except SfumatoError as wrong:
        return None, str(wrong)
    say = request.app.state.service.words(visitor.lang).say
    url = request.app.url_path_for
    view = offer_view(
        request,
        desk,
        visitor,
        found.offer,
        fields,
        question=work_words(say, found.form),
        address=url("work.form", dataset=dataset, kind=kind),
        action=url("work.submit", dataset=dataset, kind=kind),
        work=True,
    )
    planned = found.planned
    return replace(
        view,
        columns=(),
        notes=found.notes,
        planned=() if planned is None else _planned(planned),
        planned_words="" if planned is None else say(f"works.measured_{planned.reason}", cells=f"{planned.cells:,}"),
    ), ""


def _planned(planned: SynthesisPreview) -> tuple[PlannedRow, ...]:
    shown = sorted(planned.marginals, key=lambda each: -each.noise * each.cells)[:MOST_PLANNED]
    return tuple(
        PlannedRow(
            columns=" × ".join(each.columns),
            cells=f"{each.cells:,}",
            noise=f"{each.noise:,.3g}",
            error="–" if each.predicted_error is None else f"{100 * min(each.predicted_error, 1):.2g}%",
        )
        for each in shown
    )


def _form(schema: Schema, kind: str, fields: Mapping[str, str], accounts: Sequence[str], say: Say) -> WorkFields:
    own = [column for column in schema.columns if column.name != schema.unit]
    lists = [column for column in own if 2 <= len(column.keys) <= MOST_GROUPS]
    ranges = [column for column in own if column.bounds is not None and column.type in NUMBERS]
    times = [column for column in ranges if column.bounds is not None and Fraction(str(column.bounds[0])) >= 0]
    two = [column for column in own if len(column.keys) == 2 or (column.type is Type.TRUTH and not column.keys)]
    outcomes = ranges if kind == "linear" else two
    chosen = fields.get("outcome") or (outcomes[0].name if outcomes else "")
    outcome = next((column for column in outcomes if column.name == chosen), None)
    usable = [column for column in own if _usable(column, kind)]
    possible = bool({"survival": times, "synthetic": usable[1:]}.get(kind, outcomes and usable))
    return WorkFields(
        kind=kind,
        times=choices_of(fields, "time", _ranged(times, say)),
        event=condition_row(fields, schema, "event_", 0),
        until=fields.get("until", ""),
        steps=fields.get("steps", ""),
        groups=choices_of(fields, "group", [("", say("asking.no_group")), *_named(lists)], ""),
        outcomes=choices_of(fields, "outcome", _ranged(outcomes, say)),
        events=choices_of(fields, "event", _values(outcome)) if kind == "logistic" else (),
        columns=tuple(_used(column, fields, say) for column in usable),
        rows_made=fields.get("rows_made", ""),
        conditions=tuple(condition_row(fields, schema, f"where{n}_", n) for n in range(1, MOST_CONDITIONS + 1)),
        keys=suggested(schema),
        by=BY_ROWS if fields.get("by") == BY_ROWS else "epsilon",
        epsilon=fields.get("epsilon", ""),
        delta=fields.get("delta", ""),
        rows=fields.get("rows", ""),
        accounts=choices_of(fields, "account", [(path, path) for path in accounts]),
        possible=possible,
    )


def _usable(column: ColumnFacts, kind: str) -> bool:
    """Whether a column can explain an outcome, or stand in synthetic rows."""
    if column.keys or column.type is Type.TRUTH:
        return True
    return column.bounds is not None and (column.type in NUMBERS or kind == SyntheticForm.kind)


def _used(column: ColumnFacts, fields: Mapping[str, str], say: Say) -> UsedColumn:
    ranged = column.bounds is not None and column.type in NUMBERS
    low, high = ("", "") if not ranged or column.bounds is None else map(str, column.bounds)
    binned = column.bounds is not None and not column.keys
    return UsedColumn(
        name=column.name,
        said=": ".join(part for part in column_words(column, say)[1:] if part),
        used=column.name in fields.get("use", "").splitlines(),
        low=fields.get(f"low:{column.name}", low),
        high=fields.get(f"high:{column.name}", high),
        bins=fields.get(f"bins:{column.name}", BINS) if binned else "",
    )


def _values(column: ColumnFacts | None) -> list[tuple[str, str]]:
    if column is None:
        return []
    keys = column.keys or (False, True)
    return [(str(key), str(key).lower() if isinstance(key, bool) else str(key)) for key in reversed(keys)]


def _ranged(columns: Sequence[ColumnFacts], say: Say) -> list[tuple[str, str]]:
    """Columns to choose from, each with its declared range."""
    return [
        (
            column.name,
            column.name
            if column.bounds is None
            else f"{column.name} ({say('asking.column_range', low=str(column.bounds[0]), high=str(column.bounds[1]))})",
        )
        for column in columns
    ]


def _named(columns: Sequence[ColumnFacts]) -> list[tuple[str, str]]:
    return [(column.name, column.name) for column in columns]
