"""Units: who is protected, and what "neighbour" means.

A unit is always written with its relation. The order between units is partial: a guarantee for a *stronger* unit
holds unchanged for every unit that it covers (:func:`covers`); the other way needs group privacy with an enforced
bound (:mod:`sfumato.core.conversions`).
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from sfumato.core.documents import check_types
from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput, NotDeclared

__all__ = [
    "Client",
    "Edge",
    "Event",
    "Family",
    "Node",
    "Record",
    "Relation",
    "Unit",
    "User",
    "Weight",
    "client",
    "covers",
    "describe",
    "edge",
    "event",
    "family",
    "node",
    "record",
    "user",
    "weight",
]


class Relation(Enum):
    """What makes two datasets neighbours: a unit more or less, or a unit exchanged for another."""

    ADD_REMOVE = "add/remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of a table."""

    KIND: ClassVar[str] = "unit.record"
    VERSION: ClassVar[int] = 1
    relation: Relation

    def __post_init__(self) -> None:
        check_types(self, "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """All rows of one person, told by ``column``."""

    KIND: ClassVar[str] = "unit.user"
    VERSION: ClassVar[int] = 1
    column: str
    relation: Relation

    def __post_init__(self) -> None:
        check_types(self, "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Any ``size`` persons together, each told by ``column``."""

    KIND: ClassVar[str] = "unit.family"
    VERSION: ClassVar[int] = 1
    column: str
    size: int
    relation: Relation

    def __post_init__(self) -> None:
        natural(self.size, "family size", most=2**31)
        check_types(self, "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a stream, or one (person, time) entry."""

    KIND: ClassVar[str] = "unit.event"
    VERSION: ClassVar[int] = 1
    relation: Relation

    def __post_init__(self) -> None:
        check_types(self, "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One edge of a graph."""

    KIND: ClassVar[str] = "unit.edge"
    VERSION: ClassVar[int] = 1
    relation: Relation

    def __post_init__(self) -> None:
        check_types(self, "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node with all its edges, among graphs whose degrees are held to ``max_degree``."""

    KIND: ClassVar[str] = "unit.node"
    VERSION: ClassVar[int] = 1
    max_degree: int
    relation: Relation

    def __post_init__(self) -> None:
        natural(self.max_degree, "max_degree")
        check_types(self, "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """The weight of one pair of nodes, from 0 to ``bound``."""

    KIND: ClassVar[str] = "unit.weight"
    VERSION: ClassVar[int] = 1
    bound: Fraction
    relation: Relation

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive(self.bound, "bound"))
        check_types(self, "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """All data that one participant of a federation holds."""

    KIND: ClassVar[str] = "unit.client"
    VERSION: ClassVar[int] = 1
    relation: Relation

    def __post_init__(self) -> None:
        check_types(self, "unit")


Unit = Record | User | Family | Event | Edge | Node | Weight | Client


def covers(stronger: Unit, weaker: Unit) -> bool:
    """Say whether a guarantee for ``stronger`` is one for ``weaker``, unchanged.

    Guarantee: if true, every pair of ``weaker`` neighbours is a pair of ``stronger`` neighbours. A person does *not*
    cover a row in this sense: one row less is not one person less, but two steps of persons
    (:func:`~sfumato.core.conversions.convert`).

    >>> covers(family(3, "patient_id", relation="add/remove"), user("patient_id", relation="add/remove"))
    True
    >>> covers(user("patient_id", relation="add/remove"), record(relation="add/remove"))
    False
    """
    if stronger.relation is not weaker.relation:
        return False
    if stronger == weaker:
        return True
    match stronger, weaker:
        case Family(), Family():
            return stronger.column == weaker.column and stronger.size >= weaker.size
        case Family(), User():
            return stronger.column == weaker.column
        case Node(), Node():
            return stronger.max_degree >= weaker.max_degree
        case Weight(), Weight():
            return stronger.bound >= weaker.bound
    return False


def describe(unit: Unit) -> str:
    """Name a unit and its relation in a few words, for errors and reports.

    >>> describe(user("patient_id", relation="replace"))
    'user (patient_id), replace'
    """
    match unit:
        case User():
            about = f"user ({unit.column})"
        case Family():
            about = f"family of {unit.size} ({unit.column})"
        case Node():
            about = f"node (degree at most {unit.max_degree})"
        case Weight():
            about = f"weight (0 to {unit.bound})"
        case _:
            about = unit.KIND.removeprefix("unit.")
    return f"{about}, {unit.relation.value}"


def record(*, relation: str | Relation | None = None) -> Record:
    """Protect one row.

    >>> record(relation="add/remove").relation
    <Relation.ADD_REMOVE: 'add/remove'>
    """
    return Record(relation=_relation(relation, "record"))


def user(column: str | None = None, *, relation: str | Relation | None = None) -> User:
    """Protect all rows of one person.

    >>> user("patient_id", relation="add/remove").column
    'patient_id'
    """
    return User(column=_column(column, "user"), relation=_relation(relation, "user"))


def family(size: int, column: str | None = None, *, relation: str | Relation | None = None) -> Family:
    """Protect any ``size`` persons together: relatives, a household.

    >>> family(3, "patient_id", relation="add/remove").size
    3
    """
    return Family(column=_column(column, "family"), size=size, relation=_relation(relation, "family"))


def event(*, relation: str | Relation | None = None) -> Event:
    """Protect one event of a stream.

    >>> event(relation="replace").KIND
    'unit.event'
    """
    return Event(relation=_relation(relation, "event"))


def edge(*, relation: str | Relation | None = None) -> Edge:
    """Protect one edge of a graph.

    >>> edge(relation="add/remove").KIND
    'unit.edge'
    """
    return Edge(relation=_relation(relation, "edge"))


def node(*, max_degree: int | None = None, relation: str | Relation | None = None) -> Node:
    """Protect one node with all its edges; the degree cap is public and enforced.

    >>> node(max_degree=20, relation="add/remove").max_degree
    20
    """
    if max_degree is None:
        raise NotDeclared("a node unit needs max_degree, the public degree cap; declare it, e.g. max_degree=20.")
    return Node(max_degree=max_degree, relation=_relation(relation, "node"))


def weight(*, bound: Exact | None = None, relation: str | Relation | None = None) -> Weight:
    """Protect the weight of one pair of nodes, between 0 and a public bound.

    >>> weight(bound=0.5, relation="replace").bound
    Fraction(1, 2)
    """
    if bound is None:
        raise NotDeclared("a weight unit needs bound, the largest weight; declare it, e.g. bound=1.")
    return Weight(bound=positive(bound, "bound"), relation=_relation(relation, "weight"))


def client(*, relation: str | Relation | None = None) -> Client:
    """Protect all data of one participant of a federation.

    >>> client(relation="add/remove").KIND
    'unit.client'
    """
    return Client(relation=_relation(relation, "client"))


def _relation(relation: str | Relation | None, unit: str) -> Relation:
    if relation is None:
        raise NotDeclared(
            f"{unit}(...) needs its relation: what makes two datasets neighbours. Nothing was done. "
            "Say relation='add/remove' or relation='replace'."
        )
    try:
        return Relation(relation)
    except ValueError:
        raise InvalidInput(
            f"relation = {relation!r} is unknown; nothing was done. Say 'add/remove' or 'replace'."
        ) from None


def _column(column: str | None, unit: str) -> str:
    if column is None:
        raise NotDeclared(f"{unit}(...) needs the column that identifies persons, e.g. {unit}('patient_id', …).")
    if not isinstance(column, str) or not column:
        raise InvalidInput(f"the column of {unit}(...) must be a non-empty name; nothing was done.")
    return column
