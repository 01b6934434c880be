"""The average of weights: a plain mean at first, then one that lets go of the past; it can be resumed."""

from fractions import Fraction

import pytest

from sfumato.errors import InvalidInput
from tests.parts import package

package("torch")

import torch  # noqa: E402

from sfumato.learning.averaging import Average  # noqa: E402


def test_it_is_the_mean_at_first_and_then_lets_go() -> None:
    average = Average(decay=Fraction(3, 4))
    found = []
    for value in (4.0, 8.0, 12.0, 16.0, 20.0):
        average.update({"w": torch.tensor([value]), "seen": torch.tensor(int(value))})
        found.append(float(average.weights["w"]))
    assert found == pytest.approx([4, 6, 8, 10, 12.5])
    assert int(average.weights["seen"]) == 20  # counts are not averaged


def test_what_is_averaged_is_not_moved_by_the_model_later() -> None:
    weight = torch.zeros(2, requires_grad=True)
    average = Average()
    average.update({"w": weight})
    with torch.no_grad():
        weight += 1
    assert torch.equal(average.weights["w"], torch.zeros(2))
    assert not average.weights["w"].requires_grad


def test_it_goes_on_from_a_state() -> None:
    first, second = Average(decay=Fraction(1, 2)), Average(decay=Fraction(1, 2))
    first.update({"w": torch.tensor([1.0])})
    second.load(first.state())
    for average in (first, second):
        average.update({"w": torch.tensor([3.0])})
    assert torch.equal(first.weights["w"], second.weights["w"])
    assert second.steps == 2


def test_another_model_and_an_average_that_never_moves_are_refused() -> None:
    average = Average()
    average.update({"w": torch.zeros(1)})
    with pytest.raises(InvalidInput, match="another model"):
        average.update({"v": torch.zeros(1)})
    for decay in (0, 1, 2):
        with pytest.raises(InvalidInput):
            Average(decay=decay)
