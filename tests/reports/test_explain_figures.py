"""Figures that were computed from releases explain themselves: their sources, their error, and no further cost."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.release import Release
from sfumato.inference import non_negative
from sfumato.inference.figure import Figure


def releases(name: str = "trial") -> tuple[Release, Release]:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10), name=name)
    rows = pa.table({"region": ["north"] * 500 + ["south"] * 300})
    table = vault.table(rows, name="visits", version="1", keys={"region": ["north", "south"]})
    return table.group_by("region").count().release(epsilon="1/2"), table.count().release(epsilon=1)


def test_a_difference_names_its_sources_and_costs_nothing() -> None:
    by_region, all_rows = releases()
    text = (by_region - all_rows).explain()
    assert f"release {by_region.statement.identifier[:8]}" in text
    assert f"release {all_rows.statement.identifier[:8]}" in text
    assert "this cost nothing further" in text
    assert "2 charges used ε = 3/2" in text
    assert "没有再次查询数据" in (by_region - all_rows).explain("zh", "clinician")


@pytest.mark.long
def test_the_margin_is_that_of_the_figure() -> None:
    by_region, all_rows = releases()
    assert "within ±12 of the exact figure" in (2 * by_region).explain()
    share = by_region / all_rows
    widest = max(
        max(high - value, value - low) for value, (low, high) in zip(share.values, share.interval(), strict=True)
    )
    stated = float((share.explain().split("within ±")[1]).split(" ")[0])
    assert widest <= stated <= 1.01 * widest
    assert "of the exact figure" in non_negative(by_region).explain()


def test_two_accounts_of_one_name_are_not_taken_for_one() -> None:
    with pytest.raises(errors.Unsupported, match="several accounts of one name"):
        (releases()[0] - releases()[0]).explain()


def test_what_different_limits_cut_off_is_said() -> None:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10), name="trial")
    rows = pa.table({"id": [1, 1, 2]})
    one, two = (
        vault.table(rows, name="t", version=str(most), limit=sf.Limit(groups=1, rows_per_group=most))
        .count()
        .release(epsilon=1)
        for most in (1, 2)
    )
    assert "limit differently" in (one - two).explain()
    assert "贡献上限不同" in (one - two).explain("zh")


def test_what_has_no_text() -> None:
    by_region, _ = releases()
    north, south = by_region.figure.at(region="north"), by_region.figure.at(region="south")
    with pytest.raises(errors.Unsupported, match="divides by 0"):
        (north / (south - south.values[0])).explain()
    with pytest.raises(errors.Unsupported, match="several accounts"):
        (by_region - releases("other")[0]).explain()
    with pytest.raises(errors.InvalidInput, match="constants alone"):
        Figure(forms=(), labels={}, measure="count", sources=()).explain()
