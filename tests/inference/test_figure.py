"""Arithmetic on releases: what is computed, which noise it carries, and what is refused."""

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.release import Release
from sfumato.inference import Figure, Ratio, figure, weighted_mean
from sfumato.reports.verify import load

ROWS = pa.table({"region": ["north"] * 500 + ["south"] * 300 + ["west"] * 20})


@pytest.fixture(scope="module")
def releases() -> dict[str, Release]:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10), name="trial")
    table = vault.table(ROWS, name="visits", version="1", keys={"region": ["north", "south", "west"]})
    by_region = table.group_by("region").count()
    return {
        "fine": by_region.release(epsilon=1),
        "coarse": by_region.release(epsilon="1/4"),
        "all": table.count().release(epsilon=1),
    }


def test_sums_differences_and_multiples(releases: dict[str, Release]) -> None:
    fine, coarse = releases["fine"], releases["coarse"]
    assert (fine + coarse).values == tuple(a + b for a, b in zip(fine.values, coarse.values, strict=True))
    assert (fine - coarse).values == tuple(a - b for a, b in zip(fine.values, coarse.values, strict=True))
    assert (2 * fine).values == (fine + fine).values == (fine * 2).values
    assert (fine / 2).values == tuple(sf_plain(Fraction(value, 2)) for value in fine.values)
    assert (1 - fine).values == tuple(1 - value for value in fine.values)
    assert (5 + fine).values == (fine + 5).values
    assert (fine + coarse).sources == (fine, coarse)
    assert (fine + fine).sources == (fine,)


def sf_plain(value: Fraction) -> int | Fraction:
    return int(value) if value.denominator == 1 else value


def test_the_same_noise_counts_once_with_its_sign(releases: dict[str, Release]) -> None:
    fine = releases["fine"]
    nothing = fine - fine
    assert nothing.values == (0, 0, 0)
    assert nothing.interval() == [(0, 0)] * 3
    margin = fine.statement.law.margin(Fraction(19, 20))
    assert [high - value for value, (_, high) in zip((fine + fine).values, (fine + fine).interval(), strict=True)] == [
        2 * margin
    ] * 3
    assert (fine + fine).method == "the noise distribution itself"


def test_a_release_read_back_from_its_certificate_holds_the_same_noise(
    releases: dict[str, Release], tmp_path: Any
) -> None:
    again = load(releases["fine"].certificate.save(tmp_path / "fine.json"))
    assert (again - releases["fine"]).interval() == [(0, 0)] * 3


def test_independent_noise_adds_up(releases: dict[str, Release]) -> None:
    fine, coarse = releases["fine"], releases["coarse"]
    difference = fine - coarse
    ((low, high), *_) = difference.interval()
    half = (high - low) / 2
    wide, narrow = (one.statement.law.margin(Fraction(19, 20)) for one in (coarse, fine))
    assert wide <= half < wide + narrow
    assert difference.method.startswith("convolution")
    assert all(
        low <= value <= high for value, (low, high) in zip(difference.values, difference.interval(), strict=True)
    )


def test_a_total_and_its_parts(releases: dict[str, Release]) -> None:
    fine = releases["fine"].figure
    assert fine.total().values == (sum(fine.values),)
    assert fine.at(region="north").values == fine.values[:1]
    assert fine.at(region="north").labels == {}
    rest = fine.total() - fine.at(region="north")
    assert rest.interval() == (fine.at(region="south") + fine.at(region="west")).interval()


def test_joint_intervals_are_wider_and_independent_ones_no_wider_than_they_must(releases: dict[str, Release]) -> None:
    fine = releases["fine"]
    apart = fine.figure
    law = fine.statement.law
    joint = [high - value for value, (_, high) in zip(apart.values, apart.interval(joint=True), strict=True)]
    assert joint == [law.margin(Fraction(19, 20), numbers=3)] * 3
    shares = apart - apart.total()  # these share their noise, so each gets a third of the doubt
    for (low, high), (joint_low, joint_high) in zip(shares.interval(), shares.interval(joint=True), strict=True):
        assert joint_low < low
        assert high < joint_high


@pytest.mark.long
def test_ratios(releases: dict[str, Release]) -> None:
    fine, whole = releases["fine"], releases["all"]
    share = fine / whole
    assert isinstance(share, Ratio)
    assert share.values == tuple(value / whole.values[0] for value in fine.values)
    assert all(low < value < high for value, (low, high) in zip(share.values, share.interval(), strict=True))
    assert all(
        wide_low < low and high < wide_high
        for (low, high), (wide_low, wide_high) in zip(share.interval(), share.interval(joint=True), strict=True)
    )
    of_itself = fine / fine
    assert of_itself.interval() == [(1.0, 1.0)] * 3
    assert "inversion" in share.method


def test_a_ratio_to_what_may_be_nothing_has_no_ends(releases: dict[str, Release]) -> None:
    fine, coarse = releases["fine"], releases["coarse"]
    open_ended = fine.figure.at(region="north") / (coarse.figure.at(region="west") - coarse.values[2])
    assert open_ended.interval() == [(-math.inf, math.inf)]
    assert math.isnan(open_ended.values[0])


def test_weighted_means(releases: dict[str, Release]) -> None:
    fine, coarse = releases["fine"], releases["coarse"]
    mean = weighted_mean([fine, coarse], [16, 1])
    expected = tuple(sf_plain(Fraction(16 * a + b, 17)) for a, b in zip(fine.values, coarse.values, strict=True))
    assert mean.values == expected
    narrow = fine.statement.law.margin(Fraction(19, 20))
    ((low, high), *_) = mean.interval()
    assert (high - low) / 2 <= narrow + 1
    for weights in ([1], [0, 0]):
        with pytest.raises(errors.InvalidInput, match="weight"):
            weighted_mean([fine, coarse], weights)
    with pytest.raises(errors.InvalidInput, match="weight"):
        weighted_mean([fine, coarse], [1, -1])


def test_tables(releases: dict[str, Release]) -> None:
    fine, whole = releases["fine"], releases["all"]
    assert (fine + 1).to_arrow().column_names == ["region", "count", "count_data_low", "count_data_high"]
    assert str((fine + 1).to_arrow().schema.field("count").type) == "int64"
    assert (fine / whole).to_arrow().column_names == ["region", "ratio", "ratio_data_low", "ratio_data_high"]
    assert len((fine / 3).to_pandas()) == len((fine / 3).to_polars()) == 3
    assert str(fine + 0).startswith(f"north: {fine.values[0]} (")
    assert str(whole + 0).startswith(f"{whole.values[0]} (")


def test_what_is_refused(releases: dict[str, Release]) -> None:
    fine = releases["fine"]
    with pytest.raises(errors.InvalidInput, match="post-processing takes releases"):
        figure([1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidInput, match="about different things"):
        fine + fine.figure._mapped(lambda form: form).at(region="north") + _relabelled(fine)
    with pytest.raises(errors.InvalidInput, match="no number here"):
        fine.figure.at(region="east")
    with pytest.raises(errors.InvalidInput, match="no number here"):
        fine.figure.at(ward="north")
    with pytest.raises(errors.InvalidInput, match="divided by 0"):
        fine / 0
    with pytest.raises(errors.InvalidInput, match="product of two"):
        fine * fine
    with pytest.raises(errors.InvalidInput, match="confidence"):
        (fine + 1).interval(1)
    with pytest.raises(errors.InvalidInput, match="number"):
        fine + float("nan")


def _relabelled(release: Release) -> Figure:
    made = figure(release)
    return Figure(forms=made.forms, labels={"ward": ("a", "b", "c")}, measure="count", sources=made.sources)
