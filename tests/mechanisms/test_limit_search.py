"""The search for a limit: its exact loss on all neighbours of small tables, and what it refuses."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.audit.keys import stops
from sfumato.core.guarantees import Pure
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.mechanisms import LimitSearch, SparseVector
from sfumato.noise import SystemWords

pytestmark = pytest.mark.kills

CANDIDATES = (1, 2, 3, 4, 5)
HALF = Fraction(1, 2)


def search(epsilon: Fraction = Fraction(1), spend: Fraction = Fraction(1)) -> LimitSearch:
    return LimitSearch.calibrated(candidates=[CANDIDATES], epsilon=epsilon, spend=[spend])


def tails(rows: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(each > limit for each in rows) for limit in CANDIDATES[:-1])


def worst(run: LimitSearch, *, replace: bool, less: Fraction = Fraction(1)) -> float:
    """The largest loss between any two neighbours among tables of up to three persons with up to five rows."""
    laws: dict[tuple[int, ...], np.ndarray] = {}

    def law(rows: tuple[int, ...]) -> np.ndarray:
        above = tails(rows)
        if above not in laws:
            laws[above] = np.log(stops(run, above, less=less))
        return laws[above]

    found = 0.0
    for others in product(range(6), repeat=2):
        one = [law((*others, rows)) for rows in range(6)]
        pairs = product(one, one) if replace else ((law(others), there) for there in one)
        found = max(found, *(float(np.abs(here - there).max()) for here, there in pairs))
    return found


@pytest.mark.parametrize("replace", [False, True], ids=["add/remove", "replace"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_no_neighbours_lose_more_than_the_price_and_some_nearly_as_much(epsilon: Fraction, replace: bool) -> None:
    run = search(epsilon, epsilon * Fraction(2, 5))  # a threshold that nobody here reaches
    event = run.loss(Sensitivity.of(linf=1))
    assert event.guarantee == Pure(epsilon=epsilon)
    assert 0.75 * float(epsilon) < worst(run, replace=replace) <= float(epsilon) + 1e-9
    assert worst(run, replace=replace, less=HALF) > float(epsilon)


def test_all_walks_are_paid_for() -> None:
    run = LimitSearch.calibrated(candidates=[(1, 2), CANDIDATES], epsilon=1, spend=[1, 1])
    assert [walk.first + walk.each for walk in run.walks] == [HALF, HALF]
    assert run.loss(1).guarantee == Pure(epsilon=Fraction(1))
    assert run.loss(3).guarantee == Pure(epsilon=Fraction(3))
    assert run.thresholds == (4, 4)


@pytest.mark.parametrize(("epsilon", "spend", "threshold"), [(1, 1, 2), (5, 1, 2), ("1/10", 1, 20), (1, "1/10", 20)])
def test_the_threshold_is_of_the_plan_or_of_the_search_whichever_is_more(epsilon, spend, threshold) -> None:
    found = search(Fraction(epsilon), Fraction(spend))
    assert found.thresholds == (threshold,)
    assert [found.threshold(0, place) for place in (0, 1, 4)] == [
        threshold + int(place * Fraction(3, 4) / Fraction(epsilon)) for place in (0, 1, 4)
    ]


def test_without_noise_the_first_limit_with_few_above_is_taken() -> None:
    run = search(Fraction(10**9), Fraction(1))  # fewer than 2 persons
    for rows, limit in (((5, 5, 5), 5), ((3, 3, 1), 3), ((1, 1, 4), 1), ((), 1), ((2, 4, 4), 4)):
        assert run.draw([tails(rows)], SystemWords()) == ((limit,), ())


@pytest.mark.parametrize(
    "changes",
    [
        {"candidates": ()},
        {"candidates": ((),)},
        {"candidates": ((2, 1),)},
        {"candidates": ((1, 1),)},
        {"candidates": ((0, 1),)},
        {"thresholds": (0,)},
        {"thresholds": (4, 4)},
        {"rises": (Fraction(0),)},
        {"rises": (Fraction(1), Fraction(1))},
        {"walks": (SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1, monotone=True),)},
        {"walks": (SparseVector.calibrated(sensitivity=1, alarms=1, epsilon=1),)},
    ],
)
def test_a_search_that_is_none_is_refused(changes) -> None:
    good = {"candidates": (CANDIDATES,), "thresholds": (4,), "rises": (Fraction(1),), "walks": search().walks}
    with pytest.raises(InvalidInput):
        LimitSearch(**(good | changes))


def test_counts_that_do_not_belong_to_the_candidates_are_refused() -> None:
    for counts in ([], [[1, 1, 1]], [[1, 1, 1, 1], [1]]):
        with pytest.raises(InvalidInput, match="each candidate but the last"):
            search().search(counts, SystemWords())
