"""Units side by side: the same statistic with another unit protected.

Two questions are answered, from declarations alone: with the *same error*, which ε would each unit have; with the
*same ε*, which error. A third is kept apart from them: what a release under one unit guarantees another *as it stands*,
which is group privacy and needs an enforced bound (:mod:`sfumato.core.conversions`). No data is opened.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from sfumato.accounting.composition import compose
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.conversions import Enforced, convert
from sfumato.core.exact import Exact, natural, probability
from sfumato.core.guarantees import GDP, ZCDP, Approximate, Guarantee, Pure
from sfumato.core.limits import MOST, Limit
from sfumato.core.query import Mechanism
from sfumato.core.release import Release, only_release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Edge, Event, Family, Node, Record, Relation, Unit, User, describe
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported, WrongNorm
from sfumato.mechanisms import ADDED_NOISE, ANY_NOISE, Gaussian
from sfumato.mechanisms.added_noise import AddedNoise
from sfumato.mechanisms.advisor import least_noise
from sfumato.mechanisms.calibration import least_epsilon

__all__ = ["Case", "Comparison", "EdgeCount", "EventCount", "Line", "Statistic", "cases_of", "compare"]

CONFIDENCE = Fraction(19, 20)
LARGE = 30  # from this μ on the exact curve would need numbers of thousands of digits, and ε is above 450 anyway


class Statistic(Protocol):
    """Whatever one unit can move: a query, or one of the two below.

    ``COMPARED``, where it has one, is the key of the words for it. A query whose columns are computed has a
    ``row_height`` besides: by how much one row moves its numbers.
    """

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the statistic."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCount:
    """How many edges a graph has.

    Guarantee: one edge moves it by 1, one node with at most D edges by D. Assumes, for a node: D is public, not read
    off the graph, and enforced by a projection that goes through the edges in a fixed public order and keeps each whose
    ends both have room. The *number of edges* of such a graph moves by at most D (an edge of the node that is kept
    pushes out at most one other on balance); triangles and other figures of it can move further. Under node add/remove
    the number of nodes is private.

    >>> from sfumato.core.units import node
    >>> EdgeCount().sensitivity(node(max_degree=20, relation="add/remove"), None).l1
    L1(value=Fraction(20, 1))
    """

    COMPARED: ClassVar[str] = "comparison.edges"

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """One edge, or all edges of one node."""
        match unit, limit:
            case Edge(relation=Relation.ADD_REMOVE), None:
                return _one_number(1)
            case Node(relation=Relation.ADD_REMOVE), None:
                return _one_number(natural(unit.max_degree, "max_degree", most=MOST))
        raise _no_unit_of("the number of edges", unit, "sf.edge and sf.node")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCount:
    """How many events there are, where at most ``most`` of each person count.

    Guarantee: one event moves it by 1, a person by ``most``, a family of k by k times that. Assumes: something enforces
    ``most``, for each person from that person's own events alone.

    >>> from sfumato.core.units import user
    >>> EventCount(most=12).sensitivity(user("patient_id", relation="add/remove"), None).l1
    L1(value=Fraction(12, 1))
    """

    COMPARED: ClassVar[str] = "comparison.events"
    most: int

    def __post_init__(self) -> None:
        natural(self.most, "events of a person", most=MOST)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """One event, or all that count of one person or of a family."""
        match unit, limit:
            case Event(relation=Relation.ADD_REMOVE), None:
                return _one_number(1)
            case User(relation=Relation.ADD_REMOVE), None:
                return _one_number(self.most)
            case Family(relation=Relation.ADD_REMOVE), None:
                return _one_number(self.most * unit.size)
        raise _no_unit_of("the number of events", unit, "sf.event, sf.user and sf.family")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A unit, with the limit that the statistic has when that unit is protected."""

    unit: Unit
    limit: Limit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One unit of a comparison.

    ``epsilon`` goes with the noise that all lines share, at the comparison's ``delta``; ``margin`` with the ε and δ
    that all lines share. ``as_it_stands`` is what a release under the first unit guarantees this one; where it is
    None, ``reason`` says why nothing follows.
    """

    case: Case
    sensitivity: Sensitivity
    epsilon: Fraction
    mechanism: Mechanism
    margin: int
    as_it_stands: Guarantee | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The lines, the first of which is the unit that ``spend`` and ``mechanism`` belong to.

    Public: all of it; it is worked out from declarations and holds no figure that depends on data. Where columns are
    computed from the numbers, ``height`` is by how much one row moves a number: words divide by it and speak of rows.
    """

    KIND: ClassVar[str] = "comparison"
    statistic: Statistic
    spend: Budget
    mechanism: Mechanism
    confidence: Fraction
    margin: int
    lines: tuple[Line, ...]
    released: bool
    height: int = 1

    @property
    def computed(self) -> bool:
        """Whether columns are computed from the numbers, which words then count in rows."""
        return _computed(self.statistic)

    @property
    def pure(self) -> bool:
        """Whether the noise that all lines share needs no δ."""
        return _pure(self.mechanism)

    @property
    def delta(self) -> Fraction:
        """The δ of the noise that all lines share: none where it needs none, whatever δ was allowed."""
        return Fraction(0) if self.pure else self.spend.delta


def compare(
    statistic: Statistic | Release,
    cases: Sequence[Case],
    *,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    margin: int | None = None,
    confidence: Exact = CONFIDENCE,
) -> Comparison:
    """Set units side by side; the first case is the one that ``epsilon`` (or ``margin``) is meant for.

    Guarantee: each ε is that of the very noise, for how far that unit moves the statistic, rounded up; each margin is
    that of the least noise which (ε, δ) allows for the unit. A guarantee as it stands is stated only where steps of the
    first unit lead to every neighbour under the other and an enforced bound counts them. Assumes: what each
    sensitivity assumes. A release brings its own unit, noise and price, and takes its own case first.

    >>> from sfumato.core.units import edge, node
    >>> both = [Case(unit=edge(relation="add/remove")), Case(unit=node(max_degree=20, relation="add/remove"))]
    >>> found = compare(EdgeCount(), both, epsilon=0.5)
    >>> [(str(line.epsilon), line.margin) for line in found.lines]
    [('1/2', 6), ('10', 120)]
    """
    level = probability(confidence, "confidence")
    if isinstance(statistic, Release):
        return _compare_release(statistic, cases, level, asked=(epsilon, margin))
    if len(cases) < 1:
        raise InvalidInput("a comparison needs at least one unit; nothing was compared.")
    moved = statistic.sensitivity(cases[0].unit, cases[0].limit)
    if (epsilon is None) == (margin is None):
        raise InvalidInput("give either epsilon or margin, the error to reach; nothing was compared.")
    if margin is not None:
        if _computed(statistic):
            raise Unsupported(
                "measures of one question have errors of different kinds, so one margin for all of them says nothing; "
                "nothing was compared. Give epsilon."
            )
        epsilon = least_epsilon(
            lambda tried: _least(statistic, moved, tried, delta), margin=margin, confidence=level, numbers=1
        )
    spend = Budget.asked(epsilon=epsilon if epsilon is not None else 0, delta=delta)
    mechanism = _least(statistic, moved, spend.epsilon, spend.delta)
    return _lines(statistic, cases, spend=spend, mechanism=mechanism, confidence=level, released=False)


def cases_of(release: Release, *, family: int | None = None, limit: Limit | None = None) -> tuple[Case, ...]:
    """The units that a release of a table can be compared under: its own first, then a row, a person, a family.

    ``limit`` is what persons would be held to where the release, made for single rows, has no limit of its own.
    """
    said = only_release(release).statement
    if limit is not None and said.limit is not None:
        raise InvalidInput(
            f"this release has its own limit ({said.limit.groups} group(s) × {said.limit.rows_per_group} row(s)); "
            "nothing was compared. Leave the other one out."
        )
    held = said.limit or limit
    column = said.unit.column if isinstance(said.unit, User | Family) else "person"
    wanted = [said.unit, Record(relation=said.unit.relation)]
    if held is not None:
        wanted.append(User(column=column, relation=said.unit.relation))
    if family is not None:
        if held is None:
            raise NotDeclared(
                "this release protects single rows and has no limit, so nothing bounds what a family moves; nothing "
                "was compared. Say what persons would be held to: the groups, and the rows in each."
            )
        wanted.append(Family(column=column, size=family, relation=said.unit.relation))
    distinct = dict.fromkeys(wanted)
    return tuple(Case(unit=unit, limit=None if isinstance(unit, Record) else held) for unit in distinct)


def _compare_release(
    release: Release, cases: Sequence[Case], confidence: Fraction, *, asked: tuple[object, object]
) -> Comparison:
    said = only_release(release).statement
    if asked != (None, None):
        raise InvalidInput("a release has its ε and its margin already; nothing was compared. Leave them out.")
    own = Case(unit=said.unit, limit=said.limit)
    others = [case for case in cases if case != own]
    return _lines(
        said.query, [own, *others], spend=said.spend, mechanism=said.mechanism, confidence=confidence, released=True
    )


def _lines(
    statistic: Statistic,
    cases: Sequence[Case],
    *,
    spend: Budget,
    mechanism: Mechanism,
    confidence: Fraction,
    released: bool,
) -> Comparison:
    held = cases[0].unit
    guarantee: Guarantee = Approximate(epsilon=spend.epsilon, delta=spend.delta)
    if _pure(mechanism):
        guarantee = Pure(epsilon=spend.epsilon)
    lines = []
    for case in cases:
        moved = statistic.sensitivity(case.unit, case.limit)
        noise = _least(statistic, moved, spend.epsilon, spend.delta)
        converted, reason = _as_it_stands(guarantee, held=held, wanted=case.unit, statistic=statistic)
        lines.append(
            Line(
                case=case,
                sensitivity=moved,
                epsilon=spend.epsilon if case == cases[0] else _epsilon(mechanism, moved, spend.delta),
                mechanism=noise,
                margin=noise.law.margin(confidence),
                as_it_stands=converted,
                reason=reason,
            )
        )
    return Comparison(
        statistic=statistic,
        spend=spend,
        mechanism=mechanism,
        confidence=confidence,
        margin=mechanism.law.margin(confidence),
        lines=tuple(lines),
        released=released,
        height=getattr(statistic, "row_height", 1),
    )


def _least(statistic: Statistic, moved: Sensitivity, epsilon: Exact, delta: Exact) -> AddedNoise:
    """The least noise of those that may answer the statistic."""
    if getattr(statistic, "ANSWERED_BY", None) == ANY_NOISE:
        return least_noise(moved, epsilon=epsilon, delta=delta, among=ADDED_NOISE)
    return least_noise(moved, epsilon=epsilon, delta=delta)


def _pure(mechanism: Mechanism) -> bool:
    """Whether a mechanism adds noise that needs no δ."""
    return isinstance(mechanism, ADDED_NOISE) and mechanism.PURE


def _computed(statistic: Statistic) -> bool:
    """Whether columns are computed from the numbers, so that these are counted in rows."""
    return hasattr(statistic, "row_height")


def _epsilon(mechanism: Mechanism, moved: Sensitivity, delta: Fraction) -> Fraction:
    """The ε of this noise for a unit that moves the statistic this far, at δ, rounded up."""
    match mechanism:
        case Gaussian() if moved.l2 is not None:
            squared = moved.l2.squared / mechanism.sigma**2
            if squared > LARGE**2:
                return ZCDP(rho=squared / 2).epsilon_at(delta)
            return GDP(mu=enclosures.sqrt(squared).high).epsilon_at(delta)
    if _pure(mechanism):
        with suppress(WrongNorm):
            return compose([mechanism.loss(moved)]).epsilon
    raise Unsupported(f"there is no comparison yet for {mechanism.KIND}; nothing was compared.")


def _as_it_stands(
    guarantee: Guarantee, *, held: Unit, wanted: Unit, statistic: Statistic
) -> tuple[Guarantee | None, str | None]:
    enforced = None
    if isinstance(statistic, EventCount):
        enforced = Enforced(count=statistic.most, by=f"at most {statistic.most} events of a person count")
    try:
        converted = convert(guarantee, held=held, wanted=wanted, enforced=enforced)
    except NotDeclared:
        return None, "bound"
    except Refused:
        return None, "steps"
    if isinstance(converted, Approximate) and converted.delta == 1:
        return None, "delta"
    return converted, None


def _one_number(moved: int) -> Sensitivity:
    return Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)


def _no_unit_of(what: str, unit: Unit, names: str) -> Refused:
    return Refused(
        f"{what} is compared under {names}, with relation='add/remove' and without a limit; {describe(unit)} is "
        "something else. Nothing was compared."
    )
