"""Rising numbers nearest in l1, against all of them; and nearer to the truth than means under Laplace noise."""

from itertools import combinations_with_replacement, product

import pytest

from sfumato.inference.consistency import _nearest_rising

pytestmark = pytest.mark.kills


@pytest.mark.few(3)
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_the_ends_of_all_optima(length: int) -> None:
    rising = list(combinations_with_replacement(range(4), length))
    for values in product(range(4), repeat=length):
        distances = [sum(abs(x - y) for x, y in zip(some, values, strict=True)) for some in rising]
        best = [some for some, distance in zip(rising, distances, strict=True) if distance == min(distances)]
        low, high = (_nearest_rising(values, largest=largest) for largest in (False, True))
        assert low == [min(some[place] for some in best) for place in range(length)]
        assert high == [max(some[place] for some in best) for place in range(length)]


def test_nothing_and_what_rises_already_stay() -> None:
    assert _nearest_rising([], largest=True) == []
    assert _nearest_rising([-7, -7, 0, 3, 10**12], largest=False) == [-7, -7, 0, 3, 10**12]
