"""Quantiles: exact losses over all neighbours of small tables, from the definition of the choices alone."""

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise

import mpmath
import pytest

from sfumato.accounting import compose, zcdp
from sfumato.core.events import BoundedRange, Repeated
from sfumato.core.guarantees import Pure
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, WrongNorm
from sfumato.mechanisms import QuantileChoice
from sfumato.mechanisms.quantile import MOST_QUANTILES, MOST_STEPS, PARTS

pytestmark = pytest.mark.kills

HALF, THIRD, QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)
ONE = Sensitivity.of(l0=1, linf=1)
Table = tuple[int, ...]  # the values of its rows


def wrong(table: Table, z: int, q: Fraction) -> Fraction:
    """How far q·n lies outside of the ranks of z."""
    target = q * len(table)
    low, high = sum(x < z for x in table), sum(x <= z for x in table)
    return max(low - target, target - high, Fraction(0))


def tables(values: int, most: int) -> list[Table]:
    return [table for n in range(most + 1) for table in combinations_with_replacement(range(values), n)]


def neighbours(values: int, most: int, relation: Relation) -> Iterator[tuple[Table, Table]]:
    """Pairs of tables that differ by one row."""
    for table in tables(values, most):
        for x in range(values):
            if relation is Relation.ADD_REMOVE:
                yield table, tuple(sorted((*table, x)))
            else:
                for out in range(len(table)):
                    yield table, tuple(sorted((*table[:out], *table[out + 1 :], x)))


@pytest.mark.claim("X-04")
@pytest.mark.parametrize("q", [HALF, QUARTER, Fraction(9, 10), THIRD], ids=str)
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_scores_move_and_spread_as_stated_and_no_less(q: Fraction, relation: Relation) -> None:
    """All tables of up to four rows (plus one) on a lattice of four values; and long ones, for the extreme q."""
    moved, spread = Fraction(0), Fraction(0)
    pairs = list(neighbours(4, 4, relation))
    for ones, threes in ((12, 2), (1, 12)):
        long = (0,) * ones + (2,) * threes
        pairs += [(long, tuple(sorted((*long, x)))) for x in range(4)] if relation is Relation.ADD_REMOVE else []
    for here, there in pairs:
        moves = [wrong(there, z, q) - wrong(here, z, q) for z in range(4)]
        moved = max(moved, *(abs(move) for move in moves))
        spread = max(spread, max(moves) - min(moves))
    each = {Relation.ADD_REMOVE: max(q, 1 - q), Relation.REPLACE: Fraction(1)}[relation]
    assert moved == each
    assert spread <= 2 * each
    assert spread > each  # twice is reached where tables are long enough; a monotone score would stay at one
    if q in (HALF, QUARTER, THIRD):
        assert spread == 2 * each
    claim = QuantileChoice.moved(quantiles=[q], relation=relation, groups=None, rows=1)
    mechanism = QuantileChoice(quantiles=(q,), steps=3, parts=1, epsilon=Fraction(1))
    assert mechanism.rate(mechanism.choices[0]) * 2 * each == mechanism.loss(claim).event.epsilon


def single(mechanism: QuantileChoice, table: Table) -> list[mpmath.mpf]:
    """The law of one quantile, from the definition."""
    q = mechanism.quantiles[0]
    rate = mpmath.mpf(1) * mechanism.epsilon.numerator / mechanism.epsilon.denominator / (2 * float(max(q, 1 - q)))
    weights = [mpmath.exp(-rate * float(wrong(table, z, q))) for z in range(mechanism.steps + 1)]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.claim("X-04")
@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("q", [HALF, QUARTER], ids=str)
def test_one_quantile_costs_what_it_says(q: Fraction, relation: Relation) -> None:
    """The twin has half the spread, as for a score that were monotone: it passes its claim."""
    claim = QuantileChoice.moved(quantiles=[q], relation=relation, groups=None, rows=1)
    mechanism = QuantileChoice.calibrated(quantiles=[q], steps=3, sensitivity=claim, epsilon=4)
    assert compose([mechanism.loss(claim)]) == Pure(epsilon=Fraction(4))
    assert worst_single(mechanism, relation) <= 4 + 1e-9
    twin = dataclasses.replace(mechanism, epsilon=2 * mechanism.epsilon)
    assert worst_single(twin, relation) > 4.5


def worst_single(mechanism: QuantileChoice, relation: Relation) -> float:
    worst = mpmath.mpf(0)
    laws = cache(lambda table: single(mechanism, table))
    pairs = list(neighbours(4, 4, relation))
    pairs += (
        [((0,) * 9 + (2,) * 9, (0,) * 9 + (2,) * 9 + (x,)) for x in (0, 3)] if relation is Relation.ADD_REMOVE else []
    )
    for here, there in pairs:
        worst = max(worst, *(abs(mpmath.log(a / b)) for a, b in zip(laws(here), laws(there), strict=True)))
    return float(worst)


def test_the_exponents_are_those_of_the_definition() -> None:
    mechanism = QuantileChoice(quantiles=(QUARTER,), steps=3, parts=1, epsilon=Fraction(2))
    for table in tables(4, 3):
        counts = [table.count(z) for z in range(4)]
        assert mechanism.exponents(counts) == [-wrong(table, z, QUARTER) * 2 / Fraction(3, 2) for z in range(4)]
    for counts in ([1, 2], [1] * 5):
        with pytest.raises(InvalidInput, match="each value of the lattice"):
            mechanism.exponents(counts)


# ------------------------------------------------------------------------------------------------ several quantiles


def joint(mechanism: QuantileChoice, table: Table) -> dict[tuple[int, ...], mpmath.mpf]:
    """The law of all chosen slots, from the definition: rows spread over slots, the middle quantile first."""
    parts, quantiles = mechanism.parts, mechanism.quantiles
    in_slots = [Fraction(table.count(t // parts), parts) for t in range((mechanism.steps + 1) * parts)]

    def chosen(asked: tuple[int, ...], first: int, end: int, low: Fraction, high: Fraction) -> dict:
        if not asked:
            return {(): mpmath.mpf(1)}
        middle = (len(asked) - 1) // 2
        share = (quantiles[asked[middle]] - low) / (high - low)
        if first == end:
            weights = {first: mpmath.mpf(1)}
        else:
            target = share * sum(in_slots[first:end])
            rate = mechanism.epsilon / (2 * max(share, 1 - share))
            weights = {}
            for t in range(first, end):
                below = sum(in_slots[first:t], Fraction(0))
                off = max(below - target, target - below - in_slots[t], Fraction(0))
                weights[t] = mpmath.exp(-mpmath.mpf((rate * off).numerator) / (rate * off).denominator)
        total, law = sum(weights.values()), {}
        cut = quantiles[asked[middle]]
        for t, weight in weights.items():
            left = chosen(asked[:middle], first, t, low, cut)
            right = chosen(asked[middle + 1 :], t, end, cut, high)
            for a, p in left.items():
                for b, r in right.items():
                    law[(*a, t, *b)] = weight / total * p * r
        return law

    ends = (mechanism.steps + 1) * parts
    return chosen(tuple(range(len(quantiles))), 0, ends, Fraction(0), Fraction(1))


@pytest.mark.claim("X-04")
@pytest.mark.parametrize("quantiles", [(QUARTER, HALF, Fraction(3, 4)), (THIRD, HALF)], ids=str)
def test_several_quantiles_cost_one_choice_for_each_level(quantiles: tuple[Fraction, ...]) -> None:
    """Slots are shown here, more than what is released. Rows of one value lie in two slots, which a cut can part."""
    mechanism = QuantileChoice(quantiles=quantiles, steps=2, parts=2, epsilon=Fraction(2))
    laws = cache(lambda table: joint(mechanism, table))
    for relation in Relation:
        claim = QuantileChoice.moved(quantiles=quantiles, relation=relation, groups=None, rows=1)
        stated = compose([mechanism.loss(claim)]).epsilon
        assert stated == 2 * 2 * (1 if relation is Relation.ADD_REMOVE else 2)
        worst = mpmath.mpf(0)
        for here, there in neighbours(3, 3, relation):
            one, other = laws(here), laws(there)
            assert one.keys() == other.keys()
            worst = max(worst, *(abs(mpmath.log(p / other[slots])) for slots, p in one.items()))
        assert worst <= float(stated)
        if relation is Relation.REPLACE and len(quantiles) == 3:
            assert worst > float(stated) / 2  # the price of a row added would not be enough


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 8, 9, 100])
def test_the_middle_goes_first_and_each_level_parts_the_rows(number: int) -> None:
    quantiles = tuple(Fraction(place + 1, number + 1) for place in range(number))
    mechanism = QuantileChoice(quantiles=quantiles, steps=10, parts=2, epsilon=Fraction(1))
    choices = mechanism.choices
    assert sorted(choice.place for choice in choices) == list(range(number))
    assert max(choice.level for choice in choices) == number.bit_length() == mechanism.event.times
    known = {-1: Fraction(0), number: Fraction(1)}
    for choice in choices:
        low, high = known[choice.below], known[choice.above]  # chosen before
        known[choice.place] = low + choice.share * (high - low)
        assert known[choice.place] == quantiles[choice.place]
        assert choice.weight == max(choice.share, 1 - choice.share)
        assert mechanism.rate(choice) == 1 / (2 * choice.weight)
    for level in range(1, number.bit_length() + 1):
        spans = sorted((choice.below, choice.above) for choice in choices if choice.level == level)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))


# ------------------------------------------------------------------------------------------------------------ units


def test_several_persons_are_one_lot() -> None:
    """Three persons, two by two in three groups, fit no two lots of three rows: as one lot they cost the same ε."""
    for relation, linf in ((Relation.ADD_REMOVE, 30), (Relation.REPLACE, 60)):
        moved = QuantileChoice.moved(quantiles=[HALF], relation=relation, groups=2, rows=5, persons=3)
        assert moved == Sensitivity.of(l0=1, linf=linf)
    alone = QuantileChoice.moved(quantiles=[QUARTER], relation=Relation.REPLACE, groups=None, rows=1, persons=3)
    assert alone == Sensitivity.of(l0=1, linf=4)


@pytest.mark.parametrize(
    ("quantiles", "relation", "groups", "rows", "l0", "linf"),
    [
        ([HALF], Relation.ADD_REMOVE, None, 1, 1, 1),
        ([HALF], Relation.ADD_REMOVE, 3, 5, 3, 5),
        ([HALF, Fraction(3, 4)], Relation.ADD_REMOVE, None, 2, 1, 2),
        ([HALF], Relation.REPLACE, None, 1, 1, 2),
        ([QUARTER], Relation.REPLACE, None, 3, 1, 4),
        ([Fraction(3, 4)], Relation.REPLACE, None, 3, 1, 4),
        ([QUARTER], Relation.REPLACE, 1, 3, 1, 6),
        ([QUARTER], Relation.REPLACE, 2, 3, 2, 6),
        ([QUARTER, HALF], Relation.REPLACE, None, 3, 1, 6),
    ],
)
def test_what_a_unit_moves(quantiles, relation: Relation, groups: int | None, rows: int, l0: int, linf: int) -> None:
    moved = QuantileChoice.moved(quantiles=quantiles, relation=relation, groups=groups, rows=rows)
    assert moved == Sensitivity.of(l0=l0, linf=linf)
    mechanism = QuantileChoice.calibrated(quantiles=quantiles, steps=9, sensitivity=moved, epsilon="3/2")
    assert compose([mechanism.loss(moved)]) == Pure(epsilon=Fraction(3, 2))
    levels = len(quantiles).bit_length()
    assert mechanism.epsilon == Fraction(3, 2) / (levels * l0 * linf)
    assert mechanism.parts == (1 if len(quantiles) == 1 else PARTS)
    event = mechanism.loss(moved)
    assert event == Repeated(event=BoundedRange(epsilon=mechanism.epsilon * linf), times=l0 * levels)
    assert zcdp.compose([event]).rho == levels * l0 * (mechanism.epsilon * linf) ** 2 / 8


def test_a_person_moved_between_groups_costs_no_more_than_twice_one_who_comes() -> None:
    """Two groups, one row: it leaves one and enters the other. The twin counts the row once."""
    moved = QuantileChoice.moved(quantiles=[QUARTER], relation=Relation.REPLACE, groups=1, rows=1)
    mechanism = QuantileChoice.calibrated(quantiles=[QUARTER], steps=3, sensitivity=moved, epsilon=4)
    losses = []
    for here, there in neighbours(4, 3, Relation.ADD_REMOVE):
        one, other = single(mechanism, here), single(mechanism, there)
        losses.append(max(mpmath.log(p / r) for p, r in zip(one, other, strict=True)))
        losses.append(max(mpmath.log(r / p) for p, r in zip(one, other, strict=True)))
    assert 2 <= float(2 * max(losses)) <= 4  # both groups at once, independent: the logarithms add
    assert float(max(losses)) > 1


def test_the_norms_are_asked_for_by_name() -> None:
    mechanism = QuantileChoice(quantiles=(HALF,), steps=4, parts=1, epsilon=Fraction(1))
    assert mechanism.event == mechanism.loss(ONE)
    for name in ("l0", "linf"):
        with pytest.raises(WrongNorm, match=name):
            mechanism.loss(dataclasses.replace(Sensitivity.of(l0=1, l1=1, linf=1), **{name: None}))


@pytest.mark.parametrize("quantiles", [(), (0,), (1,), (HALF, HALF), (HALF, THIRD), (2,), (0, HALF)], ids=str)
def test_quantiles_rise_between_0_and_1(quantiles: tuple[Fraction, ...]) -> None:
    with pytest.raises(InvalidInput, match="quantile"):
        QuantileChoice(quantiles=quantiles, steps=4, parts=2, epsilon=Fraction(1))


def test_what_cannot_be_drawn_is_refused() -> None:
    fine = {"quantiles": (HALF,), "steps": 4, "parts": 1, "epsilon": Fraction(1)}
    many = tuple(Fraction(place, 5000) for place in range(1, MOST_QUANTILES + 2))
    for change in (
        {"steps": 0},
        {"steps": MOST_STEPS + 1},
        {"parts": 0},
        {"parts": PARTS + 1},
        {"epsilon": 0},
        {"quantiles": many, "parts": 2},
        {"quantiles": (THIRD, HALF)},
    ):
        with pytest.raises(InvalidInput):
            QuantileChoice(**(fine | change))  # type: ignore[arg-type]
    QuantileChoice(**(fine | {"quantiles": many[:-1], "parts": 2, "steps": MOST_STEPS}))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="above 0"):
        QuantileChoice.calibrated(quantiles=[HALF], steps=4, sensitivity=Sensitivity.of(l0=0, linf=1), epsilon=1)


# ----------------------------------------------------------------------------------------------------------- margins


@pytest.mark.claim("X-04")
@pytest.mark.parametrize("confidence", [HALF, Fraction(9, 10)], ids=str)
def test_ranks_lie_within_the_margin_on_every_table(confidence: Fraction) -> None:
    """One quantile on every table; three of a level each on tables, also with the ranks that the choice itself has."""
    mechanism = QuantileChoice(quantiles=(QUARTER,), steps=3, parts=1, epsilon=Fraction(9))
    margin = mechanism.rank_margin(confidence)
    assert margin == {HALF: 1, Fraction(9, 10): 1}[confidence]
    for table in [*tables(4, 4), (0,) * 9 + (3,) * 9, (0,) * 4 + (1,) * 14]:
        law = single(mechanism, table)
        outside = sum(p for z, p in enumerate(law) if wrong(table, z, QUARTER) > margin)
        assert outside <= float(1 - confidence)
    quantiles = (QUARTER, HALF, Fraction(3, 4))
    mechanism = QuantileChoice(quantiles=quantiles, steps=2, parts=2, epsilon=Fraction(6))
    for table in tables(3, 4):
        margin = mechanism.rank_margin(confidence, rows=len(table))
        outside = mpmath.mpf(0)
        for slots, p in joint(mechanism, table).items():
            if any(wrong(table, t // 2, q) > margin for t, q in zip(slots, quantiles, strict=True)):
                outside += p
        assert outside <= float(1 - confidence)


def test_the_margin_is_the_formula_of_its_proof() -> None:
    one = QuantileChoice(quantiles=(QUARTER,), steps=99, parts=1, epsilon=Fraction(1, 10))
    expected = mpmath.ceil(mpmath.log(100 * 5 / mpmath.mpf("0.05")) * 2 * 0.75 * 10)
    assert one.rank_margin("0.95", groups=5) == int(expected)
    assert one.rank_margin("0.95", groups=5, rows=10**9) == int(expected)
    three = QuantileChoice(quantiles=(QUARTER, HALF, Fraction(3, 4)), steps=99, parts=4, epsilon=Fraction(1, 10))
    nats = mpmath.log(400 * 3 / mpmath.mpf("0.05"))
    assert three.rank_margin("0.95", rows=10) == int(mpmath.ceil(2 * (nats * 10 + 2.5)))
    with pytest.raises(InvalidInput, match="certainty"):
        one.rank_margin(1)
