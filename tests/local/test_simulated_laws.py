"""Reports in bulk have exactly the law of the client: every answer of the random source is run through.

The sources of a bulk draw (coins, uniform numbers, bytes of coins) are enumerated here; that each of them has its own
exact law from words is shown in test_aggregate.py and below.
"""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.local import (
    DuchiMean,
    HadamardResponse,
    HybridMean,
    KaryResponse,
    LocalHash,
    OptimisedUnary,
    PiecewiseMean,
    ProjectiveResponse,
    SymmetricUnary,
    draws,
    mean_reports,
    reports,
    simulate,
)
from tests.local.enumerated import law

pytestmark = pytest.mark.kills


def named(oracle: object) -> str:
    return repr(oracle).replace("Fraction", "")


@pytest.fixture
def enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odds of 3 : 1 (1.5 : 1 for means), and bulk sources that ask the enumerated one."""
    for module in ("oracle", "unary"):
        monkeypatch.setattr(f"sfumato.local.{module}.odds", lambda epsilon: Fraction(3))
    monkeypatch.setattr("sfumato.local.means.odds", lambda epsilon: Fraction(3, 2))
    monkeypatch.setattr(simulate, "coins", _coins)
    monkeypatch.setattr(simulate, "below", _below)
    monkeypatch.setattr(simulate, "coins_and_below", lambda *asked: (_coins(asked[0], *asked[2:]), _below(*asked[1:])))
    monkeypatch.setattr(simulate, "coin_bytes", _Coins)


def _coins(chance: Fraction, size: int, bits) -> np.ndarray:
    return np.array([bits.below(chance.denominator) < chance.numerator for _ in range(size)])


def _below(bound: int, size: int, bits) -> np.ndarray:
    return np.array([bits.below(bound) for _ in range(size)], dtype=np.int64)


class _Coins:
    """Bytes of coins of which the first three are tossed and the others show heads: they must be cut off."""

    def __init__(self, chance: Fraction) -> None:
        self.chance = chance

    def fill(self, out, bits) -> None:
        heads = _coins(self.chance, 3, bits)
        out[0] = 0b1111_1000 | int((heads << np.arange(3)).sum())


def sent(drawn: np.ndarray) -> object:
    return drawn[0].tobytes() if drawn.ndim == 2 else int(drawn[0])


@pytest.mark.few(3)
@pytest.mark.usefixtures("enumerated")
@pytest.mark.parametrize(
    "oracle",
    [
        KaryResponse(epsilon=2, values=4),
        SymmetricUnary(epsilon=2, values=3),
        OptimisedUnary(epsilon=2, values=3),
        LocalHash(epsilon=2, values=5, buckets=3),
        LocalHash(epsilon=2, values=6, buckets=4),
        HadamardResponse(epsilon=2, values=6),
        ProjectiveResponse(epsilon=2, values=7, order=2),
        ProjectiveResponse(epsilon=2, values=4, order=3),
        ProjectiveResponse(epsilon=2, values=5, order=4),
    ],
    ids=named,
)
def test_bulk_reports_have_exactly_the_stated_law(oracle) -> None:
    for truth in range(oracle.values):
        drawn = law(lambda bits, truth=truth: sent(reports(oracle, [truth], bits)))
        assert drawn == {report: oracle.probability(report, truth) for report in oracle.outputs()}


@pytest.mark.usefixtures("enumerated")
@pytest.mark.parametrize(
    "asked",
    [
        DuchiMean(epsilon=1, steps=6),
        PiecewiseMean(epsilon=2, window=3, steps=4),
        HybridMean(epsilon=1, window=1, share="1/2", steps=2),
    ],
    ids=named,
)
def test_bulk_means_have_exactly_the_stated_law(asked) -> None:
    for step in range(asked.steps + 1):
        drawn = law(lambda bits, step=step: sent(mean_reports(asked, [2 * step / asked.steps - 1], bits)))
        assert drawn == {report: asked.probability(report, step) for report in asked.outputs()}


@pytest.mark.usefixtures("enumerated")
def test_a_slip_in_a_bulk_draw_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: one of the uniform numbers is drawn below one less."""
    monkeypatch.setattr(
        simulate, "coins_and_below", lambda chance, bound, *more: (_coins(chance, *more), _below(bound - 1, *more))
    )
    for oracle in (KaryResponse(epsilon=2, values=4), HadamardResponse(epsilon=2, values=6)):
        drawn = law(lambda bits, oracle=oracle: sent(reports(oracle, [1], bits)))
        assert drawn != {report: oracle.probability(report, 1) for report in oracle.outputs()}


class Every:
    """All double bytes once, four in a word."""

    width = 64

    def fill(self, out) -> None:
        out[:] = np.arange(1 << 16, dtype=np.uint16).view(np.uint64)


@pytest.mark.parametrize(("bound", "each"), [(1000, 64), (1024, 64), (3, 1 << 14), (1, 1 << 16)])
def test_short_uniform_numbers_come_equally_often(bound: int, each: int) -> None:
    found = draws.many_below(bound, 1 << 16, Every())
    assert np.bincount(found).tolist() == [each] * bound


class Halves:
    """Half words that were chosen beforehand, two in a word, and nothing but zeros after them."""

    width = 64

    def __init__(self, halves: np.ndarray) -> None:
        self.halves = halves.astype(np.uint32)

    def fill(self, out) -> None:
        given, self.halves = self.halves[: 2 * out.size], self.halves[2 * out.size :]
        out[:] = np.concatenate((given, np.zeros(2 * out.size - given.size, dtype=np.uint32))).view(np.uint64)


def test_a_coin_and_a_number_come_from_one_half_word() -> None:
    """Numbers below 5 take three bits; of the 29 others those below 2/3·2^29 are heads, and the one in between asks.

    Of its two thirds: a draw below 3 is heads if it is below the rest 1, as with zeros. A number of 5 to 7 is redrawn.
    """
    floor, rest = divmod(2 << 29, 3)
    assert rest == 1
    tops, numbers = np.array([0, floor - 1, floor, floor + 1, (1 << 29) - 1, 7]), np.array([0, 4, 1, 2, 3, 6])
    heads, drawn = draws.coins_and_below(Fraction(2, 3), 5, 6, Halves(tops << 3 | numbers))
    assert heads.tolist() == [True, True, True, False, False, True]
    assert drawn.tolist() == [0, 4, 1, 2, 3, 0]
    asked_no = np.concatenate((np.array([floor << 3]), np.array([0, 0, 1 << 31])))  # the next word draws 2 of 3
    assert not draws.coins_and_below(Fraction(2, 3), 5, 1, Halves(asked_no))[0][0]


@pytest.mark.parametrize(("bound", "chance"), [(1 << 20, Fraction(1, 3)), (3, Fraction(1))])
def test_other_bounds_take_a_word_each(bound: int, chance: Fraction) -> None:
    heads, drawn = draws.coins_and_below(chance, bound, 3, Halves(np.zeros(12)))
    assert heads.tolist() == [True] * 3
    assert drawn.tolist() == [0] * 3
