"""Intervals for a population: multipliers, variances, which columns have one, and how frames and texts name them."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import encode
from sfumato.engines.expressions import col
from sfumato.errors import InvalidInput
from sfumato.inference import quantile
from sfumato.inference.normal_laplace import multiplier, outside
from sfumato.inference.population import Residuals, SampleDesign
from sfumato.reports.verify import verify
from sfumato.tables.clamped import Clamped
from sfumato.tables.measure import Asked
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.quotient import Quotient
from sfumato.tables.needs import PowersOf, ProductsOf, SumOf
from sfumato.tables.table import Table

ONE = sf.Limit(groups=1, rows_per_group=1)
PAIRS = 25


def table(rows: pa.Table, limit: sf.Limit = ONE, *, relation: str = "add/remove", **facts: Any) -> Table:
    vault = sf.Vault(unit=sf.user("id", relation=relation), budget=sf.Budget(epsilon=10_000), name="trial")
    return vault.table(rows, name="visits", version="1", limit=limit, **facts)


def patients(number: int = 400, *, each: int = 1) -> pa.Table:
    """Fixed values: nothing here depends on chance but the noise."""
    place = np.repeat(np.arange(number), each)
    return pa.table(
        {
            "id": place,
            "arm": np.where(place % 2 == 0, "a", "b"),
            "sbp": 120.0 + (place * 37 % 61) - 30,
            "days": place * 7 % 14,
            "old": place % 5 == 0,
        }
    )


def clinic(number: int = 400, *, each: int = 1, limit: sf.Limit = ONE, **facts: Any) -> Table:
    known = {"keys": {"arm": ["a", "b"]}, "bounds": {"sbp": (80, 220), "days": (0, 20)}}
    return table(patients(number, each=each), limit, **(known | facts))


def width(ends: Sequence[tuple[Any, Any]]) -> float:
    return float(ends[0][1] - ends[0][0])


# ------------------------------------------------------------------------------------------------- multipliers, claims


@pytest.mark.claim("S1-07")
def test_multipliers_of_normal_plus_laplace() -> None:
    found = [float(multiplier(share, 0.95)) for share in (0, 0.5, 0.9, 1)]
    assert found == pytest.approx([1.960, 1.989, 2.084, 2.118], abs=0.001)


@pytest.mark.claim("S1-07")
def test_normal_quantiles_cover_too_little_of_laplace_noise() -> None:
    noise = np.ones(1)
    assert 1 - outside(np.array([1.959964]), noise)[0] == pytest.approx(0.9375, abs=0.0001)
    assert 1 - outside(np.array([2.575829]), noise)[0] == pytest.approx(0.974, abs=0.0005)
    assert outside(np.array([0.0, 1.0]), np.array([0.3, 0.3]))[0] == pytest.approx(1)


def test_the_law_of_the_sum_is_that_of_the_convolution() -> None:
    """Against a sum over a fine lattice of the Laplace part."""
    from scipy.stats import laplace, norm

    share, x = 0.4, 1.7
    spread, scale = np.sqrt(1 - share), np.sqrt(share / 2)
    steps = np.linspace(-40, 40, 400_001) * scale
    density = laplace.pdf(steps, scale=scale)
    tail = np.trapezoid(density * norm.sf((x - steps) / spread), steps)
    assert outside(np.array([x]), np.array([share]))[0] == pytest.approx(2 * tail, abs=1e-8)


@pytest.mark.claim("S1-08")
@pytest.mark.parametrize(("p", "variance"), [(0.1, 6.50e-4), (0.5, 1.45e-3)])
def test_the_variance_of_a_private_proportion_with_a_public_number(p: float, variance: float) -> None:
    """n = 200, ε = 1/2: Laplace noise of scale 2 on the number who meet it, and n without noise."""
    known = Residuals(
        sums=np.array([[200.0, 200 * p]]),
        noise=np.array([0.0, 2 * np.sqrt(2)]),
        gaussian=False,
        over=np.array([0.0, 1.0]),
        under=np.array([1.0, 0.0]),
        number=np.array([1.0, 0.0]),
        within=(0.0, 1.0),
        exact_variance=True,
    )
    assert known.variance(np.array([p]))[0] == pytest.approx(variance, rel=1e-9)


# --------------------------------------------------------------------------------------------------- single intervals


def shares(met: float, other: float, deviation: float, **changed: Any) -> Residuals:
    base = Residuals(
        sums=np.array([[met, other]]),
        noise=np.full(2, deviation),
        gaussian=True,
        over=np.array([1.0, 0.0]),
        under=np.ones(2),
        number=np.ones(2),
        within=(0.0, 1.0),
        half=0.5,
        exact_variance=True,
    )
    return replace(base, **changed)


def test_without_noise_a_share_has_the_score_interval_with_continuity() -> None:
    """Wilson's limits with continuity correction for 8 of 40, to four digits by an independent solution."""
    n, x, z = 40, 8, 1.959964
    ((low, high),) = shares(x, n - x, 1e-9).ends(0.95)
    for p, side in ((low, 1), (high, -1)):
        assert side * (x - n * p) - 0.5 == pytest.approx(z * np.sqrt(n * p * (1 - p)), abs=2e-3)


@pytest.mark.parametrize("met", [-9.0, 0.0, 3.0, 60.0, 1e7])
@pytest.mark.parametrize("other", [-9.0, 0.0, 3.0, 60.0, 1e7])
@pytest.mark.parametrize("deviation", [0.1, 3.0, 50.0])
def test_the_point_lies_in_its_interval(met: float, other: float, deviation: float) -> None:
    known = shares(met, other, deviation, gaussian=False)
    ((low, high),) = known.ends(0.95)
    assert 0 <= low <= high <= 1
    if met + other != 0:
        assert low <= min(max(met / (met + other), 0), 1) <= high


def test_more_confidence_noise_or_rows_of_a_person_make_it_wider() -> None:
    usual = width(shares(30, 70, 3).ends(0.95))
    assert width(shares(30, 70, 3).ends(0.99)) > usual
    assert width(shares(30, 70, 6).ends(0.95)) > usual
    assert width(shares(30, 70, 3, gaussian=False).ends(0.95)) > usual
    assert width(shares(30, 70, 3, design=SampleDesign(rows=4)).ends(0.95)) > 1.5 * usual


def test_a_ratio_over_nothing_but_noise_has_no_ends() -> None:
    known = Residuals(
        sums=np.array([[5.0, 1.0], [5.0, 1000.0]]),
        noise=np.full(2, 3.0),
        gaussian=True,
        over=np.array([1.0, 0.0]),
        under=np.array([0.0, 1.0]),
        number=np.ones(2),
        squares=np.zeros((3, 2)),
    )
    (open_, told) = known.ends(0.95)
    assert open_ == (-np.inf, np.inf)
    assert told[0] < 0.005 < told[1] < 0.02


def test_neither_squares_nor_bounds_is_refused() -> None:
    with pytest.raises(InvalidInput, match="neither squares nor bounds"):
        replace(shares(3, 7, 1), within=(-np.inf, np.inf), exact_variance=False).ends(0.95)


# -------------------------------------------------------------------------------------------------- through a vault


def test_frame_print_and_column_agree_and_name_both() -> None:
    release = (
        clinic()
        .group_by("arm")
        .agg(
            n=sf.count(),
            old=sf.proportion("old"),
            sbp=sf.mean("sbp"),
            sd=sf.standard_deviation("sbp"),
            stay=sf.median("days"),
            per=sf.ratio("days", "sbp"),
        )
        .release(epsilon=20)
    )
    frame = release.to_arrow().to_pydict()
    assert "sbp_low" not in frame
    assert "n_population_low" not in frame
    for name in ("old", "sbp", "sd", "stay", "per"):
        names = list(frame)
        at = names.index(name)
        sides = [f"{name}_{of}_{end}" for of in ("population", "data") for end in ("low", "high")]
        assert names[at + 1 : at + 5] == sides
        column = release[name]
        assert column.estimates_population
        assert column.interval() == column.interval(of="population")
        for of in ("population", "data"):
            ends = zip(frame[f"{name}_{of}_low"], frame[f"{name}_{of}_high"], strict=True)
            assert [(float(low), float(high)) for low, high in column.interval(of=of)] == list(ends)
        own = column.to_arrow().to_pydict()
        assert own[f"{name}_population_low"] == frame[f"{name}_population_low"]
        for (low, high), (least, most) in zip(column.interval(), column.interval(joint=True), strict=True):
            assert least <= low <= high <= most
    text = str(release)
    assert "95% interval, population" in text
    assert "95% interval, these data" in text
    ((low, high), _) = release["sbp"].interval()
    assert f"{np.floor(low * 10) / 10:.1f} to {np.ceil(high * 10) / 10:.1f}" in text
    for language, words in (("en", "for the population"), ("zh", "总体")):
        assert words in release.explain(language)
        for audience in ("patient", "clinician", "manager", "board"):
            assert words in release.explain(language, audience)
    assert "population" in release._repr_html_()


def test_associations_have_both_intervals() -> None:
    together = clinic().agg(r=sf.correlation("sbp", "days"), c=sf.covariance("sbp", "days")).release(epsilon=50)
    for name in ("r", "c"):
        ((low, high),), ((least, most),) = together[name].interval(), together[name].interval(of="data")
        assert low < least < most < high
        assert together[name].quality == "population.conservative"


def test_counts_and_sums_are_of_the_data_alone() -> None:
    release = clinic().agg(n=sf.count(), total=sf.sum("sbp")).release(epsilon=5)
    for name in ("n", "total"):
        assert release[name].interval() == release[name].interval(of="data")
        with pytest.raises(InvalidInput, match="a figure of these data and estimates nothing of a population"):
            release[name].interval(of="population")
    with pytest.raises(InvalidInput, match="neither 'population' nor 'data'"):
        release["n"].interval(of="people")
    count = clinic().count().release(epsilon=5)
    assert count.interval(of="data") == count.interval()
    with pytest.raises(InvalidInput, match="estimates nothing of a population"):
        count.interval(of="population")


def test_figures_that_are_computed_are_of_the_data() -> None:
    release = clinic().group_by("arm").agg(old=sf.sum(sf.col("old") == True), n=sf.count()).release(epsilon=5)  # noqa: E712
    assert not (release["old"] / release["n"]).estimates_population
    public = clinic(relation="replace", n_units=400)
    mean = public.mean(sf.coalesce(sf.col("sbp"), 150)).release(epsilon=5)["mean"]
    assert mean.estimates_population
    assert not (mean * 2).estimates_population
    assert not mean.total().estimates_population


def test_one_group_has_the_interval_that_it_had_among_all() -> None:
    rates = clinic().group_by("arm").agg(sbp=sf.mean("sbp"), old=sf.proportion("old")).release(epsilon=5)
    for name in ("sbp", "old"):
        assert rates[name].at(arm="b").interval() == rates[name].interval()[1:]


@pytest.mark.alpha(1e-8)
def test_two_arms_with_one_rate_overlap_though_their_figures_differ() -> None:
    """25 pairs of arms of 1,000, ε = 1. Population intervals are disjoint with probability below 0.006, so six of 25
    with one of 1e-8; intervals of the data overlap with probability below 0.25, so 20 of 25 with one of 1e-7."""
    number = 2 * PAIRS * 1000
    draw = np.random.default_rng()
    rows = pa.table(
        {
            "id": range(number),
            "arm": np.repeat(np.arange(2 * PAIRS), 1000),
            "readmitted": draw.random(number) < 0.2,
        }
    )
    arms = table(rows, keys={"arm": list(range(2 * PAIRS))})
    rate = arms.group_by("arm").proportion("readmitted").release(epsilon=1)["proportion"]

    def overlapping(ends: Sequence[tuple[float, float]]) -> int:
        pairs = zip(ends[::2], ends[1::2], strict=True)
        return sum(max(one[0], two[0]) <= min(one[1], two[1]) for one, two in pairs)

    assert overlapping(rate.interval()) >= 20
    assert overlapping(rate.interval(of="data")) < 20


# -------------------------------------------------------------------------------------- what is measured, and designs


def test_a_mean_measures_squares_only_where_they_are_free() -> None:
    secret = clinic().mean("sbp").query.measures[0]
    assert secret.needs == (PowersOf(secret.of, 1, squares=True),)
    assert clinic().mean("sbp").query.blocks[0].degree == 2
    public = clinic(relation="replace", n_units=400)
    assert public.mean(sf.coalesce(sf.col("sbp"), 150)).query.blocks[0].degree == 1


@pytest.mark.alpha(1e-9)
def test_means_and_ratios_of_earlier_versions_stay_as_they_were() -> None:
    """Documents without the new field: the same text, the same sums, a certificate that holds, a wider interval."""
    sbp = Clamped(value=col("sbp").node, low=Fraction(80), high=Fraction(220))
    old, new = MeanValue(name="m", of=sbp), MeanValue(name="m", of=sbp, squares=True)
    assert "squares" not in encode(old)
    assert encode(new)["squares"] is True
    assert old.needs == (PowersOf(sbp, 1),)
    ratio = Quotient(name="r", over=sbp, under=sbp)
    assert "together" not in encode(ratio)
    assert ratio.needs == (SumOf(sbp), SumOf(sbp))
    assert Quotient(name="r", over=sbp, under=sbp, together=True).needs == (ProductsOf(sbp, sbp, 2),)
    release = clinic().agg(m=Asked(lambda *_: old), r=Asked(lambda *_: ratio)).release(epsilon=20)
    assert verify(release.certificate.document).consistent
    assert release["m"].quality == "population.conservative"
    assert not release["r"].estimates_population
    fresh = clinic().agg(m=sf.mean("sbp")).release(epsilon=20)
    assert width(release["m"].interval()) > 1.5 * width(fresh["m"].interval())
    assert verify(fresh.certificate.document).consistent


def test_a_public_number_has_the_bound_of_bhatia_and_davis() -> None:
    public = clinic(relation="replace", n_units=400)
    mean = public.mean(sf.coalesce(sf.col("sbp"), 150)).release(epsilon=100)["mean"]
    assert mean.quality == "population.conservative"
    value = float(mean.values[0])
    bound = 2 * 1.96 * np.sqrt((value - 80) * (220 - value) / 400)
    assert width(mean.interval()) == pytest.approx(bound, rel=0.03)


@pytest.mark.alpha(1e-9)
def test_several_rows_of_a_person_widen_and_persons_of_their_own_do_not() -> None:
    """At ε = 1,000 noise is nothing: three rows of everyone that are all alike tell no more than one."""
    one = clinic(each=1).mean("sbp").release(epsilon=1000)["mean"]
    several = clinic(each=3, limit=sf.Limit(groups=1, rows_per_group=3)).mean("sbp").release(epsilon=1000)["mean"]
    assert several.quality == "population.clusters"
    assert width(several.interval()) == pytest.approx(width(one.interval()), rel=0.05)
    folded = clinic(each=3, limit=sf.Limit(groups=1, rows_per_group=3)).per_person(
        total=sf.sum("sbp"), stays=sf.count()
    )
    ratio = folded.agg(r=sf.ratio("total", "stays")).release(epsilon=1000)["r"]
    assert ratio.quality in ("population.about", "population.skewed")
    assert width(ratio.interval()) == pytest.approx(width(one.interval()), rel=0.1)


def test_the_median_of_counts_is_of_a_population_too() -> None:
    counts = clinic(keys={"days": list(range(14))}).group_by("days").count().release(epsilon=20)
    found = quantile(counts, 0.5)
    assert found.estimates_population
    ((low, high),), ((least, most),) = found.interval(), found.interval(of="data")
    assert low <= least <= most <= high
    assert (low, high) != (least, most)
    assert not quantile(counts.figure * 2, 0.5).estimates_population


# ---------------------------------------------------------------------------------------------------------- SQL views


def test_views_keep_what_a_column_estimates_and_label_the_rest() -> None:
    text = "SELECT arm, AVG(sbp) AS m, ROUND(AVG(sbp), 0) AS r, AVG(sbp) / 2 AS half FROM visits GROUP BY arm"
    release = clinic().sql(text).release(epsilon=20)
    assert release["m"].estimates_population
    assert release["r"].estimates_population
    assert not release["half"].estimates_population
    names = release.to_arrow().column_names
    assert "r_population_low" in names
    assert "half_population_low" not in names
    for (low, high), (least, most) in zip(release["m"].interval(), release["r"].interval(), strict=True):
        assert least <= low
        assert high <= most
    best = clinic().sql(f"{text} ORDER BY m DESC LIMIT 1").release(epsilon=20)
    assert width(best["m"].interval()) > 0
    (label,) = best.labels["arm"]
    assert str(best).splitlines()[2].startswith(label)
