"""Singling out: the exact table points to one person; the belief that a private count allows stays within e^ε."""

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core import enclosures
from sfumato.demo.attacks.hospital import Register, register
from sfumato.demo.attacks.singling_out import (
    count_cells,
    demonstrate_singling_out,
    find_rows,
    odds_exponent,
    private_cells,
    without_identifiers,
)
from sfumato.demo.network import RARE_DISEASE, SMALL_REGION
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteLaplace

LAW = DiscreteLaplace(scale=Fraction(2))


@pytest.fixture(scope="module")
def found(hospital: Register):
    return demonstrate_singling_out(hospital, epsilon="1/2")


@pytest.mark.claim("S1-18")
def test_the_exact_table_without_identifiers_points_to_one_row(found, hospital):
    assert found.found
    assert (found.region, found.diagnosis) == (SMALL_REGION, RARE_DISEASE)
    assert dict(found.told) == {"sex": "F", "age": "76", "sbp": "129.7"}
    assert count_cells(hospital).sum() == len(hospital)
    assert found.cells_of_one == (count_cells(hospital) == 1).sum()


def test_no_identifier_is_left_in_the_table(hospital):
    table = without_identifiers(hospital)
    assert {field.name for field in fields(Register)} == {"names", "age", "sex", "region", "diagnosis", "pressure"}
    assert set(table.names) == {""}
    assert table.age.max() == 90
    assert (table.age[hospital.age < 90] == hospital.age[hospital.age < 90]).all()
    assert len(find_rows(table, region=SMALL_REGION, diagnosis=RARE_DISEASE)) == 1


@pytest.mark.claim("S1-18")
def test_a_private_count_moves_the_odds_within_e_to_the_epsilon(found):
    assert abs(found.exponent) <= found.worst == found.epsilon == Fraction(1, 2)
    assert found.low <= found.posterior <= found.high
    odds = (found.posterior / (1 - found.posterior)) / (found.prior / (1 - found.prior))
    assert enclosures.exp(-found.epsilon).low <= odds <= enclosures.exp(found.epsilon).high


@pytest.mark.claim("S1-18")
def test_the_shift_is_the_ratio_of_the_two_laws_of_the_release():
    """By the law itself: P(z) = (tail(|z| − 1) − tail(|z|))/2, and P(0) = 1 − tail(0)."""

    def chance(z: int) -> float:
        return float(1 - LAW.tail(0).low) if z == 0 else float(LAW.tail(abs(z) - 1).low - LAW.tail(abs(z)).low) / 2

    for released in range(-9, 12):
        ratio = chance(released - 4) / chance(released - 3)
        assert np.log(ratio) == pytest.approx(float(odds_exponent(LAW, released, absent=3, present=4)))


def test_no_output_moves_the_odds_further_than_the_bound():
    shifts = [odds_exponent(LAW, released, absent=3, present=4) for released in range(-50, 50)]
    assert {abs(shift) for shift in shifts} == {Fraction(1, 2)}


def test_a_patient_is_in_one_cell_and_the_ledger_charges_once(hospital):
    released = private_cells(hospital.within(SMALL_REGION), epsilon=1)
    assert released.charged.epsilon == 1
    assert released.statement.law.scale == 1
    assert len(released.values) == 96


def test_a_hospital_without_such_a_patient_is_refused():
    with pytest.raises(InvalidInput, match="Nothing was released"):
        demonstrate_singling_out(register(patients=40))
