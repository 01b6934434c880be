"""Which of two models is closer to private votes: the divergence itself, and how far one vote moves it."""

from fractions import Fraction
from itertools import product
from math import log

import pytest

from sfumato.core.query import Dataset
from sfumato.core.units import Unit, family, record
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms.distillation import FLOOR, STEPS, CloserModel, floored

pytestmark = pytest.mark.kills

DATA = Dataset(name="votes", edition="1")
SWAPPED, ADDED = record(relation="replace"), record(relation="add/remove")
PAIRS = [
    (["1/2", "1/2"], ["9/10", "1/10"]),
    (["1/2", "1/3", "1/6"], ["1/5", "1/5", "3/5"]),
    (["1/100", "98/100", "1/100"], ["1/3", "1/3", "1/3"]),
    (["1/4", "1/4", "1/2"], ["1/4", "1/2", "1/4"]),
]


def closer(first: list[str], second: list[str], number: int = 4) -> CloserModel:
    return CloserModel(
        dataset=DATA, first=tuple(map(Fraction, first)), second=tuple(map(Fraction, second)), number=number
    )


def counts(votes: tuple[int, ...], classes: int) -> list[int]:
    return [votes.count(k) for k in range(classes)]


def divergence(p: list[float], q: list[float]) -> float:
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if a)


def moved(query: CloserModel, unit: Unit) -> Fraction:
    bound = query.sensitivity(unit, None)
    assert bound.l0 is not None
    assert bound.l1 is not None
    assert bound.l2 is not None
    assert bound.linf is not None
    assert bound.l2.squared == bound.l1.value**2
    assert (bound.l0.count, bound.linf.value) == (1, bound.l1.value)
    return bound.l1.value


@pytest.mark.claim("S3-08")
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_number_is_the_difference_of_the_divergences(first: list[str], second: list[str]) -> None:
    query = closer(first, second)
    for votes in product(range(len(first)), repeat=4):
        shares = [count / 4 for count in counts(votes, len(first))]
        wanted = divergence(shares, [float(Fraction(q)) for q in first]) - divergence(
            shares, [float(Fraction(q)) for q in second]
        )
        assert abs(query.exact(counts(votes, len(first)))[0] / (4 * STEPS) - wanted) < 1e-6


@pytest.mark.claim("S3-08")
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_one_vote_moves_it_as_far_as_is_stated_and_no_further(first: list[str], second: list[str]) -> None:
    query, classes = closer(first, second), len(first)
    found = 0
    for votes in product(range(classes), repeat=4):
        here = query.exact(counts(votes, classes))[0]
        for place, new in product(range(4), range(classes)):
            other = (*votes[:place], new, *votes[place + 1 :])
            found = max(found, abs(query.exact(counts(other, classes))[0] - here))
    assert moved(query, SWAPPED) == found
    ratios = [log(Fraction(b) / Fraction(a)) for a, b in zip(first, second, strict=True)]
    assert abs(found / (4 * STEPS) - (max(ratios) - min(ratios)) / 4) < 1e-6
    assert found > max(abs(ratio) for ratio in query.ratios), "the largest ratio alone would be too little"


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_one_vote_more_or_less_moves_it_by_its_own_ratio(first: list[str], second: list[str]) -> None:
    query, classes = closer(first, second), len(first)
    none = query.exact([0] * classes)[0]
    alone = [abs(query.exact([int(k == one) for k in range(classes)])[0] - none) for one in range(classes)]
    assert moved(query, ADDED) == max(alone)
    assert moved(query, family(3, "id", relation="add/remove")) == 3 * max(alone)
    assert moved(query, family(3, "id", relation="replace")) == 3 * moved(query, SWAPPED)


def test_counts_of_other_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        closer(["1/2", "1/2"], ["9/10", "1/10"]).exact([1, 2, 3])


def test_a_vote_for_no_class_moves_it_no_further() -> None:
    for first, second in PAIRS:
        assert min(closer(first, second).ratios) <= 0 <= max(closer(first, second).ratios)


@pytest.mark.claim("S3-08")
def test_a_model_without_a_floor_is_refused() -> None:
    thin = FLOOR / 2
    with pytest.raises(Refused, match="without bound"):
        CloserModel(dataset=DATA, first=(thin, 1 - thin), second=(Fraction(1, 2), Fraction(1, 2)), number=4)
    with pytest.raises(InvalidInput, match="exactly 1"):
        closer(["1/2", "1/3"], ["1/2", "1/2"])
    with pytest.raises(InvalidInput, match="same classes"):
        closer(["1/2", "1/2"], ["1/3", "1/3", "1/3"])
    with pytest.raises(Refused, match="same on every class"):
        closer(["1/2", "1/2"], ["1/2", "1/2"]).sensitivity(SWAPPED, None)


@pytest.mark.parametrize("shares", [[3, 1, 0], [0.2, 0.7, 0.1], [1, 0, 0], [1e-300, 1, 1]])
def test_floored_shares_are_a_distribution_above_its_floor(shares: list[float]) -> None:
    made = floored(shares, floor="1/50")
    assert sum(made) == 1
    assert min(made) >= Fraction(1, 50)


@pytest.mark.parametrize("wrong", [[1], [0, 0], [1, -1]])
def test_shares_of_nothing_are_refused(wrong: list[int]) -> None:
    with pytest.raises(InvalidInput):
        floored(wrong)
    with pytest.raises(InvalidInput, match="floor"):
        floored([1, 1], floor="2/3")
