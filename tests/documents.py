"""Documents of every kind, made at random from the types of their fields: a new kind needs no code here."""

import dataclasses
import types
import typing
from enum import Enum
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from sfumato.core.documents import UNWRITTEN
from sfumato.core.query import Dataset
from sfumato.core.release import interval_names
from sfumato.core.statement import Statement
from sfumato.engines.expressions import Expression, Named, Value
from sfumato.engines.expressions.literals import Date, Time
from sfumato.engines.person_values import ADDED, CONDITIONS, NEEDS_VALUE, ORDERED, Fold, PersonValue
from sfumato.errors import SfumatoError
from sfumato.graphs.block_models import canonical
from sfumato.graphs.queries.blocks import BlockEdges, cells_of
from sfumato.graphs.queries.partition_choice import PartitionChoice
from sfumato.graphs.shape import Shape
from sfumato.mechanisms import ChosenCap, Ladder, Ladders, LimitSearch, NoisyLocalSensitivity
from sfumato.mechanisms.matrix import Matrix
from sfumato.reports.declarations import DECLARATIONS
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import Keys
from sfumato.tables.measures.batch_mean import BatchMean
from sfumato.tables.provenance import FIELDS, provenance_of
from sfumato.tables.queries.gram import GramMatrix
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.magnitudes import Magnitudes
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.spline_counts import SplineCounts
from sfumato.tables.queries.top import TopGroups
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from tests.boxes import documents as boxes
from tests.federated import documents as federated
from tests.learning import documents as learning
from tests.streams import documents as streams

CLASSES: dict[str, type] = DECLARATIONS._classes


@cache
def strategy(hint: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values of a type: what a field of a document may hold."""
    if isinstance(hint, types.UnionType):
        options = [option for option in typing.get_args(hint) if _reachable(option, depth)]
        return st.one_of([strategy(option, depth) for option in options])
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)
        if inner == (Keys, Ellipsis):
            return st.lists(strategy(Keys, depth), max_size=3, unique_by=lambda keys: keys.column).map(tuple)
        if inner[-1] is Ellipsis:
            return st.lists(strategy(inner[0], depth), max_size=3).map(tuple)
        return st.tuples(*(strategy(one, depth) for one in inner))
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if hint is types.NoneType:
        return st.none()
    if hint is Fraction:
        return st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**6) | st.just(
            Fraction(1, 2)
        )
    if hint is int:
        return st.integers(1, 6) | st.integers(1, 6) | st.integers(1, 6) | st.integers(-(2**63), 2**63)
    if hint is bool:
        return st.booleans()
    if hint is str:
        return st.sampled_from(["visits", "2026-10", "北部", "a b", "ü", "x" * 40])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    classes = [cls for cls in CLASSES.values() if _fits(cls, hint) and cls is not Statement]
    return st.sampled_from(sorted(classes, key=lambda cls: cls.KIND)).flatmap(lambda cls: built(cls, depth - 1))


def _fits(cls: type, hint: Any) -> bool:
    if getattr(hint, "_is_protocol", False):
        asked = {*vars(hint), *vars(hint).get("__annotations__", {})}
        return all(hasattr(cls, name) for name in asked if not name.startswith("_"))
    return isinstance(hint, type) and issubclass(cls, hint)


def _reachable(option: Any, depth: int) -> bool:
    """At the bottom only what holds no further document of its own sort is built."""
    if depth > 0 or not (isinstance(option, type) and dataclasses.is_dataclass(option)):
        return True
    return not any(
        isinstance(hint, types.UnionType) and any(dataclasses.is_dataclass(one) for one in typing.get_args(hint))
        for hint in typing.get_type_hints(option).values()
    )


COLUMNS = st.sampled_from(["region", "北部", "a b", "ü", "labs.place"])
TEXTS = st.lists(st.sampled_from(["F", "M", "é", "e\u0301", "", "it's", "区"]), min_size=1, max_size=4, unique=True)
WHOLES = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4, unique=True)
TRUTHS = st.sampled_from([[True], [False], [False, True]])
DAYS = st.lists(st.dates().map(lambda day: Date(day.isoformat())), min_size=1, max_size=3, unique=True)


@st.composite
def keys(draw: st.DrawFn) -> Keys:
    """A list of values of one type, each once; of texts perhaps with a rest, and perhaps computed."""
    values = draw(TEXTS | WHOLES | TRUTHS | DAYS)
    other = draw(st.none() | st.just("all the rest")) if isinstance(values[0], str) else None
    value = draw(st.none() | strategy(Value, 0))
    return Keys(column=draw(COLUMNS), values=tuple(values), value=value, other=other)


@st.composite
def top(draw: st.DrawFn) -> TopGroups:
    """No more choices than there are groups."""
    by = draw(st.lists(keys(), min_size=1, max_size=2, unique_by=lambda it: it.column).map(tuple))
    cells = prod(it.size for it in by)
    rest = {name: draw(strategy(hint, 1)) for name, hint in typing.get_type_hints(TopGroups).items() if name in MORE}
    return TopGroups(by=by, choices=draw(st.integers(1, cells)), **rest)


@st.composite
def marginals(draw: st.DrawFn) -> Marginals:
    """Tables of different columns."""
    several = st.lists(keys(), min_size=1, max_size=2, unique_by=lambda it: it.column).map(tuple)
    tables = draw(st.lists(several, min_size=1, max_size=3, unique_by=lambda by: tuple(it.column for it in by)))
    rest = {name: draw(strategy(hint, 1)) for name, hint in typing.get_type_hints(Marginals).items() if name in MORE}
    return Marginals(tables=tuple(tables), **rest)


@st.composite
def gram(draw: st.DrawFn) -> GramMatrix:
    """An outcome, a number, and factors of two levels or more, each of them a term."""
    names = draw(st.lists(COLUMNS, min_size=2, max_size=4, unique=True))
    ranges = (Fraction(0), Fraction(draw(st.integers(1, 9))))
    held = [Clamped(value=Named(column=name), low=ranges[0], high=ranges[1]) for name in names[:2]]
    levels = (TEXTS | WHOLES | TRUTHS).filter(lambda values: len(values) > 1)
    factors = tuple(Keys(column=name, values=tuple(draw(levels))) for name in names[2:])
    rest = {name: draw(strategy(hint, 1)) for name, hint in typing.get_type_hints(GramMatrix).items() if name in MORE}
    terms = ((), *((name,) for name in names[1:]))
    return GramMatrix(outcome=held[0], numbers=(held[1],), factors=factors, terms=terms, **rest)


@st.composite
def spline_counts(draw: st.DrawFn) -> SplineCounts:
    """One or two numbers, an outcome or none, and groups, all of different columns."""
    names = draw(st.lists(COLUMNS, min_size=2, max_size=4, unique=True).filter(lambda it: not TAKEN & set(it)))
    high = Fraction(draw(st.integers(1, 9)))
    held = [Clamped(value=Named(column=name), low=Fraction(0), high=high) for name in names[:2]]
    by = tuple(Keys(column=name, values=tuple(draw(TEXTS | WHOLES | TRUTHS))) for name in names[2:])
    rest = {name: draw(strategy(hint, 1)) for name, hint in typing.get_type_hints(SplineCounts).items() if name in MORE}
    numbers, outcome = draw(st.sampled_from([(held, None), (held[:1], held[1]), ([], held[0])]))
    return SplineCounts(numbers=tuple(numbers), outcome=outcome, pieces=draw(st.integers(1, 5)), by=by, **rest)


@st.composite
def weighted_marginals(draw: st.DrawFn) -> WeightedMarginals:
    """One to three columns, some with missing values, and different tables of them with weights."""
    names = draw(st.lists(COLUMNS, min_size=1, max_size=3, unique=True).filter(lambda it: not COUNTED & set(it)))
    by = tuple(Keys(column=name, values=tuple(draw(TEXTS | WHOLES | TRUTHS))) for name in names)
    places = st.sets(st.integers(0, len(names) - 1), min_size=1).map(lambda some: tuple(sorted(some)))
    tables = draw(st.lists(places, min_size=1, max_size=3, unique=True))
    hints = typing.get_type_hints(WeightedMarginals)
    return WeightedMarginals(
        by=by,
        tables=tuple(tables),
        weights=tuple(draw(st.integers(1, 500)) for _ in tables),
        missing=tuple(draw(st.sets(st.sampled_from(names)))),
        **{name: draw(strategy(hint, 1)) for name, hint in hints.items() if name in MORE},
    )


@st.composite
def block_edges(draw: st.DrawFn) -> BlockEdges:
    """A block for each node, and questions about all pairs of blocks, measured one by one."""
    member = canonical(draw(st.lists(st.integers(0, 2), min_size=1, max_size=5)))
    directed = draw(st.booleans())
    cells = len(cells_of(max(member) + 1, directed=directed))
    row = st.lists(st.integers(0, 3), min_size=cells, max_size=cells).map(tuple)
    questions = tuple(draw(st.lists(row, min_size=1, max_size=3)))
    return BlockEdges(
        dataset=draw(strategy(Dataset, 1)),
        shape=Shape(nodes=len(member), directed=directed),
        member=member,
        questions=questions,
        asked=tuple(f"part {place}" for place in range(len(questions))),
        strategy=tuple(tuple(2 * int(i == j) for i in range(cells)) for j in range(cells)),
        bits=draw(st.integers(0, 8)),
    )


@st.composite
def partition_choice(draw: st.DrawFn) -> PartitionChoice:
    """Candidates for the same nodes, with names or without."""
    nodes = draw(st.integers(2, 5))
    blocks = st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes).map(canonical)
    partitions = draw(st.lists(blocks, min_size=1, max_size=3))
    return PartitionChoice(
        dataset=draw(strategy(Dataset, 1)),
        shape=Shape(nodes=nodes, directed=draw(st.booleans())),
        eta=draw(st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(49, 100), max_denominator=10**6)),
        most=max(max(partition) for partition in partitions) + 1,
        partitions=tuple(partitions),
        titles=tuple(f"part {place}" for place in range(len(partitions))) if draw(st.booleans()) else (),
    )


@st.composite
def chosen_cap(draw: st.DrawFn) -> ChosenCap:
    """Caps that rise, each with its move."""
    caps, times = sorted(draw(st.sets(st.integers(1, 1000), min_size=1, max_size=4))), draw(st.integers(1, 3))
    return ChosenCap(
        caps=tuple(caps),
        choice=draw(EPSILONS),
        epsilon=draw(EPSILONS),
        spread=draw(st.integers(1, 2)),
        doubling=draw(st.integers(0, 9)),
        moves=tuple(times * cap for cap in caps),
        numbers=draw(st.integers(1, 6)),
    )


@st.composite
def layered_count(draw: st.DrawFn) -> LayeredCount:
    """Rows above a limit."""
    rest = {name: draw(strategy(hint, 1)) for name, hint in typing.get_type_hints(LayeredCount).items() if name in MORE}
    within, share = draw(st.integers(1, 50)), Fraction(draw(st.integers(1, 9)), 10)
    by = draw(st.lists(keys(), max_size=2, unique_by=lambda it: it.column).map(tuple))
    return LayeredCount(within=within, uncut_to=within + draw(st.integers(1, 90)), share=share, by=by, **rest)


@st.composite
def magnitudes(draw: st.DrawFn) -> Magnitudes:
    """A value on both sides of 0."""
    rest = {name: draw(strategy(hint, 1)) for name, hint in typing.get_type_hints(Magnitudes).items() if name in MORE}
    high = draw(EPSILONS)
    of = Clamped(value=draw(strategy(Value, 0)), low=-high, high=high)
    return Magnitudes(of=of, octaves=draw(st.integers(1, 26)), **rest)


@st.composite
def batch_mean(draw: st.DrawFn) -> BatchMean:
    """Fields of provenance, one of which is compared."""
    fields = draw(st.sets(st.sampled_from(FIELDS), min_size=1))
    declared = provenance_of({field: draw(strategy(str, 0)) for field in fields})
    field, _ = draw(st.sampled_from(declared))
    return BatchMean(name=draw(strategy(str, 0)), of=draw(strategy(Clamped, 1)), field=field, declared=declared)


@st.composite
def limit_search(draw: st.DrawFn) -> LimitSearch:
    """Candidates that rise, in one list or two."""
    several = st.sets(st.integers(1, 1000), min_size=1, max_size=4).map(lambda some: tuple(sorted(some)))
    candidates = draw(st.lists(several, min_size=1, max_size=2))
    spend = [draw(EPSILONS) for _ in candidates]
    return LimitSearch.calibrated(candidates=candidates, epsilon=draw(EPSILONS), spend=spend)


EPSILONS = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**6)
NODES = st.integers(4, 12) | st.integers(4, 10**6)
LEAVES = st.none() | st.integers(2, 3)
ladders = st.builds(
    Ladder,
    nodes=NODES,
    leaves=LEAVES,
    edges=st.integers(1, 2),
    epsilon=EPSILONS,
    guide=st.just(Fraction(0)) | EPSILONS,
)

MORE = ("dataset", "where", "joins")
TAKEN = {"rows", *interval_names("rows")}
COUNTED = {"count", *interval_names("count")}


# What is hardly ever met by chance: a text that is a day, values of one type, a strategy whose rows have one length.
@st.composite
def person_value(draw: st.DrawFn) -> PersonValue:
    """A value of a person: what it needs and what it may not have follow from its fold."""
    fold = draw(st.sampled_from(list(Fold)))
    low, high = sorted(draw(st.lists(st.integers(-99, 99).map(Fraction), min_size=2, max_size=2, unique=True)))
    condition = draw(strategy(Expression, 1)) if fold in CONDITIONS or draw(st.booleans()) else None
    return PersonValue(
        name=draw(st.sampled_from(["first stay", "a", "患者"])),
        fold=fold,
        value=draw(strategy(Value, 1)) if fold in NEEDS_VALUE else None,
        where=condition,
        by=draw(strategy(Value, 1)) if fold in ORDERED else None,
        low=low if fold in ADDED else None,
        high=high if fold in ADDED else None,
        place=draw(st.none() | st.integers(2, 9)) if fold in ORDERED else None,
    )


RARE: dict[str, st.SearchStrategy[Any]] = {
    "person_value": person_value(),
    "keys": keys(),
    "query.top": top(),
    "query.gram": gram(),
    "query.spline_counts": spline_counts(),
    "query.marginals": marginals(),
    "query.weighted_marginals": weighted_marginals(),
    "query.layered_count": layered_count(),
    "query.magnitudes": magnitudes(),
    "measure.batch_mean": batch_mean(),
    "mechanism.limit_search": limit_search(),
    "graph.shape": st.builds(Shape, nodes=NODES | st.integers(1, 3), directed=st.booleans())
    | st.builds(Shape, nodes=st.none(), directed=st.booleans(), listed=st.booleans()),
    "query.block_edges": block_edges(),
    "query.partition_choice": partition_choice(),
    "mechanism.chosen_cap": chosen_cap(),
    "mechanism.ladder": ladders,
    "mechanism.ladders": st.lists(ladders, min_size=1, max_size=3).map(lambda parts: Ladders(parts=tuple(parts))),
    "mechanism.noisy_scale": st.builds(
        NoisyLocalSensitivity,
        nodes=NODES,
        leaves=LEAVES,
        epsilon=EPSILONS,
        guide=EPSILONS,
        delta=st.fractions(min_value=Fraction(1, 10**9), max_value=1, max_denominator=10**9),
    ),
    **streams.RARE,
    **learning.RARE,
    **federated.RARE,
    **boxes.RARE,
    "literal.time": st.datetimes().map(lambda moment: Time(moment.isoformat())),
    "literal.date": st.dates().map(lambda day: Date(day.isoformat())),
    "mechanism.matrix": st.builds(
        lambda size, bits, noise: Matrix.square_root(size, bits=bits).measure(sigma_squared=noise).declaration,
        st.integers(1, 4),
        st.integers(0, 8),
        st.fractions(min_value=Fraction(1, 10), max_value=100, max_denominator=100),
    ),
}


@cache
def built(cls: type, depth: int = 2) -> st.SearchStrategy[Any]:
    """Instances of a document class; what the class refuses is left out."""
    if cls.KIND in RARE:
        return RARE[cls.KIND]
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls) if UNWRITTEN not in field.metadata]

    @st.composite
    def make(draw: st.DrawFn) -> Any:
        values = {name: draw(strategy(hints[name], depth)) for name in names}
        try:
            return cls(**values)
        except (SfumatoError, ValueError, TypeError):
            assume(False)

    return make()
