"""Codes below groups: tables hold the groups, every row keeps its code in its group, and rare codes are together."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.synthesis.levels import CodeLevel
from sfumato.tables import Table
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.vault import Vault

ROWS = 4_000
CODES = [f"{chapter}{number:02d}" for chapter in "IJK" for number in range(100)]
CHAPTERS = {code: f"chapter {code[0]}" for code in CODES}


def stays() -> pa.Table:
    """In each chapter two codes that many have, and many that few have; chapter K has women alone."""
    draw = np.random.default_rng(3)
    chapter = draw.integers(0, 3, ROWS)
    within = np.where(draw.random(ROWS) < 0.8, draw.integers(0, 2, ROWS), draw.integers(2, 100, ROWS))
    sex = np.where((chapter == 2) | (draw.random(ROWS) < 0.5), "F", "M")
    code = np.array(CODES)[100 * chapter + within].tolist()
    return pa.table({"code": [*code[:-100], *[None] * 50, *["X99"] * 50], "sex": sex})


def world(keys: dict[str, Any] | None = None) -> tuple[Vault, Table]:
    budget = sf.Budget(epsilon=1_000, delta="1/1000000")
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="trial")
    return vault, vault.table(stays(), name="stays", version="1", keys={"sex": ["F", "M"], **(keys or {})})


def shares(rows: pa.Table, name: str) -> dict[Any, float]:
    return {each["values"]: each["counts"] / rows.num_rows for each in rows[name].value_counts().to_pylist()}


def test_codes_stand_in_their_chapters_and_rare_ones_are_together() -> None:
    vault, table = world()
    made = table.synthesize(epsilon="1/2", rows=3_000, hierarchies={"code": CHAPTERS})
    assert made.rows.column_names == ["sex", "code_group", "code"]
    for code, group in zip(made.rows["code"].to_pylist(), made.rows["code_group"].to_pylist(), strict=True):
        assert code == "other" or CHAPTERS[code] == group
    found = shares(made.rows, "code")
    for chapter in "IJK":
        for often in ("00", "01"):
            assert abs(found[chapter + often] - 0.8 / 6) < 0.02
    assert 0.05 < found["other"] < 0.3  # a rare code that noise lifts above its threshold takes 0.007 of it
    women = made.rows.filter(pc.equal(made.rows["code_group"], "chapter K"))
    assert shares(women, "sex")["F"] > 0.95
    assert float(vault.spent.epsilon) == 0.5
    assert [each.columns for each in made.quality.marginals] == [("sex", "code_group"), ("code",)]
    assert made.quality.codes == ("code",)
    assert "drawn within their groups" in made.explain()
    assert "编码" in made.explain("zh")
    again = table.synthesize(epsilon="1/2", rows=3_000, hierarchies={"code": sf.Hierarchy(CHAPTERS)})
    assert again.rows == made.rows


def test_codes_that_are_not_declared_count_in_their_chapters() -> None:
    """Keys that were found are the codes that are told apart; the mapping holds the chapters of all."""
    _, table = world({"code": ["I00", "J00", "K00"]})
    made = table.synthesize(
        epsilon=3, rows=3_000, hierarchies={"code": sf.Hierarchy(CHAPTERS, level="chapter", rest="rare")}
    ).rows
    found = shares(made, "code")
    assert set(found) == {"I00", "J00", "K00", "rare"}
    assert abs(found["rare"] - 0.6) < 0.03
    assert all(abs(share - 1 / 3) < 0.03 for share in shares(made, "chapter").values())


def test_without_a_rest_every_row_has_a_declared_code() -> None:
    _, table = world()
    made = table.synthesize(
        epsilon=3, rows=3_000, missing=["code"], hierarchies={"code": sf.Hierarchy(CHAPTERS, rest=None)}
    ).rows
    known = [code for code in made["code"].to_pylist() if code is not None]
    assert set(known) <= set(CODES)
    assert len(set(known)) > 100
    assert abs(1 - len(known) / 3_000 - 100 / ROWS) < 0.02
    empty = [code is None for code in made["code"].to_pylist()]
    assert empty == [group is None for group in made["code_group"].to_pylist()]


def test_rules_and_a_workload_name_the_groups() -> None:
    _, table = world()
    made = table.synthesize(
        epsilon=1,
        rows=1_000,
        hierarchies={"code": CHAPTERS},
        workload=[["sex", "code_group"]],
        never=[{"sex": "M", "code_group": "chapter K"}],
    )
    men = made.rows.filter(pc.equal(made.rows["sex"], "M"))
    assert "chapter K" not in shares(men, "code_group")
    assert made.quality.reason == "workload"


def test_bins_that_are_chosen_go_with_hierarchies() -> None:
    vault, table = world()
    rows = stays().append_column("age", [list(range(100)) * 40])
    table = vault.table(rows, name="aged", version="1", keys={"sex": ["F", "M"]}, bounds={"age": (0, 99)})
    made = table.synthesize(epsilon=2, rows=500, hierarchies={"code": CHAPTERS}, bins={"age": sf.QuantileBins(3)})
    assert made.rows.column_names == ["sex", "age", "code_group", "code"]
    assert vault.spent.epsilon == 2


def test_the_table_of_codes_is_one_more_table_of_the_one_question() -> None:
    _, table = world()
    asked = table.synthesis(rows=1_000, hierarchies={"code": CHAPTERS}).question(epsilon=1)
    query = asked.query
    assert isinstance(query, WeightedMarginals)
    assert query.tables == ((0, 1), (2,))
    assert query.cells == (6, 301)
    moved = query.sensitivity(sf.record(relation="add/remove"), None)
    assert moved.l1.value == sum(query.weights)  # type: ignore[union-attr]


WRONG: list[tuple[Any, str]] = [
    ({"cod": CHAPTERS}, "none of the columns"),
    ({"code": {}}, "maps each code"),
    (["code"], "maps columns"),
    ("code", "maps columns"),
    ({"code": {"I00": 3}}, "are texts"),
    ({"code": {"other": "a", "I00": "b"}}, "no code"),
    ({"code": {1: "a", 2: "b"}}, "rest=None"),
    ({"code": sf.Hierarchy(CHAPTERS, level="sex")}, "as a column is"),
    ({"sex": {"F": "people"}}, "no group for 'M'"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=str)
def test_what_makes_no_sense_is_refused_before_anything_is_read(given: Any, words: str) -> None:
    vault, table = world()
    with pytest.raises(InvalidInput, match=words) as caught:
        table.synthesize(["sex", "code"] if "code" in given else ["sex"], epsilon=1, rows=10, hierarchies=given)
    assert "nothing was" in str(caught.value).lower()
    assert vault.spent == sf.Budget.none()


def test_noise_alone_tells_no_code_apart() -> None:
    random = np.random.default_rng(4)
    level = CodeLevel(name="code", group=0, codes=tuple(CODES), within=(0,) * 300, open=(False,))
    noise = random.normal(0, 10, 300)
    alone = level.shares(noise, 40.0, np.array([500.0]))
    assert alone[0, -1] > 0.9
    nothing = level.shares(np.full(300, -5.0), 10.0, np.array([-3.0]))
    assert nothing[0, -1] == 1
    spread = CodeLevel(name="code", group=0, codes=tuple(CODES), within=(0,) * 300, open=(False,), rest=None)
    assert np.allclose(spread.shares(np.full(300, -5.0), 10.0, np.array([-3.0]))[0, :300], 1 / 300)
    codes = level.drawn(np.array([0, 1, 0], dtype=np.int32), nothing, random).to_pylist()
    assert codes == ["other", None, "other"]
