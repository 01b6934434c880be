"""Many ratios at once have the very ends that each has by itself."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import laws
from sfumato.inference import many_ratios
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.many_ratios import many_ends
from sfumato.inference.ratio import STEPS, Ratio, ratio_ends

LEVELS = (Fraction(1, 2), Fraction(19, 20), 1 - Fraction(1, 20) / 2_000, 1 - Fraction(1, 10**9))
WIDE = (
    laws.DiscreteLaplace(scale=Fraction(2**31, 3)),
    laws.RoundedGaussian(sigma=Fraction(2**29)),
    laws.DiscreteLaplace(scale=Fraction(3)),  # coarse: no closed form
    laws.DiscreteGaussian(sigma_squared=Fraction(2**40)),  # of another kind: no closed form
)


def pair(law: Any, place: int, numbers: tuple[int, ...], over: tuple[int, ...], unit: Fraction) -> Any:
    """A weighted sum of some noisy numbers, over all of them."""
    parts = [
        LinearCombination(number * unit, {Noise("a", place * 9 + at, law): unit}) for at, number in enumerate(numbers)
    ]
    top = bottom = LinearCombination(Fraction(0), {})
    for part, weight in zip(parts, over, strict=True):
        top, bottom = top.plus(part, Fraction(weight)), bottom.plus(part, Fraction(1))
    return top, bottom


def by_itself(pairs: Any, level: Fraction) -> list[tuple[float, float]]:
    return [ratio_ends(*each, level) for each in pairs]


def at_once(pairs: Any, level: Fraction) -> list[tuple[float, float]]:
    return many_ends(pairs, level, by_itself=lambda each: ratio_ends(*each, level), halvings=STEPS)


@pytest.mark.parametrize("law", WIDE[:2], ids=lambda law: law.KIND)
@pytest.mark.parametrize("level", LEVELS, ids=float)
def test_the_ends_are_the_same_numbers_to_the_last_digit(law: Any, level: Fraction) -> None:
    """300 ratios of two and of three noises: large and small groups, empty ones, values below 0, equal scales."""
    chance = np.random.default_rng(7)  # makes numbers to compare, never noise
    unit = Fraction(1, 2**30)
    pairs = []
    for place in range(300):
        parts = 2 + place % 2
        rows = 10.0 ** chance.uniform(-1, 6)
        numbers = tuple(int(rows * 2**30 * share + chance.normal() * 2**31) for share in chance.dirichlet([1] * parts))
        weights = ((0, 100), (-3, 5), (1, 1), (7, 8, 9), (0, 1, 2), (-1, 0, 1))[place % 3 + 3 * (parts == 3)]
        pairs.append(pair(law, place, numbers, weights, unit))
    found = at_once(pairs, level)
    assert found == by_itself(pairs, level)
    assert sum(map(math.isinf, (low for low, _ in found))) < 250


@pytest.mark.parametrize("law", WIDE[2:], ids=lambda law: law.KIND)
def test_what_has_no_closed_form_is_searched_by_itself(law: Any) -> None:
    pairs = [pair(law, place, (40 + place, 90), (0, 1), Fraction(1)) for place in range(16)]
    marked = many_ends(pairs, LEVELS[1], by_itself=lambda each: (0.0, float(each[0].value)), halvings=STEPS)
    assert marked == [(0.0, float(over.value)) for over, _ in pairs]


@given(st.data())
def test_ratios_of_any_kind_side_by_side(data: st.DataObject) -> None:
    number = st.integers(-(2**45), 2**45)
    kinds = st.tuples(
        st.sampled_from(WIDE[:2]), st.tuples(number, number), st.tuples(st.integers(-5, 5), st.integers(-5, 5))
    )
    drawn = data.draw(st.lists(kinds, min_size=16, max_size=20))
    pairs = [pair(law, at, numbers, weights, Fraction(1, 2**30)) for at, (law, numbers, weights) in enumerate(drawn)]
    assert at_once(pairs, LEVELS[1]) == by_itself(pairs, LEVELS[1])


def test_an_answer_near_its_border_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a border as wide as everything, all ratios are searched by themselves; with the real one, hardly any."""
    pairs = [pair(WIDE[0], at, (2**44 + at * 2**33, 2**43), (0, 9), Fraction(1, 2**30)) for at in range(64)]
    asked: list[object] = []

    def counted(each: Any) -> tuple[float, float]:
        asked.append(each)
        return ratio_ends(*each, LEVELS[1])

    found = many_ends(pairs, LEVELS[1], by_itself=counted, halvings=STEPS)
    assert len(asked) <= 2
    monkeypatch.setattr(many_ratios, "LOST", 2.0)
    assert many_ends(pairs, LEVELS[1], by_itself=counted, halvings=STEPS) == found
    assert len(asked) >= 64


def test_a_wide_release_reads_its_means_without_a_search_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 groups and 3 means: `interval` of the columns asks the slow search for none of them, or for very few."""
    import pyarrow as pa

    from sfumato.inference import ratio

    groups = list(range(300))
    frame = pa.table({"g": groups * 40, "x": [float(at % 17) for at in range(12_000)]})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=100), name="wide")
    table = vault.table(frame, name="rows", version="1", bounds={"x": (0, 20)}, keys={"g": groups})
    measures = {f"m{at}": sf.mean(sf.col("x") + at) for at in range(3)}
    release = table.group_by("g").agg(**measures).release(epsilon=50)
    slow: list[object] = []
    original = ratio.ratio_ends
    monkeypatch.setattr(ratio, "ratio_ends", lambda *given: slow.append(given) or original(*given))
    assert release.to_arrow().num_rows == 300
    assert len(slow) < 10
    column = release["m1"]
    assert isinstance(column, Ratio)
    assert column.at(g=7).interval() == [column.interval()[7]]


def test_sums_of_all_cells_are_the_sums_of_their_parts() -> None:
    """Values, noises, coefficients and their order, for ranges around 0 and not, with a mean, a variance and a sum."""
    import pyarrow as pa

    from sfumato.inference.moments import sums_of
    from sfumato.tables.needs import PowersOf, SumOf
    from sfumato.tables.statistic_plan import sum_weights

    frame = pa.table({"g": [1, 2], "x": [1.0, 2.0], "y": [1.0, None], "z": [0.0, 1.0]})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=100), name="parts")
    bounds = {"x": (0, 20), "y": (-3, 7), "z": (5, 6)}
    table = vault.table(frame, name="rows", version="1", bounds=bounds, keys={"g": [1, 2, 3]})
    asked = {"a": sf.mean("x"), "b": sf.variance("y"), "c": sf.sum("z"), "d": sf.mean("y"), "n": sf.count()}
    query: Any = table.group_by("g").agg(**asked).query
    values = [at * 7919 - 5 for at in range(query.size)]
    reader = query._reader(values, law=WIDE[0], identifier="r", sources=())
    checked = 0
    for measure in query.measures:
        for need in measure.needs:
            block = reader.block(need)
            parts = reader._of(block)
            ones = [Fraction(1)] * block.reach.numbers
            assert reader.counts(need) == [sums_of(each, ones) for each in parts]
            if isinstance(need, SumOf | PowersOf):
                weights = sum_weights(need.of, block)
                assert reader.sums(need.of) == [sums_of(each, weights) for each in parts]
                assert [list(form.noises) for form in reader.sums(need.of)] == [
                    list(sums_of(each, weights).noises) for each in parts
                ]
                checked += 1
    assert checked >= 4
