"""What is asked across sites: what one site sends to a sum, and the sum itself; both about a question of tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.columns import ResultColumn
from sfumato.core.cut import LimitCut
from sfumato.core.description import Description, Form, OneLine, phrase
from sfumato.core.exact import natural
from sfumato.core.finding import Finding, check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import Unsupported
from sfumato.federated.shared_skellam import FINEST, SharedSkellam, shared_variance
from sfumato.tables.persons import PerPerson, Step
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.marginals import Marginals

__all__ = ["AcrossSites", "SiteShare", "Summable", "check_summable", "sent"]

Summable = Count | Aggregate | Marginals
"""Questions whose numbers of all sites add up to those of all people: whole numbers, each a sum over rows."""


def check_summable(query: object) -> Summable:
    """Refuse a question whose answer is not a sum over sites."""
    if type(query) not in (Count, Aggregate, Marginals):
        raise Unsupported(
            f"sites add up counts, sums, means, shares and survival, and not {type(query).__name__}; nothing was read "
            "and nothing was spent."
        )
    assert isinstance(query, Count | Aggregate | Marginals)  # noqa: S101 - said above, by its exact class
    if not all(isinstance(step, PerPerson) for step in query.joins):
        raise Unsupported("sites cannot join tables in a common question; nothing was read and nothing was spent.")
    if isinstance(query, Aggregate) and query.number is not None:
        raise Unsupported("how many people the sites have together is not declared; nothing was read or spent.")
    return query


def sent(of: Summable, unit: Unit, limit: Limit | None, *, step: int, sites_per_person: int) -> Sensitivity:
    """How far one person moves the sum of what sites send, in units of ``step``, where a person is in several sites.

    Guarantee: a site rounds each number to the nearest whole unit, so that a move by d becomes one of at most
    ⌈d/step⌉ ≤ d/step + 1 in each number that moves: l2 ≤ l2/step + √l0. A person in k sites moves k such sums. Who is
    replaced may leave one site and come to another, and both round.
    """
    moved, k = of.sensitivity(unit, limit), natural(sites_per_person, "sites_per_person")
    if moved.l1 is None or moved.l2 is None or moved.l0 is None or moved.linf is None:
        raise Unsupported("how far one person moves this answer is not known in every norm; nothing was spent.")
    more = 0 if step == 1 else 1 if unit.relation is Relation.ADD_REMOVE else 2
    root = enclosures.sqrt(moved.l2.squared / step**2).high + more * enclosures.sqrt(Fraction(moved.l0.count)).high
    return Sensitivity.of(
        l0=k * moved.l0.count,
        l1=k * (moved.l1.value / step + more * moved.l0.count),
        l2_squared=k**2 * (moved.l2.squared if step == 1 else root**2),
        linf=k * (moved.linf.value / step + more),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteShare:
    """What one site sends to a sum across sites: its numbers, in units, with its share of the noise, under masks.

    ``of`` is the question about the site's own table, ``round`` the digest of the terms, ``keys`` the fingerprint of
    the public keys that the site made for the round. Public: every field; the answer is uniform numbers, which say
    nothing without those of the other sites. What is charged is what the sum says.
    """

    KIND: ClassVar[str] = "query.site_share"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.shared_skellam",)
    of: Count | Aggregate | Marginals
    round: str
    keys: str
    variance: Fraction
    sites: int
    step: int = 1
    sites_per_person: int = 1

    @property
    def dataset(self) -> Dataset:
        """The site's own data."""
        return self.of.dataset

    @property
    def joins(self) -> tuple[Step, ...]:
        """The steps of the question."""
        return self.of.joins

    @property
    def size(self) -> int:
        """How many numbers are sent."""
        return self.of.size

    @property
    def measure(self) -> None:
        """What is sent is no figure."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """There are no columns."""
        return ()

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """There are none."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one person moves the sum of what sites send."""
        return sent(self.of, unit, limit, step=self.step, sites_per_person=self.sites_per_person)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> SharedSkellam:
        """The noise that was agreed; whether it keeps the spend is found when it is priced."""
        return SharedSkellam(variance=self.variance, unit=self.step, sites=self.sites)

    def columns(self, release: Release) -> Mapping[str, ResultColumn]:
        """There are none."""
        return {}

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """As that of the question."""
        return self.of.cut(unit, limit)

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know: that these are masked numbers."""
        limits = (("limit.site_share",),)
        return Description(
            form=Form.MODEL,
            numbers=0,
            asked=phrase("page.site_share", data=OneLine(self.dataset.name)),
            figures={"parties": f"{self.sites:,}", "most_sites": f"{self.sites_per_person:,}"},
            paragraphs={
                "what": (("what.site_share",),),
                "method": (("method.site_share",),),
                "limits": limits,
                "patient_limit": limits,
                "manager_limit": limits,
            },
            facts={"noise": phrase("fact.noise_shared")},
            scattered="method.site_share",
            glance=((f"{self.size:,}", "page.glance_masked"),),
        )

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """There are no figures."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossSites:
    """The answer to a question about tables, added up over the sites whose public keys are ``sites``.

    ``survivors`` are the places, from 1 on, of those whose numbers are in the sum, ``transcript`` the fingerprint of
    the round; both are empty as long as there was none. Up to ``missing`` may leave and ``colluding`` may collude. A
    person may be in ``sites_per_person`` of them.
    Guarantee: :meth:`sensitivity` bounds the move of the sum of what sites send for one person with all those sites.
    """

    KIND: ClassVar[str] = "query.across_sites"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.shared_skellam",)
    of: Count | Aggregate | Marginals
    sites: tuple[str, ...]
    missing: int
    colluding: int
    step: int = 1
    sites_per_person: int = 1
    survivors: tuple[int, ...] = ()
    transcript: str = ""

    @property
    def dataset(self) -> Dataset:
        """The name of the data of all sites together."""
        return self.of.dataset

    @property
    def joins(self) -> tuple[Step, ...]:
        """The steps of the question."""
        return self.of.joins

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.of.size

    @property
    def measure(self) -> str | None:
        """As that of the question."""
        return self.of.measure

    @property
    def names(self) -> tuple[str, ...]:
        """As those of the question."""
        return tuple(self.of.names)

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """As those of the question."""
        return self.of.labels()

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one person moves the sum of what sites send."""
        return sent(self.of, unit, limit, step=self.step, sites_per_person=self.sites_per_person)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> SharedSkellam:
        """The least noise that keeps the spend, and what is in the sum besides: the shares of sites that may collude.

        Noise is shared in removable pieces, so that D of m sites missing and c colluding leave (m − D)/(m − c − D).
        """
        if moved.l1 is None or moved.l2 is None:
            raise Unsupported("how far one person moves this answer is not known; nothing was spent.")
        variance = shared_variance(l1=moved.l1.value, l2_squared=moved.l2.squared, spend=spend)
        present = len(self.survivors) or len(self.sites)
        honest = present - self.colluding
        if honest < 1:
            raise Unsupported("no honest site is left to protect anybody; nothing was read and nothing was spent.")
        beyond = variance * self.colluding / honest
        return SharedSkellam(variance=variance, beyond=beyond, unit=self.step, sites=len(self.sites))

    def in_unit(self, unit: Unit, limit: Limit | None, spend: Budget) -> "AcrossSites":
        """The same with the unit that values are sent in: 1 for counts, else so coarse that noise can be drawn."""
        if getattr(self.of, "row_height", 1) == 1:
            return self
        moved = self.sensitivity(unit, limit)
        assert moved.l1 is not None  # noqa: S101 - sent(…) knows both
        assert moved.l2 is not None  # noqa: S101
        whole = shared_variance(l1=moved.l1.value, l2_squared=moved.l2.squared, spend=spend)
        ratio = int(whole // FINEST)
        return replace(self, step=1 << max(0, (ratio.bit_length() - 1) // 2))

    def columns(self, release: Release) -> Mapping[str, ResultColumn]:
        """The columns of the question, read off the sum."""
        return self.of.columns(release)

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """As that of the question."""
        return self.of.cut(unit, limit)

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """As many numbers as are asked for, whole units, survivors of the roster, and noise that belongs to them."""
        yield from check_numbers(self, said)
        if any(value % self.step for value in said.values):
            yield Finding(field="statement.values", problem="must be whole units of what sites sent")
        places = set(self.survivors)
        if not (places <= set(range(1, len(self.sites) + 1)) and len(places) == len(self.survivors)):
            yield Finding(field="statement.query.survivors", problem="must be places of the roster, each once")
        if len(self.sites) - len(places) > self.missing:
            yield Finding(
                field="statement.query.survivors", problem="are fewer than the sites that may be missing allow"
            )
        if len(self.transcript) != 64:
            yield Finding(field="statement.query.transcript", problem="must be the fingerprint of a round")
        made = said.mechanism
        honest = len(places) - self.colluding
        if not isinstance(made, SharedSkellam) or (made.unit, made.sites) != (self.step, len(self.sites)):
            yield Finding(field="statement.mechanism", problem="is not in the unit and for the sites of the query")
        elif honest < 1 or made.beyond != made.variance * self.colluding / honest:
            yield Finding(field="statement.mechanism.beyond", problem="is not what the survivors leave in the sum")

    def describe(self, said: Statement) -> Description:
        """What a reader must know: as of the question, and that several sites were added up."""
        own = replace(said, query=self.of, sensitivity=self.of.sensitivity(said.unit, said.limit))
        found = self.of.describe(own)
        figures = {**found.figures, "sites": str(len(self.survivors)), "roster": str(len(self.sites))}
        method = (*found.at("method"), ("method.across_sites",))
        return replace(found, figures=figures, paragraphs={**found.paragraphs, "method": method})

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """As of the question."""
        return self.of.expected(law, confidence, joint=joint, rows=rows)
