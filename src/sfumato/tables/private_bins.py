"""Bins whose edges are chosen privately: quantiles first, for a public part of ε, and tables of the bins for the rest.

Every charge is an ordinary question with a certificate of its own, and the charges add up to the ε that was asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Protocol

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, positive, probability
from sfumato.core.question import Intended, Question
from sfumato.core.release import Release
from sfumato.engines.expressions import col
from sfumato.errors import BudgetExceeded, InvalidInput, Refused, SfumatoError
from sfumato.synthesis.columns import BinnedColumn
from sfumato.synthesis.plan import MeasurementPlan
from sfumato.synthesis.preview import SynthesisPreview
from sfumato.synthesis.result import SyntheticTable
from sfumato.tables.hierarchies import Hierarchies
from sfumato.tables.keys import KeyValue
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.synthesized import Synthesis, synthesis_of

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["PrivatelyBinned", "QuantileBins", "binned_synthesis"]

FOR_BINS = Fraction(1, 10)
"""The part of ε that choosing the bins of all columns together gets, unless they say otherwise."""
MOST_CHOSEN = 64
MOST_FOR_BINS = Fraction(1, 2)
STEPS = 1_000
"""Edges of real numbers are rounded to a power of ten so that the range has at least this many steps."""

Edges = Sequence[Exact | date]


@dataclass(frozen=True, slots=True)
class QuantileBins:
    """A number of bins with about as many rows in each: their edges are quantiles, which are asked for first.

    ``share`` is the part of ε that this column's edges get; without it, all columns with such bins share a tenth of ε.

    Guarantee: the quantiles are a question of their own, charged and certified; with the tables they cost the ε that
    was asked for. Assumes: bounds of the column are declared. Proof: docs/proofs/synthesis.md

    >>> import pyarrow as pa, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    >>> stays = pa.table({"sex": ["F", "M"] * 500, "stay": [1, 1, 2, 30] * 250})
    >>> table = vault.table(stays, name="stays", version="1", keys={"sex": ["F", "M"]}, bounds={"stay": (1, 90)})
    >>> made = table.synthesize(epsilon=5, rows=400, bins={"stay": sf.QuantileBins(4)})
    >>> len(made.bins), vault.spent == sf.Budget(epsilon=5)
    (1, True)
    """

    number: int
    share: Exact | None = None

    def __post_init__(self) -> None:
        if isinstance(self.number, bool) or not isinstance(self.number, int) or not 2 <= self.number <= MOST_CHOSEN:
            raise InvalidInput(f"QuantileBins takes a number of bins from 2 to {MOST_CHOSEN}; nothing was done.")
        if self.share is not None:
            object.__setattr__(self, "share", probability(self.share, "share"))

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The quantiles that the inner edges are."""
        return tuple(Fraction(place, self.number) for place in range(1, self.number))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivatelyBinned(Synthesis):
    """A synthesis some of whose bins are chosen by private quantiles first; till then they are of one width.

    Guarantee: :meth:`release` charges one question for each such column and one for the tables; by basic composition,
    which holds though the tables depend on the edges, they cost exactly the ε and at most the δ that were asked for.
    """

    chosen: tuple[tuple[str, Fraction, Question], ...] = ()
    """Column, its part of ε, and the question for its quantiles."""
    with_edges: Callable[[Mapping[str, Edges]], Synthesis]

    def left(self, epsilon: Exact) -> Fraction:
        """What the tables get of an ε."""
        return positive(epsilon, "epsilon") * (1 - sum(share for _, share, _ in self.chosen))

    def plan(self, *, epsilon: Exact, delta: Exact = 0) -> MeasurementPlan:
        """Which tables would be measured if no two edges were the same, by public facts alone."""
        return Synthesis.plan(self, epsilon=self.left(epsilon), delta=delta)

    def preview(self, *, epsilon: Exact, delta: Exact = 0) -> SynthesisPreview:
        """As :meth:`plan`; the noise is that of the tables, for what is left of ε."""
        found = Synthesis.preview(replace(self, chosen=()), epsilon=self.left(epsilon), delta=delta)
        return replace(found, spend=Budget.asked(epsilon=epsilon, delta=delta))

    def question(self, *, epsilon: Exact, delta: Exact = 0) -> Question:
        """Refused: which tables are asked for is known when the edges are."""
        raise InvalidInput(
            "the tables depend on bins that are chosen first, so this is several questions; nothing was done. "
            "plan(…) says what is measured, questions(…) what the edges cost, and release(…) asks all of them."
        )

    def questions(self, *, epsilon: Exact) -> dict[str, tuple[Question, Fraction]]:
        """The questions for edges by column, each with its ε; their previews say how exact the ranks are."""
        whole = positive(epsilon, "epsilon")
        return {name: (question, share * whole) for name, share, question in self.chosen}

    def release(
        self,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        fresh: bool = False,
        idempotency: str | None = None,
        reads: tuple[str, str] | None = None,
    ) -> SyntheticTable:
        """Charge and choose the edges, then charge and measure the tables; parameters as for a question."""
        self._check_fits(epsilon, delta, fresh=fresh, idempotency=idempotency, reads=reads)
        found: dict[str, Release] = {}
        by_name = {column.name: column for column in self.columns}
        try:
            for name, (question, amount) in self.questions(epsilon=epsilon).items():
                key = _key_of(idempotency, name)
                found[name] = question.release(epsilon=amount, fresh=fresh, idempotency=key, reads=reads)
            edges = {name: edges_of(by_name[name], release) for name, release in found.items()}
            made = self.with_edges(edges).release(
                epsilon=self.left(epsilon), delta=delta, fresh=fresh, idempotency=idempotency, reads=reads
            )
        except SfumatoError as wrong:
            if found:
                paid = sum((each.charged for each in found.values()), start=Budget.none())
                wrong.add_note(
                    f"What is said of spending is about the last question alone. Edges of {', '.join(found)} were "
                    f"chosen before it, for {paid}; they are stored, and asked again without fresh=True cost nothing."
                )
            raise
        return replace(made, bins=tuple(found.values()))

    def _check_fits(
        self,
        epsilon: Exact,
        delta: Exact,
        *,
        fresh: bool,
        idempotency: str | None,
        reads: tuple[str, str] | None,
    ) -> None:
        """Refuse where all charges together do not fit, or the tables would be refused, before the first is made.

        The tables are those of bins of one width, whose charge is that of the bins to come. Where no edges cost
        anything any more, the charge of the tables is the only one.
        """
        tables = self._asked(Synthesis.plan(self, epsilon=self.left(epsilon), delta=delta))
        edges = [
            Intended(
                query=question.query,
                spend=Budget.asked(epsilon=amount),
                fresh=fresh,
                idempotency=_key_of(idempotency, name),
            )
            for name, (question, amount) in self.questions(epsilon=epsilon).items()
        ]
        rest = Intended(
            query=tables.query,
            spend=Budget.asked(epsilon=self.left(epsilon), delta=delta),
            fresh=fresh,
            idempotency=idempotency,
            known=False,
        )
        gate = tables._gate
        try:
            if gate.check_fits(edges, reads=reads).epsilon:
                gate.check_fits([*edges, rest], reads=reads)
        except BudgetExceeded as wrong:
            wrong.add_note(
                "Choosing bins and measuring tables were asked for together. Edges that were paid for already are "
                "free: ask for the same quantiles(…) again and give their values as bins={column: [edges]}."
            )
            raise


def _key_of(idempotency: str | None, name: str) -> str | None:
    """The key of the charge for one column's edges."""
    return None if idempotency is None else f"{idempotency} bins {name}"


def binned_synthesis(
    table: "Table",
    columns: Sequence[str] | None,
    *,
    rows: int | None,
    bins: Mapping[str, int | Edges | QuantileBins],
    missing: Sequence[str],
    workload: Sequence[Sequence[str]] | Mapping[tuple[str, ...], Exact],
    never: Sequence[Mapping[str, KeyValue | Sequence[KeyValue | None] | None]],
    at_least: Sequence[tuple[str, str]],
    hierarchies: Hierarchies | None,
    expected_rows: int | None = None,
    consistent_with: Sequence[Release] = (),
) -> Synthesis:
    """The synthesis of a table, whose bins are known or are chosen first."""

    def made(known: Mapping[str, int | Edges]) -> Synthesis:
        return synthesis_of(
            table,
            columns,
            rows=rows,
            bins=known,
            missing=missing,
            workload=workload,
            never=never,
            at_least=at_least,
            hierarchies=hierarchies,
            expected_rows=expected_rows,
            consistent_with=consistent_with,
        )

    given: object = bins
    if not isinstance(given, Mapping):
        return made(bins)  # type: ignore[arg-type]  # which refuses it in words
    if not any(isinstance(each, QuantileBins) for each in bins.values()):
        return made({name: each for name, each in bins.items() if not isinstance(each, QuantileBins)})
    return _privately_binned(table, bins, made)


def _privately_binned(
    table: "Table",
    bins: Mapping[str, int | Edges | QuantileBins],
    made: Callable[[Mapping[str, int | Edges]], Synthesis],
) -> PrivatelyBinned:
    """The synthesis of a table some of whose bins are chosen first; ``made`` is one of bins that are known."""
    wanted = {name: each for name, each in bins.items() if isinstance(each, QuantileBins)}
    known = {name: each for name, each in bins.items() if not isinstance(each, QuantileBins)}
    plain = made({**known, **{name: each.number for name, each in wanted.items()}})
    if _account(table).budget.rho is not None:
        raise Refused(
            "the account is kept in ρ, in which several charges do not add up to one ε; nothing was done and nothing "
            "was spent. Ask for quantiles(…) first and give their values as bins={column: [edges]}."
        )
    columns = {column.name: column for column in plain.columns}
    for name in wanted:
        column = columns.get(name)
        if not isinstance(column, BinnedColumn):
            raise InvalidInput(
                f"QuantileBins are for columns with declared bounds, and {name!r} has keys; nothing was done."
            )
        if column.whole and column.edges[-1] - column.edges[0] < 2:
            raise InvalidInput(
                f"{name!r} has two values at most, and no edges to choose; nothing was done. Declare keys."
            )
    unsaid = [name for name, each in wanted.items() if each.share is None]
    shares = {
        name: FOR_BINS / len(unsaid) if each.share is None else Fraction(each.share) for name, each in wanted.items()
    }
    if sum(shares.values()) > MOST_FOR_BINS:
        raise InvalidInput("the shares of QuantileBins come to more than half of ε; nothing was done. Lower them.")
    chosen = tuple((name, shares[name], _quantiles(table, columns[name], each)) for name, each in wanted.items())
    fields = {name: getattr(plain, name) for name in plain.__dataclass_fields__}

    def with_edges(edges: Mapping[str, Edges]) -> Synthesis:
        return made({**known, **edges})

    return PrivatelyBinned(**fields, chosen=chosen, with_edges=with_edges)


def edges_of(column: "BinnedColumn | object", release: Release) -> list[Exact | date]:
    """The inner edges that a release of quantiles stands for; at least one, whatever the quantiles are.

    The numbers of a release are public, and so is all that is made of them.
    """
    query = release.statement.query
    assert isinstance(column, BinnedColumn)  # noqa: S101 - checked when it was declared
    assert isinstance(query, Quantiles)  # noqa: S101 - what was asked
    low, high = column.edges[0], column.edges[-1]
    lattice = query.lattice
    step = (lattice.high - lattice.low) / lattice.steps
    start = low if column.days else Fraction(0)
    raw = [start + lattice.low + step * place for place in release.statement.values]
    if column.whole:  # a bin holds its lower edge: the value at the quantile is the last one below it
        inner = {Fraction(floor(value) + 1) for value in raw}
    else:
        inner = {rounded(value, high - low) for value in raw}
    kept = sorted(edge for edge in inner if low < edge < high)
    if not kept:
        middle = (low + high) / 2
        kept = [Fraction(floor(middle)) if column.whole else middle]
    return [date.fromordinal(int(edge)) if column.days else edge for edge in kept]


def rounded(value: Fraction, width: Fraction) -> Fraction:
    """A value to a power of ten that is at most a thousandth of a width, and a hundredth of the value itself.

    >>> rounded(Fraction(123456, 10_000), Fraction(90)), rounded(Fraction(5144, 10), Fraction(10**6))
    (Fraction(247, 20), Fraction(514, 1))
    """
    least = min(width / STEPS, abs(value) / 100) if value else width / STEPS
    step = Fraction(1)
    while step > least:
        step /= 10
    while step * 10 <= least:
        step *= 10
    return Fraction(round(value / step)) * step


def _quantiles(table: "Table", column: object, bins: QuantileBins) -> Question:
    assert isinstance(column, BinnedColumn)  # noqa: S101 - as was just asked
    if column.days:
        first = date.fromordinal(int(column.edges[0]))
        return table.quantiles(col(column.name).days_since(first), bins.levels)
    return table.quantiles(column.name, bins.levels)


class _Account(Protocol):
    """What an account says of itself."""

    @property
    def budget(self) -> Budget: ...


def _account(table: "Table") -> _Account:
    """The account that the table's questions are charged to: of the vault, or of its gate under another limit."""
    gate = table._gate
    notary = getattr(gate, "notary", None)
    found: _Account = gate if notary is None else notary.ledger  # type: ignore[assignment]  # a vault says both
    return found
