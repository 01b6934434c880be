"""What SQL shows of a release: computed columns, some rows, an order; with intervals that allow for the choice.

Rows that are shown *because* their noisy number is large have too large a number more often than others: the usual
interval misses. Which rule mends it is decided by what was asked, before anything is read. Proof:
docs/proofs/selection.md
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sfumato.core.columns import ResultColumn, Value
from sfumato.core.exact import Exact
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.answer_terms import (
    AllHold,
    AnswerCondition,
    AnswerTerm,
    Columns,
    ComparedTerms,
    Constant,
    OfColumn,
    RoundedTerm,
    atoms,
    ends_of,
    holds,
    names_in,
    values_of,
)
from sfumato.inference.derived import Derived, Label
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination
from sfumato.inference.truncated import ShownRange, truncated_ends
from sfumato.laws.margins import level_of

if TYPE_CHECKING:
    from sfumato.inference.population import Population

__all__ = ["Order", "ShownColumn", "TableView"]


NOTHING = LinearCombination(Fraction(0), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What rows are ordered by; missing values come last, unless ``missing_first``."""

    term: AnswerTerm
    descending: bool = False
    missing_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """The columns of a view by name, the condition that keeps rows, their order, and how many are shown.

    ``counts`` are columns of the release that cannot be below 0.
    """

    shown: tuple[tuple[str, AnswerTerm], ...]
    having: AnswerCondition | None = None
    order: tuple[Order, ...] = ()
    most: int | None = None
    skipped: int = 0
    counts: frozenset[str] = frozenset()

    def labels(self, release: Release) -> Mapping[str, Sequence[Label]]:
        """The keys of the rows that are shown."""
        return Applied(self, release).labels

    def columns(self, release: Release) -> Mapping[str, ResultColumn]:
        """The columns that are shown, as figures with intervals."""
        applied = Applied(self, release)
        return {name: ShownColumn(measure=name, term=term, applied=applied) for name, term in self.shown}

    def notes(self, release: Release) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """How many rows are shown of how many, and what the intervals allow for."""
        applied = Applied(self, release)
        shown, rows = len(applied.places), applied.rows
        found: list[tuple[str, Mapping[str, str]]] = []
        if shown < rows:
            found.append(("view.rows", {"shown": f"{shown:,}", "rows": f"{rows:,}"}))
        if self.selects:
            found.append(("view.selected", {}))
        return tuple(found)

    def check(self, labels: Mapping[str, Sequence[Label]], names: Sequence[str], rows: int) -> None:
        """Refuse what has no meaning, such as a number compared with a text, before anything is asked."""
        columns: Columns = {
            name: Figure(forms=(NOTHING,) * rows, labels={}, measure=name, sources=()) for name in names
        }
        if self.having is not None:
            holds(self.having, columns, labels, rows)
        for term in (*(term for _, term in self.shown), *(each.term for each in self.order)):
            values_of(term, columns, labels, rows)

    @property
    def selects(self) -> bool:
        """Whether noisy numbers decide which rows are shown: no public order or condition does."""
        return self._kept_by_numbers or self._cut_by_numbers

    @property
    def _kept_by_numbers(self) -> bool:
        return self.having is not None and bool(names_in(self.having))

    @property
    def _cut_by_numbers(self) -> bool:
        return (self.most is not None or self.skipped > 0) and any(names_in(each.term) for each in self.order)

    def level(self, confidence: Fraction, *, shown: int, rows: int, joint: bool) -> Fraction:
        """The confidence that each interval needs before rows are chosen."""
        doubt = 1 - confidence
        if not rows:
            return confidence
        if joint or self._kept_by_numbers:
            return 1 - doubt / rows
        if self._cut_by_numbers:
            return 1 - doubt * max(1, shown) / rows
        return confidence

    def kept_range(self) -> tuple[str, ShownRange] | None:
        """The one column whose own size alone decides which rows are shown, and what it must lie within."""
        if self.having is None or self._cut_by_numbers:
            return None
        about = names_in(self.having)
        parts = self.having.parts if isinstance(self.having, AllHold) else (self.having,)
        found = ShownRange()
        for part in parts:
            if not names_in(part):
                continue  # about keys, which are public
            narrowed = _narrowed(found, part)
            if narrowed is None:
                return None
            found = narrowed
        return (next(iter(about)), found) if len(about) == 1 else None


MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def _narrowed(known: ShownRange, part: AnswerCondition) -> ShownRange | None:
    """A range cut by one comparison of a column with a number; None where it is something else."""
    match part:
        case ComparedTerms(operator=operator, left=OfColumn(), right=Constant(value=value)):
            pass
        case ComparedTerms(operator=operator, left=Constant(value=value), right=OfColumn()):
            operator = MIRRORED[operator]
        case _:
            return None
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    match operator:
        case ">=" | ">":
            return known.above(Fraction(value), including=operator == ">=")
        case "<=" | "<":
            return known.below(Fraction(value), including=operator == "<=")
    return None


class Applied:
    """A view applied to one release: which rows are shown, in which order."""

    def __init__(self, view: TableView, release: Release) -> None:
        self.view, self.release = view, release
        self.all: Columns = release.statement.query.columns(release)
        self.known: Mapping[str, Sequence[Label]] = release.statement.query.labels()
        self.rows = len(next(iter(self.all.values())).values)

    @cached_property
    def places(self) -> list[int]:
        """The places of the rows that are shown, in their order."""
        view, places = self.view, list(range(self.rows))
        if view.having is not None:
            kept = holds(view.having, self.all, self.known, self.rows)
            places = [place for place in places if kept[place]]
        for each in reversed(view.order):
            values = values_of(each.term, self.all, self.known, self.rows)
            there = sorted(
                (place for place in places if values[place] is not None),
                key=lambda place, values=values: _sortable(values[place]),  # type: ignore[misc]  # bound now
                reverse=each.descending,
            )
            if each.descending:  # equal ones stay in the order that they had
                there = _stable(there, places, values)
            missing = [place for place in places if values[place] is None]
            places = [*missing, *there] if each.missing_first else [*there, *missing]
        end = None if view.most is None else view.skipped + view.most
        return places[view.skipped : end]

    @cached_property
    def labels(self) -> Mapping[str, tuple[Label, ...]]:
        """The keys of the rows that are shown."""
        return {name: tuple(column[place] for place in self.places) for name, column in self.known.items()}

    def values(self, term: AnswerTerm) -> tuple[Value, ...]:
        """The value of a term in each row that is shown."""
        found = values_of(term, self.all, self.known, self.rows)
        return tuple(float("nan") if found[place] is None else found[place] for place in self.places)

    def intervals(self, term: AnswerTerm, confidence: Fraction, *, joint: bool) -> list[tuple[Value, Value]]:
        """Low and high of a term in each row that is shown; what is missing has no ends."""
        view = self.view
        decided = view.kept_range()
        if decided is not None and not joint and _bare(term) == OfColumn(decided[0]):
            found = self._truncated(term, decided[0], decided[1], confidence)
            if found is not None:
                return found
        parts = atoms(term, self.all)
        level = view.level(confidence, shown=len(self.places), rows=self.rows, joint=joint)
        each = 1 - (1 - level) / max(1, len(parts))
        known = {atom: figure.interval(each, of="data") for atom, figure in parts.items()}
        ends = ends_of(term, known, self.known, self.rows)
        open_ends = (-float("inf"), float("inf"))
        return [ends[place] or open_ends for place in self.places]

    def population(self, term: AnswerTerm) -> "Callable[[], Population] | None":
        """What estimates the population in all rows, of a term that is a column, rounded or not; None for others."""
        bare = _bare(term)
        column = self.all[bare.name] if isinstance(bare, OfColumn) else None
        if not isinstance(column, Derived) or not column.estimates_population:
            return None
        return lambda: _RoundedOut(inner=column, term=term, applied=self)

    def _truncated(
        self, term: AnswerTerm, name: str, kept: ShownRange, confidence: Fraction
    ) -> list[tuple[Value, Value]] | None:
        figure = self.all[name]
        if not isinstance(figure, Figure):
            return None
        least = Fraction(0) if name in self.view.counts else None
        found = {place: truncated_ends(figure.forms[place], kept, confidence, least=least) for place in self.places}
        inner = [found.get(place) for place in range(self.rows)]
        ends = ends_of(term, {OfColumn(name): inner}, self.known, self.rows)
        return [ends[place] or (-float("inf"), float("inf")) for place in self.places]


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoundedOut:
    """The intervals of a population in the rows that are shown, rounded outward as the column is."""

    inner: Derived
    term: AnswerTerm
    applied: Applied

    @property
    def quality(self) -> str:
        return self.inner.quality or ""

    def at(self, places: Sequence[int]) -> "_RoundedOut":
        raise InvalidInput("rows of a view are picked by its query; nothing was computed.")

    def ends(self, level: float) -> list[tuple[Value, Value]]:
        applied = self.applied
        each = applied.view.level(Fraction(level), shown=len(applied.places), rows=applied.rows, joint=False)
        known = {_bare(self.term): self.inner.interval(each, of="population")}
        ends = ends_of(self.term, known, applied.known, applied.rows)
        return [ends[place] or (-float("inf"), float("inf")) for place in applied.places]


def _bare(term: AnswerTerm) -> AnswerTerm:
    """A term without what rounds it."""
    while isinstance(term, RoundedTerm):
        term = term.part
    return term


def _sortable(value: Value) -> tuple[int, Value]:
    """Texts byte by byte, numbers as numbers; values of one column have one type, or they are in this order."""
    match value:
        case bool() | int() | float() | Fraction():
            return 0, value
        case str():
            return 1, value.encode()
    return 2, value


def _stable(backwards: Sequence[int], before: Sequence[int], values: Sequence[Value]) -> list[int]:
    """A descending order in which equal values keep the order that they had before."""
    rank = {place: at for at, place in enumerate(before)}
    found: list[int] = []
    run: list[int] = []
    for place in backwards:
        if run and values[run[-1]] != values[place]:
            found += sorted(run, key=rank.__getitem__)
            run = []
        run.append(place)
    return [*found, *sorted(run, key=rank.__getitem__)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownColumn(Derived):
    """One column of a view, in the rows that are shown.

    Guarantee: on average over what noise can do, at most the stated share of the intervals *that are shown* miss; where
    a column's own size decides what is shown, that holds for each row by itself, given that it is shown.
    """

    measure: str
    term: AnswerTerm
    applied: "Applied"

    @property
    def measured(self) -> bool:  # type: ignore[override]  # of a class elsewhere
        """Whether all that it is computed from carries noise of a known law."""
        return all(self.applied.all[name].measured for name in names_in(self.term))

    @property
    def origin(self) -> str | None:
        """The column of the release that it is, rounded or not; None where it is computed."""
        bare = _bare(self.term)
        return bare.name if isinstance(bare, OfColumn) else None

    @property
    def labels(self) -> Mapping[str, tuple[Label, ...]]:
        """What each number is about."""
        return self.applied.labels

    @property
    def sources(self) -> tuple[Release, ...]:
        """The release that is shown."""
        return (self.applied.release,)

    @property
    def values(self) -> tuple[Value, ...]:
        """The numbers as they were computed."""
        return self.applied.values(self.term)

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "the noise distributions, and an allowance for the choice of rows"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[Value, Value]]:
        """Low and high for each number; with ``joint`` all of them hold at once with this confidence."""
        if not self.measured:
            raise InvalidInput(f"{self.measure!r} was chosen and not measured: it has no interval.")
        return self.applied.intervals(self.term, level_of(confidence), joint=joint)

    @property
    def estimates_population(self) -> bool:
        """Whether it is a column that does, rounded or not; what is computed from columns is about these data."""
        return self.applied.population(self.term) is not None

    def _population(self) -> "Population | None":
        found = self.applied.population(self.term)
        return None if found is None else found()
