"""Quantiles, found keys, largest groups and sets of tables: what was chosen has a place and no margin, and says so."""

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import Unsupported
from sfumato.reports.columns import columns_of
from sfumato.reports.page import page, snippet
from sfumato.reports.words import AUDIENCES
from tests.reports.aggregates import table


@pytest.fixture(scope="module")
def quantiles() -> Any:
    return table().group_by("sex").quantiles("sbp", ["1/4", "1/2", "9/10"]).release(epsilon=20)


@pytest.mark.parametrize("reader", AUDIENCES)
def test_quantiles_are_said_with_the_rank_that_bounds_them(quantiles: Any, reader: str) -> None:
    rank = quantiles["median"].rank_margin
    english, chinese = quantiles.explain("en", reader), quantiles.explain("zh", reader)
    assert "the 25% quantile of sbp (p25), the median of sbp (median) and the 90% quantile of sbp (p90)" in english
    assert f"median at most {rank} rows from its place" in english
    assert f"median 的秩误差不超过 {rank} 行" in chinese
    assert "±" not in english, "there is no margin of the value"
    assert "scaled down" not in english, "rows are kept or left out"


def test_quantiles_have_a_page_and_a_table_but_no_interval(quantiles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = snippet(quantiles)
    for name in quantiles.columns:
        assert f'<th scope="col" class="number">{name}</th>' in text
    assert text.count("<td>") == 6
    assert "exponential mechanism" in page(quantiles, ["en"])
    for kind in ("intervals", "noise", "frontier"):
        with pytest.raises(Unsupported, match="p25, median, p90: chosen and not measured"):
            quantiles.plot(kind)


def test_the_largest_groups_and_found_keys_show_themselves() -> None:
    top = table().group_by("sex").top(1).release(epsilon=20)
    assert f'<th scope="row">1</th><th scope="row">{columns_of(top)[0].values[0]}</th>' in snippet(top)
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=50, delta=1e-6), name="keys")
    data = pa.table({"id": list(range(300)), "town": ["<b>" if place % 3 else "West" for place in range(300)]})
    asked = vault.table(data, name="v", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    found = asked.find_keys("town").release(epsilon=20, delta=1e-6)
    assert "&lt;b&gt;" in snippet(found)
    assert "<b>" not in snippet(found)


def test_several_tables_are_said_as_counts() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=2), name="m")
    data = pa.table({"sex": ["F", "M"], "region": ["n", "s"]})
    asked = vault.table(data, name="v", version="1", keys={"sex": ("F", "M"), "region": ("n", "s")})
    made = asked.marginals(["sex"], ["sex", "region"]).release(epsilon=1)
    assert (
        "A table of 6 numbers: how many rows “v” (version 1) has, for each value of sex, sex × region."
        in made.explain()
    )
    assert f"±{made.statement.law.margin('0.95')}" in made.explain("zh")
