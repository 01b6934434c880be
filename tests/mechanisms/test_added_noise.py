"""Noise that is added to whole numbers: who offers it, who takes it, and what a new one of its kind is given for it."""

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from sfumato.core.enclosures import Enclosure
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import Unsupported, WrongNorm
from sfumato.inference.inversion import Spread
from sfumato.inference.spectrum import spectrum
from sfumato.laws import DiscreteLaplace, LadderBound
from sfumato.laws.margins import WholeNumberLaw
from sfumato.mechanisms import ADDED_NOISE, ANY_NOISE, MECHANISMS, Gaussian, Laplace
from sfumato.mechanisms.advisor import least_noise
from sfumato.reports import particulars
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.marginals import Marginals

ONE = Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """Half of the noise of the Laplace mechanism: good for nothing but this test."""

    KIND: ClassVar[str] = "mechanism.toy_noise"
    PURE: ClassVar[bool] = True
    scale: Fraction

    @classmethod
    def least(cls, moved: Sensitivity, *, epsilon: Any, delta: Any) -> "Toy | None":
        return None if moved.linf is None else cls(scale=moved.linf.value / Fraction(epsilon) / 2)

    @property
    def law(self) -> DiscreteLaplace:
        return DiscreteLaplace(scale=self.scale)


def test_what_adds_noise_is_found_and_what_needs_no_delta_comes_first() -> None:
    assert set(ADDED_NOISE) <= set(MECHANISMS)
    assert {Laplace, Gaussian} <= set(ADDED_NOISE)
    assert [one.PURE for one in ADDED_NOISE] == sorted((one.PURE for one in ADDED_NOISE), reverse=True)
    assert ADDED_NOISE[0] is Laplace
    assert tuple(one.KIND for one in ADDED_NOISE) == ANY_NOISE


def test_queries_that_are_read_by_the_law_alone_take_any_of_it_and_others_do_not() -> None:
    assert Count.ANSWERED_BY == Marginals.ANSWERED_BY == ANY_NOISE
    assert Aggregate.ANSWERED_BY == ("mechanism.laplace", "mechanism.gaussian")


def test_the_least_of_what_is_offered_is_taken_and_only_of_what_was_asked() -> None:
    everyone: Any = (*ADDED_NOISE, Toy)
    assert least_noise(ONE, epsilon=1, delta=0, among=everyone) == Toy(scale=Fraction(1, 2))
    assert least_noise(ONE, epsilon=1, delta=0) == Laplace.calibrated(l1=1, epsilon=1)
    with pytest.raises(WrongNorm):
        least_noise(Sensitivity.of(l0=1), epsilon=1, delta=0, among=everyone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waving(WholeNumberLaw):
    """A Laplace law under another name, which brings its spectrum."""

    KIND: ClassVar[str] = "law.waving"
    law: DiscreteLaplace

    @property
    def variance(self) -> Fraction:
        return self.law.variance

    @property
    def fastest(self) -> float:
        return spectrum(self.law).fastest

    def tail(self, size: int) -> Enclosure:
        return self.law.tail(size)

    def wave(self, t: Any) -> Any:
        return spectrum(self.law).wave(t)

    def log_moment(self, s: float) -> float:
        return spectrum(self.law).log_moment(s)


def test_sums_work_for_a_law_that_brings_its_spectrum_and_for_no_law_without_one() -> None:
    known = DiscreteLaplace(scale=Fraction(2))
    brought: Any = Waving(law=known)
    assert spectrum(brought).step == 1
    one, other = (Spread([(Fraction(1), law), (Fraction(-1), law)]) for law in (known, brought))
    assert one.margin(Fraction(19, 20)) == other.margin(Fraction(19, 20)) == 8
    assert np.isclose(one.within(Fraction(3)), other.within(Fraction(3)), atol=1e-12)
    with pytest.raises(Unsupported, match="characteristic function"):
        spectrum(LadderBound(epsilon=Fraction(1), widest=3))


def test_noise_without_words_of_its_own_is_named_with_its_standard_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(particulars, "ADDED_NOISE", (Toy,))
    monkeypatch.setattr(particulars, "described", lambda said: SimpleNamespace(height=1))
    toy = Toy(scale=Fraction(2))
    said: Any = SimpleNamespace(mechanism=toy, law=toy.law, query=SimpleNamespace(measure="count"))
    assert particulars._noise(said, "en") == "discrete toy noise, standard deviation 2.8"
    assert particulars._noise(said, "zh-Hans") == "离散噪声（toy noise），标准差 2.8"
