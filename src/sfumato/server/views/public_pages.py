"""What the public pages hold: the same in the service and in a static site."""

from dataclasses import dataclass

from sfumato.server.views.dashboard import Dashboard
from sfumato.server.views.gate import Withheld
from sfumato.server.views.plan_page import PlanShown
from sfumato.server.views.release import ReleasePage, ReleaseRow

__all__ = ["PlanCard", "PublicHome", "PublicPlan", "PublicRelease", "plan_card"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCard:
    """A plan in the list: its year, how many reports it has, and how many were skipped."""

    plan: str
    year: int
    digest: str
    shown: int
    skipped: int
    alarms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicHome:
    """The registry of releases: plans, releases by page, and what is withheld."""

    plans: tuple[PlanCard, ...]
    rows: tuple[ReleaseRow, ...]
    total: int
    at: int
    pages: int
    dataset: str
    datasets: tuple[str, ...]
    withheld: tuple[Withheld, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRelease:
    """The page of one release."""

    shown: ReleasePage
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPlan:
    """The dashboard of one plan."""

    shown: PlanShown


def plan_card(found: Dashboard) -> PlanCard:
    """A dashboard in the list of plans."""
    return PlanCard(
        plan=found.plan,
        year=found.year,
        digest=found.digest,
        shown=sum(len(line.shown) for line in found.lines),
        skipped=len(found.skipped),
        alarms=len(found.alarms),
    )
