"""The public facts that explanations are made of: a description and what belongs to every release.

Whatever can describe its answer (:class:`sfumato.core.description.Description`) is explained to every reader in every
language, with no new code here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.accounting.filter_cost import filter_cost
from sfumato.core.budget import Budget
from sfumato.core.cut import cut_of
from sfumato.core.description import Counted, Description, Form, Joined, Listed, OneLine, Word, phrase
from sfumato.core.exact import non_negative
from sfumato.core.guarantees import Approximate, Guarantee, Pure
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.release import Release, only_release
from sfumato.core.rounding import rounded
from sfumato.core.statement import Account, Statement
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports.columns import CONFIDENCE, AnswerColumn, columns_of, described, shared_margins, widest_at_once
from sfumato.reports.words.rendering import one_line

if TYPE_CHECKING:
    from sfumato.inference.derived import Derived

__all__ = ["CONFIDENCE", "Facts", "Margins", "Sampled", "Span", "guarantee_of", "named", "sources"]

MOST_SOURCES = 3


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
    def of(cls, column: AnswerColumn) -> "Span":
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
class Sampled:
    """A column that estimates a population: the interval of its one number as texts, and how far it can be relied on.

    ``ends`` is None where there are several numbers, which the table has, and where the interval is open.
    """

    name: str
    ends: tuple[str, str] | None
    quality: str

    @classmethod
    def of(cls, column: AnswerColumn) -> "Sampled":
        """The interval of a column of a release."""
        ends = column.interval(0) if len(column.values) == 1 else None
        return cls(name=column.name, ends=ends, quality=column.quality or "")

    @classmethod
    def of_figure(cls, figure: "Derived") -> "Sampled":
        """The interval of a column by itself."""
        texts = None
        if len(figure.values) == 1:
            (ends,) = figure.interval(CONFIDENCE, of="population")
            texts = rounded(figure.values[0], *ends)
        return cls(name=figure.measure, ends=None if texts is None else texts[1:], quality=figure.quality or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that an explanation may say.

    Public: every field. ``guarantee`` is that of this release by itself (for a derived figure, that of its sources
    together), ``account`` how its account stood right after it, ``cost`` what a fresh one costs. ``margins`` is
    None for a model, and where numbers err differently: then ``spans`` says how exact each column is, and ``joint``
    within what all numbers lie at once, where a release says so. ``cut_differently`` says that the sources of a derived
    figure have different limits. ``lost`` is what a fresh one counts against the filter of the account, where it has
    one. ``vouched`` names the datasets of which the steward says that each row depends on one unit only. ``cut`` says
    what of one person counts, ``cuts`` whether a limit can cut something off. ``sampled`` are the columns that estimate
    a population.
    """

    description: Description
    dataset: Dataset
    unit: Unit
    limit: Limit | None
    guarantee: Pure | Approximate
    cost: Budget
    account: Account
    margins: Margins | None
    spans: tuple[Span, ...] = ()
    joint: Fraction | None = None
    repeated: bool = False
    cut_differently: bool = False
    lost: Fraction | None = None
    vouched: tuple[str, ...] = ()
    cut: Word | None = None
    cuts: bool = False
    sampled: tuple[Sampled, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Pure | Approximate):
            raise Unsupported(f"there is no text for a {self.guarantee.KIND}; convert it to (ε, δ) first.")
        if (self.margins is None) is not (self.description.form is Form.MODEL or bool(self.spans)):
            raise InvalidInput("margins are stated for all but models, and for these not; no text was made.")

    @property
    def cumulative(self) -> Pure | Approximate:
        """The guarantee of all releases of the account together."""
        return guarantee_of(self.account.spent)

    @classmethod
    def of(cls, release: Release) -> "Facts":
        """Read the facts off a release."""
        said = only_release(release).statement
        description = described(said)
        margins, spans, joint = _margins(release, description)
        return cls(
            description=description,
            dataset=said.dataset,
            unit=said.unit,
            limit=said.limit,
            guarantee=_known(said.guarantee),
            cost=said.spend,
            account=said.account,
            margins=margins,
            spans=spans,
            joint=joint,
            repeated=release.repeated,
            lost=_lost(said),
            cut=cut_of(said.query, said.unit, said.limit).words,
            cuts=release.limit_cuts(),
            vouched=tuple(dataset.name for dataset in said.derived),
            sampled=tuple(Sampled.of(column) for column in columns_of(release) if column.sampled),
        )

    @classmethod
    def derived(
        cls, releases: Sequence[Release], *, numbers: int, margins: Margins, sampled: tuple[Sampled, ...] = ()
    ) -> "Facts":
        """The facts of figures that were computed from releases of one account, at no further cost.

        Guarantee: post-processing; the guarantee of the account, as it stood after the last release, covers them.
        """
        said = [only_release(release).statement for release in releases]
        if not said or len({(each.account.name, each.unit, each.account.ledger) for each in said}) > 1:
            raise Unsupported(
                "figures that are computed from releases of several accounts have no guarantee in common; no text was "
                "made. Explain the releases one by one."
            )
        last = max(said, key=lambda each: each.account.releases)
        if not _paid({each.identifier: each for each in said}.values(), last.account):
            raise Unsupported(
                "the releases cost more together than their account had spent: they are of several accounts of one "
                "name, which have no guarantee in common. No text was made. Explain the releases one by one."
            )
        return cls(
            description=Description(
                form=Form.DERIVED,
                numbers=numbers,
                asked=phrase("page.numbers"),
                figures={"sources": sources([(each.dataset, each.identifier) for each in said])},
            ),
            dataset=last.dataset,
            unit=last.unit,
            limit=last.limit if len({each.limit for each in said}) == 1 else None,
            cut_differently=len({each.limit for each in said}) > 1,
            guarantee=guarantee_of(last.account.spent),
            cost=Budget.none(),
            account=last.account,
            margins=margins,
            vouched=tuple(dict.fromkeys(dataset.name for each in said for dataset in each.derived)),
            cut=_cut(said),
            cuts=any(release.limit_cuts() for release in releases),
            sampled=sampled,
        )


def sources(releases: Sequence[tuple[Dataset, str]]) -> Word:
    """The releases that a figure was computed from, in words: by dataset and identifier, or how many they are."""
    if len(releases) > MOST_SOURCES:
        return Counted("release", len(releases))
    return Listed(
        tuple(
            phrase("data.release", mark=one_line(identifier)[:8], data=named(dataset))
            for dataset, identifier in releases
        )
    )


def named(dataset: Dataset) -> Word:
    """A dataset in words, with its version."""
    return phrase("data.named", dataset=OneLine(dataset.name), edition=OneLine(dataset.edition))


def _margins(release: Release, description: Description) -> tuple[Margins | None, tuple[Span, ...], Fraction | None]:
    """The margins of all numbers, or the span of each column; some need NumPy, and words must come without it."""
    if description.form is Form.MODEL:
        return None, (), None
    try:
        shared = shared_margins(release)
        joint = widest_at_once(release) if description.at("joint") else None
    except ImportError:
        untold = (Span(name=name, least=None, most=None, known=False) for name in release.statement.query.names)
        return None, tuple(untold), None
    if shared is not None:
        return Margins(each=shared[0], joint=shared[1]), (), joint
    told = (column for column in columns_of(release) if column.name not in description.aside)
    return None, tuple(Span.of(column) for column in told), joint


def guarantee_of(spent: Budget) -> Pure | Approximate:
    """The guarantee of an amount that was spent.

    >>> guarantee_of(Budget(epsilon=1))
    Pure(epsilon=Fraction(1, 1))
    """
    if spent.delta == 0:
        return Pure(epsilon=spent.epsilon)
    return Approximate(epsilon=spent.epsilon, delta=spent.delta)


def _cut(said: Iterable[Statement]) -> Word | None:
    """What of one person counts at the most in the releases that a figure was computed from."""
    cut = [cut_of(each.query, each.unit, each.limit).words for each in said]
    words = [word for place, word in enumerate(cut) if word is not None and word not in cut[:place]]
    return Joined("cut.several", tuple(words)) if words else None


def _lost(said: Statement) -> Fraction | None:
    """What a release counts against the filter of its account; None where sums of ε and δ decide."""
    return None if said.account.method == "basic" else filter_cost(said.event, said.account.order)


def _paid(said: Iterable[Statement], account: Account) -> bool:
    """Whether what releases cost together was spent by an account: by its filter, where it has one."""
    if account.filter_spent is None:
        return account.spent.covers(sum((each.spend for each in said), start=Budget.none()))
    return sum((filter_cost(each.event, account.order) for each in said), Fraction(0)) <= account.filter_spent


def _known(guarantee: Guarantee) -> Pure | Approximate:
    if isinstance(guarantee, Pure | Approximate):
        return guarantee
    raise Unsupported(f"there is no text for a {guarantee.KIND}; convert it to (ε, δ) first.")
