"""The samplers' own probabilities are the law's: from their tables, by enumerating short words, and at the window."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.core import enclosures
from sfumato.errors import InvalidInput
from sfumato.noise import sampler as bulk
from sfumato.noise.alias import AliasTable
from sfumato.noise.columns import ColumnLaw, NoiseColumns
from sfumato.noise.sampler import Sampler, sampler
from sfumato.noise.uniform import Uniform, fixed_exp
from tests.noise.replayed import ReplayedWordsForTests, enumerated, fresh

ZERO = Fraction(0)
NARROW = Fraction(1, 2**128)
SCALES = [
    *("1/1000", "1/7", "1/2", "3/4", "1", "22/7", "10", "100/9", "12", "23", "1000/3"),
    *("65537", "123456789/1000", str(10 << 40), str((10 << 40) + 1), f"{3 << 44}/7", str(2**45), str(2**55)),
]
VARIANCES = [
    *("1/100", "1/4", "1/3", "1", "50/7", "100", "1000", "54321/10", "10000", "123456/7"),
    *(str(10**12), str(100 << 80), f"{(100 << 80) + 1}/3", str(2**90), str(2**110)),
]


def laplace(scale: str) -> ColumnLaw:
    return ColumnLaw(linear=1 / Fraction(scale), quadratic=ZERO, two_sided=True)


def geometric(scale: str) -> ColumnLaw:
    return ColumnLaw(linear=1 / Fraction(scale), quadratic=ZERO, two_sided=False)


def gaussian(variance: str) -> ColumnLaw:
    return ColumnLaw(linear=ZERO, quadratic=1 / (2 * Fraction(variance)), two_sided=True)


LAWS = [
    *(pytest.param(laplace(scale), id=f"laplace {scale}") for scale in SCALES),
    *(pytest.param(geometric(scale), id=f"geometric {scale}") for scale in SCALES),
    *(pytest.param(gaussian(variance), id=f"gaussian {variance}") for variance in VARIANCES),
]


def definition(law: ColumnLaw, z: int) -> mpmath.mpf:
    """P(z) of a law without columns, by mpmath at 80 digits and not by the library."""
    with mpmath.workdps(80):
        number = lambda x: mpmath.mpf(x.numerator) / x.denominator  # noqa: E731
        q = mpmath.exp(-number(law.linear))
        weight = mpmath.exp(-number(law.exponent(z)))
        if law.quadratic:
            return weight / mpmath.jtheta(3, 0, mpmath.exp(-number(law.quadratic)))
        return weight * (1 - q) / (1 + q if law.two_sided else 1)


def near(value: mpmath.mpf, low: Fraction, high: Fraction) -> bool:
    """Whether an interval narrower than 2^−128 holds the value, up to mpmath's own 2^−200."""
    with mpmath.workdps(80):
        slack = mpmath.mpf(2) ** -200
        below, above = (mpmath.mpf(end.numerator) / end.denominator for end in (low, high))
        return high - low < NARROW and below - slack <= value <= above + slack


def test_there_are_enough_settings() -> None:
    assert len(LAWS) >= 50


@pytest.mark.few(12)
@pytest.mark.parametrize("law", LAWS)
def test_the_samplers_own_probabilities_are_enclosed_around_the_definition(law: ColumnLaw) -> None:
    drawn = sampler(law)
    columns, counted = drawn.columns, drawn.table.counted()
    left = counted.get(-1, 0)
    assert sum(counted.values()) == 2**64
    assert left < 2**20  # the part that is not drawn by one word
    least, most = (Fraction(end, 2**256) for end in columns.total(256))
    one_number_columns = not columns.shift
    assert one_number_columns == (law.exponent(512) >= 45)
    for rank, (low, high) in zip(range(max(counted) + 4), columns.weights(256), strict=False):
        units, start = counted.get(rank, 0), columns.start(rank)
        share = (Fraction(low, 2**256) / most, Fraction(high, 2**256) / least)
        # What the residual draw gives the rank must not be negative; then the two parts add up to the share.
        assert 0 <= share[0] * 2**64 - units < 2
        rest = [(end * 2**64 - units) / left for end in share]
        own = [Fraction(units, 2**64) + Fraction(left, 2**64) * end for end in rest]
        if rank > 40 and rank % 37:
            continue
        if one_number_columns:
            assert near(definition(law, start), own[0], own[1])
        else:
            for step in (0, 1, (1 << columns.shift) // 3, (1 << columns.shift) - 1):
                z = start ^ step
                assert abs(z) == abs(start) + step
                accept = enclosures.exp(-columns.refusal(start, step), bits=200)
                # In proportion to the probability of 0, which is the first number of the first column.
                ends = own[0] * accept.low * least, own[1] * accept.high * most
                with mpmath.workdps(80):
                    exponent = law.exponent(z)
                    assert near(mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator), *ends)


@pytest.mark.parametrize("law", [laplace("2"), gaussian("4")], ids=["laplace", "gaussian"])
def test_a_scale_off_by_one_part_in_2_to_the_128_is_seen(law: ColumnLaw) -> None:
    twin = ColumnLaw(linear=law.linear * (1 + NARROW), quadratic=law.quadratic * (1 + NARROW), two_sided=True)
    (least, most), (low, high) = (
        NoiseColumns(law=twin, shift=0).total(256),
        next(NoiseColumns(law=twin, shift=0).weights(256)),
    )
    assert not near(definition(law, 0), Fraction(low, most), Fraction(high, least))


SHORT = [  # law, bits of a word, columns of 2^shift, words to enumerate, what they may leave open
    pytest.param(laplace("2"), 8, 0, 2, "0.01", id="laplace 2"),
    pytest.param(laplace("1/2"), 8, 0, 2, "0.01", id="laplace 1/2"),
    pytest.param(laplace("10/3"), 8, 0, 2, "0.02", id="laplace 10/3"),
    pytest.param(geometric("3"), 8, 0, 2, "0.01", id="geometric 3"),
    pytest.param(gaussian("9/2"), 8, 0, 2, "0.01", id="gaussian 9/2"),
    pytest.param(gaussian("1/3"), 8, 0, 3, "1e-6", id="gaussian 1/3"),
    pytest.param(laplace("7"), 5, 2, 3, "0.11", id="laplace 7 in columns of 4", marks=pytest.mark.long),
    pytest.param(laplace("7"), 4, 3, 3, "0.2", id="laplace 7 with a word for the coin"),
    pytest.param(geometric("9"), 5, 2, 3, "0.07", id="geometric 9 in columns of 4"),
    pytest.param(gaussian("30"), 5, 2, 3, "0.06", id="gaussian 30 in columns of 4", marks=pytest.mark.long),
    pytest.param(laplace("7"), 4, 3, 4, "0.07", id="laplace 7, longer", marks=pytest.mark.long),
    pytest.param(geometric("9"), 5, 2, 4, "0.01", id="geometric 9, longer", marks=pytest.mark.long),
    pytest.param(gaussian("30"), 5, 2, 4, "0.01", id="gaussian 30, longer", marks=pytest.mark.long),
]


@pytest.mark.long
@pytest.mark.parametrize(("law", "width", "shift", "depth", "open_part"), SHORT)
def test_with_short_words_the_law_is_matched_exactly_by_enumeration(
    law: ColumnLaw, width: int, shift: int, depth: int, open_part: str
) -> None:
    columns = NoiseColumns(law=law, shift=shift)
    short = Sampler.of(columns, width=width)
    assert short.joint == (shift <= width - width * 5 // 16)
    scratch = np.empty((4, 1), dtype=np.uint64)

    def once(words: ReplayedWordsForTests) -> object:
        out = np.empty(1, dtype=np.int64)
        refused = short._propose(out, words, scratch)
        return "refused" if refused is not None and refused.size else int(out[0])

    masses, unresolved = enumerated(once, width=width, depth=depth)
    least, most = columns.total(256)
    assert unresolved < Fraction(open_part)
    for z in range(-60, 61):
        if z < 0 and not law.two_sided:
            assert z not in masses
            continue
        low, high = fixed_exp(law.exponent(z), 256)
        mass = masses.get(z, ZERO)
        assert mass <= Fraction(high, least << shift)
        assert Fraction(low, most << shift) <= mass + unresolved
    if shift:
        assert masses["refused"] > 0


def test_one_unit_too_much_is_seen_by_enumeration() -> None:
    columns = NoiseColumns(law=laplace("2"), shift=0)
    units = columns.table(width=8).counted()
    units[3], units[0] = units[3] + 1, units[0] - 1
    least, _ = columns.total(256)
    shares = [Fraction(high, least) for _, (_, high) in zip(range(4), columns.weights(256), strict=False)]
    assert Fraction(units[3], 256) > shares[3]


@pytest.mark.parametrize("width", [4, 8, 64])
@pytest.mark.parametrize("units", [[1], [3, 9], [1] * 7, [5, 0, 0, 2], [15], [2, 2, 2, 2, 2, 2, 2, 2]])
def test_a_table_gives_every_outcome_its_words(units: list[int], width: int) -> None:
    wanted = {r: n for r, n in enumerate(units) if n} | {-1: 2**width - sum(units)}
    assert AliasTable.of(units, width=width).counted() == {k: v for k, v in sorted(wanted.items()) if v}


@pytest.mark.parametrize("units", [[3, 9], [1] * 7, [5, 1, 60, 2], [255], [256], [0, 256], [1, 7, 21, 35]])
def test_what_words_fall_into_is_what_the_table_counts(units: list[int]) -> None:
    table = AliasTable.of(units, width=8)
    words = np.arange(256, dtype=np.uint64)
    slots, scratch = np.empty_like(words), np.empty_like(words)
    table.slots(words, slots, scratch)
    drawn, counts = np.unique(table.outcomes[slots.astype(np.int64)], return_counts=True)
    assert dict(zip(drawn.tolist(), counts.tolist(), strict=True)) == table.counted()


def test_a_table_refuses_more_words_than_there_are() -> None:
    with pytest.raises(InvalidInput, match="were asked of the 2\\^8 words"):
        AliasTable.of([200, 57], width=8)
    with pytest.raises(InvalidInput, match="10 outcomes need more than 4-bit words"):
        AliasTable.of([1] * 9, width=4)


@pytest.mark.long
@pytest.mark.no_cover  # measuring would triple its time
def test_the_residual_draw_refines_until_it_is_decided() -> None:
    columns = NoiseColumns(law=laplace("2"), shift=0)
    units = columns.table(width=8).counted()
    masses, unresolved = enumerated(lambda words: columns.residual(units, words), width=8, depth=2)
    least, most = columns.total(256)
    assert unresolved < Fraction(1, 256)
    for rank, (low, high) in zip(range(40), columns.weights(256), strict=False):
        upper = (Fraction(high, least) * 256 - units.get(rank, 0)) / units[-1]
        lower = (Fraction(low, most) * 256 - units.get(rank, 0)) / units[-1]
        assert masses.get(rank, ZERO) <= upper
        assert lower <= masses.get(rank, ZERO) + unresolved
    assert max(masses) > max(units)  # beyond the table


LATTICE = [laplace(str(10 << 40)), gaussian(str(100 << 80)), laplace(str(2**54)), gaussian(str(2**105))]


@pytest.mark.parametrize("law", LATTICE, ids=["laplace", "gaussian", "wide laplace", "wide gaussian"])
def test_floats_and_exact_numbers_accept_the_same(law: ColumnLaw) -> None:
    fast = sampler(law)
    exact = Sampler.of(fast.columns, width=64, window=2.0)  # no float is trusted with anything
    words = fresh(40_000)
    for size in (bulk.ALIKE, 4_000):
        assert (fast.draw(size, _replay(words)) == exact.draw(size, _replay(words))).all()


@pytest.mark.alpha(1e-9)
def test_floats_that_err_by_more_than_the_window_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, words = sampler(LATTICE[0]), fresh(40_000)
    honest, right = fast.draw(4_000, _replay(words)), Sampler._acceptance

    def wrong(self, starts, low):
        x, accept = right(self, starts, low)
        return x, accept + 0.01

    monkeypatch.setattr(Sampler, "_acceptance", wrong)
    assert (fast.draw(4_000, _replay(words)) != honest).any()  # equal with probability below 1e-9


@pytest.mark.parametrize("law", LATTICE, ids=["laplace", "gaussian", "wide laplace", "wide gaussian"])
def test_the_floats_err_by_less_than_a_quarter_of_the_window(law: ColumnLaw) -> None:
    drawn = sampler(law)
    shift = drawn.columns.shift
    low = np.concatenate([fresh(200) >> np.uint64(64 - shift), [0, 1, 2**shift - 1]]).astype(np.uint64)
    starts = np.resize(drawn.starts[drawn.starts > np.iinfo(np.int64).min], low.size)
    x, accept = drawn._acceptance(starts, low)
    for start, step, claimed in zip(starts.tolist(), low.tolist(), accept.tolist(), strict=True):
        truth = enclosures.exp(-drawn.columns.refusal(start, step))
        assert abs(Fraction(claimed) - truth.low) < Fraction(1, 2**26)
    assert x.max() <= bulk.LARGEST_X
    assert bulk.WINDOW == 4 * 2.0**-26


@pytest.mark.parametrize("law", LATTICE, ids=["laplace", "gaussian", "wide laplace", "wide gaussian"])
def test_what_is_surely_accepted_is_below_every_acceptance_of_its_column(law: ColumnLaw) -> None:
    drawn = sampler(law)
    shift = drawn.columns.shift
    certain = np.broadcast_to(drawn.certain, drawn.starts.shape) if drawn.certain.size == 1 else drawn.certain
    for start, sure in zip(drawn.starts.tolist(), certain.tolist(), strict=True):
        if start > -(2**63):
            assert sure <= 2**64 * (1 - drawn.columns.refusal(start, 2**shift - 1))


def test_a_coin_at_its_very_threshold_draws_on() -> None:
    exact = Fraction(1, 3)
    low, high = fixed_exp(exact, 200)
    first = low >> 192
    words = [low >> 184 & 255, (low >> 176 & 255) + 1]
    source = ReplayedWordsForTests(words, width=8)
    assert high - low < 2**64
    assert not Uniform(source, prefix=first, bits=8).below_exp(exact)
    assert source.used == 2


def _replay(words: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> ReplayedWordsForTests:
    return ReplayedWordsForTests(words)
