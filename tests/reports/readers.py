"""Facts of every kind, for texts: what is released, of whom, under which relation, with and without a δ."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import sfumato as sf
from sfumato.accounting.charged import reading
from sfumato.core import units
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.query import Dataset
from sfumato.core.statement import Account
from sfumato.core.units import Unit
from sfumato.reports.words import Facts, Kind, Margins, Source, Span, Subject
from sfumato.reports.words.choices import Found, Top
from sfumato.reports.words.facts import Quantile
from sfumato.reports.words.streams import Course
from sfumato.tables.clamped import Clamped
from sfumato.tables.measure import Measure
from sfumato.tables.measures.association import Association
from sfumato.tables.measures.average import Average
from sfumato.tables.measures.person_count import PersonCount
from sfumato.tables.measures.proportion import Proportion
from sfumato.tables.measures.quotient import Quotient
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.measures.total import Total
from sfumato.tables.measures.variation import Variation

VISITS = Dataset(name="visits", edition="2026-10")
DELTA = Fraction(1, 10**6)
CHOICES = (Kind.FOUND, Kind.TOP)
STREAMS = (Kind.SERIES, Kind.ALARMS)
PROMISES = ("pure", "delta", "pure in an account with delta")
NAMES = {"visits", "patients", "region", "diagnosis", "ILI", "sbp", "age", "m"}  # what users named; no other Latin word
SBP = Clamped(value=sf.col("sbp").node, low=Fraction(80), high=Fraction(220))
AGE = Clamped(value=sf.col("age").node, low=Fraction(0), high=Fraction(221, 2))
MEDIAN = Quantile(name="m5", of=SBP, level=Fraction(1, 2))
MEASURES: tuple[Measure, ...] = (
    RowCount(name="m1"),
    RowCount(name="m2", condition=sf.col("age") >= 65),
    PersonCount(name="m3"),
    Total(name="m4", of=SBP),
    Average(name="m5", of=SBP),
    Variation(name="m6", of=SBP),
    Variation(name="m7", of=SBP, root=True),
    Proportion(name="m8", condition=sf.col("age") >= 65),
    Quotient(name="m9", over=SBP, under=AGE),
    Association(name="m10", first=SBP, second=AGE),
    Association(name="m11", first=SBP, second=AGE, scaled=True),
)


def units_of(relation: str) -> list[Unit]:
    return [
        units.record(relation=relation),
        units.user("id", relation=relation),
        units.family(3, "id", relation=relation),
        units.event(relation=relation),
        units.edge(relation=relation),
        units.node(max_degree=20, relation=relation),
        units.weight(bound=5, relation=relation),
        units.client(relation=relation),
    ]


def course(kind: Kind, unit: Unit | None, numbers: int) -> Course:
    """A stream of so many totals, or a watch with so many alarms."""
    level = "person" if isinstance(unit, units.User) else "event"
    said = {"level": level, "told": 12, "numbers": numbers, "lower": 0, "upper": 90, "each": 1, "times": 1}
    if kind is Kind.SERIES:
        return Course(**said, separation=1, horizon=48)  # type: ignore[arg-type]
    return Course(**said, separation=1, watched="step", threshold=40, most=12, slack=9)  # type: ignore[arg-type]


def facts(
    kind: Kind = Kind.TABLE,
    unit: Unit | None = None,
    promise: str = "pure",
    *,
    numbers: int = 12,
    epsilon: Fraction = Fraction(1, 2),
    spent: Fraction = Fraction(1, 2),
    total: Fraction = Fraction(2),
    margin: Fraction = Fraction(6),
    limited: bool = False,
    filtered: bool = False,
    repeated: bool = False,
    simulated: bool = False,
    ledger: str = "none (in memory)",
) -> Facts:
    own = DELTA if promise == "delta" else Fraction(0)
    used = Fraction(0) if promise == "pure" else DELTA
    count = {Kind.NUMBER: 1, Kind.MODEL: 0}.get(kind, numbers)
    return Facts(
        subject=Subject(
            kind=kind,
            dataset=VISITS,
            numbers=count,
            columns=("region",) if kind in (Kind.TABLE, Kind.CURVE, *CHOICES) else (),
            condition=(sf.col("diagnosis") == "ILI") if filtered else None,
            sources=tuple(Source(dataset=VISITS, identifier=mark * 16) for mark in "12")
            if kind is Kind.DERIVED
            else (),
            choice={Kind.FOUND: Found(enough=45, least=40, margin=6), Kind.TOP: Top(candidates=30, gap=17)}.get(kind),
            course=course(kind, unit, count) if kind in STREAMS else None,
        ),
        unit=units.user("id", relation="add/remove") if unit is None else unit,
        limit=sf.Limit(groups=2, rows_per_group=3) if limited else None,
        guarantee=Approximate(epsilon=epsilon, delta=own) if own else Pure(epsilon=epsilon),
        cost=sf.Budget.none() if kind is Kind.DERIVED else sf.Budget(epsilon=epsilon, delta=own),
        account=Account(
            name="patients",
            ledger=ledger,
            budget=sf.Budget(epsilon=total, delta=3 * used),
            spent=sf.Budget(epsilon=spent, delta=used),
            releases=2,
        ),
        margins=None if kind in (Kind.MODEL, *CHOICES) else Margins(each=margin, joint=margin + 3, simulated=simulated),
        spans=(Span(name="region", least=None, most=None, chosen=True),) if kind in CHOICES else (),
        repeated=repeated,
    )


def kept_by_a_filter(kind: Kind = Kind.TABLE, promise: str = "delta", order: int | None = None, **other: Any) -> Facts:
    """Facts of an account that adds up ρ, or with ``order`` Rényi losses there: a third of its cap is used."""
    made = facts(kind, promise=promise, **other)
    cap, at = Fraction(3, 100), None if order is None else Fraction(order)
    account = replace(
        made.account,
        budget=sf.Budget(epsilon=2, delta=DELTA),
        spent=reading(cap / 3, at, DELTA),
        method="zcdp" if order is None else "rdp",
        order=at,
        filter_cap=cap,
        filter_spent=cap / 3,
    )
    return replace(made, account=account, lost=None if kind is Kind.DERIVED else Fraction(1, 800))


def measured(
    measures: tuple[Measure | Quantile, ...] = MEASURES,
    unit: Unit | None = None,
    *,
    kind: Kind = Kind.TABLE,
    number: int | None = None,
    rest: bool = False,
    spans: tuple[Span, ...] | None = None,
    **other: Any,
) -> Facts:
    """Facts of columns that were computed: each with margins of its own, the last with none."""
    made = facts(kind, unit, **other)
    subject = replace(made.subject, measures=measures, number=number, rest=rest)
    told = tuple(
        Span(name=measure.name, least=Fraction(place, 7), most=Fraction(place, 3), open=place % 2)
        for place, measure in enumerate(measures, start=1)
    )
    lost = Span(name=measures[-1].name, least=None, most=None, open=3)
    return replace(made, subject=subject, margins=None, spans=spans if spans is not None else (*told[:-1], lost))


def every() -> Iterator[Facts]:
    """All kinds × relations × promises of persons and rows, all other units too, and the turns that a text can take."""
    for relation, promise in product(("add/remove", "replace"), PROMISES):
        record, user, *others = units_of(relation)
        for kind, unit in product(Kind, (record, user)):
            yield facts(kind, unit, promise)
        for unit in others:
            yield facts(Kind.NUMBER, unit, promise)
    yield facts(numbers=2, limited=True, filtered=True, repeated=True)
    yield facts(Kind.NUMBER, filtered=True, ledger="ledger.db")
    yield facts(Kind.MODEL, filtered=True, promise="delta")
    yield facts(Kind.DERIVED, numbers=1, simulated=True)
    yield facts(Kind.DERIVED, margin=Fraction(7, 3))
    yield facts(margin=Fraction(0), epsilon=Fraction(8), spent=Fraction(8), total=Fraction(8))
    yield facts(spent=Fraction(3, 2))
    for relation, promise in product(("add/remove", "replace"), PROMISES):
        yield measured(unit=units.user("id", relation=relation), promise=promise, limited=True, filtered=True)
        yield measured(MEASURES[:2], units.record(relation=relation), promise=promise)
    yield measured(MEASURES[3:5], number=1000, kind=Kind.NUMBERS, numbers=2)
    yield measured(MEASURES[3:5], units.record(relation="replace"), number=1000, kind=Kind.NUMBERS, numbers=2)
    yield measured(MEASURES[4:5], rest=True, spans=(Span(name="m5", least=None, most=None, open=12),))
    yield measured(MEASURES[4:5], spans=(Span(name="m5", least=None, most=None, known=False),))
    chosen = tuple(
        Span(name=name, least=None, most=None, chosen=True, rank=rank) for name, rank in (("m5", 9), ("m6", None))
    )
    yield measured((MEDIAN, replace(MEDIAN, name="m6", level=Fraction(1, 40))), limited=True, spans=chosen)
    yield facts(Kind.FOUND, numbers=0, limited=True, filtered=True, promise="delta")
    unsaid = facts(Kind.FOUND, limited=True, filtered=True, promise="delta")
    yield replace(unsaid, subject=replace(unsaid.subject, choice=Found(enough=23)))
    yield facts(Kind.TOP, limited=True, filtered=True)
    yield facts(epsilon=Fraction(40), spent=Fraction(40), total=Fraction(100), promise="delta")
    for order, kind in product((None, 20), (Kind.TABLE, Kind.NUMBER, Kind.DERIVED)):
        yield kept_by_a_filter(kind, order=order)
    yield kept_by_a_filter(promise=PROMISES[2], repeated=True)
