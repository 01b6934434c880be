"""What of a ledger may be shown to everybody: releases on record for publication that nothing forbids today.

Grounds come from two places: the plan that the board adopted, for its own releases, and what a steward put on record
for one release. Terms, vetoes and the recipient of a charge are asked each time, as the runner asks them: what was
shown yesterday is not shown today where a community has said no since.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from sfumato.core.budget import Budget
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.decision_state import Adopted, DecisionState
from sfumato.governance.digest import digest_of
from sfumato.governance.periods import Period, periods
from sfumato.governance.plans import Plan
from sfumato.governance.provenance import ChargeFate, Provenance
from sfumato.reports.publication import Grounds
from sfumato.runner.record import check_planned
from sfumato.runner.steps import Ingredient
from sfumato.server.views.snapshot import Snapshot

__all__ = ["EVERYBODY", "Gated", "PlannedFor", "Published", "WhyNot", "Withheld", "gated", "grounds_of_plan", "planned"]

EVERYBODY = "public"
"""The recipient of what may be shown to everybody."""


class WhyNot(Enum):
    """Why a release that has its grounds is not shown."""

    VETO = "veto"
    TERMS = "terms"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFor:
    """The plan that a release was made for, and its place in it."""

    plan: str
    digest: str
    name: str
    period: Period


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A release that everybody may see, its charge, and the grounds on which it is published."""

    charge: Provenance
    release: Release
    grounds: Grounds
    planned: PlannedFor | None

    @property
    def identifier(self) -> str:
        """The identifier of the release."""
        return self.release.statement.identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A release with grounds that is not shown, why, and by whom where somebody vetoed it; none of its numbers."""

    identifier: str
    dataset: str
    version: str
    at: str
    why: WhyNot
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """All releases that are published, the newest first, and those that are withheld."""

    published: tuple[Published, ...]
    withheld: tuple[Withheld, ...]

    def find(self, identifier: str) -> Published:
        """One release by its identifier; a withheld one is as unknown as one that is no release."""
        for each in self.published:
            if each.identifier == identifier:
                return each
        raise InvalidInput(f"no published release has the identifier {identifier[:64]!r}; nothing was shown.")


def gated(snapshot: Snapshot, stated: Mapping[str, Grounds], *, at: str) -> Gated:
    """The releases of a ledger that everybody may see at a moment; ``stated`` are grounds by identifier of a release.

    Guarantee: what comes out verifies, states reason and legal basis, is for everybody or for nobody in particular, and
    is within the terms and under no veto at ``at``.
    """
    named = {charge.number: key for key, charge in snapshot.keys.items()}
    shown: list[Published] = []
    kept: list[Withheld] = []
    for charge in snapshot.trail.charges:
        release = snapshot.release(charge) if charge.fate is ChargeFate.ANSWERED else None
        if release is None or charge.recipient not in (None, EVERYBODY):
            continue
        origin = planned(snapshot.decisions.plans, named.get(charge.number), release)
        identifier = release.statement.identifier
        grounds = stated.get(identifier) or (
            Grounds() if origin is None else grounds_of_plan(origin[1], origin[0].name)
        )
        if grounds.missing:
            continue
        refused = _refused(charge, snapshot.decisions, at)
        if refused is not None:
            kept.append(_withheld(release, refused))
            continue
        place = None if origin is None else origin[0]
        shown.append(Published(charge=charge, release=release, grounds=grounds, planned=place))
    return Gated(published=tuple(reversed(shown)), withheld=tuple(reversed(kept)))


def planned(plans: Iterable[Adopted], key: str | None, release: Release) -> tuple[PlannedFor, Plan] | None:
    """The plan that a release was made for; None for one whose key, question or unit is not that of a plan.

    A key can be worked out by anybody, so that the release must be what the plan asks as well.
    """
    parts = (key or "").split("/")
    if len(parts) != 4 or parts[0] != "plan":
        return None
    _, digest, name, version = parts
    for adopted in plans:
        plan = adopted.schedule.plan
        if _digest(plan) != digest or name not in {each.name for each in plan.releases}:
            continue
        period = _periods(plan, name).get(version.partition(".")[0])
        if period is None:
            return None
        try:
            check_planned(plan, Ingredient(name, period), release.statement, version)
        except Refused:
            return None
        return PlannedFor(plan=plan.name, digest=digest, name=name, period=period), plan
    return None


def grounds_of_plan(plan: Plan, name: str) -> Grounds:
    """The reason and the legal basis that were adopted with a plan; empty where it states none."""
    try:
        said = json.loads(plan.release(name).question or "{}")
    except ValueError:
        return Grounds()
    if not isinstance(said, dict):
        return Grounds()
    return Grounds(reason=str(said.get("reason") or ""), legal_basis=str(said.get("legal_basis") or ""))


def _refused(charge: Provenance, decisions: DecisionState, at: str) -> tuple[WhyNot, tuple[str, ...]] | None:
    """Why terms or board do not allow handing the answer out now; None where they do."""
    for reading in charge.readings:
        name = reading.dataset.name
        minutes = decisions.minutes
        vetoes = () if minutes is None else minutes.vetoes(name)
        if vetoes:
            return WhyNot.VETO, tuple(veto.community for veto in vetoes)
        try:
            decisions.permit(name, charge.purpose, charge.recipient, at=at, cost=Budget.none())
        except (Refused, NotDeclared):
            return WhyNot.TERMS, ()
    return None


def _withheld(release: Release, refused: tuple[WhyNot, tuple[str, ...]]) -> Withheld:
    said, (why, by) = release.statement, refused
    return Withheld(
        identifier=said.identifier,
        dataset=said.dataset.name,
        version=said.dataset.edition,
        at=said.issued,
        why=why,
        by=by,
    )


@lru_cache(maxsize=256)
def _digest(plan: Plan) -> str:
    return digest_of(plan)


@lru_cache(maxsize=256)
def _periods(plan: Plan, name: str) -> dict[str, Period]:
    return {period.label: period for period in periods(plan.release(name).every, plan.year)}
