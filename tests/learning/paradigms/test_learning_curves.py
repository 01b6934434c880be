"""Learning curves and accuracies: how far one test record moves them, by brute force over all small cases."""

from fractions import Fraction
from itertools import product
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import family, record, user
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms.learning_curves import LearningCurve
from sfumato.learning.paradigms.predictions import right

pytestmark = pytest.mark.kills

SWAPPED = record(relation="replace")


def curve(epochs: int, number: int) -> LearningCurve:
    return LearningCurve(dataset=Dataset(name="test", edition="1"), models="run", epochs=epochs, number=number)


@pytest.mark.claim("S3-09")
@pytest.mark.parametrize(("epochs", "number"), [(1, 1), (1, 4), (2, 2), (3, 2), (2, 3)])
def test_one_record_moves_the_curve_as_far_as_is_stated_and_no_further(epochs: int, number: int) -> None:
    rows = list(product((0, 1), repeat=epochs))  # which models get a record right
    l0 = l1 = squared = largest = 0
    for data in product(rows, repeat=number):
        here = [sum(column) for column in zip(*data, strict=True)]
        for place, new in product(range(number), rows):
            other = [*data[:place], new, *data[place + 1 :]]
            apart = [abs(a - sum(column)) for a, column in zip(here, zip(*other, strict=True), strict=True)]
            l0, l1 = max(l0, sum(map(bool, apart))), max(l1, sum(apart))
            squared, largest = max(squared, sum(a * a for a in apart)), max(largest, *apart)
    stated = curve(epochs, number).sensitivity(SWAPPED, None)
    assert stated == Sensitivity.of(l0=l0, l1=l1, l2_squared=squared, linf=largest)
    assert (Fraction(l1, number), Fraction(squared, number**2)) == (
        Fraction(epochs, number),
        Fraction(epochs, number**2),
    ), "l1 is E/n and l2 is √E/n"
    assert epochs == 1 or squared > 1, "the move of one epoch alone would be too little"


@pytest.mark.claim("S2-11")
@pytest.mark.parametrize("number", range(1, 7))
def test_an_accuracy_moves_by_one_over_the_number_of_records(number: int) -> None:
    most = Fraction(0)
    for data in product((0, 1), repeat=number):
        for place in range(number):
            other = [*data[:place], 1 - data[place], *data[place + 1 :]]
            most = max(most, abs(Fraction(sum(data), number) - Fraction(sum(other), number)))
    assert most == Fraction(1, number)
    stated = curve(1, number).sensitivity(SWAPPED, None).l1
    assert stated is not None
    assert stated.value / number == most


def test_a_family_moves_as_much_as_its_members() -> None:
    stated = curve(4, 100).sensitivity(family(3, "id", relation="replace"), None)
    assert stated == Sensitivity.of(l0=4, l1=12, l2_squared=36, linf=3)
    assert curve(4, 100).sensitivity(user("id", relation="replace"), None).l1 == Sensitivity.of(l1=4).l1


def test_where_the_number_is_secret_no_accuracy_is_told() -> None:
    with pytest.raises(Refused, match="public under replace alone"):
        curve(2, 10).sensitivity(record(relation="add/remove"), None)


@pytest.mark.parametrize("wrong", [{"epochs": 0, "number": 1}, {"epochs": 1, "number": 0}])
def test_a_curve_of_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        curve(**wrong)


def test_a_model_sees_one_record_at_a_time() -> None:
    seen: SimpleQueue[Any] = SimpleQueue()  # what a list is given here is taken back

    def model(one: Any) -> int:
        seen.put(np.shape(one))
        return int(one[0] > 0)

    inputs, targets = np.array([[1.0, 0], [-1.0, 0], [1.0, 0]]), np.array([1, 1, 1])
    assert right(model, inputs, targets, [0, 1, 2]) == 2
    assert [seen.get() for _ in range(3)] == [(2,)] * 3


def test_a_model_that_fails_on_a_record_is_wrong_there_and_nowhere_else() -> None:
    inputs, targets = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 2])

    def model(one: Any) -> Any:
        if one[0] == 1:
            raise ZeroDivisionError
        return "nothing" if one[0] == 2 else 0

    assert right(model, inputs, targets, [0, 1, 2]) == 1
