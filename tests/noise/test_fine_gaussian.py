"""The fine Gaussian: its tables against the definition, all short words, all three codes, and fresh draws."""

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from sfumato.core import enclosures
from sfumato.errors import InvalidInput
from sfumato.noise import SystemWords, fine_gaussian
from sfumato.noise import fine as drawing
from sfumato.noise import fine_loops as loops
from sfumato.noise.fine import SIGMA, draw_fine
from sfumato.noise.fine_table import FINE, WINDOW, FineTable, TableCut, fine
from tests.noise.replayed import Exhausted, ReplayedWordsForTests, fresh
from tests.parts import package

ALPHA = 1e-9
SMALL = [  # every part of the code is common here: short words leave much open, and the tail is a twentieth of the law
    TableCut(sigma=4, place=2, index=7, reach=2, width=10, lanes=1, choice=6),
    TableCut(sigma=4, place=1, index=8, reach=4, width=10, lanes=1, choice=7),
    TableCut(sigma=3, place=1, index=5, reach=2, width=9, lanes=1, choice=6),
]
SIZES = ["reach 2", "reach 4", "sigma 8"]


@pytest.fixture(autouse=True)
def _compiled_from_the_first_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MANY", 0)


def share(cut: TableCut, far: Fraction) -> mpmath.mpf:
    """The definition, by mpmath and not by the library: how many words a column gets by the density at a distance."""
    x = mpmath.mpf(far.numerator) / far.denominator / 2**cut.sigma
    return mpmath.mpf(2) ** (cut.index - cut.sigma + cut.place) * mpmath.sqrt(2 / mpmath.pi) * mpmath.exp(-x * x / 2)


def probability(cut: TableCut, z: int, off: Fraction = Fraction(1)) -> enclosures.Enclosure:
    """P(z) of the rounded Gaussian, or of one whose scale is smaller."""
    ends = [enclosures.normal_cdf(off * Fraction(2 * z + side, 2 << cut.sigma)) for side in (-1, 1)]
    return ends[1] - ends[0]


def all_pairs(width: int) -> tuple[np.ndarray, np.ndarray]:
    every = np.arange(1 << width, dtype=np.uint64)
    return np.repeat(every, 1 << width), np.tile(every, 1 << width)


@pytest.mark.few(2)
@pytest.mark.parametrize("cut", [FINE, *SMALL], ids=["in use", *SIZES])
def test_no_column_gets_more_words_than_its_least_likely_number_and_proposals_cover_the_rest(cut: TableCut) -> None:
    table = FineTable.of(cut)
    with mpmath.workdps(60):
        for c in range(cut.columns):
            farthest, nearest = (
                Fraction(((c + 1) << cut.place) * 2 + 1, 2),
                Fraction(max(0, (c << cut.place) * 2 - 1), 2),
            )
            assert table.given[c] <= share(cut, farthest) < table.given[c] + 1
            height = mpmath.mpf(table.units[c]) / table.scale
            assert share(cut, nearest) - table.given[c] <= height
            assert height < share(cut, nearest) - table.given[c] + mpmath.mpf(1.001) / table.scale
        for j in range(40 * cut.block):
            height = mpmath.mpf(table.units[-1]) / table.scale / 2 ** (j // cut.block)
            assert share(cut, cut.nearest(cut.columns + j)) <= height
    counted = table.choice.counted()
    for c, units in enumerate(table.units[:-1]):
        assert counted.get(c, 0) == units
    assert counted[cut.columns] == 2 * cut.block * table.units[-1]  # 1 + 1/2 + 1/4 + … blocks
    starts, times = np.unique(table.starts, return_counts=True)
    assert dict(zip(starts.tolist(), times.tolist(), strict=True)) == {
        **{c << cut.place: n for c, n in enumerate(table.given) if n},
        -1: 2**cut.index - sum(table.given),
    }


def test_one_hundredth_of_the_law_needs_a_proposal() -> None:
    assert 1 - sum(fine().given) / 2**15 < 0.0102
    assert fine().accepted > 0.6
    assert fine() is fine()


@pytest.mark.few(1)
@pytest.mark.parametrize("cut", SMALL, ids=SIZES)
def test_the_law_is_matched_exactly_by_enumerating_all_short_words(cut: TableCut) -> None:
    """Words that are decided give no number more than its probability, and with those still open not less either."""
    table = FineTable.of(cut)
    words = np.arange(1 << cut.width, dtype=np.uint64)
    out, again = np.empty(words.size, dtype=np.int64), np.empty(words.size + 1, dtype=np.int64)
    found = loops.look_up_arrays(table, words, out, again)
    direct = np.delete(out, again[:found])
    left = 2**cut.index - sum(table.given)
    assert Fraction(found, words.size) == Fraction(left, 2**cut.index)

    first, second = all_pairs(cut.width)
    values, verdicts = np.empty(first.size, dtype=np.int64), np.empty(first.size, dtype=np.int8)
    loops.judge_arrays(table, first, second, values, verdicts)
    columns = table.outcomes[[_slot(table, a >> (cut.width - cut.choice)) for a in range(1 << cut.width)]]
    inside = np.repeat(columns < cut.columns, 1 << cut.width)
    assert (verdicts[~inside] != loops.ACCEPTED).all()
    assert 0 < (verdicts == loops.OPEN).mean() < 0.8
    # A proposal is accepted with probability left·scale/2^choice, and left/2^index of the draws need one.
    rest = Fraction(left, 2**cut.index) / Fraction(left * table.scale, 2**cut.choice)
    numbers = range(-(cut.columns << cut.place), cut.columns << cut.place)
    twin_fails = False
    for z in numbers:
        sure = Fraction(int((direct == z).sum()), words.size)
        here = (values == z) & inside
        yes, open_ = (Fraction(int((here & (verdicts == it)).sum()), first.size) for it in (loops.ACCEPTED, loops.OPEN))
        low, high = sure + yes * rest, sure + (yes + open_) * rest
        truth = probability(cut, z)
        assert low <= truth.high
        assert truth.low <= high
        other = probability(cut, z, off=Fraction(20, 19))
        twin_fails |= low > other.high or other.low > high
    assert twin_fails  # a scale 5% too small is told apart by what is decided


def _slot(table: FineTable, word: int) -> int:
    return (word + int(table.choice.steps[word >> table.choice.shift])) % 2**64 >> table.choice.shift


@pytest.mark.few(1)
@pytest.mark.parametrize("cut", SMALL, ids=SIZES)
def test_floats_decide_nothing_otherwise_than_exact_numbers_do(cut: TableCut) -> None:
    table = FineTable.of(cut)
    pick = fresh(2500)
    first, second = (pick >> np.uint64(shift) & np.uint64((1 << cut.width) - 1) for shift in (0, 20))
    values, verdicts = np.empty(first.size, dtype=np.int64), np.empty(first.size, dtype=np.int8)
    loops.judge_arrays(table, first, second, values, verdicts)
    for a, b, z, verdict in zip(first.tolist(), second.tolist(), values.tolist(), verdicts.tolist(), strict=True):
        try:
            exact = table.settled(a, b, ReplayedWordsForTests([], width=cut.width))
        except Exhausted:
            assert verdict == loops.OPEN
            continue
        assert verdict == loops.OPEN or exact == (z if verdict == loops.ACCEPTED else None)
        if table._column(a >> (cut.width - cut.choice)) < cut.columns:
            assert every_corner(table, a, b) == {exact is not None}


def threshold(table: FineTable, column: int, z: int, f: mpmath.mpf) -> mpmath.mpf:
    """Below which u a proposal is accepted, by mpmath."""
    far = mpmath.mpf(z) - 0.5 + f
    x = far / 2**table.cut.sigma
    peak = mpmath.mpf(2) ** (table.cut.index - table.cut.sigma + table.cut.place) * mpmath.sqrt(2 / mpmath.pi)
    return (peak * mpmath.exp(-x * x / 2) - table.given[column]) * table.scale / table.units[column]


def every_corner(table: FineTable, a: int, b: int) -> set[bool]:
    """The answers at the corners of the intervals of u and f: a decision without more words must be all of them."""
    cut = table.cut
    blind, rest = cut.width - cut.choice, cut.width - 1 - cut.place
    column = table._column(a >> blind)
    z = (column << cut.place | b >> rest & ((1 << cut.place) - 1)) ^ -(b >> (cut.width - 1))
    hair = mpmath.mpf(2) ** -30  # the upper ends do not belong to the intervals
    answers = set()
    for f in (0, 1 - hair):
        limit = threshold(table, column, z, (b % (1 << rest) + f) / 2**rest)
        answers |= {(a % (1 << blind) + u) / 2**blind < limit for u in (0, 1 - hair)}
    return answers


def words_of(table: FineTable, outcome: int) -> list[int]:
    """Words that choose a column of few words: the ends of the parts into which the table is cut."""
    half = 1 << table.choice.shift
    ends = [h * half + end for h in range(len(table.choice.steps)) for end in (0, half - 1)]
    return [word for word in ends if table._column(word) == outcome]


Judge = Callable[..., None]
JUDGES: list[Judge] = [loops.judge, loops.judge_arrays]


@pytest.mark.parametrize("judge", JUDGES, ids=["numba", "numpy"])
def test_at_the_threshold_itself_proposals_are_judged_right(judge: Judge) -> None:
    """One unit of u below the threshold is accepted, one above refused, and the unit that holds it is left open."""
    table, kept = fine(), []
    for a, b in zip(fresh(400).tolist(), fresh(400).tolist(), strict=True):
        column = table._column(a >> 32)
        if column < 250 and table.units[column] > table.scale // 2:  # the window is far below a unit of u here
            b |= 2**32 - 1  # f is as far above what its first bits say as can be
            z = (column << 14 | b >> 49 & (2**14 - 1)) ^ -(b >> 63)
            with mpmath.workdps(50):
                k = int(threshold(table, column, z, mpmath.mpf(b % 2**49) / 2**49) * 2**32)
            if 2 <= k < 2**32 - 2:
                kept += [(a >> 32 << 32 | k + step, b, verdict) for step, verdict in TELLING]
    assert len(kept) > 600
    first, second = (np.array([it[i] for it in kept], dtype=np.uint64) for i in (0, 1))
    values, verdicts = np.empty(first.size, dtype=np.int64), np.empty(first.size, dtype=np.int8)
    judge(table, first, second, values, verdicts)
    wrong = verdicts != [it[2] for it in kept]
    assert not (wrong & (verdicts != loops.OPEN)).any()
    assert wrong.mean() < 0.05  # the window leaves few more open


TELLING = ((-2, loops.ACCEPTED), (0, loops.OPEN), (2, loops.REFUSED))


@pytest.mark.parametrize("judge", JUDGES, ids=["numba", "numpy"])
def test_the_tail_is_left_open_and_words_left_over_are_refused(judge: Judge) -> None:
    table = fine()
    for outcome, verdict in ((FINE.columns, loops.OPEN), (FINE.columns + 1, loops.REFUSED)):
        words = words_of(table, outcome)
        assert words
        first = np.array([word << 32 | low for word in words for low in (0, 2**32 - 1)], dtype=np.uint64)
        values, verdicts = np.empty(first.size, dtype=np.int64), np.empty(first.size, dtype=np.int8)
        judge(table, first, fresh(first.size), values, verdicts)
        assert (verdicts == verdict).all()


def test_accepted_proposals_keep_their_order_and_the_tail_its_numbers() -> None:
    table = FineTable.of(SMALL[0])
    number, mask = 300, np.uint64(1023)
    pairs, more = fresh(2 * number) & mask, fresh(9000) & mask
    tail = next(word for word in range(64) if table._column(word) == 8)
    pairs[:number:4] = (pairs[:number:4] & np.uint64(15)) | np.uint64(tail << 4)
    drawn = drawing.accepted_proposals(table, pairs, ReplayedWordsForTests(more, width=10)).tolist()
    source, wanted = ReplayedWordsForTests(more, width=10), []
    values, verdicts = np.empty(number, dtype=np.int64), np.empty(number, dtype=np.int8)
    loops.judge_arrays(table, pairs[:number], pairs[number:], values, verdicts)
    for a, b, verdict in zip(pairs[:number].tolist(), pairs[number:].tolist(), verdicts.tolist(), strict=True):
        if verdict != loops.REFUSED:
            none = verdict == loops.ACCEPTED  # those take no further words
            settled = table.settled(a, b, ReplayedWordsForTests([], width=10) if none else source)
            wanted += [] if settled is None else [settled]
    assert drawn == wanted
    assert max(abs(z) for z in drawn) >= 8 << 2


def test_places_take_the_accepted_proposals_in_order_however_many_are_made_at_a_time() -> None:
    size = 30_000
    table = replace(fine(), accepted=10.0)  # believes that it needs few, and so asks again and again
    words = fresh(size // 2 + 9000)
    out, plain, again = (np.empty(size + extra, dtype=np.int64) for extra in (0, 0, 1))
    draw_fine(table, out, ReplayedWordsForTests(words))
    found = 0
    for first in range(0, size, drawing.CHUNK):
        part = words[first // 2 : (first + drawing.CHUNK) // 2]
        found += loops.look_up_arrays(table, part[: size // 2], plain[first : first + drawing.CHUNK], again[found:])
    used, places, rounds = size // 2, again[:found], 0
    while places.size:
        number = int(places.size * 1.1 / 10.0) + 32
        pairs = words[used : used + 2 * number]
        taken = drawing.accepted_proposals(table, pairs, ReplayedWordsForTests([]))[: places.size]
        plain[places[: taken.size]] = taken
        used, places, rounds = used + 2 * number, places[taken.size :], rounds + 1
    assert rounds > 3
    assert out.tolist() == plain.tolist()


@pytest.mark.few(1)
@pytest.mark.parametrize("cut", [FINE, *SMALL], ids=["in use", *SIZES])
def test_what_is_open_is_settled_as_the_definition_says(cut: TableCut) -> None:
    """The real numbers u and f are known to 200 bits here, and compared by mpmath; both sides of 0 and the tail."""
    table = FineTable.of(cut)
    blind, rest = cut.width - cut.choice, cut.width - 1 - cut.place
    mask = (1 << cut.width) - 1
    seen = {True: 0, False: 0, "tail": 0}
    tail = next(w for w in range(1 << cut.choice) if table._column(w) == cut.columns) if cut.choice < 10 else None
    for i, word in enumerate(fresh(300 if cut is FINE else 600).tolist()):
        a, b = (word & mask, word >> 24 & mask) if cut.width < 64 else (word, int(fresh(1)[0]))
        if tail is not None and i % 3 == 0:
            a = a & ((1 << blind) - 1) | tail << blind
        more = (fresh(40) & np.uint64(mask)).tolist()
        source = ReplayedWordsForTests(more, width=cut.width)
        drawn = table.settled(a, b, source)
        column, level, used = table._column(a >> blind), 0, 0
        if column > cut.columns:
            assert drawn is None
            continue
        if column == cut.columns:
            seen["tail"] += 1
            replay = ReplayedWordsForTests(more, width=cut.width)
            level, column = table._beyond(replay)
            used = replay.used
        z = (column << cut.place | b >> rest & ((1 << cut.place) - 1)) ^ -(b >> (cut.width - 1))
        u, f, bits = a & ((1 << blind) - 1), b & ((1 << rest) - 1), cut.width
        for j in range(used, 40 - 1, 2):
            u, f = u << bits | more[j], f << bits | more[j + 1]
            blind_now, rest_now = blind + bits * ((j - used) // 2 + 1), rest + bits * ((j - used) // 2 + 1)
        with mpmath.workdps(120):
            far = mpmath.mpf(2 * z - 1) / 2 + mpmath.mpf(f) / mpmath.mpf(2) ** rest_now
            given = table.given[column] if column < cut.columns else 0
            height = mpmath.mpf(table.units[min(column, cut.columns)]) / table.scale / 2**level
            x = far / 2**cut.sigma
            peak = mpmath.mpf(2) ** (cut.index - cut.sigma + cut.place) * mpmath.sqrt(2 / mpmath.pi)
            wanted = mpmath.mpf(u) / mpmath.mpf(2) ** blind_now * height + given < peak * mpmath.exp(-x * x / 2)
        assert drawn == (z if wanted else None)
        seen[bool(wanted)] += 1
    assert min(seen[True], seen[False]) > 20
    assert cut is FINE or seen["tail"] > 100


def test_the_tail_halves_from_block_to_block() -> None:
    table = FineTable.of(SMALL[0])  # blocks of two columns after the eighth
    for words, found in (
        ([512, 0], (0, 8)),
        ([512, 1023], (0, 9)),
        ([0, 511, 512, 0], (2, 12)),
        ([1, 600, 700], (1, 11)),
    ):
        source = ReplayedWordsForTests(words, width=10)
        assert table._beyond(source) == found
        assert source.used == len(words)


@pytest.mark.parametrize("size", [1, 2, 7, 4096, 70_001])
def test_numba_and_numpy_draw_the_same_numbers_from_the_same_words(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    package("numba")
    assert loops._compiled() is not None
    words = fresh(size + 4000)
    draws = []
    for absent in (False, True):
        if absent:
            monkeypatch.setattr(loops, "_compiled", lambda: None)
        source = ReplayedWordsForTests(words)
        draws.append((fine_gaussian(size, source).tolist(), source.used))
    assert draws[0] == draws[1]


def test_numba_is_loaded_once_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(loops, "_compiled", lambda: asked.append(1))
    monkeypatch.setattr(loops, "_drawn", 0)
    monkeypatch.setattr(loops, "MANY", 3 * drawing.CHUNK)
    fine_gaussian(2 * drawing.CHUNK)
    assert not asked
    fine_gaussian(drawing.CHUNK)
    assert asked


def test_the_loops_as_they_are_written_are_what_is_compiled() -> None:
    """Plain Python on few words: what numba compiles is no other function."""
    table, cut = fine(), FINE
    words = fresh(300)
    words[:3] = (0, 2**64 - 1, 2**63)
    for size in (599, 600):
        plain, arrays = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        again, other = np.empty(size + 1, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
        with np.errstate(over="ignore"):
            found = loops._look_up(
                words, table.starts, np.uint64(32 - cut.index), np.uint64(cut.place + 1), plain, again
            )
        assert loops.look_up_arrays(table, words, arrays, other) == found
        assert again[:found].tolist() == other[:found].tolist()
        assert plain.tolist() == arrays.tolist()
    first, second = fresh(400), fresh(400)
    first[:4], second[:2] = (0, 2**32 - 1, 2**64 - 1, 2**32), (0, 2**64 - 1)
    results = []
    sizes = np.array([32, table.choice.shift, cut.place], dtype=np.uint64)
    for judge in (
        lambda *out: loops._judge(
            first, second, sizes, table.choice.steps, table.outcomes, table.floats, 2.0**-41, *out
        ),
        lambda *out: loops.judge_arrays(table, first, second, *out),
        lambda *out: loops.judge(table, first, second, *out),
    ):
        values, verdicts = np.empty(400, dtype=np.int64), np.empty(400, dtype=np.int8)
        with np.errstate(over="ignore"):
            judge(values, verdicts)
        results.append((values.tolist(), verdicts.tolist()))
    assert results[0] == results[1] == results[2]


def test_a_window_in_which_no_float_is_trusted_gives_the_same_draws() -> None:
    size = 3000
    words = fresh(size + 2000)
    draws = []
    for window in (WINDOW, 1e9):
        source = ReplayedWordsForTests(words)
        out = np.empty(size, dtype=np.int64)
        draw_fine(fine() if window == WINDOW else FineTable.of(FINE, window=window), out, source)
        draws.append((out.tolist(), source.used))
    assert draws[0] == draws[1]  # a draw that 64 bits leave open has probability below 2^-30


def test_the_floats_of_a_proposal_err_by_less_than_a_quarter_of_the_window() -> None:
    table = fine()
    worst = mpmath.mpf(0)
    q = np.linspace(0, loops.LARGEST_Q, 1001)
    e = np.ones_like(q)
    for k in range(9, 0, -1):
        e = 1 - e * q / k
    assert np.abs(e - np.exp(-q)).max() < 2.0**-48
    for word in fresh(300).tolist():
        c, within, f = word % FINE.columns, word >> 10 & (2**14 - 1), word >> 24 & (2**40 - 1)
        near, share_here, given, height, slack = table.floats[c].tolist()
        far = abs((c << 14 | within) + f / 2**40 - 0.5)
        x = (far - near) * (far + near) * 2.0**-41
        assert x <= loops.LARGEST_Q
        level = share_here * math.exp(-x) - given
        with mpmath.workdps(40):
            worst = max(worst, abs(share(FINE, Fraction(far)) - given - level))
        assert WINDOW <= slack < 1.01 * WINDOW
        assert height == pytest.approx(float(Fraction(table.units[c], table.scale)), rel=1e-15)
    assert worst < 2.0**-38
    assert WINDOW == 4 * 2.0**-38


N = 480_000


def distance(draws: np.ndarray, sigma: float) -> float:
    """The largest difference between the empirical and the stated distribution function."""
    values, counts = np.unique(draws, return_counts=True)
    empirical = np.cumsum(counts) / len(draws)
    stated, before = ndtr((values + 0.5) / sigma), ndtr((values - 0.5) / sigma)
    return float(max(np.abs(empirical - stated).max(), np.abs(np.concatenate([[0], empirical[:-1]]) - before).max()))


@pytest.mark.alpha(3 * ALPHA)
def test_fresh_draws_follow_the_law_and_a_wrong_scale_would_be_seen() -> None:
    """Dvoretzky, Kiefer and Wolfowitz: α = 1e-9; a scale 5% off is missed as rarely. Moments: 7 standard errors."""
    draws = fine_gaussian(N)
    limit = math.sqrt(math.log(2 / ALPHA) / (2 * N))
    assert distance(draws, SIGMA) < limit
    assert distance(draws, 0.95 * SIGMA) > limit
    scaled = draws / SIGMA
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((scaled**power).mean() - mean) < 7 * math.sqrt(variance / N)
    assert abs((scaled[1:] * scaled[:-1]).mean()) < 7 / math.sqrt(N)  # neighbours share a word


def slope(draws: np.ndarray) -> float:
    """How far the numbers lean to the inner half of their columns, in standard errors from where they should."""
    y = np.where(draws < 0, ~draws, draws)
    inner = (y & (1 << 13)) == 0
    edges = np.arange(0, 10 * SIGMA, 1 << 13) - 0.5
    cells = np.diff(ndtr(edges / SIGMA)) + np.diff(
        ndtr((edges + 1) / SIGMA)
    )  # of y on both sides: −1 − y is a step off
    wanted = float((cells[::2].sum() - cells[1::2].sum()) / cells.sum())
    return float(((2 * inner.mean() - 1) - wanted) * math.sqrt(draws.size))


@pytest.mark.alpha(ALPHA)
def test_draws_lean_in_their_columns_as_the_law_does_and_without_the_coins_they_do_not() -> None:
    """16 million draws: without coins the lean is 12 standard errors off, which a limit of 6.2 sees but for 4e-9."""
    assert abs(slope(fine_gaussian(1 << 24))) < 6.2


@pytest.mark.alpha(4 * ALPHA)
def test_without_coins_the_lean_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(
        table: FineTable, first: np.ndarray, second: np.ndarray, values: np.ndarray, verdicts: np.ndarray
    ) -> None:
        loops.judge_arrays(table, first, second, values, verdicts)
        verdicts[:] = loops.ACCEPTED

    monkeypatch.setattr(drawing, "judge", careless)
    assert abs(slope(fine_gaussian(1 << 24))) > 6.2


class AlwaysTheSame:
    """Whoever asks is handed the same words, from their beginning."""

    width = 64

    def __init__(self, words: np.ndarray) -> None:
        self.words = words

    def fill(self, out: np.ndarray) -> None:
        ReplayedWordsForTests(self.words).fill(out)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_place_is_drawn_once_whatever_the_number_of_threads(threads: int) -> None:
    size = 3 * drawing._ALONE + 5
    words = fresh(drawing.CHUNK)
    out = fine_gaussian(size, AlwaysTheSame(words), threads=threads)
    ends = [size * i // threads for i in range(threads + 1)]
    for low, high in pairwise(ends):
        assert out[low:high].tolist() == fine_gaussian(high - low, AlwaysTheSame(words)).tolist()


def test_what_fails_in_a_thread_is_raised_and_no_thread_is_left() -> None:
    before = threading.active_count()
    with pytest.raises(Exhausted):
        fine_gaussian(3 * drawing._ALONE, AlwaysTheSame(fresh(10)), threads=2)
    assert threading.active_count() == before


@pytest.mark.alpha(1e-100)
def test_two_calls_differ_and_sizes_are_checked() -> None:
    assert fine_gaussian(20).tolist() != fine_gaussian(20, SystemWords()).tolist()
    assert fine_gaussian(0).shape == (0,)
    for size in (-1, 1.5, True):
        with pytest.raises(InvalidInput):
            fine_gaussian(size)  # type: ignore[arg-type]


def test_an_array_can_be_written_to_and_no_other() -> None:
    words = fresh(200)
    out = np.zeros(50, dtype=np.int64)
    assert fine_gaussian(50, ReplayedWordsForTests(words), out=out) is out
    assert out.tolist() == fine_gaussian(50, ReplayedWordsForTests(words)).tolist()
    for wrong in (np.zeros(51, np.int64), np.zeros(50, np.int32), np.zeros(100, np.int64)[::2]):
        with pytest.raises(InvalidInput, match="nothing was drawn"):
            fine_gaussian(50, out=wrong)


def test_scratch_words_are_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    class Watched(SystemWords):
        def fill(self, out: np.ndarray) -> None:
            super().fill(out)
            kept.append(out)

    fine_gaussian(4000, Watched())
    assert len(kept) > 1
    assert not any(words.any() for words in kept)
