"""The offer as pages show it, beside the form of a question, of a study or of synthetic rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import urlencode

from fastapi import Request

from sfumato.core.exact import decimal_down, decimal_up
from sfumato.core.query import Query
from sfumato.engines.expressions import Type
from sfumato.reports.words.rendering import render as words_of
from sfumato.server.asking.desk import QuestionDesk
from sfumato.server.asking.form import OPERATORS
from sfumato.server.asking.offers import Offer, OfferDecision, OfferedColumn
from sfumato.server.pages.board_ask import address_of_request
from sfumato.server.service import Service
from sfumato.server.visitors import Visitor
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema

__all__ = [
    "ConditionRow",
    "FormChoice",
    "OfferPage",
    "OfferView",
    "PlannedRow",
    "Say",
    "choices_of",
    "column_words",
    "condition_row",
    "offer_view",
    "question_words",
    "suggested",
]

Say = Callable[..., str]
OWN = ("margin", "by", "epsilon", "project", "keep")


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
class PlannedRow:
    """A noisy table that synthetic rows would be made of."""

    columns: str
    cells: str
    noise: str
    error: str


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
    deadline: str
    sql_address: str
    """Where the same can be asked in SQL; empty where it cannot."""
    less_address: str
    action: str
    """Where it is handed in."""
    columns: tuple[OfferedColumn, ...]
    """The errors that are worth reading; of a study those of the numbers that it is made of say little."""
    raises: tuple[RaiseLink, ...]
    """Requests to the board that together would make room, where more was asked for than is left."""
    firm: tuple[str, ...]
    """Budgets that lack something and are not of whoever asks: of the data, of the people, of accounts above."""
    notes: tuple[str, ...] = ()
    """What the method needs at this price, in English."""
    planned: tuple[PlannedRow, ...] = ()
    """The noisy tables that synthetic rows would be made of."""
    planned_words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPage:
    """The offer by itself, which a script puts into the page."""

    offer: OfferView | None
    wrong: str


def offer_view(
    request: Request,
    desk: QuestionDesk,
    visitor: Visitor,
    found: Offer,
    fields: Mapping[str, str],
    *,
    question: str,
    address: str,
    action: str,
    in_sql: str = "",
    work: bool = False,
) -> OfferView:
    """An offer for the fields of a form that lies at ``address`` and is handed in at ``action``."""
    kept = {name: value for name, value in fields.items() if name not in OWN}
    by_cost = {**kept, "by": "epsilon"}
    service: Service = request.app.state.service
    say = service.words(visitor.lang).say
    return OfferView(
        offer=found,
        question=question,
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
        deadline=f"{max(1, round(desk.queue.slots.lasting(work=work)))}",
        sql_address=in_sql,
        less_address=f"{address}?{urlencode({**by_cost, 'epsilon': decimal_down(found.left.epsilon)})}#offer",
        action=action,
        columns=found.columns,
        raises=_raises(request, desk, visitor, found, question, say),
        firm=tuple(
            say(f"asking.balance_{row.kind}", name=row.name)
            for row in found.balances
            if found.decision is OfferDecision.OVER
            and not row.fits
            and not (row.kind == "account" and visitor.may_charge(row.name))
        ),
    )


def _raises(
    request: Request, desk: QuestionDesk, visitor: Visitor, found: Offer, question: str, say: Say
) -> tuple[RaiseLink, ...]:
    """The requests that would make room in accounts: of those that lack something, each by what it lacks."""
    if found.decision is not OfferDecision.OVER or desk.service.ledger.board() is None:
        return ()
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


def question_words(say: Say, query: Query) -> str:
    """What a question asks, in the language of whoever reads it; names of columns stay as they are."""
    by, where = ", ".join(query.labels()), getattr(query, "where", None)
    names = ", ".join(query.names)
    asked = say("asking.asked_by" if by else "asking.asked_all", names=names, dataset=query.dataset.name, by=by)
    return asked if where is None else say("asking.asked_where", asked=asked, where=str(where))


def choices_of(
    fields: Mapping[str, str], name: str, values: Sequence[tuple[str, str]], first: str | None = None
) -> tuple[FormChoice, ...]:
    """What can be chosen in a list, and what is; ``first`` where nothing was said, else the first value."""
    said = fields.get(name, values[0][0] if values and first is None else first or "")
    return tuple(FormChoice(value=value, words=words, chosen=value == said) for value, words in values)


def condition_row(fields: Mapping[str, str], schema: Schema, prefix: str, place: int) -> ConditionRow:
    """One line of a form about rows."""
    names = [column.name for column in schema.columns if column.name != schema.unit]
    return ConditionRow(
        place=place,
        columns=choices_of(fields, f"{prefix}column", [("", "—"), *((name, name) for name in names)], ""),
        operators=choices_of(fields, f"{prefix}operator", [(each, each) for each in OPERATORS], "="),
        value=fields.get(f"{prefix}value", ""),
    )


def suggested(schema: Schema) -> tuple[str, ...]:
    """Declared values of columns, as suggestions."""
    return tuple(dict.fromkeys(str(key) for column in schema.columns for key in column.keys[:60]))[:200]


def column_words(column: ColumnFacts, say: Say) -> tuple[str, str, str]:
    """The name, the type and what is declared of a column."""
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
