"""How many people their HLA genotype singles out: the figures of the requirement, and brute force."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.genomics import hla_uniqueness
from sfumato.genomics.uniqueness import zipf


@pytest.mark.claim("S3-19")
@pytest.mark.parametrize(
    ("alleles", "genotypes", "even", "skewed"),
    [
        ((150, 200), 227_632_500, 0.999996, 0.987),
        ((21, 36), 153_846, 0.994, 0.831),
        ((6, 6), 441, 0.104, 0.093),
    ],
)
def test_genotypes_and_shares_of_unique_people(
    alleles: tuple[int, int], genotypes: int, even: float, skewed: float
) -> None:
    evenly = hla_uniqueness(*alleles, people=1000, evenly=True)
    assert evenly.genotypes == genotypes
    assert evenly.unique == pytest.approx(even, abs=0.0005)
    assert hla_uniqueness(*alleles, people=1000).unique == pytest.approx(skewed, abs=0.01)


@pytest.mark.claim("S3-19")
def test_shares_are_those_of_all_genotypes_one_by_one() -> None:
    def probabilities(alleles: int) -> list[float]:
        shares = zipf(alleles)
        pairs = combinations_with_replacement(range(alleles), 2)
        return [float(shares[one] * shares[two]) * (1 if one == two else 2) for one, two in pairs]

    genotypes = [math.prod(each) for each in product(probabilities(4), probabilities(3), probabilities(2))]
    assert sum(genotypes) == pytest.approx(1)
    expected = sum(each * (1 - each) ** 19 for each in genotypes)
    found = hla_uniqueness(4, 3, 2, people=20)
    assert found.genotypes == len(genotypes)
    assert found.unique == pytest.approx(expected, rel=1e-9)


def test_frequencies_may_be_given_and_are_held_to_reason() -> None:
    given = hla_uniqueness([2, 1], people=2)
    assert given == hla_uniqueness(2, people=2)
    assert hla_uniqueness([1.0], people=2).unique == pytest.approx(0, abs=1e-12)
    assert hla_uniqueness(np.int64(3), people=2) == hla_uniqueness(3, people=2)
    for wrong in ([], [0.5, -0.5], [np.nan], "21", [[1.0, 2.0]], ["x"]):
        with pytest.raises(InvalidInput):
            hla_uniqueness(wrong, people=2)
    with pytest.raises(InvalidInput, match="so large"):
        hla_uniqueness(500, 500, people=2)
    with pytest.raises(InvalidInput):
        hla_uniqueness(people=2)
    with pytest.raises(InvalidInput):
        hla_uniqueness(3, people=0)
