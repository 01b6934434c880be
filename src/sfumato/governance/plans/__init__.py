"""Accuracy-first plans: what a year of daily, weekly and monthly releases costs, and how a cap is best divided.

Everything here is public: a plan opens no data and spends nothing. Proof of the closed forms, and the words:
docs/explanation/plans-and-policies.md
"""

from sfumato.core.budget import Budget
from sfumato.core.units import Client, Edge, Event, Family, Node, Record, User, Weight
from sfumato.governance.periods import Cadence, Period
from sfumato.governance.plans.plan import Accounting, Aim, Fixed, Margin, MeanError, Plan, PlannedRelease
from sfumato.governance.plans.prices import Price, ideal_epsilon, least_amount
from sfumato.governance.plans.schedule import Compared, FigureSource, Schedule, ScheduledLine
from sfumato.governance.plans.solve import solve

__all__ = [
    "DECLARATIONS",
    "Accounting",
    "Aim",
    "Cadence",
    "Compared",
    "FigureSource",
    "Fixed",
    "Margin",
    "MeanError",
    "Period",
    "Plan",
    "PlannedRelease",
    "Price",
    "Schedule",
    "ScheduledLine",
    "ideal_epsilon",
    "least_amount",
    "solve",
]

DECLARATIONS = (
    *(Budget, Compared, Fixed, ScheduledLine, Margin, MeanError, Plan, PlannedRelease, Schedule),
    *(Client, Edge, Event, Family, Node, Record, User, Weight),
)  # what a Registry needs to read plans and schedules
