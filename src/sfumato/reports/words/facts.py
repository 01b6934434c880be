"""The public facts that explanations are made of: one small record for a number, a table, a curve, a model.

Whatever comes later and can fill in :class:`Facts` is explained to every reader in every language, with no new code.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.accounting.charged import charged
from sfumato.core.budget import Budget
from sfumato.core.exact import natural, non_negative
from sfumato.core.guarantees import Approximate, Guarantee, Pure
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Account, Statement
from sfumato.core.units import Unit
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs import GRAPH_QUERIES
from sfumato.graphs.node_level.by_chosen_cap import ByChosenCap
from sfumato.graphs.query import GraphQuery
from sfumato.learning import EXAMPLE_QUERIES
from sfumato.learning.training import Training
from sfumato.mechanisms import NoisyThreshold, OptimalSelection, TopChoice
from sfumato.reports.columns import CONFIDENCE, Column, columns_of, shared_margins, widest_at_once
from sfumato.reports.words.choices import Found, Top
from sfumato.reports.words.learning import ACCURACIES, Lesson, lesson_of
from sfumato.reports.words.networks import asked, bound_of, cap_of, corners_of, flow_of, leaves_of, pointing_of
from sfumato.reports.words.streams import Course, course_of
from sfumato.streams.alarms import Alarms
from sfumato.streams.total import RunningTotal
from sfumato.tables.clamped import Clamped
from sfumato.tables.measure import Measure
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.found_keys import FoundKeys
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.top import TopGroups

__all__ = ["CONFIDENCE", "Facts", "Kind", "Margins", "Quantile", "Source", "Span", "Subject", "guarantee_of"]


class Kind(Enum):
    """What was released."""

    NUMBER = "number"
    NUMBERS = "numbers"
    TABLE = "table"
    CURVE = "curve"
    MODEL = "model"
    DERIVED = "derived"
    FOUND = "found"
    TOP = "top"
    SERIES = "series"
    ALARMS = "alarms"


MAY_BE_EMPTY = (Kind.MODEL, Kind.FOUND, Kind.SERIES, Kind.ALARMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A release that a derived figure was computed from."""

    dataset: Dataset
    identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A quantile of a value: the share ``level`` of the rows that have one lies below it."""

    name: str
    of: Clamped
    level: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the release is about.

    ``numbers`` counts them (the points of a curve, the values found, the groups named; 0 for a model), ``measure`` is
    the name of a message that says what they are, ``columns`` are what a table is grouped by or a curve runs along,
    ``sources`` are for derived figures. Where columns were computed from the numbers, ``measures`` are what they are,
    and ``number`` is the public number of units, if each of them counts exactly once. ``rest`` says that rows of no
    listed group have a group of their own. ``choice`` bounds what was chosen, where values were found or groups named.
    Of a network: ``cap`` is how many links of each node count, ``corners`` in how many triangles a node does,
    ``flow`` which part of all rank a link passes on, ``leaves`` are those of a star, ``bound`` is the largest weight
    that counts, ``pointing`` says that only links ``out`` of a node or ``in`` to it count, and ``listed`` that a public
    list names the nodes. Of a stream, ``course`` is what it told and what one unit may do in it; of a trained
    model, ``lesson`` is on whom and how.
    """

    kind: Kind
    dataset: Dataset
    numbers: int
    measure: str = "count"
    columns: tuple[str, ...] = ()
    condition: Expression | None = None
    sources: tuple[Source, ...] = ()
    measures: tuple[Measure | Quantile, ...] = ()
    number: int | None = None
    rest: bool = False
    choice: Found | Top | None = None
    cap: int | None = None
    corners: int | None = None
    flow: Fraction | None = None
    leaves: int | None = None
    bound: Fraction | None = None
    pointing: str | None = None
    listed: bool = False
    course: Course | None = None
    lesson: Lesson | None = None

    @property
    def counts(self) -> bool:
        """Whether all numbers count rows or persons."""
        if self.course is not None:
            return False
        return self.measure == "count" and all(
            isinstance(measure, Measure) and measure.counts for measure in self.measures
        )

    def __post_init__(self) -> None:
        natural(self.numbers, "numbers", least=0 if self.kind in MAY_BE_EMPTY else 1)
        if self.kind is Kind.NUMBER and self.numbers != 1:
            raise InvalidInput(f"one number was announced and {self.numbers} were counted; no text was made.")
        if self.kind in (Kind.TABLE, Kind.CURVE, Kind.FOUND, Kind.TOP) and not self.columns:
            raise InvalidInput(f"a {self.kind.value} needs the columns that it goes by; no text was made.")
        bound = {Kind.FOUND: Found, Kind.TOP: Top}.get(self.kind, type(None))
        if not isinstance(self.choice, bound):
            raise InvalidInput("found values and largest groups need their own bound, and nothing else has one.")
        if self.kind is Kind.DERIVED and not self.sources:
            raise InvalidInput("a derived figure needs the releases that it was computed from; no text was made.")
        if (self.course is not None) is not (self.kind in (Kind.SERIES, Kind.ALARMS)):
            raise InvalidInput("a stream needs its own facts, and nothing else has them; no text was made.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Within ±``each`` a given number lies with 95% confidence, within ±``joint`` all of them at once."""

    each: Fraction
    joint: Fraction
    simulated: bool = False

    def __post_init__(self) -> None:
        for name in ("each", "joint"):
            object.__setattr__(self, name, non_negative(getattr(self, name), name))
        if self.joint < self.each:
            raise InvalidInput("all numbers at once cannot lie closer than one of them; no text was made.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How exact one column is whose numbers err differently: from ±``least`` to ±``most``, each number by itself.

    For ``open`` numbers the noise leaves every possible value open. Where ``known`` is False, nothing could be worked
    out; without margins all of them are open, and where none is open the column is empty. What was ``chosen`` and not
    measured has no margin; with 95% confidence it is at most ``rank`` rows from its place, where that means anything.
    """

    name: str
    least: Fraction | None
    most: Fraction | None
    open: int = 0
    known: bool = True
    chosen: bool = False
    rank: int | None = None

    @classmethod
    def of(cls, column: Column) -> "Span":
        """The span of a column."""
        told = column.told
        return cls(
            name=column.name,
            least=min(told, default=None),
            most=max(told, default=None),
            open=column.open,
            known=column.ends is not None or column.chosen,
            chosen=column.chosen,
            rank=column.rank,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that an explanation may say.

    Public: every field. ``guarantee`` is what this release promises by itself (for a derived figure, what its sources
    promise together), ``account`` how its account stood right after it, ``cost`` what a fresh one costs. ``margins`` is
    None for a model, and where numbers err differently: then ``spans`` says how exact each column is.
    ``cut_differently`` says that the sources of a derived figure have different limits. ``lost`` is what a fresh one
    counts against the filter of the account, where it has one. ``vouched`` names the datasets of which the steward says
    that each row depends on one unit only.
    """

    subject: Subject
    unit: Unit
    limit: Limit | None
    guarantee: Pure | Approximate
    cost: Budget
    account: Account
    margins: Margins | None
    spans: tuple[Span, ...] = ()
    repeated: bool = False
    cut_differently: bool = False
    lost: Fraction | None = None
    vouched: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Pure | Approximate):
            raise Unsupported(f"there is no text for a {self.guarantee.KIND}; convert it to (ε, δ) first.")
        if (self.margins is None) is not (self.subject.kind is Kind.MODEL or bool(self.spans)):
            raise InvalidInput("margins are stated for all but models, and for these not; no text was made.")

    @property
    def cumulative(self) -> Pure | Approximate:
        """What all releases of the account promise together."""
        return guarantee_of(self.account.spent)

    @classmethod
    def of(cls, release: Release) -> "Facts":
        """Read the facts off a release of a table."""
        said = only_release(release).statement
        query = said.query
        if isinstance(query, RunningTotal | Alarms):
            return cls._streamed(release, said)
        if isinstance(query, Training):
            return cls._trained(release, said)
        match query:
            case FoundKeys() | TopGroups():
                subject = _chosen(query, said)
            case Count() | Aggregate() | Quantiles() | Marginals():
                subject = _counted(query, said)
            case _ if type(query) in ACCURACIES:
                subject = _accuracies(said)
            case _ if type(query) in EXAMPLE_QUERIES:
                subject = _examined(said)
            case _ if type(query) in GRAPH_QUERIES:
                subject = _network(query, said)  # type: ignore[arg-type]
            case _:
                raise Unsupported(f"there is no text yet for a {query.KIND}; nothing was made.")
        margins = shared_margins(release)
        return cls(
            subject=subject,
            unit=said.unit,
            limit=said.limit,
            guarantee=_known(said.guarantee),
            cost=said.spend,
            account=said.account,
            margins=None if margins is None else Margins(each=margins[0], joint=margins[1]),
            spans=() if margins is not None else _spans(release),
            repeated=release.repeated,
            lost=_lost(said),
            vouched=tuple(dataset.name for dataset in said.derived),
        )

    @classmethod
    def _trained(cls, release: Release, said: Statement) -> "Facts":
        """The facts of a training run."""
        lesson = lesson_of(said)
        return cls(
            subject=Subject(kind=Kind.MODEL, dataset=said.dataset, numbers=0, lesson=lesson),
            unit=said.unit,
            limit=said.limit,
            guarantee=_known(said.guarantee),
            cost=said.spend,
            account=said.account,
            margins=None,
            repeated=release.repeated,
            lost=_lost(said),
        )

    @classmethod
    def _streamed(cls, release: Release, said: Statement) -> "Facts":
        """The facts of a stream."""
        margins, spans, joint = _stream_margins(release)
        course = course_of(said, joint=joint)
        return cls(
            subject=Subject(
                kind=Kind.ALARMS if course.watch else Kind.SERIES,
                dataset=said.dataset,
                numbers=course.numbers,
                course=course,
            ),
            unit=said.unit,
            limit=said.limit,
            guarantee=_known(said.guarantee),
            cost=said.spend,
            account=said.account,
            margins=margins,
            spans=spans,
            repeated=release.repeated,
            lost=_lost(said),
        )

    @classmethod
    def derived(cls, releases: Sequence[Release], *, numbers: int, margins: Margins) -> "Facts":
        """The facts of figures that were computed from releases of one account, at no further cost.

        Guarantee: post-processing; the account's own promise, as it stood after the last of the releases, covers them.
        """
        said = [only_release(release).statement for release in releases]
        if not said or len({(each.account.name, each.unit, each.account.ledger) for each in said}) > 1:
            raise Unsupported(
                "figures that are computed from releases of several accounts have no promise in common; no text was "
                "made. Explain the releases one by one."
            )
        last = max(said, key=lambda each: each.account.releases)
        if not _paid({each.identifier: each for each in said}.values(), last.account):
            raise Unsupported(
                "the releases cost more together than their account had spent: they are of several accounts of one "
                "name, which have no promise in common. No text was made. Explain the releases one by one."
            )
        return cls(
            subject=Subject(
                kind=Kind.DERIVED,
                dataset=last.dataset,
                numbers=numbers,
                sources=tuple(Source(dataset=each.dataset, identifier=each.identifier) for each in said),
            ),
            unit=last.unit,
            limit=last.limit if len({each.limit for each in said}) == 1 else None,
            cut_differently=len({each.limit for each in said}) > 1,
            guarantee=guarantee_of(last.account.spent),
            cost=Budget.none(),
            account=last.account,
            margins=margins,
            vouched=tuple(dict.fromkeys(dataset.name for each in said for dataset in each.derived)),
        )


def _stream_margins(release: Release) -> tuple[Margins | None, tuple[Span, ...], Fraction | None]:
    """The margins of a stream; totals are worked out with NumPy, and words must come without it."""
    try:
        shared, joint = shared_margins(release), widest_at_once(release)
    except ImportError:
        return None, (Span(name="total", least=None, most=None, known=False),), None
    if shared is not None:
        return Margins(each=shared[0], joint=shared[1]), (), joint
    return None, _spans(release), joint


def guarantee_of(spent: Budget) -> Pure | Approximate:
    """What an amount that was spent promises.

    >>> guarantee_of(Budget(epsilon=1))
    Pure(epsilon=Fraction(1, 1))
    """
    if spent.delta == 0:
        return Pure(epsilon=spent.epsilon)
    return Approximate(epsilon=spent.epsilon, delta=spent.delta)


def _lost(said: Statement) -> Fraction | None:
    """What a release counts against the filter of its account; None where sums of ε and δ decide."""
    return None if said.account.method == "basic" else charged(said.event, said.account.order)


def _paid(said: Iterable[Statement], account: Account) -> bool:
    """Whether what releases cost together was spent by an account: by its filter, where it has one."""
    if account.filter_spent is None:
        return account.spent.covers(sum((each.spend for each in said), start=Budget.none()))
    return sum((charged(each.event, account.order) for each in said), Fraction(0)) <= account.filter_spent


def _spans(release: Release) -> tuple[Span, ...]:
    """How exact each column is; a cap that was chosen is no figure, and is told beside them."""
    chosen = isinstance(release.statement.query, ByChosenCap)
    return tuple(Span.of(column) for column in columns_of(release) if not (chosen and column.name == "cap"))


def _counted(query: Count | Aggregate | Quantiles | Marginals, said: Statement) -> Subject:
    measures = _measures(query)
    by = query.tables[0] if isinstance(query, Marginals) else query.by
    numbers = query.cells * len(measures) if isinstance(query, Aggregate | Quantiles) else len(said.values)
    return Subject(
        kind=Kind.TABLE if by else Kind.NUMBER if numbers == 1 else Kind.NUMBERS,
        dataset=said.dataset,
        numbers=numbers,
        columns=_columns(query),
        condition=query.where,
        measures=measures,
        number=query.number if isinstance(query, Aggregate) else None,
        rest=bool(by) and all(keys.other is not None for keys in by) and not isinstance(query, Marginals),
    )


def _accuracies(said: Statement) -> Subject:
    """How often models are right on held-out units."""
    if not said.values:
        raise Unsupported("no model was looked at, so that there is nothing to explain; no text was made.")
    return Subject(
        kind=Kind.CURVE,
        dataset=said.dataset,
        numbers=len(said.values),
        measure="accuracy",
        columns=tuple(said.query.labels()),
        number=said.query.number,  # type: ignore[attr-defined]
    )


def _examined(said: Statement) -> Subject:
    """What is told of declared examples; each query has its own words, by its kind."""
    labels = said.query.labels()
    return Subject(
        kind=Kind.TABLE if labels else Kind.NUMBER,
        dataset=said.dataset,
        numbers=len(next(iter(labels.values()), ("one",))),
        measure=said.query.KIND.removeprefix("query."),
        columns=tuple(labels),
        rest=True,
    )


def _network(query: GraphQuery, said: Statement) -> Subject:
    """What is told of a graph; each query has its own words, by its kind."""
    labels = query.labels()
    columns, numbers = tuple(labels), len(said.values)
    if query.measure is None and columns:
        numbers = len(next(iter(labels.values()))) or numbers  # what is shown may be computed from fewer numbers
    if query.measure is None and not columns:
        numbers = len(query.names)  # what is shown: other numbers stand behind it
    return Subject(
        kind=Kind.TABLE if columns else Kind.NUMBER if numbers == 1 else Kind.NUMBERS,
        dataset=said.dataset,
        numbers=numbers,
        measure=asked(query),
        columns=columns,
        rest=True,
        cap=cap_of(said),
        corners=corners_of(said),
        flow=flow_of(query),
        leaves=leaves_of(query),
        bound=bound_of(query),
        pointing=pointing_of(query),
        listed=query.shape.nodes is not None,
    )


def _chosen(query: FoundKeys | TopGroups, said: Statement) -> Subject:
    """Found values and largest groups; a mechanism that does not belong to them is refused."""
    choice: Found | Top
    match query, said.mechanism:
        case FoundKeys(), NoisyThreshold() | OptimalSelection():
            choice = Found.by(said.mechanism)
        case TopGroups(), TopChoice():
            choice = Top.by(said.mechanism, query.cells)
        case _:
            raise Unsupported(f"there is no text for a {query.KIND} by a {said.mechanism.KIND}; nothing was made.")
    found = isinstance(query, FoundKeys)
    return Subject(
        kind=Kind.FOUND if found else Kind.TOP,
        dataset=said.dataset,
        numbers=len(said.found) if found else len(said.values),
        columns=query.over if isinstance(query, FoundKeys) else query.names,
        condition=query.where,
        rest=isinstance(query, TopGroups) and all(keys.other is not None for keys in query.by),
        choice=choice,
    )


def _measures(query: Count | Aggregate | Quantiles | Marginals) -> tuple[Measure | Quantile, ...]:
    match query:
        case Aggregate():
            return query.measures
        case Quantiles():
            pairs = zip(query.names, query.levels, strict=True)
            return tuple(Quantile(name=name, of=query.of, level=level) for name, level in pairs)
    return ()


def _columns(query: Count | Aggregate | Quantiles | Marginals) -> tuple[str, ...]:
    """What the table is grouped by; of several tables, each list of columns."""
    if isinstance(query, Marginals):
        return (", ".join(dict.fromkeys(query.labels()["marginal"])),)
    return tuple(keys.column for keys in query.by)


def _known(guarantee: Guarantee) -> Pure | Approximate:
    if isinstance(guarantee, Pure | Approximate):
        return guarantee
    raise Unsupported(f"there is no text for a {guarantee.KIND}; convert it to (ε, δ) first.")
