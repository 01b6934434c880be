"""Facts of every kind, for texts: what is released, of whom, under which relation, with and without a δ."""

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import sfumato as sf
from sfumato.accounting.filter_cost import reading
from sfumato.core import units
from sfumato.core.description import Description, Form, OneLine
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Account
from sfumato.core.units import Unit
from sfumato.mechanisms import NoisyThreshold, OptimalSelection, SparseVector, TopChoice
from sfumato.reports.words import Facts, Margins, Span
from sfumato.reports.words.facts import sources
from sfumato.streams.describe import alarms, running_total
from sfumato.tables import describe
from sfumato.tables.clamped import Clamped
from sfumato.tables.conditions import condition as words_of
from sfumato.tables.describe import Quantile
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Measure
from sfumato.tables.measures.association import Association
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.person_count import PersonCount
from sfumato.tables.measures.proportion import Proportion
from sfumato.tables.measures.quotient import Quotient
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.measures.total import Total
from sfumato.tables.measures.variation import Variation

VISITS = Dataset(name="visits", edition="2026-10")
DELTA = Fraction(1, 10**6)
CHOICES = (Form.FOUND, Form.TOP)
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
    MeanValue(name="m5", of=SBP),
    Variation(name="m6", of=SBP),
    Variation(name="m7", of=SBP, root=True),
    Proportion(name="m8", condition=sf.col("age") >= 65),
    Quotient(name="m9", over=SBP, under=AGE),
    Association(name="m10", first=SBP, second=AGE),
    Association(name="m11", first=SBP, second=AGE, scaled=True),
)


def out_of_thousand(chinese: str) -> str:
    """A Chinese text with its beliefs as English has them: so many in 1,000, and no percentages."""
    return re.sub(r"(?<=[是至由则] )(\d+)(?:\.(\d))?%", lambda found: f"{int(found[1] + (found[2] or '0')):,}", chinese)


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


def statement(unit: Unit, count: int, *, mechanism: Any = None, limited: bool = False, found: bool = False) -> Any:
    """As much of a statement as descriptions are read off."""
    return SimpleNamespace(
        unit=unit,
        limit=sf.Limit(groups=2, rows_per_group=3) if limited else None,
        values=() if found else tuple(range(count)),
        found=tuple((f"town {place}",) for place in range(count)) if found else (),
        mechanism=mechanism,
        sensitivity=Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1),
        query=SimpleNamespace(KIND="query.test", names=("region",), labels=dict, cells=12, row_height=1),
    )


STEPS = SimpleNamespace(told=12, lower=0, upper=90, each=1, times=1, separation=1)
REGION = Keys(column="region", values=tuple(f"r{place}" for place in range(30)))


def description(form: Form, unit: Unit, count: int, *, limited: bool = False, filtered: bool = False) -> Description:
    """What each form of release says of itself."""
    where = (sf.col("diagnosis") == "ILI") if filtered else None
    told: dict[str, Any] = {"form": form, "numbers": count, "asked": "what was asked"}
    condition: dict[str, Any] = {} if where is None else {"condition": OneLine(words_of(where))}
    match form:
        case Form.FOUND:
            mechanism = NoisyThreshold(keys=1, most=1, scale=2, threshold=40)  # type: ignore[arg-type]
            said = statement(unit, count, mechanism=mechanism, limited=limited, found=True)
            return describe.partition_selection(said, ("region",), where=where)
        case Form.TOP:
            choice = TopChoice(choices=count, scale=2, monotone=True)  # type: ignore[arg-type]
            return describe.top_groups(statement(unit, count, mechanism=choice), (REGION,), cells=30, where=where)
        case Form.SERIES:
            return running_total(STEPS, statement(unit, count), horizon=48, groups=(), kept=True)
        case Form.ALARMS:
            noise = SparseVector.calibrated(sensitivity=1, alarms=12, epsilon=8)
            said = statement(unit, 2 * count, mechanism=noise)
            return alarms(STEPS, said, watched="step", drift=0, threshold=40, most=12)
        case Form.DERIVED:
            return Description(**told, figures={"sources": sources([(VISITS, mark * 16) for mark in "12"])})
        case Form.MODEL:
            what = {"what": (("what.model_where",),)} if filtered else {}
            return Description(**told, figures=condition, paragraphs=what)
    columns = ("region",) if form in (Form.TABLE, Form.CURVE) else ()
    uncounted = {"uncounted": (("limit.keys",),)} if form is Form.TABLE else {}
    measure = "measure.count_where" if filtered else "measure.count"
    return Description(**told, columns=columns, measure=measure, figures=condition, paragraphs=uncounted)


def facts(
    kind: Form = Form.TABLE,
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
    protected = units.user("id", relation="add/remove") if unit is None else unit
    count = {Form.NUMBER: 1, Form.MODEL: 0}.get(kind, numbers)
    return Facts(
        description=description(kind, protected, count, limited=limited, filtered=filtered),
        dataset=VISITS,
        unit=protected,
        limit=sf.Limit(groups=2, rows_per_group=3) if limited else None,
        guarantee=Approximate(epsilon=epsilon, delta=own) if own else Pure(epsilon=epsilon),
        cost=sf.Budget.none() if kind is Form.DERIVED else sf.Budget(epsilon=epsilon, delta=own),
        account=Account(
            name="patients",
            ledger=ledger,
            budget=sf.Budget(epsilon=total, delta=3 * used),
            spent=sf.Budget(epsilon=spent, delta=used),
            releases=2,
        ),
        margins=None if kind in (Form.MODEL, *CHOICES) else Margins(each=margin, joint=margin + 3, simulated=simulated),
        spans=(Span(name="region", least=None, most=None, chosen=True),) if kind in CHOICES else (),
        repeated=repeated,
    )


def kept_by_a_filter(kind: Form = Form.TABLE, promise: str = "delta", order: int | None = None, **other: Any) -> Facts:
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
    return replace(made, account=account, lost=None if kind is Form.DERIVED else Fraction(1, 800))


def measured(
    measures: tuple[Measure | Quantile, ...] = MEASURES,
    unit: Unit | None = None,
    *,
    kind: Form = Form.TABLE,
    number: int | None = None,
    rest: bool = False,
    spans: tuple[Span, ...] | None = None,
    **other: Any,
) -> Facts:
    """Facts of columns that were computed: each with margins of its own, the last with none."""
    made = facts(kind, unit, **other)
    by = (replace(REGION, other="else" if rest else None),) if kind is Form.TABLE else ()
    where = (sf.col("diagnosis") == "ILI") if other.get("filtered") else None
    said = statement(made.unit, 1, limited=made.limit is not None)
    if isinstance(measures[0], Quantile):
        own = describe.quantiles(said, measures, by=by, where=where)  # type: ignore[arg-type]
    else:
        binned = {"kept": False, "kept_beside": False}
        own = describe.aggregate(said, measures, by=by, where=where, number=number, **binned)  # type: ignore[arg-type]
    own = replace(own, form=kind, numbers=made.description.numbers)
    told = tuple(
        Span(name=measure.name, least=Fraction(place, 7), most=Fraction(place, 3), open=place % 2)
        for place, measure in enumerate(measures, start=1)
    )
    lost = Span(name=measures[-1].name, least=None, most=None, open=3)
    return replace(made, description=own, margins=None, spans=spans if spans is not None else (*told[:-1], lost))


def every() -> Iterator[Facts]:
    """All kinds × relations × promises of persons and rows, all other units too, and the turns that a text can take."""
    for relation, promise in product(("add/remove", "replace"), PROMISES):
        record, user, *others = units_of(relation)
        for kind, unit in product(Form, (record, user)):
            yield facts(kind, unit, promise)
        for unit in others:
            yield facts(Form.NUMBER, unit, promise)
    yield facts(numbers=2, limited=True, filtered=True, repeated=True)
    yield facts(Form.NUMBER, filtered=True, ledger="ledger.db")
    yield facts(Form.MODEL, filtered=True, promise="delta")
    yield facts(Form.DERIVED, numbers=1, simulated=True)
    yield facts(Form.DERIVED, margin=Fraction(7, 3))
    yield facts(margin=Fraction(0), epsilon=Fraction(8), spent=Fraction(8), total=Fraction(8))
    yield facts(spent=Fraction(3, 2))
    for relation, promise in product(("add/remove", "replace"), PROMISES):
        yield measured(unit=units.user("id", relation=relation), promise=promise, limited=True, filtered=True)
        yield measured(MEASURES[:2], units.record(relation=relation), promise=promise)
    yield measured(MEASURES[3:5], number=1000, kind=Form.NUMBERS, numbers=2)
    yield measured(MEASURES[3:5], units.record(relation="replace"), number=1000, kind=Form.NUMBERS, numbers=2)
    yield measured(MEASURES[4:5], rest=True, spans=(Span(name="m5", least=None, most=None, open=12),))
    yield measured(MEASURES[4:5], spans=(Span(name="m5", least=None, most=None, known=False),))
    chosen = tuple(
        Span(name=name, least=None, most=None, chosen=True, rank=rank) for name, rank in (("m5", 9), ("m6", None))
    )
    yield measured((MEDIAN, replace(MEDIAN, name="m6", level=Fraction(1, 40))), limited=True, spans=chosen)
    yield facts(Form.FOUND, numbers=0, limited=True, filtered=True, promise="delta")
    unsaid = facts(Form.FOUND, limited=True, filtered=True, promise="delta")
    rule = OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-6)
    said = statement(unsaid.unit, 12, mechanism=rule, limited=True, found=True)
    yield replace(
        unsaid, description=describe.partition_selection(said, ("region",), where=sf.col("diagnosis") == "ILI")
    )
    yield facts(Form.TOP, limited=True, filtered=True)
    yield facts(epsilon=Fraction(40), spent=Fraction(40), total=Fraction(100), promise="delta")
    for order, kind in product((None, 20), (Form.TABLE, Form.NUMBER, Form.DERIVED)):
        yield kept_by_a_filter(kind, order=order)
    yield kept_by_a_filter(promise=PROMISES[2], repeated=True)
