"""A loop that is closed over released totals and alarms, through open streams: the example of the staffed ward.

α: costs of weeks are compared whose means lie at least ten standard deviations apart (measured in 24 runs each).
"""

import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from examples import staffing
from examples.staffing import HOURS, Visits, closed_loop, fixed_rota, visits


def mean(given: Visits, epsilon: Fraction, runs: int) -> float:
    return statistics.mean(closed_loop(given, epsilon).cost for _ in range(runs))


@pytest.mark.claim("S4-21")
@pytest.mark.alpha(1e-10)
def test_the_cost_of_the_loop_falls_with_epsilon_down_to_that_without_privacy() -> None:
    week = visits(1)
    exact = closed_loop(week, None)
    assert mean(week, Fraction(1, 20), 2) > mean(week, Fraction(1), 4) > exact.cost
    assert fixed_rota(week).cost > 1.5 * exact.cost  # there is something to lose
    assert exact.sent_away > 0  # what was released decided who came


@pytest.mark.claim("S4-21")
def test_for_large_epsilon_it_is_the_loop_without_privacy_hour_by_hour() -> None:
    for seed in (1, 2):
        week = visits(seed)
        private, exact = closed_loop(week, Fraction(10_000)), closed_loop(week, None)
        assert (private.waited, private.nurses, private.alarms) == (exact.waited, exact.nurses, exact.alarms)
        assert private.sent_away == exact.sent_away


@pytest.mark.claim("S4-21")
def test_all_that_the_controller_sees_was_charged_before_the_first_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[Fraction] = []
    told = staffing._Private.told

    def watched(self: Any, came: Sequence[str]) -> tuple[float, float, bool]:
        spent.append(self.spent)
        return told(self, came)

    monkeypatch.setattr(staffing._Private, "told", watched)
    week = closed_loop(visits(3), Fraction(1, 2))
    assert spent == [Fraction(1, 2)] * HOURS
    assert week.spent == Fraction(1, 2)


def left_out(given: Visits, person: str) -> Visits:
    kept = [
        [(one, carried) for one, carried in zip(*hour, strict=True) if one != person]
        for hour in zip(given.wanted, given.by_ambulance, strict=True)
    ]
    return Visits(
        wanted=[[one for one, _ in hour] for hour in kept],
        by_ambulance=[[carried for _, carried in hour] for hour in kept],
    )


def arrivals(given: Visits, hour: int, diverted: bool) -> list[str]:
    return given.arriving(hour, diverted=diverted)


def treated(given: Visits, hour: int, diverted: bool) -> list[str]:
    """Who leaves in an hour where two are treated, in the order of their coming: the wrong thing to count."""
    queue = [one for at in range(hour + 1) for one in given.arriving(at, diverted=diverted)]
    return queue[2 * hour : 2 * hour + 2]


def others_move(counted: Any, given: Visits, hours: int = 12) -> bool:
    """Whether the rows of anybody else change where one person is left out, under the same decisions."""
    people = {one for hour in given.wanted[:hours] for one in hour}
    return any(
        [one for one in counted(given, hour, diverted) if one != person]
        != counted(left_out(given, person), hour, diverted)
        for person in sorted(people)
        for hour in range(hours)
        for diverted in (False, True)
    )


@pytest.mark.claim("S4-21")
def test_under_the_same_decisions_a_patient_changes_their_own_rows_alone() -> None:
    few = visits(4)
    few = Visits(wanted=few.wanted[:12], by_ambulance=few.by_ambulance[:12])
    assert not others_move(arrivals, few)


def test_twin_those_who_leave_the_queue_would_change_with_each_other() -> None:
    few = visits(4)
    few = Visits(wanted=few.wanted[:12], by_ambulance=few.by_ambulance[:12])
    assert others_move(treated, few)


def test_the_twin_of_the_queue_is_off_by_twice_the_error_of_a_total_at_most() -> None:
    """A − C − min(A − C, 0) for totals that are off by up to 5 in any direction, over the whole week."""
    week, error = visits(5), 5
    worst = 0.0
    for sign in (lambda hour: 1, lambda hour: -1, lambda hour: (-1) ** hour, lambda hour: (-1) ** (hour // 7)):
        controller, waited, came = staffing.Controller(), 0, 0
        for hour in range(HOURS):
            able = staffing.TREATED * controller.nurses
            came += len(week.wanted[hour])
            waited = max(0, waited + len(week.wanted[hour]) - able)
            controller.see(hour, came + error * sign(hour), 0.0, alarm=False)
            worst = max(worst, abs(controller.waiting - waited))
    assert error < worst <= 2 * error
