"""Reconstruction from counts: exact ones give the bits away, those of a vault do not, and the bound is attained."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.budget import Budget
from sfumato.demo.attacks.hospital import Register
from sfumato.demo.attacks.reconstruction import (
    demonstrate_reconstruction,
    laplace_of,
    private_counts,
    questions,
    reconstruct,
    secrets,
)
from sfumato.errors import InvalidInput

PEOPLE = 120


@pytest.fixture(scope="module")
def found(hospital: Register):
    return demonstrate_reconstruction(hospital, people=PEOPLE, shares=(Fraction(1, 2), Fraction(4)))


def test_exact_counts_give_every_bit_away(found):
    assert found.most.counts == 4 * PEOPLE
    assert found.most.exact == found.most.rounded == 1.0
    assert found.answered[0].counts == PEOPLE // 2
    assert found.answered[0].rounded < 0.9


# 120 fair coins that the noise knows next to nothing of: 95 or more right, or 25 or fewer, has probability 6e-11.
@pytest.mark.alpha(1e-9)
def test_the_same_counts_from_a_vault_do_not(found):
    assert 25 < PEOPLE * found.most.private < 95


def test_all_counts_together_cost_the_epsilon_of_the_vault(found):
    assert found.spent == found.epsilon == 1
    assert [each.scale for each in found.answered] == [each.counts for each in found.answered]


def test_the_bound_is_attained_by_whoever_knows_everybody_else(found):
    assert float(found.bound) == pytest.approx(0.7310585786)
    assert abs(found.bound - found.attained) < Fraction(1, 10**9)


def test_the_noise_of_a_vault_is_that_of_all_questions_at_once():
    asked, bits = questions(6, 9), secrets(6)
    released = private_counts(tuple("abcdef"), asked, bits, epsilon="1/2")
    assert laplace_of(released).scale == 18
    assert released.charged == Budget(epsilon="1/2")


def test_least_squares_need_fewer_equations_than_unknowns_know():
    """With half as many counts as people the bits are not determined, and the guess is still better than a coin."""
    asked, bits = questions(60, 30), secrets(60)
    guess = reconstruct(asked, asked @ bits.astype(np.int64))
    assert 0.55 < (guess == bits).mean() < 1


def test_nonsense_is_refused(hospital: Register):
    with pytest.raises(InvalidInput, match="one answer for each question"):
        reconstruct(questions(3, 2), np.array([1]))
    with pytest.raises(InvalidInput):
        demonstrate_reconstruction(hospital, people=3)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_picture_has_its_words_and_no_more_than_is_known(found, language):
    pytest.importorskip("altair")
    from sfumato.demo.attacks.pictures import attack_picture

    spec = attack_picture(found, language, "dark").to_dict()
    assert spec["usermeta"]["theme"] == "dark"
    assert "73.1%" in str(spec)
    assert str(PEOPLE) in "".join(spec["title"]["subtitle"])
