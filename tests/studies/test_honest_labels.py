"""Where an interval or a test may fall short of what it states, the result says so; and two that did no longer do."""

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.studies import means
from sfumato.studies.draws import CellNoise
from sfumato.tables.table import Table
from tests.studies.simulated import fine, moments

pytestmark = pytest.mark.alpha(1e-12)

ROWS = 400
ONCE = sf.Limit(groups=1, rows_per_group=1)


def trial(unit: object = None, **columns: object) -> Table:
    place = np.arange(ROWS)
    rows = {"id": place, "arm": np.array(["a", "b"])[place % 2], "died": (place % 5 == 0).astype(int), **columns}
    bounds = {name: (0, 1) for name in ("died", "score") if name in rows}
    return sf.Vault(
        unit=sf.record(relation="add/remove") if unit is None else unit,  # type: ignore[arg-type]
        budget=sf.Budget(epsilon=10**4),
        name="trial",
    ).table(
        pa.table(rows),
        name="trial",
        version="1",
        keys={"arm": ["a", "b"]},
        bounds={**bounds, "week": (0, 10)},
        limit=ONCE if unit is not None else None,
    )


def test_a_column_of_0_and_1_is_compared_as_a_share_and_says_so() -> None:
    result = trial().two_sample("died", by="arm").release(epsilon=50)
    assert result.compared.test == "score"
    assert "compared as a share" in str(result)
    assert result.table("groups").columns["events"] == pytest.approx([40, 40], abs=3)
    exact = trial().two_sample("died", by="arm", test="exact").release(epsilon=50)
    assert exact.compared.test == "exact"
    assert trial().two_sample("died", by="arm", test="welch").release(epsilon=50).compared.test == "welch"


def test_rows_without_a_value_are_in_neither_count() -> None:
    died = [None if place % 4 == 0 else int(place % 5 == 0) for place in range(ROWS)]
    result = trial(died=died).two_sample("died", by="arm").release(epsilon=50)
    assert sum(result.table("groups").columns["n"]) == pytest.approx(300, abs=5)  # type: ignore[arg-type]


def test_numbers_between_0_and_1_say_that_a_share_may_be_meant() -> None:
    result = trial(score=np.arange(ROWS) / ROWS).two_sample("score", by="arm").release(epsilon=50)
    assert result.compared.test == "welch"
    assert "compare the share of 1 instead" in str(result)


def test_a_preview_of_means_is_in_the_units_of_the_value() -> None:
    table = trial(score=np.arange(ROWS) / ROWS)
    narrow = str(table.two_sample("score", by="arm").preview(epsilon=1, rows=200))
    wide = str(table.with_bounds(score=(0, 100)).two_sample("score", by="arm").preview(epsilon=1, rows=200))
    assert "in the units of the value" in narrow
    # 2.06 standard deviations √2 of noise of scale 1, times √1.25 for the three sums, over 200 rows.
    assert "±0.0163" in narrow
    assert "±1.63" in wide
    assert "say rows=" in str(table.two_sample("score", by="arm").preview(epsilon=1))


def test_families_are_said_to_be_taken_for_independent() -> None:
    table = trial(sf.family(3, "id", relation="add/remove"))
    result = table.two_sample("died", by="arm").release(epsilon=50)
    for language, words in (
        ("en", "Members of one family are taken for independent"),
        ("zh", "同一家庭的成员视为相互独立"),
    ):
        assert words in result.summary(language)
        assert words in result.explain(language)
    assert "Members of one family" not in trial().two_sample("died", by="arm").release(epsilon=50).summary()
    share = table.proportion(sf.col("died") >= 1).release(epsilon=50)
    assert share["proportion"].quality == "population.families"
    assert "Members of one family are not independent" in share.explain()


def test_a_curve_is_worth_those_at_risk_before_a_steep_step() -> None:
    """Half are censored in week 1; in week 2 nine of ten of the others have the event: 500 of 1,000 tell of it."""
    place = np.arange(ROWS)
    week, died = np.where(place % 2 == 0, 1, 2), (place % 2 == 1) & (place % 20 != 1)
    result = trial(week=week, fell=died).survival("week", "fell", until=3).release(epsilon=50)
    found = [round(float(each) / ROWS, 1) for each in result.curves[0].effective]
    assert found[1:3] == [1.0, 0.5]


def p_values(noise: CellNoise, runs: int, *, held: bool) -> np.ndarray:  # type: ignore[type-arg]
    """Welch's test of 60 rows beside 1,000, of values near their lower bound; ``held`` is a broken copy."""
    draw = np.random.default_rng(7)
    parts = np.concatenate([moments(draw.beta(1, 20, (runs, 1, rows)), noise, draw) for rows in (60, 1_000)], axis=1)
    if not held:
        return means.mean_difference_p_values(parts, noise, draw, 199)
    groups = means.group_means(parts, noise)
    seen = np.abs(groups.mean[:, 0] - groups.mean[:, 1])
    common = ((groups.rows * groups.mean).sum(-1) / groups.rows.sum(-1))[:, None]
    drawn = noise.draw(draw, (199, runs, 2, 3))
    weights = np.stack([-common, 0.5 - common, 1 - common], axis=-1)
    sampled = np.sqrt(groups.variance * groups.rows) * draw.standard_normal((199, runs, 2))
    rows = np.maximum(groups.rows + drawn.sum(-1), 2.0)
    found = np.clip(common + (sampled + (drawn * weights).sum(-1)) / rows, 0, 1)
    return np.asarray((1 + (np.abs(found[..., 0] - found[..., 1]) >= seen).sum(0)) / 200)


def test_a_group_near_its_noise_is_not_told_apart_too_often() -> None:
    """Fixed seeds. Copies that are held to the bounds can err to one side alone, and reject in over 6% of the runs."""
    noise = fine(0.1)
    assert (p_values(noise, 800, held=False) <= 0.05).mean() < 0.05
    assert (p_values(noise, 800, held=True) <= 0.05).mean() > 0.06
