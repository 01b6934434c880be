"""What the tests of a plan found so far: p-values of each period, adjusted for all tests that were declared.

A period that was not released yet counts as a test that found nothing, so that adjusted p-values can only fall when
more periods come, and none is rejected because later ones are not there yet.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sfumato.core.release import Release
from sfumato.governance.periods import Period
from sfumato.runner.planned_tests import PlannedTest, PlannedTests
from sfumato.studies.multiplicity import adjusted

__all__ = ["PlanTestLine", "TestedPlan", "tested_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTestLine:
    """One test of one period: the difference with its interval, and its p-value, plain and adjusted.

    ``declared`` says whether the test stood in the plan under which the period was released. None stands for numbers
    that do not exist: the period is not released yet, or a group is lost in its noise.
    """

    test: str
    period: str
    version: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    adjusted: float | None = None
    rejected: bool = False
    declared: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedPlan:
    """All tests of a plan that have a period that was released, and how many more the plan has."""

    __test__ = False  # not a test of ours

    tests: PlannedTests
    lines: tuple[PlanTestLine, ...]
    waiting: int


Answered = Callable[[PlannedTest, Period], tuple[Release, str, bool] | None]
"""The release of a period for a test, the version of its data, and whether the test was declared before it."""


def tested_plan(tests: PlannedTests, planned: Sequence[tuple[PlannedTest, Period]], answered: Answered) -> TestedPlan:
    """Make the tests of all periods that were released, and adjust them together."""
    lines, family = [], []
    for test, period in planned:
        found = answered(test, period)
        family.append("" if tests.family == "plan" else period.label)
        if found is None:
            lines.append(PlanTestLine(test=test.name, period=period.label))
            continue
        release, version, declared = found
        result = test.result(release, tests.replicates)
        low, high = result.interval()
        lines.append(
            PlanTestLine(
                test=test.name,
                period=period.label,
                version=version,
                estimate=_known(result.estimate),
                low=_known(low),
                high=_known(high),
                p_value=_known(result.p_value),
                declared=declared,
            )
        )
    places: dict[str, list[int]] = {}
    for place, name in enumerate(family):
        places.setdefault(name, []).append(place)
    for several in places.values():
        of_all = _adjusted([lines[place].p_value for place in several], tests)
        # What was not declared beforehand helps nothing that was: there it counts as a test that found nothing.
        of_declared = _adjusted([lines[place].p_value if lines[place].declared else None for place in several], tests)
        for place, among_all, among_declared in zip(several, of_all, of_declared, strict=True):
            if lines[place].p_value is not None:
                p = among_declared if lines[place].declared else among_all
                lines[place] = replace(lines[place], adjusted=p, rejected=p <= float(tests.alpha))
    made = tuple(line for line in lines if line.version)
    return TestedPlan(tests=tests, lines=made, waiting=len(lines) - len(made))


def _adjusted(p_values: Sequence[float | None], tests: PlannedTests) -> list[float]:
    """Adjusted together; what has no p-value counts as a test that found nothing."""
    return [float(p) for p in adjusted([1.0 if p is None else p for p in p_values], tests.method)]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
