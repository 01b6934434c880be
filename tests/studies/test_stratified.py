"""Estimates of a population from strata, and direct standardisation: from the release to the words."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.studies.stratified import StratifiedResult
from sfumato.tables.table import Table

pytestmark = pytest.mark.alpha(1e-12)

EXACT = 500
"""An ε at which noise is far below what is compared here."""
SIZES = {"north": 6_000, "south": 3_000, "west": 1_000}


def survey(unit: object = None, limit: sf.Limit | None = None, *, rows: int = 900) -> Table:
    place = np.arange(rows)
    region = np.array(list(SIZES))[place % 3]
    return sf.Vault(
        unit=sf.record(relation="add/remove") if unit is None else unit,  # type: ignore[arg-type]
        budget=sf.Budget(epsilon=10**5),
        name="survey",
    ).table(
        pa.table(
            {
                "id": place,
                "region": region,
                "sex": np.array(["F", "M"])[(place // 3) % 2],
                "smokes": (place // 3) % 10 < place % 3 + 1,
                "sbp": 100.0 + 10 * (place % 3) + (place // 3) % 7,
                "days": (place % 5).astype(float),
            }
        ),
        name="survey",
        version="1",
        keys={"region": list(SIZES), "sex": ["F", "M"]},
        bounds={"sbp": (80, 180), "days": (0, 10)},
        limit=limit,
    )


@pytest.fixture(scope="module")
def release() -> Release:
    asked = survey().group_by("region").agg(smokes=sf.proportion("smokes"), sbp=sf.mean("sbp"), n=sf.count())
    return asked.release(epsilon=EXACT)


def test_it_is_the_weighted_mean_of_the_strata(release: Release) -> None:
    found = sf.stratified(release["smokes"], SIZES)
    assert found.estimate == pytest.approx(0.6 * 0.1 + 0.3 * 0.2 + 0.1 * 0.3, abs=1e-3)
    assert found.total == pytest.approx(10_000 * found.estimate)
    assert found.total_interval() == pytest.approx(tuple(10_000 * end for end in found.interval()))
    mean = sf.stratified(release["sbp"], SIZES)
    assert mean.estimate == pytest.approx(103 + 0.3 * 10 + 0.1 * 20, abs=0.05)
    low, high = mean.interval()
    assert low < mean.estimate < high


def test_the_interval_is_that_of_the_textbook_where_there_is_no_noise(release: Release) -> None:
    """Var = Σ W²s²/n, with the quantile of Student for its degrees of freedom."""
    found = sf.stratified(release["sbp"], SIZES)
    variance = sum(w**2 * 4 / 300 for w in (0.6, 0.3, 0.1))  # values 0 to 6 have the variance 4
    assert found.standard_error == pytest.approx(math.sqrt(variance), rel=0.06)
    low, high = found.interval()
    assert high - low == pytest.approx(2 * 1.965 * math.sqrt(variance), rel=0.06)


def test_standardisation_is_the_same_calculation_with_the_weights_of_a_standard(release: Release) -> None:
    one = sf.stratified(release["smokes"], SIZES)
    other = sf.standardised(release["smokes"], {"north": Fraction(3, 5), "south": "0.3", "west": 0.1})
    assert other.interval() == pytest.approx(one.interval())
    assert "directly standardised by region" in str(other)
    assert "直接标准化" in other.summary("zh")
    with pytest.raises(InvalidInput, match="a total needs how many people"):
        _ = other.total


def test_other_labels_are_groups_with_an_estimate_each() -> None:
    release = survey().group_by("sex", "region").agg(smokes=sf.proportion("smokes")).release(epsilon=EXACT)
    found = sf.standardised(release["smokes"], SIZES, by="region")
    assert list(found.table().columns["sex"]) == ["F", "M"]
    assert len(found.intervals()) == 2
    with pytest.raises(InvalidInput, match="there are 2 groups"):
        _ = found.estimate
    both = sf.stratified(release, {(sex, region): size / 2 for region, size in SIZES.items() for sex in "FM"})
    assert both.estimate == pytest.approx(float(np.mean(found.estimates)), abs=1e-3)
    women = sf.standardised(release["smokes"].at(sex="F"), SIZES)
    assert women.estimate == pytest.approx(found.estimates[0])


def test_a_ratio_of_totals_can_be_standardised() -> None:
    release = survey().group_by("region").agg(rate=sf.ratio("days", "sbp")).release(epsilon=EXACT)
    found = sf.standardised(release["rate"], SIZES)
    assert found.estimate == pytest.approx(2 / 105, rel=0.1)
    assert list(found.table().columns["quantity"]) == ["ratio"]


def test_people_who_are_all_in_the_data_leave_the_noise_alone() -> None:
    release = survey().group_by("region").proportion("smokes").release(epsilon=5)
    column = release["proportion"]
    wide = sf.stratified(column, dict.fromkeys(SIZES, 300))
    small = sf.stratified(column, dict.fromkeys(SIZES, 300), finite_population=True)
    assert wide.interval()[1] - wide.interval()[0] > 2 * (small.interval()[1] - small.interval()[0])
    assert "finite population correction: the estimand" in str(small)


def test_several_strata_and_rows_of_one_person_make_it_wider() -> None:
    once, often = sf.Limit(groups=1, rows_per_group=1), sf.Limit(groups=2, rows_per_group=2)
    person = sf.user("id", relation="add/remove")
    one, four = (
        sf.stratified(survey(person, limit).group_by("region").agg(s=sf.mean("sbp")).release(epsilon=EXACT), SIZES)
        for limit in (once, often)
    )
    assert four.standard_error == pytest.approx(2 * one.standard_error, rel=0.1)
    assert "One person can have several rows" in str(four)
    release = four.sources[0]
    with pytest.raises(Refused, match="rows do not say how many"):
        sf.stratified(release, SIZES, finite_population=True)


def test_strata_that_are_lost_in_their_noise_are_named_and_leave_no_estimate() -> None:
    release = survey(rows=60).group_by("region").proportion("smokes").release(epsilon="1/100")
    found = sf.stratified(release["proportion"], SIZES)
    assert math.isnan(found.estimate)
    assert found.interval() == (0.0, 1.0)
    assert "Merge strata" in str(found)


def test_it_speaks_both_languages_and_is_drawn_and_written(release: Release, tmp_path: Path) -> None:
    found: StratifiedResult = sf.stratified(release["smokes"], SIZES)
    for language, words in (("en", "post-stratification"), ("zh", "事后分层")):
        assert words in found.summary(language)
        assert words in found.explain(language)
    assert [row.at for row in found.picture().rows] == ["north", "south", "west", "all strata"]
    assert found.to_arrow("strata").column("size").to_pylist() == [6_000, 3_000, 1_000]
    assert found.to_csv(tmp_path / "found.csv").read_text("utf-8").count("\n") == 3


@pytest.mark.parametrize(
    ("sizes", "asked", "words"),
    [
        ({"north": 1, "south": 2}, {}, "missing are west"),
        ({**SIZES, "wst": 1}, {}, "unknown are wst.*'west'"),
        ({**SIZES, "west": -1}, {}, "0 or more"),
        (dict.fromkeys(SIZES, 0), {}, "not all 0"),
        (SIZES, {"by": "regio"}, "no stratum is by 'regio'.*'region'"),
        (SIZES, {"by": []}, "names columns"),
        ({}, {}, "by stratum"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    release: Release, sizes: dict[str, int], asked: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        sf.stratified(release["smokes"], sizes, **asked)  # type: ignore[arg-type]


def test_what_is_no_mean_by_stratum_is_refused(release: Release) -> None:
    with pytest.raises(Unsupported, match="neither a mean"):
        sf.stratified(release["n"], SIZES)
    with pytest.raises(InvalidInput, match="2 columns that estimate"):
        sf.stratified(release, SIZES)
    with pytest.raises(InvalidInput, match="not by group"):
        sf.stratified(survey().proportion("smokes").release(epsilon=1), SIZES)
    several = survey().group_by("sex", "region").proportion("smokes").release(epsilon=1)
    with pytest.raises(InvalidInput, match="say which are strata"):
        sf.stratified(several, SIZES)
