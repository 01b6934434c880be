"""Rows that follow from several releases say what all of them cost; only this vault's releases count."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from tests.synthesis.test_synthesize import people, world

ASKED: dict[str, Any] = {"rows": 200, "expected_rows": 3_000}
COLUMNS = ["sex", "ward", "age"]


def test_a_file_says_what_all_releases_cost_that_it_follows_from(tmp_path: Path) -> None:
    vault, table = world()
    before = table.group_by("ward", "sex").count().release(epsilon=5)
    made = table.synthesize(COLUMNS, consistent_with=[before], bins={"age": sf.QuantileBins(4)}, epsilon=1, **ASKED)
    assert vault.spent == made.spend == sf.Budget(epsilon=6)
    assert len(made.releases) == 3
    written = {file.name: file for file in made.write(tmp_path / "partner", languages=["en"])}
    assert {"certificate.json", "certificate.before-1.json", "certificate.before-2.json"} <= written.keys()
    schema = json.loads(written["schema.json"].read_text("utf-8"))
    assert Fraction(schema["guarantee"]["epsilon"]) == 6
    assert len(schema["releases_before"]) == 2
    assert len(parquet.read_schema(written["rows.parquet"]).metadata[b"sfumato.releases_before"].split(b",")) == 2
    for name in ("explanation.en.txt", "quality.html"):
        assert "3 releases, which cost ε = 6 together" in written[name].read_text("utf-8")
    assert ">ε = 6<" in written["quality.html"].read_text("utf-8")
    asked = table.synthesis(COLUMNS, bins={"age": sf.QuantileBins(4)}, **ASKED)
    assert asked.preview(epsilon=1).spend == sf.Budget(epsilon=1)


def test_counts_of_another_vault_are_refused() -> None:
    """The same name and version say nothing: whoever signed them is somebody else."""
    ours, others = world()[1], world(people(40))[1]
    before = others.group_by("ward", "sex").count().release(epsilon=5)
    with pytest.raises(InvalidInput, match="not signed by this vault"):
        ours.synthesize(COLUMNS, consistent_with=[before], epsilon=1, **ASKED)


def _refusing(*_: object) -> None:
    raise InvalidInput("refused here; nothing was spent.")


def test_an_error_between_charges_says_what_was_spent_before_it() -> None:
    vault, table = world()
    asked = table.synthesis(COLUMNS, bins={"age": sf.QuantileBins(4)}, **ASKED)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(asked), "with_edges", _refusing)
        with pytest.raises(InvalidInput, match="refused here") as caught:
            asked.release(epsilon=1)
    assert vault.spent == sf.Budget(epsilon="1/10")
    assert "for ε = 1/10" in caught.value.__notes__[0]


def test_tables_with_next_to_no_noise_make_rows() -> None:
    _, table = world(people(60))
    made = table.synthesize(["sex", "ward"], epsilon=900, rows=60, expected_rows=60)
    assert made.quality.chi_squared is not None
    assert made.quality.chi_squared == made.quality.chi_squared, "a number"
    assert made.rows.group_by(["sex", "ward"]).aggregate([]).num_rows > 2
