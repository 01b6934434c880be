"""So many in 1,000: counts rounded outward, and the array of signs that shows them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.adversary import accuracy, belief
from sfumato.core.guarantees import Approximate, Pure
from sfumato.errors import InvalidInput, Refused
from sfumato.reports.frequencies import OF, Frequencies, believed, frequencies, guessed, icons
from tests.reports.test_explain import UNITS, gaussian_release, release_of

epsilons = st.fractions(Fraction(1, 1000), 20, max_denominator=1000)
priors = st.integers(0, 1000).map(lambda thousandths: Fraction(thousandths, 1000))


@given(epsilon=epsilons, prior=priors)
def test_beliefs_are_rounded_outward(epsilon: Fraction, prior: Fraction) -> None:
    shown, exact = believed(Pure(epsilon=epsilon), prior), belief(Pure(epsilon=epsilon), prior)
    assert OF * exact.low - 1 < shown.low <= OF * exact.low
    assert OF * exact.high <= shown.high < OF * exact.high + 1
    assert shown.prior == OF * prior
    assert shown.opposite.opposite == shown
    assert shown.opposite.low == OF - shown.high


@given(epsilon=epsilons, delta=st.fractions(0, Fraction(1, 100), max_denominator=10**9))
def test_guesses_are_rounded_up(epsilon: Fraction, delta: Fraction) -> None:
    guarantee = Approximate(epsilon=epsilon, delta=delta)
    best = OF * accuracy(guarantee)
    assert best <= guessed(guarantee).high < best + 1
    assert (guessed(guarantee).prior, guessed(guarantee).low, guessed(guarantee).guess) == (500, 500, True)


def test_no_belief_with_a_delta() -> None:
    with pytest.raises(Refused, match="δ > 0"):
        believed(Approximate(epsilon=Fraction(1), delta=Fraction(1, 10**6)))


def test_a_release_is_read_by_what_its_account_has_spent() -> None:
    assert frequencies(release_of(UNITS["user, add/remove"])) == Frequencies(prior=100, low=63, high=155)
    assert frequencies(gaussian_release()) == Frequencies(prior=500, low=500, high=732, guess=True)
    with pytest.raises(InvalidInput, match="takes releases"):
        frequencies([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [25, 50, 100])
def test_every_sign_is_drawn_once(language: str, columns: int) -> None:
    lines = icons(Frequencies(prior=100, low=63, high=155), language, columns=columns).splitlines()
    rows = [line for line in lines if line and set(line) <= set("●◐·")]
    assert len(rows) == 2 * OF // columns
    assert {len(row) for row in rows} == {columns}
    before, after = "".join(rows[: OF // columns]), "".join(rows[OF // columns :])
    assert before == "●" * 100 + "·" * 900
    assert after == "●" * 63 + "◐" * 92 + "·" * 845
    assert ("Before: 100 in 1,000" if language == "en" else "公布之前：10%") in lines
    assert lines[-1].startswith("● ")


def test_guesses_are_drawn_as_guesses() -> None:
    text = icons(Frequencies(prior=500, low=500, high=1000, guess=True), "en")
    assert text.startswith("Guesses that are right: 500 in 1,000 before, at most 1,000 in 1,000 after\n")
    assert text.count("◐") == 500 + 1  # and one in the legend


@pytest.mark.parametrize("columns", [0, -50, 30, 2000])
def test_columns_divide_a_thousand(columns: int) -> None:
    with pytest.raises(InvalidInput, match="columns"):
        icons(Frequencies(prior=100, low=63, high=155), "en", columns=columns)


@pytest.mark.parametrize("counts", [(100, 155, 63), (100, 101, 155), (100, -1, 155), (100, 63, 1001)])
def test_counts_out_of_order_are_refused(counts: tuple[int, int, int]) -> None:
    prior, low, high = counts
    with pytest.raises(InvalidInput, match="in order"):
        Frequencies(prior=prior, low=low, high=high)
