"""Survival of a table, from the question to the words: at a large ε it is what everybody computes."""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.studies.result_table import ResultTable, text_columns
from sfumato.studies.survival import SurvivalResult
from sfumato.tables.study import Study
from sfumato.tables.table import Table
from tests.parts import dataset, package

EXACT = 60
"""An ε at which a cell has noise with a chance below 1e-25."""
pytestmark = pytest.mark.alpha(1e-12)


def vault(unit: object = None) -> sf.Vault:
    chosen = sf.record(relation="add/remove") if unit is None else unit
    return sf.Vault(unit=chosen, budget=sf.Budget(epsilon=10**4), name="trial")


def trial(*, weeks: int = 12, number: int = 600, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    arm = generator.integers(0, 2, number)
    time = np.ceil(generator.exponential(np.where(arm == 1, 20, 10))).astype(int)
    left = generator.integers(1, 3 * weeks, number)
    return pa.table(
        {
            "arm": np.array(["a", "b"])[arm],
            "week": np.minimum(time, left),
            "died": time <= left,
            "years": np.minimum(time, left) / 52.0,
        }
    )


@pytest.fixture(scope="module")
def table() -> Table:
    return vault().table(
        trial(),
        name="trial",
        version="1",
        keys={"arm": ["a", "b"]},
        bounds={"week": (0, 40), "years": (0, 1)},
    )


@pytest.fixture(scope="module")
def exact(table: Table) -> SurvivalResult:
    return table.survival("week", "died", until=12, by="arm").release(epsilon=EXACT)


@pytest.fixture(scope="module")
def noisy(table: Table) -> SurvivalResult:
    return table.survival("week", "died", until=12, by="arm").release(epsilon=1)


def by_hand(rows: pa.Table, arm: str, until: int) -> list[float]:
    """Kaplan–Meier of one arm, step by step."""
    chosen = [
        (w, d) for a, w, d in zip(*(rows[c].to_pylist() for c in ("arm", "week", "died")), strict=True) if a == arm
    ]
    curve, alive = [], 1.0
    for week in range(until + 1):
        risk = sum(w >= week for w, _ in chosen)
        alive *= 1 - sum(w == week and d for w, d in chosen) / risk
        curve.append(alive)
    return curve


def test_at_a_large_epsilon_the_curve_is_kaplan_and_meiers(exact: SurvivalResult) -> None:
    shown = exact.to_arrow()
    assert shown.column_names == ["arm", "week", "at_risk", "events", "survival", "low", "high"]
    expected = by_hand(trial(), "a", 12) + by_hand(trial(), "b", 12)
    assert shown["survival"].to_pylist() == pytest.approx(expected, abs=1e-4)


def test_one_charge_whose_sensitivity_is_that_of_one_cell(table: Table) -> None:
    study = table.survival("week", "died", until=12, by="arm")
    moved = study.preview(epsilon=1).numbers.sensitivity
    assert moved.l1 is not None
    assert moved.l1.value == 1
    assert study.release(epsilon=1).release.charged.epsilon == 1


@pytest.mark.parametrize(("until", "steps"), [(12, None), (12, 4), (150, None)])
def test_each_person_moves_one_cell_of_each_level(until: int, steps: int | None) -> None:
    """Over neighbours: each kind of row is added to a table, and the cells before and after are compared."""
    base = trial(number=20)
    kinds = [("a", 0, True), ("b", 7, False), ("a", until, True), ("b", until + 5, True)]
    layouts = []
    for extra in [None, *kinds]:
        rows = base.select(["arm", "week", "died"])
        if extra is not None:
            arm, week, died = extra
            rows = pa.concat_tables([rows, pa.table({"arm": [arm], "week": [week], "died": [died]})])
        asked = vault().table(rows, name="t", version="1", keys={"arm": ["a", "b"]}, bounds={"week": (0, 400)})
        study = asked.survival("week", "died", until=until, steps=steps, by="arm")
        layouts.append((study.release(epsilon=EXACT).release.values, study.preview(epsilon=1).numbers.sensitivity.l1))
    before = np.array(layouts[0][0])
    for values, stated in layouts[1:]:
        assert stated is not None
        assert np.abs(np.array(values) - before).sum() == stated.value


def test_long_times_are_measured_in_two_levels_and_come_out_the_same() -> None:
    rows = trial(number=400)
    days = rows.append_column("day", pa.array((7 * rows["week"].to_numpy()).tolist()))
    asked = vault().table(
        days, name="t", version="1", keys={"arm": ["a", "b"]}, bounds={"day": (0, 150), "week": (0, 40)}
    )
    long = asked.survival("day", "died", until=140, by="arm").release(epsilon=2 * EXACT)
    short = asked.survival("week", "died", until=20, by="arm").release(epsilon=EXACT)
    assert long.layout.widths == (1, 19)
    for week in (1, 5, 20):
        ours = [each.at(7 * week if each is long else week).table().columns["estimate"] for each in (long, short)]
        assert ours[0] == pytest.approx(ours[1], abs=1e-3)
    assert long.log_rank().p_value == pytest.approx(short.log_rank().p_value, abs=0.05)


def test_steps_end_with_their_upper_end_and_later_times_are_censored(table: Table) -> None:
    cut = table.survival("years", sf.col("died"), until=0.25, steps=13).release(epsilon=EXACT)
    assert [float(end) for end in cut.layout.times[:2]] == pytest.approx([0.25 / 13, 0.5 / 13])
    weeks = np.ceil(np.round(np.array(trial()["years"].to_pylist()) * 52, 9))
    died = np.array(trial()["died"].to_pylist())
    assert cut.cells[0, 0].tolist() == [int(((weeks == week) & died).sum()) for week in range(1, 14)]
    assert cut.cells.sum() == 600
    assert any("rounded up" in cut.word(note) for note in cut.notes)


def cells_by_hand(step: np.ndarray, died: np.ndarray, steps: int) -> list[list[int]]:  # type: ignore[type-arg]
    return [np.bincount(step[died == kind], minlength=steps).tolist() for kind in (True, False)]


@pytest.mark.parametrize("steps", [108, 156, 365, 1000])
def test_any_number_of_steps_counts_each_time_at_the_end_of_its_step(steps: int) -> None:
    """Times that lie on ends of steps as far as doubles can tell, beyond the last one, and at the lower bound."""
    generator = np.random.default_rng(5)
    number = generator.integers(0, steps + 5, 700)
    years = np.where(generator.random(700) < 0.7, 3.0 * number / steps, generator.random(700) * 3)
    years[:3] = [0.0, 3.0, np.nan]
    days, died = generator.integers(0, 1200, 700), generator.random(700) < 0.6
    rows = pa.table({"years": years, "day": days, "died": died})
    asked = vault().table(rows, name="t", version="1", bounds={"years": (0, 4), "day": (0, 1300)})
    found = asked.survival("years", "died", until=3, steps=steps).release(epsilon=2 * EXACT)
    known = ~np.isnan(years)
    step = np.ceil(np.round(np.minimum(years, 3)[known] * steps / 3, 8)).astype(int)
    by_hand = cells_by_hand(np.maximum(step, 1) - 1, died[known] & (years[known] <= 3), steps)
    assert np.round(found.cells[0]).astype(int).tolist() == by_hand
    whole = asked.survival("day", "died", until=1099, steps=steps).release(epsilon=2 * EXACT)
    ends = np.array([int(end) for end in whole.layout.times])
    by_hand = cells_by_hand(np.searchsorted(ends, np.minimum(days, 1099)), died & (days <= 1099), steps)
    assert np.round(whole.cells[0]).astype(int).tolist() == by_hand
    assert found.layout.widths[0] == 1
    assert len(found.layout.widths) == 2
    assert 0 < found.rmst().estimate < 3


@pytest.mark.parametrize("last", [40, 160])
def test_a_file_whose_types_are_not_known_beforehand_is_taken_in_whole_numbers(tmp_path: Path, last: int) -> None:
    generator = np.random.default_rng(6)
    days, died = generator.integers(0, last + 1, 600), generator.random(600) < 0.6
    stored = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pa.table({"day": days, "part": days - 0.25, "died": died}), stored)
    asked = vault().table(str(stored), name="t", version="1", bounds={"day": (0, last), "part": (0, last)})
    memory = vault().table(pa.table({"day": days, "died": died}), name="t", version="1", bounds={"day": (0, last)})
    known = memory.survival("day", "died").release(epsilon=2 * EXACT)
    for column in ("day", "part"):
        found = asked.survival(column, "died").release(epsilon=2 * EXACT)
        assert found.layout.times == known.layout.times
        assert np.round(found.cells).tolist() == np.round(known.cells).tolist()
        assert found.layout.rounded


def test_rows_without_a_time_or_an_event_do_not_count() -> None:
    rows = pa.table({"week": [1, None, 2, 9], "died": [True, True, None, None]})
    asked = vault().table(rows, name="t", version="1", bounds={"week": (0, 9)})
    found = asked.survival("week", "died", until=3).release(epsilon=EXACT)
    assert found.cells.sum() == 2  # the last is followed beyond the end, whatever comes then


def test_intervals_bands_and_curves_fall_and_lie_within_0_and_1(noisy: SurvivalResult) -> None:
    for name in ("survival", "band"):
        shown = noisy.table(name).columns
        for part in ("survival", "low", "high"):
            for arm in ("a", "b"):
                curve = [v for a, v in zip(shown["arm"], shown[part], strict=True) if a == arm and not math.isnan(v)]
                assert all(0 <= two <= one <= 1 for one, two in pairwise(curve))
    points, band = noisy.table("survival").columns, noisy.table("band").columns
    assert all(b <= p for b, p in zip(band["low"], points["low"], strict=True))
    assert noisy.table("band").columns == noisy.table("band").columns  # the same each time


@pytest.mark.alpha(1e-9)
def test_limits_of_the_cumulative_hazard_never_fall_and_levelled_limits_are_explained(table: Table) -> None:
    study = table.survival("week", "died", until=39, by="arm")
    drawn = (study.release(epsilon=Fraction(1, 10 + place)) for place in range(40))
    noisy = next(each for each in drawn if each._evened)  # most are: of 40 draws one, but for a chance below 1e-9
    shown = noisy.table("hazard").columns
    for part in ("hazard", "low", "high"):
        for arm in ("a", "b"):
            curve = [v for a, v in zip(shown["arm"], shown[part], strict=True) if a == arm and not math.isnan(v)]
            assert all(one <= two + 1e-12 for one, two in pairwise(curve))
    assert any("do not rise" in noisy.word(note) for note in noisy.notes)


def test_a_median_in_whole_days_is_printed_without_decimals(exact: SurvivalResult) -> None:
    lines = [line for line in str(exact.median()).splitlines() if line.startswith(("a ", "b "))]
    assert len(lines) == 2
    assert not any("." in line for line in lines)
    few = ResultTable(name="median", columns={"estimate": [297.0], "low": [292.0], "high": [math.inf]}, whole=True)
    assert [column.texts for column in text_columns(few)] == [("297",), ("292",), ("∞",)]
    assert [column.texts for column in text_columns(replace(few, whole=False))] == [("297.0",), ("292.0",), ("∞",)]
    assert not exact.median().table().columns["estimate"][0] % 1


def test_a_curve_stops_where_the_number_at_risk_is_lost(table: Table) -> None:
    lost = table.where(sf.col("week") < 3).survival("week", "died", until=39).release(epsilon=0.02)
    shown = lost.table().columns
    assert math.isnan(shown["survival"][-1])
    assert shown["low"][-1] == 0
    assert any("lost in the noise" in lost.word(note) for note in lost.notes)
    low, high = lost.rmst(39).interval()
    assert math.isnan(lost.rmst(39).estimate)
    assert 0 <= low < high <= 39


def test_medians_and_differences(exact: SurvivalResult) -> None:
    medians = exact.median().table().columns
    assert medians["estimate"][0] == next(week for week, s in enumerate(by_hand(trial(), "a", 12)) if s <= 0.5)
    assert medians["low"][0] <= medians["estimate"][0] <= medians["high"][0]
    gap = exact.difference(6)
    curves = [by_hand(trial(), arm, 12)[6] for arm in "ba"]
    assert gap.estimate == pytest.approx(curves[0] - curves[1], abs=1e-4)
    assert gap.interval()[0] < gap.estimate < gap.interval()[1]
    mean = exact.rmst(10).table().columns
    assert mean["estimate"] == pytest.approx([sum(by_hand(trial(), arm, 12)[:10]) for arm in "ab"], abs=1e-2)
    assert exact.rmst_difference(10).estimate == pytest.approx(mean["estimate"][1] - mean["estimate"][0])


def test_tests_between_groups(exact: SurvivalResult, noisy: SurvivalResult, table: Table) -> None:
    assert exact.log_rank().p_value < 1e-4
    ratio = exact.hazard_ratio()
    assert ratio.interval()[0] < 0.5 < ratio.interval()[1]
    assert 0 < float(str(ratio.table().columns["p"][0])) < 1e-4
    for confidence in ("1/2", "4/5", "19/20"):  # the test and the limits are one
        given = noisy.hazard_ratio()
        low, high = given.interval(confidence)
        assert (float(str(given.table().columns["p"][0])) <= 1 - float(Fraction(confidence))) == (not low < 1 < high)
    lost = table.survival("week", "died", until=12, by="arm").release(epsilon=0.001, even_if_useless=True).log_rank()
    if not lost.verdict:
        assert lost.p_value == 1
        assert "no verdict" in str(lost)


def test_it_prints_as_a_table_with_facts_and_notes(noisy: SurvivalResult) -> None:
    text = str(noisy)
    assert text.startswith("Survival by week\n")
    assert "at risk  events  survival" in text
    assert "both in them" in text
    assert str(noisy.hazard_ratio()).startswith("Hazard ratio, beside a")
    assert noisy.word(noisy.title, "zh") == "按 week 的生存"
    picture = noisy.picture()
    assert picture.kind == "steps"
    assert {row.group for row in picture.rows} == {"arm a", "arm b"}
    package("altair")
    assert noisy.plot().to_dict()["title"]["text"] == "Survival by week"


def test_what_to_expect_is_said_before_the_spend(table: Table) -> None:
    study = table.survival("week", "died", until=12, by="arm")
    assert "the log-rank test" in str(study.preview(epsilon=1))
    assert "expect no verdict" in str(study.preview(epsilon=0.01, rows=50))
    assert "may give no verdict" in str(study.preview(epsilon=0.1, rows=180))


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        (lambda t: t.survival("age", "died"), NotDeclared, "does not follow from declared bounds"),
        (lambda t: t.survival("week", "week"), InvalidInput, "holds numbers"),
        (lambda t: t.survival("week", 3), InvalidInput, "event is a column of truth values"),
        (lambda t: t.survival(3, "died"), InvalidInput, "time is a column or a value"),
        (lambda t: t.survival("week", "died", by="site"), NotDeclared, "are not declared"),
        (lambda t: t.survival("years", "died"), InvalidInput, "steps="),
        (lambda t: t.survival("week", "died", until=-1), InvalidInput, "begins at"),
        (lambda t: t.survival("week", "died", steps=99), InvalidInput, "make no 99 steps"),
        (lambda t: t.with_bounds(week=(-1, 40)).survival("week", "died"), InvalidInput, "can be negative"),
        (lambda t: t.with_bounds(week=(0, 1000)).survival("week", "died"), InvalidInput, "more than 1,000"),
        (lambda t: t.with_bounds(years=(0, "1001/2")).survival("years", "died"), InvalidInput, "steps="),
        (lambda t: t.with_keys(arm=["a"]).survival("week", "died", by="arm"), InvalidInput, "between 2 to"),
        (lambda t: t.group_by("arm").survival("week", "died"), InvalidInput, "names its own groups"),
    ],
)
def test_refusals(table: Table, asked: Callable[[Table], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        asked(table)


def test_refusals_of_results(exact: SurvivalResult, table: Table) -> None:
    for wrong in (-1, 13):
        with pytest.raises(InvalidInput, match="Ask in there"):
            exact.at(wrong)
    with pytest.raises(InvalidInput, match="restricted to some time"):
        exact.rmst(13)
    with pytest.raises(InvalidInput, match="has no table"):
        exact.table("curves")
    alone = table.survival("week", "died", until=12).release(epsilon=1)
    for compared in (alone.log_rank, alone.hazard_ratio, alone.rmst_difference, lambda: alone.difference(3)):
        with pytest.raises(InvalidInput, match="ask survival"):
            compared()


def test_several_rows_of_a_person_are_refused_and_one_row_a_person_is_taken() -> None:
    rows = pa.table({"id": [1, 1, 2, 3], "week": [2, 5, 3, 4], "died": [False, True, True, False]})
    persons = vault(sf.user("id", relation="add/remove"))
    several = persons.table(
        rows, name="t", version="1", limit=sf.Limit(groups=1, rows_per_group=3), bounds={"week": (0, 9)}
    )
    with pytest.raises(Refused, match="per_person"):
        several.survival("week", "died")
    ever = sf.any(sf.col("died") == True)  # noqa: E712
    single = several.per_person(week=sf.max("week"), died=ever)
    found = single.survival("week", "died", until=6).release(epsilon=EXACT)
    assert found.cells[0].sum(axis=1).tolist() == [2, 1]


@pytest.fixture(scope="module")
def rossi() -> tuple[Path, pa.Table]:
    path = dataset("survival/rossi.csv.gz")
    return path, pyarrow.csv.read_csv(path)


def test_beside_lifelines(rossi: tuple[Path, pa.Table]) -> None:
    package("lifelines")
    package("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of another package, about its own dependencies
        from lifelines import CoxPHFitter, KaplanMeierFitter
        from lifelines.statistics import logrank_test
        from lifelines.utils import restricted_mean_survival_time

        frame = rossi[1].to_pandas()
        arms = [frame[frame.fin == arm] for arm in (0, 1)]
        fits = [KaplanMeierFitter().fit(arm.week, arm.arrest) for arm in arms]
        curves = [fit.survival_function_at_times(range(1, 53)).tolist() for fit in fits]
        means = [restricted_mean_survival_time(fit, t=52) for fit in fits]
        p = logrank_test(arms[0].week, arms[1].week, arms[0].arrest, arms[1].arrest).p_value
        cox = CoxPHFitter().fit(frame[["week", "arrest", "fin"]], "week", "arrest").params_["fin"]
    asked = vault().table(
        rossi[1], name="rossi", version="1", keys={"fin": [0, 1]}, bounds={"week": (1, 52), "arrest": (0, 1)}
    )
    study = asked.survival("week", sf.col("arrest") == 1, until=52, by="fin")
    found = study.release(epsilon=EXACT)
    assert found.table().columns["survival"] == pytest.approx(curves[0] + curves[1], abs=1e-4)
    assert found.rmst(52).table().columns["estimate"] == pytest.approx(means, abs=1e-2)
    assert found.log_rank().p_value == pytest.approx(p, abs=0.003)
    assert math.log(found.hazard_ratio().estimate) == pytest.approx(cox, abs=0.01)
    private = study.release(epsilon=3)
    inside = [
        low <= exact <= high
        for low, exact, high in zip(
            private.table("band").columns["low"],
            curves[0] + curves[1],
            private.table("band").columns["high"],
            strict=True,
        )
    ]
    assert np.mean(inside) > 0.5


def test_mean_times_of_wide_steps_are_not_too_long() -> None:
    """Times that are rounded up to the end of a step lie in its middle: the mean is that of the times themselves."""
    times = np.arange(1, 1001)
    rows = pa.table({"day": times.astype(float), "died": np.ones(1000, dtype=bool)})
    table = vault().table(rows, name="trial", version="1", bounds={"day": (0, 1000)})
    found = table.survival("day", "died", until=1000, steps=10).release(epsilon=EXACT).rmst(1000)
    assert found.estimate == pytest.approx(500.5, abs=2)  # 550 where all fall at the ends of steps


@pytest.mark.parametrize("time", [math.nan, math.inf, "x", None])
def test_a_time_that_is_no_number_is_refused(exact: SurvivalResult, time: object) -> None:
    with pytest.raises(InvalidInput):
        exact.at(time)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(InvalidInput):
        exact.difference(time)  # type: ignore[arg-type]  # what is refused
    if time is not None:
        with pytest.raises(InvalidInput):
            exact.rmst(time)  # type: ignore[arg-type]  # what is refused
    assert exact.at(np.int64(5)).estimate == exact.at(5).estimate


def test_what_is_read_off_curves_has_their_notes(table: Table) -> None:
    cut = table.survival("years", "died", until=0.3, steps=3, by="arm").release(epsilon=1)
    few = table.where(sf.col("week") <= 2).survival("week", "died", until=12, by="arm").release(epsilon=1)
    for made in (cut.at(0.2), cut.median(), cut.rmst(0.2), cut.hazard_ratio()):
        assert any("rounded up" in made.word(note) for note in made.notes)
    assert any("30 events" in few.rmst(5).word(note) for note in few.rmst(5).notes)


def test_tests_in_blocks_say_what_they_assume_of_censoring(table: Table, noisy: SurvivalResult) -> None:
    long = vault().table(trial(), name="t", version="1", keys={"arm": ["a", "b"]}, bounds={"week": (0, 150)})
    blocked = long.survival("week", "died", by="arm").release(epsilon=1)
    for made in (blocked.log_rank(), blocked.hazard_ratio()):
        assert any("taken in blocks of 20" in made.word(note) for note in made.notes)
    for made in (noisy.log_rank(), noisy.hazard_ratio()):
        assert not any("in blocks" in made.word(note) for note in made.notes)


def lost_at_once(study: Study) -> SurvivalResult:
    """A result whose curves are all lost from the first step on: noise lets one through in some of a hundred cases.

    The same question for the same ε would have the same answer.
    """
    drawn = (study.release(epsilon=Fraction(1, 10_000 + place)) for place in range(40))
    return next(found for found in drawn if all(curve.stop == 0 for curve in found.curves))


@pytest.mark.alpha(1e-20)
def test_a_curve_that_is_lost_in_noise_has_no_median(table: Table) -> None:
    lost = lost_at_once(table.survival("week", "died", until=12, by="arm"))
    columns = lost.median().table().columns
    assert all(math.isnan(each) for each in columns["estimate"])  # type: ignore[arg-type]  # numbers
    assert all(math.isinf(each) for each in columns["high"])  # type: ignore[arg-type]  # numbers


@pytest.mark.alpha(1e-20)
def test_times_in_notes_are_no_fractions(table: Table) -> None:
    lost = lost_at_once(table.survival("years", "died", steps=3))
    said = " ".join(lost.word(note) for note in lost.notes)
    assert "from 0.333 on" in said
    assert "1/3" not in said


def test_an_event_in_words_is_refused_with_the_condition_to_say() -> None:
    rows = pa.table({"week": [1, 2, 3], "end": ["alive", "dead", "dead"]})
    ends = vault().table(rows, name="t", version="1", keys={"end": ["alive", "dead"]}, bounds={"week": (0, 12)})
    with pytest.raises(InvalidInput, match=r"sf\.col\('end'\) == 'dead'"):
        ends.survival("week", "end")
