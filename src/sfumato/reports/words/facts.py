"""The public facts that explanations are made of: one small record for a number, a table, a curve, a model.

Whatever comes later and can fill in :class:`Facts` is explained to every reader in every language, with no new code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.exact import natural, non_negative
from sfumato.core.guarantees import Approximate, Guarantee, Pure
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Account
from sfumato.core.units import Unit
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.queries.count import Count

__all__ = ["CONFIDENCE", "Facts", "Kind", "Margins", "Source", "Subject", "guarantee_of"]

CONFIDENCE = Fraction(19, 20)


class Kind(Enum):
    """What was released."""

    NUMBER = "number"
    NUMBERS = "numbers"
    TABLE = "table"
    CURVE = "curve"
    MODEL = "model"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A release that a derived figure was computed from."""

    dataset: Dataset
    identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the release is about.

    ``numbers`` counts them (the points of a curve; 0 for a model), ``measure`` is the name of a message that says what
    they are, ``columns`` are what a table is grouped by or a curve runs along, ``sources`` are for derived figures.
    """

    kind: Kind
    dataset: Dataset
    numbers: int
    measure: str = "count"
    columns: tuple[str, ...] = ()
    condition: Expression | None = None
    sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        natural(self.numbers, "numbers", least=0 if self.kind is Kind.MODEL else 1)
        if self.kind is Kind.NUMBER and self.numbers != 1:
            raise InvalidInput(f"one number was announced and {self.numbers} were counted; no text was made.")
        if self.kind in (Kind.TABLE, Kind.CURVE) and not self.columns:
            raise InvalidInput(f"a {self.kind.value} needs the columns that it goes by; no text was made.")
        if self.kind is Kind.DERIVED and not self.sources:
            raise InvalidInput("a derived figure needs the releases that it was computed from; no text was made.")


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
class Facts:
    """Everything that an explanation may say.

    Public: every field. ``guarantee`` is what this release promises by itself (for a derived figure, what its sources
    promise together), ``account`` how its account stood right after it, ``cost`` what a fresh one costs. ``margins`` is
    None for a model alone. ``cut_differently`` says that the sources of a derived figure have different limits.
    """

    subject: Subject
    unit: Unit
    limit: Limit | None
    guarantee: Pure | Approximate
    cost: Budget
    account: Account
    margins: Margins | None
    repeated: bool = False
    cut_differently: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Pure | Approximate):
            raise Unsupported(f"there is no text for a {self.guarantee.KIND}; convert it to (ε, δ) first.")
        if (self.margins is None) is not (self.subject.kind is Kind.MODEL):
            raise InvalidInput("margins are stated for all but models, and for these not; no text was made.")

    @property
    def cumulative(self) -> Pure | Approximate:
        """What all releases of the account promise together."""
        return guarantee_of(self.account.spent)

    @classmethod
    def of(cls, release: Release) -> "Facts":
        """Read the facts off a release of counts."""
        said = only_release(release).statement
        if not isinstance(said.query, Count):
            raise Unsupported(f"there is no text yet for a {said.query.KIND}; nothing was made.")
        numbers = len(said.values)
        kind = Kind.TABLE if said.query.by else Kind.NUMBER if numbers == 1 else Kind.NUMBERS
        return cls(
            subject=Subject(
                kind=kind,
                dataset=said.dataset,
                numbers=numbers,
                columns=tuple(keys.column for keys in said.query.by),
                condition=said.query.where,
            ),
            unit=said.unit,
            limit=said.limit,
            guarantee=_known(said.guarantee),
            cost=said.spend,
            account=said.account,
            margins=Margins(
                each=Fraction(said.law.margin(CONFIDENCE)),
                joint=Fraction(said.law.margin(CONFIDENCE, numbers=numbers)),
            ),
            repeated=release.repeated,
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
        spent = sum({each.identifier: each.spend for each in said}.values(), start=Budget.none())
        if not last.account.spent.covers(spent):
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
        )


def guarantee_of(spent: Budget) -> Pure | Approximate:
    """What an amount that was spent promises.

    >>> guarantee_of(Budget(epsilon=1))
    Pure(epsilon=Fraction(1, 1))
    """
    if spent.delta == 0:
        return Pure(epsilon=spent.epsilon)
    return Approximate(epsilon=spent.epsilon, delta=spent.delta)


def _known(guarantee: Guarantee) -> Pure | Approximate:
    if isinstance(guarantee, Pure | Approximate):
        return guarantee
    raise Unsupported(f"there is no text for a {guarantee.KIND}; convert it to (ε, δ) first.")
