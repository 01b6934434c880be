"""The samplers' own probabilities are the law's: from their tables, by enumerating short words, and at the window."""

import itertools
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.noise import sampler as bulk
from sfumato.noise.alias import AliasTable
from sfumato.noise.columns import ColumnLaw, NoiseColumns
from sfumato.noise.proposals import CLOSE, LEAST_Q, MARGIN, QUICK, NearExp, Proposals, falling
from sfumato.noise.sampler import Sampler
from sfumato.noise.uniform import Uniform, fixed_exp
from tests.noise.laws import (
    LAWS,
    SMALL,
    all_by_proposals,
    density,
    gaussian,
    laplace,
    look_up,
    number,
    probability,
    rounded,
)
from tests.noise.replayed import Exhausted, ReplayedWordsForTests, fresh

BLIND = NearExp(1e30, QUICK.largest, CLOSE.coefficients)  # no float is trusted with anything


def test_there_are_enough_settings() -> None:
    assert len(LAWS) >= 60


@pytest.mark.few(12)
@pytest.mark.parametrize("law", LAWS)
def test_what_a_law_says_of_itself_is_enclosed_around_the_definition(law: ColumnLaw) -> None:
    with mpmath.workdps(90):
        peak = law.peak(200)
        assert peak.width <= peak.low / 2**200
        truth = density(law, Fraction(0))
        slack = truth * mpmath.mpf(2) ** -230
        assert number(peak.low) - slack <= truth <= number(peak.high) + slack
        twin = replace(
            law, linear=law.linear * (1 + Fraction(1, 2**128)), quadratic=law.quadratic * (1 + Fraction(1, 2**128))
        )
        if float(law.linear + law.quadratic) < 20:  # beyond that nearly all of the law is at 0, whatever the scale
            assert not twin.peak(200).low <= peak.high <= twin.peak(200).high


def covered(proposals: Proposals) -> None:
    """No column's height is below what is left of its share, nor the tail's; and the words are dealt out so."""
    columns, cut, law = proposals.columns, proposals.cut, proposals.columns.law
    sides, wide = columns.sides, Fraction(2) ** cut.place
    words = mpmath.mpf(2) ** cut.index * number(wide)
    ranks = cut.columns * sides
    scale = number(proposals.scale)
    for j in itertools.chain(range(min(ranks, 9)), range(9, ranks, 41), range(max(ranks - 2, 0), ranks)):
        edge = columns.edge(j)
        near, height = max(edge, Fraction(0)), mpmath.mpf(int(proposals.units[j])) / scale
        assert words * density(law, near) - int(proposals.given[j]) <= height
        far = max(abs(edge), edge + (wide if law.rounded else wide - 1))
        assert int(proposals.given[j]) <= words * density(law, far)
        assert int(proposals.starts[j]) == columns.start(j)
    assert proposals.units[-1] > 0
    height = mpmath.mpf(int(proposals.units[-1])) / scale / (2 * proposals.block * sides)
    for j in range(0, 12 * proposals.block, max(1, proposals.block // 3)):
        near = columns.edge(ranks + j * sides)
        assert words * density(law, near) <= height / 2 ** (j // proposals.block)
    chosen, counts = np.unique(proposals.choice, return_counts=True)
    assert counts[: ranks + 1].tolist() == proposals.units.tolist()
    assert chosen.tolist() == list(range(len(counts)))
    assert proposals.choice.size == 1 << cut.choice
    left = (1 << cut.index) - int(proposals.given.sum())
    assert proposals.accepted == pytest.approx(left * float(proposals.scale) / 2**cut.choice)


@pytest.mark.few(12)
@pytest.mark.parametrize("law", LAWS)
def test_no_column_gets_more_words_than_its_least_likely_number_and_proposals_cover_the_rest(law: ColumnLaw) -> None:
    made = Sampler(law)
    with mpmath.workdps(60):
        covered(made.few)
        covered(made.many.rest)
    looked = made.many
    columns, given = looked.rest.columns, looked.rest.given
    assert looked.over == 2**looked.cut.index - int(given.sum())
    assert looked.over < 0.032 * 2**looked.cut.index  # nearly all is drawn by one look-up
    assert made.few.accepted > 0.8
    assert looked.rest.accepted > 0.4
    starts = np.repeat([columns.start(j) for j in range(given.size)], given)
    assert (looked.starts[looked.over :] == starts).all()
    assert looked.cut.index + max(looked.cut.place, 0) <= 64  # the bits of a word are used once
    for proposals in (looked.rest, made.few):  # floats decide nearly everywhere, and nowhere that they cannot
        exponents = [law.exponent(abs(proposals.columns.edge(j))) for j in range(proposals.given.size)]
        assert (np.isfinite(proposals.slacks[:-2]) == [exponent <= 50 for exponent in exponents]).all()


def test_one_word_too_much_is_seen() -> None:
    looked = look_up(*SMALL["laplace 2"])
    given = looked.rest.given.copy()
    given[3] += 1
    with pytest.raises(AssertionError), mpmath.workdps(60):
        covered(replace(looked.rest, given=given))


def everything(proposals: Proposals) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of words: the numbers, what is accepted, what is open, and which columns are proposed."""
    width = proposals.cut.width
    every = np.arange(1 << width, dtype=np.uint64)
    first, second = np.repeat(every, 1 << width), np.tile(every, 1 << width)
    values, beyond, slack = proposals.compared(first, second)
    open_ = np.abs(beyond) < slack
    column = proposals.choice[(first >> np.uint64(width - proposals.cut.choice)).view(np.int64)]
    return values, (beyond < 0) & ~open_, open_, column


def told_apart(law: ColumnLaw, parts: dict[int, tuple[Fraction, Fraction]]) -> bool:
    """Whether some number's probability lies outside of what is known of it."""
    wrong = False
    for z, (low, high) in parts.items():
        truth, slack = probability(law, z), mpmath.mpf(2) ** -100
        wrong |= not number(low) - slack <= truth <= number(high) + slack
    return wrong


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("few", [False, True], ids=["many", "few"])
def test_the_law_is_matched_exactly_by_enumerating_all_short_words(name: str, few: bool) -> None:
    """Words that are decided give no number more than its probability, and with those still open not less either."""
    law, cut = SMALL[name]
    looked = look_up(law, cut)
    direct, left = np.empty(0, dtype=np.int64), 2**cut.index
    proposals = all_by_proposals(law, cut) if few else looked.rest
    if not few:
        words = np.arange(1 << cut.width, dtype=np.uint64)
        out = np.empty(words.size, dtype=np.int64)
        scratch = np.empty((2, words.size), dtype=np.uint64)
        again = looked.looked_up(out, ReplayedWordsForTests(words, width=cut.width), scratch)
        direct, left = np.delete(out, again), looked.over
        assert Fraction(again.size, words.size) == Fraction(left, 2**cut.index)
    values, yes, open_, column = everything(proposals)
    inside = column < cut.columns * proposals.columns.sides
    assert not yes[~inside].any()
    assert 0 < open_[inside].mean() < 0.8
    # A proposal is accepted with probability left·scale/2^choice, and left/2^index of the draws need one.
    rest = Fraction(left, 2**cut.index) / (left * proposals.scale / 2**cut.choice)
    ends = [
        proposals.columns.start(cut.columns * proposals.columns.sides - 1 - side)
        for side in range(proposals.columns.sides)
    ]
    size = max(abs(end) for end in ends) - 1 if proposals.columns.narrow else min(abs(end) for end in ends)
    parts = {}
    for z in range(-size * law.two_sided, size + 1):
        sure = Fraction(int((direct == z).sum()), 1 << cut.width)
        here = inside & (values == z)
        accepted, undecided = (Fraction(int((here & it).sum()), values.size) for it in (yes, open_))
        parts[z] = (sure + accepted * rest, sure + (accepted + undecided) * rest)
    with mpmath.workdps(50):
        assert not told_apart(law, parts)
        # A scale that is off is told apart by what is decided.
        for times in (Fraction(6, 5), Fraction(5, 6)):
            twin = replace(law, linear=law.linear * times, quadratic=law.quadratic * times**2)
            assert told_apart(twin, parts)


def threshold(proposals: Proposals, column: int, low: int, along: mpmath.mpf) -> mpmath.mpf:
    """Below which u a proposal is accepted, by mpmath; ``along`` is the place in a column of a rounded law."""
    cut, law, edge = proposals.cut, proposals.columns.law, proposals.columns.edge(column)
    wide = mpmath.mpf(2) ** cut.place
    if law.rounded:
        t = number(edge) + along * wide
        here = density(law, Fraction(0)) * mpmath.exp(-number(law.quadratic) * t * t)
    else:
        here = density(law, edge + low)
    left = here * wide * mpmath.mpf(2) ** cut.index - int(proposals.given[column])
    return left * number(proposals.scale) / int(proposals.units[column])


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SMALL)
def test_floats_decide_nothing_otherwise_than_exact_numbers_do(name: str) -> None:
    law, cut = SMALL[name]
    for proposals in (look_up(law, cut).rest, all_by_proposals(law, cut, QUICK)):
        mask = np.uint64((1 << cut.width) - 1)
        pick = fresh(400)
        first, second = pick & mask, pick >> np.uint64(20) & mask
        values, beyond, slack = proposals.compared(first, second)
        for i in range(pick.size):
            a, b = int(first[i]), int(second[i])
            verdict = None if abs(beyond[i]) < slack[i] else bool(beyond[i] < 0)
            try:
                exact = proposals.settled(a, b, ReplayedWordsForTests([], width=cut.width))
            except Exhausted:
                assert verdict is None
                continue
            assert verdict is None or exact == (int(values[i]) if verdict else None)
            rest = cut.width - cut.choice
            column = int(proposals.choice[a >> rest])
            if column >= proposals.units.size - 1:
                continue
            low, hair = b >> (cut.width - max(cut.place, 0)), mpmath.mpf(2) ** -30  # upper ends do not belong
            answers = set()
            for f, u in itertools.product((0, 1 - hair), (0, 1 - hair)):
                limit = threshold(proposals, column, low, (b + f) / mpmath.mpf(2) ** cut.width)
                answers.add((a % (1 << rest) + u) / mpmath.mpf(2) ** rest < limit)
            assert answers == {exact is not None}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SMALL)
def test_what_is_open_is_settled_as_the_definition_says(name: str) -> None:
    """The real numbers u and f are known to 300 bits here, and compared by mpmath; also in the tail."""
    law, cut = SMALL[name]
    proposals = look_up(law, cut).rest
    sides, width, rest = proposals.columns.sides, cut.width, cut.width - cut.choice
    mask, seen = (1 << width) - 1, {True: 0, False: 0, "tail": 0}
    tail = int((proposals.choice == proposals.units.size - 1).argmax())
    for i, word in enumerate(fresh(400).tolist()):
        a, b = word & mask, word >> 24 & mask
        if i % 3 == 0:
            a = a & ((1 << rest) - 1) | tail << rest
        more = (fresh(80) & np.uint64(mask)).tolist()
        column = int(proposals.choice[a >> rest])
        drawn = proposals.settled(a, b, ReplayedWordsForTests(more, width=width))
        if column == proposals.units.size:
            assert drawn is None
            continue
        used, level = 0, 0
        replay = ReplayedWordsForTests(more, width=width)
        if column == proposals.units.size - 1:
            level, column = proposals._beyond(replay)
            seen["tail"] += 1
            assert column >= cut.columns * sides
        used = replay.used
        u, f, known = a & ((1 << rest) - 1), b, 0
        step = 2 if law.rounded else 1
        for j in range(used, used + 30 * step, step):
            u, known = u << width | more[j], known + 1
            f = f << width | (more[j + 1] if law.rounded else 0)
        with mpmath.workdps(150):
            low = b >> (width - max(cut.place, 0))
            t = number(proposals.columns.edge(column))
            t += mpmath.mpf(f) * mpmath.mpf(2) ** (cut.place - width * (known + 1)) if law.rounded else low
            weight = mpmath.exp(-number(law.linear) * t - number(law.quadratic) * t * t) * density(law, Fraction(0))
            share = weight * mpmath.mpf(2) ** (cut.place + cut.index)
            spread = 2 * proposals.block * sides << level
            tailed = column >= cut.columns * sides
            height = (
                int(proposals.units[-1 if tailed else column]) / number(proposals.scale) / (spread if tailed else 1)
            )
            given = 0 if tailed else int(proposals.given[column])
            wanted = bool(mpmath.mpf(u) / mpmath.mpf(2) ** (rest + width * known) * height + given < share)
        assert drawn == (proposals.columns.start(column) ^ low if wanted else None)
        seen[wanted] += 1
    assert min(seen.values()) > 5


def test_the_tail_halves_from_block_to_block_on_both_sides() -> None:
    for name, sides in (("laplace 2", 2), ("geometric 15 by 4", 1)):
        law, cut = SMALL[name]
        proposals = look_up(law, cut).rest
        width, block = cut.width, proposals.block
        assert block == {2: 2, 1: 3}[sides]
        top, one = 1 << (width - 1), 1 << (width - (block - 1).bit_length())
        for words, level, rank in (([top, 0], 0, 0), ([top, one], 0, 1), ([0, top - 1, top, 0], 2, 2 * block)):
            for side in range(sides):
                source = ReplayedWordsForTests([*words, *([side * top] if sides == 2 else [])], width=width)
                assert proposals._beyond(source) == (level, (cut.columns + rank) * sides + side)
                assert source.used == source.words.size


@pytest.mark.parametrize("near_exp", [QUICK, CLOSE], ids=["few", "many"])
def test_the_polynomials_are_within_a_quarter_of_their_window(near_exp: NearExp) -> None:
    """Between the points of the grid the difference moves by less than its slope, 2^−8, times half a step."""
    q = np.linspace(-LEAST_Q, near_exp.largest, 200_001)
    slope = 2.0**-8 * (q[1] - q[0]) / 2
    worst = max(
        abs(float(mpmath.mpf(p) - mpmath.exp(-mpmath.mpf(x)))) for x, p in zip(q[::40], near_exp(q)[::40], strict=True)
    )
    assert np.abs(near_exp(q) - np.exp(-q)).max() + min(slope, 2.0**-34) + 2.0**-50 < near_exp.window / 4
    assert worst < near_exp.window / 4


def test_the_exponentials_of_tables_are_closer_than_their_margin() -> None:
    x = np.concatenate([np.linspace(0, 50, 3_001), fresh(1_000) / 2.0**64 * 50])
    with mpmath.workdps(40):
        errors = [
            abs(mpmath.mpf(y) * mpmath.exp(mpmath.mpf(t)) - 1)
            for t, y in zip(x.tolist(), falling(x).tolist(), strict=True)
        ]
    assert max(errors) < mpmath.mpf(2) ** -40
    assert MARGIN == 2.0**-32


IN_USE = [
    laplace(str(2**40)),
    gaussian(str(2**40)),
    rounded("12"),
    rounded("10000"),
    rounded(str(2**40)),
    laplace("25"),
]
NAMES = ["laplace 2^40", "gaussian 2^40", "rounded 12", "rounded 10000", "rounded 2^40", "laplace 25"]


@pytest.mark.few(3)
@pytest.mark.parametrize("law", IN_USE, ids=NAMES)
def test_floats_and_exact_numbers_accept_the_same(law: ColumnLaw) -> None:
    made = Sampler(law)
    words = fresh(4_000)
    for proposals in (made.few, made.many.rest):
        blind = Proposals.of(
            proposals.columns,
            proposals.cut,
            shares_of(proposals),
            None if proposals.gifts is None else proposals.given,
            BLIND,
        )
        assert (blind.slacks[:-1] > 2.0**60).all()
        values, yes = proposals.judged(300, ReplayedWordsForTests(words))
        exact, sure = blind.judged(300, ReplayedWordsForTests(words))
        assert (yes == sure).all()
        assert (values[yes] == exact[yes]).all()
        assert yes.sum() > 0


def shares_of(proposals: Proposals) -> bulk.ColumnShares:
    return bulk.ColumnShares.of(proposals.columns, proposals.cut)


@pytest.mark.few(3)
@pytest.mark.parametrize("law", IN_USE, ids=NAMES)
def test_the_floats_err_by_less_than_a_quarter_of_what_is_allowed(law: ColumnLaw) -> None:
    made = Sampler(law)
    for proposals in (made.few, made.many.rest):
        first, second = fresh(200), fresh(200)
        second[:2] = (0, 2**64 - 1)
        _, beyond, slack = proposals.compared(first, second)
        rest = proposals.cut.width - proposals.cut.choice
        for a, b, claimed, allowed in zip(
            first.tolist(), second.tolist(), beyond.tolist(), slack.tolist(), strict=True
        ):
            column = int(proposals.choice[a >> rest])
            if column >= proposals.units.size - 1:
                continue
            with mpmath.workdps(60):
                low = b >> (64 - max(proposals.cut.place, 0))
                limit = threshold(proposals, column, low, mpmath.mpf(b) / mpmath.mpf(2) ** 64) * mpmath.mpf(2) ** rest
                assert abs(claimed - (a % (1 << rest) - limit)) < allowed / 4


@pytest.mark.alpha(1e-9)
def test_floats_that_err_by_more_than_the_window_are_seen() -> None:
    fast, words = Sampler(IN_USE[0]).few, fresh(40_000)
    wrong = replace(
        fast, near_exp=NearExp.of(QUICK.window, QUICK.largest, *(float(c) * 1.01 for c in QUICK.coefficients))
    )
    honest, _ = fast.judged(4_000, ReplayedWordsForTests(words)), None
    twin = wrong.judged(4_000, ReplayedWordsForTests(words))
    assert (honest[1] != twin[1]).any()  # equal with probability below 1e-9


@pytest.mark.parametrize("law", [laplace("12"), rounded("1/2"), rounded("10000")], ids=["laplace", "narrow", "wide"])
def test_what_few_draws_read_is_strewn_over_the_memory_by_the_word_alone(law: ColumnLaw) -> None:
    """Each word has a row of its own, and the rows of near and far numbers lie side by side."""
    few = Sampler(law).few
    assert few.rows is not None
    assert few.rows.shape == (1 << few.cut.choice, 4)
    for place, it in enumerate((few.shares, few.slopes, few.slacks)):
        assert (few.rows[:, place] == it[few.choice]).all()
    sizes = np.abs(few.rows.view(np.int64)[:, 3])
    assert (few.rows.view(np.int64)[:, 3] == few.starts[few.choice]).all()
    page = 128  # rows
    near = (sizes > np.median(sizes)).reshape(-1, page).mean(axis=1)
    assert np.abs(near - near.mean()).max() < 0.1
    assert Sampler(law).many.rest.rows is None


@pytest.mark.parametrize("scale", ["1/2", "25", "10000", "8000000", str(2**40), str(2**55)])
def test_a_word_or_half_of_one_is_looked_up_as_the_table_says(scale: str) -> None:
    for law in (laplace(scale), *([] if scale == str(2**55) else [rounded(scale)])):
        looked = Sampler(law).many
        index, place, lane = looked.cut.index, max(looked.cut.place, 0), looked.lane
        assert lane == (32 if index + place <= 32 else 64)
        for size in (2_000, 2_001):
            words = fresh(size)
            words[:4] = (0, 2**64 - 1, (looked.over << (64 - index)) - 1, looked.over << (64 - index))
            out, scratch = np.empty(size, dtype=np.int64), np.empty((2, size), dtype=np.uint64)
            source = ReplayedWordsForTests(words)
            again = set(looked.looked_up(out, source, scratch).tolist())
            assert source.used == (size if lane == 64 else (size + 1) // 2)
            lanes = (words if lane == 64 else words.view(np.uint32)).tolist()
            for i, drawn in enumerate(out.tolist()):
                top = lanes[i] >> (lane - index)
                assert (i in again) is (top < looked.over)
                assert i in again or drawn == int(looked.starts[top]) ^ (lanes[i] % (1 << place))


def test_few_draws_take_the_steps_of_proposals_and_many_those_of_the_table() -> None:
    law = laplace("12")
    words = fresh(4_000)
    made = Sampler(law)
    assert bulk.ALIKE == 256
    assert (made.draw(256, ReplayedWordsForTests(words)) == made.few.draw(256, ReplayedWordsForTests(words))).all()
    assert (made.draw(257, ReplayedWordsForTests(words)) == made.many.draw(257, ReplayedWordsForTests(words))).all()


def test_places_take_the_accepted_proposals_in_order_however_many_are_made_at_a_time() -> None:
    looked = Sampler(rounded("10000")).many
    hasty = replace(looked, rest=replace(looked.rest, accepted=50.0))  # asks for too few, again and again
    size = 40_000
    words = fresh(size + 9_000)  # more than enough
    drawn = hasty.draw(size, ReplayedWordsForTests(words))
    plain, source = np.empty(size, dtype=np.int64), ReplayedWordsForTests(words)
    places = []
    for first in range(0, size, bulk.CHUNK):
        part = plain[first : first + bulk.CHUNK]
        places += (looked.looked_up(part, source, np.empty((2, part.size), dtype=np.uint64)) + first).tolist()
    assert 300 < len(places) < 2_000
    kept: list[int] = []
    rounds = 0
    while len(kept) < len(places):
        values, yes = looked.rest.judged(int((len(places) - len(kept)) * 1.1 / 50.0) + 32, source)
        kept += values[yes].tolist()
        kept, rounds = kept[: len(places)], rounds + 1
    plain[places] = kept
    assert rounds > 3
    assert (drawn == plain).all()


def test_a_number_beyond_64_bits_is_refused_and_not_wrapped() -> None:
    few = Sampler(laplace(str(2**55))).few
    place = few.columns.place
    assert few._number(2 * ((1 << (63 - place)) - 1), (1 << place) - 1) == 2**63 - 1
    with pytest.raises(InvalidInput, match="beyond 64 bits"):
        few._number(2 << (63 - place), 0)
    assert NoiseColumns(law=few.columns.law, place=place).start(2 << (63 - place)) == 2**63


def test_a_cut_that_cannot_be_dealt_out_is_refused() -> None:
    law, cut = SMALL["laplace 2"]
    with pytest.raises(AssertionError, match="fewer words than columns"):
        look_up(law, replace(cut, choice=4, columns=30))


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


def test_a_coin_at_its_very_threshold_draws_on() -> None:
    exact = Fraction(1, 3)
    low, high = fixed_exp(exact, 200)
    first = low >> 192
    words = [low >> 184 & 255, (low >> 176 & 255) + 1]
    source = ReplayedWordsForTests(words, width=8)
    assert high - low < 2**64
    assert not Uniform(source, prefix=first, bits=8).below_exp(exact)
    assert source.used == 2
