"""Rows that are consistent with counts from before: nearer to them, at no cost, and only where they are comparable."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.synthesis.measured import MeasuredTable
from sfumato.synthesis.row_making import merged
from tests.synthesis.test_synthesize import people, world

ASKED: dict[str, Any] = {"workload": [["sex"], ["ward"], ["pregnant"]], "rows": 3_000, "epsilon": "1/100"}
COLUMNS = ["sex", "ward", "pregnant"]


def test_counts_from_before_enter_with_their_variance() -> None:
    vault, table = world()
    before = table.group_by("ward", "sex").count().release(epsilon=5)
    spent = vault.spent.epsilon
    made = table.synthesize(COLUMNS, consistent_with=[before, before], **ASKED)
    assert vault.spent.epsilon == spent + sf.Budget(epsilon="1/100").epsilon
    assert made.quality.published == 1
    both = [each for each in made.quality.marginals if each.columns == ("sex", "ward")]
    assert len(both) == 1
    assert both[0].published
    assert abs(both[0].noise - float(before.statement.law.variance) ** 0.5) < 1e-9
    found = made.rows.group_by(["sex", "ward"]).aggregate([([], "count_all")]).to_pylist()
    noisy = dict(zip(zip(*before.labels.values(), strict=True), before.values, strict=True))
    total = sum(noisy.values())
    for each in found:
        assert abs(each["count_all"] / 3_000 - noisy[each["ward"], each["sex"]] / total) < 0.03
    assert "released before: 1" in made.explain()
    assert "此前发布" in made.explain("zh")
    assert made.count({"sex": "F"}).sources == (made.release, before)
    ((low, high),) = made.count({"sex": "F"}).interval("0.999999999")
    assert low < 1_500 < high
    assert high - low < 100  # the new release alone has noise of hundreds
    alone = table.synthesize(COLUMNS, **{**ASKED, "epsilon": "1/101"})
    assert alone.quality.published == 0
    assert "released before" not in alone.explain()


def test_the_same_table_twice_is_one_with_less_noise() -> None:
    one = MeasuredTable(columns=(0, 1), counts=np.full((2, 2), 10.0), sigma=3.0)
    two = replace(one, counts=np.full((2, 2), 20.0), sigma=4.0)
    (both,) = merged([one, two])
    assert abs(both.sigma - 2.4) < 1e-12
    assert np.abs(both.counts - (16 * 10 + 9 * 20) / 25).max() < 1e-12
    other = replace(one, columns=(0, 2))
    assert [each.columns for each in merged([one, other])] == [(0, 1), (0, 2)]


def test_other_data_limits_conditions_and_cells_are_refused() -> None:
    vault, table = world()
    other = vault.table(people(50), name="patients", version="2", keys={"sex": ["F", "M"]})
    reordered = table.with_keys(sex=["M", "F"])
    wrong = {
        "version '2'": other.group_by("sex").count(),
        "another condition": table.where(sf.col("age") > 40).group_by("sex").count(),
        "the same cells": reordered.group_by("sex").count(),
        "by one to 3 columns": table.count(),
        "counts of rows": table.group_by("sex").mean("age"),
    }
    spent = {}
    for words, question in wrong.items():
        release = question.release(epsilon="1/3")
        spent[words] = vault.spent
        with pytest.raises(InvalidInput, match=words) as caught:
            table.synthesize(COLUMNS, consistent_with=[release], **ASKED)
        assert "nothing was" in str(caught.value).lower()
        assert vault.spent == spent[words]


def test_counts_that_a_limit_can_cut_are_refused() -> None:
    limit = sf.Limit(groups=1, rows_per_group=1)
    _, table = world(unit=sf.user("id", relation="add/remove"), limit=limit)
    release = table.group_by("sex").count().release(epsilon=1)
    for asked in (table, table.with_limit(sf.Limit(groups=2, rows_per_group=1))):
        with pytest.raises(InvalidInput, match="another unit or limit"):
            asked.synthesize(COLUMNS, consistent_with=[release], **ASKED)
