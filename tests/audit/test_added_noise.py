"""Attacks that are made from a declaration: they let sound noise stand, refute a broken copy, and miss no mechanism."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from sfumato.audit import ATTACKS, TWINS, Attack, Drawn
from sfumato.audit.added_noise import attacks_on
from sfumato.audit.fit import numbers
from sfumato.core.enclosures import Enclosure
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteLaplace, LadderBound
from sfumato.laws.margins import WholeNumberLaw
from sfumato.mechanisms import ADDED_NOISE

MADE = [attacks_on(kind) for kind in ADDED_NOISE]


@pytest.mark.parametrize("attack", [one for sound, _ in MADE for one in sound], ids=lambda attack: attack.name)
@pytest.mark.alpha(1e-9)
def test_what_is_offered_stands(attack: Attack | Drawn) -> None:
    """The exact loss is the whole claim; draws with 0.7 of the noise are refuted below."""
    verdict = attack.run(samples=20_000, alpha=1e-9)
    assert not verdict.refuted, verdict
    if isinstance(attack, Attack):
        assert verdict.proven is not None
        assert verdict.proven >= attack.share * attack.epsilon


@pytest.mark.parametrize("attack", [one for _, broken in MADE for one in broken], ids=lambda attack: attack.name)
@pytest.mark.alpha(1e-9)
def test_what_is_calibrated_for_a_larger_epsilon_falls(attack: Attack | Drawn) -> None:
    """At ten sevenths of ε the likelihood ratio of 20,000 draws is beyond e^500."""
    assert attack.run(samples=20_000, alpha=1e-9).refuted


def test_they_are_made_for_whatever_has_none_written_for_it() -> None:
    for kinds in (ATTACKS, TWINS):
        assert {kind.KIND for kind in ADDED_NOISE} <= {attack.kind for attack in kinds if isinstance(attack, Drawn)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ByItsTail(WholeNumberLaw):
    """A Laplace law that says nothing but its tail."""

    law: DiscreteLaplace

    @property
    def variance(self) -> Fraction:
        return self.law.variance

    def tail(self, size: int) -> Enclosure:
        return self.law.tail(size)


@pytest.mark.few(1)
@pytest.mark.parametrize("scale", [Fraction(3), Fraction(100)])
def test_the_cells_of_a_law_that_is_known_by_its_tail_are_those_of_its_closed_form(scale: Fraction) -> None:
    law = DiscreteLaplace(scale=scale)
    known, by_tail = numbers(law), numbers(ByItsTail(law=law))  # type: ignore[arg-type]
    assert np.allclose(known.stated, by_tail.stated, rtol=1e-9, atol=1e-15)
    assert all(np.isclose(other.sum(), 1) for other in by_tail.others)
    assert not np.allclose(by_tail.stated, by_tail.others[1], rtol=0.01)


def test_a_law_that_is_only_bounded_is_no_law_of_draws() -> None:
    with pytest.raises(InvalidInput, match="no verdict was given"):
        numbers(LadderBound(epsilon=Fraction(1), widest=3))
