"""The folder and the page for synthetic persons with their rows: whole or not at all, and of the release alone."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import sfumato as sf
from sfumato.core.description import Phrase
from sfumato.core.document_page import PageFigure
from sfumato.errors import InvalidInput
from sfumato.reports.verify import verify
from sfumato.synthesis.agreement import cells_of
from sfumato.synthesis.related_folder import related_page
from sfumato.synthesis.related_parts import wide_codes
from sfumato.synthesis.related_result import SyntheticRelations
from sfumato.synthesis.related_rows import ChildShape, MadeChild, MadeFamily, RelatedShape

SPEND = {"epsilon": 4, "delta": "1/1000000"}
CHAPTERS = {"a1": "A", "a2": "A", "b1": "B"}
SECRET = "XYZZY-4711"  # noqa: S105 - a value of the data that must stand in no file
NAMES = [
    *("persons.parquet", "stays.parquet", "certificate.json", "schema.json", "quality.html"),
    *("dictionary.en.md", "explanation.en.txt", "dictionary.zh.md", "explanation.zh.txt"),
]


def asked(number: int = 400, *, other: bool = False) -> Any:
    """Persons with up to three stays; the other ones have other values, and much that was not declared."""
    owner = [place // 2 for place in range(0, 2 * number, 3 if other else 1)]
    sexes = [SECRET if other and place % 3 else "FM"[place % 2] for place in range(number)]
    stays = {
        "id": owner,
        "day": [place % 2 for place in range(len(owner))],
        "ward": ["B" if other else "AB"[place % 4 // 2] for place in range(len(owner))],
        "cost": [98_765.0 if other else float(place % 100) for place in range(len(owner))],
        "code": [["a1", "b1", SECRET if other else "a2"][place % 3] for place in range(len(owner))],
    }
    vault = sf.Vault(
        unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=100, delta="1/1000000"), name="trial"
    )
    limit = sf.Limit(groups=1, rows_per_group=1)
    people = pa.table({"id": list(range(number)), "sex": sexes})
    above = vault.table(people, name="people", version="1", keys={"sex": ["F", "M"]}, limit=limit)
    keys: dict[str, Any] = {"ward": ["A", "B"]}
    below = vault.table(pa.table(stays), name="raw", version="1", keys=keys, bounds={"cost": (0, 100)})
    child = sf.ChildRows(
        below.where("cost >= 0"),
        order="day",
        most=2,
        columns=["ward", "cost", "code"],
        bins={"cost": 4},
        follow=["ward"],
        hierarchies={"code": CHAPTERS},
    )
    return above.related_synthesis({"stays": child}, persons=600)


@pytest.fixture(scope="module")
def made() -> SyntheticRelations:
    found: SyntheticRelations = asked().release(**SPEND)
    return found


def test_the_folder_holds_every_table_certificate_schema_page_dictionary_and_explanation(
    made: SyntheticRelations, tmp_path: Path
) -> None:
    written = made.write(tmp_path / "partner")
    assert [file.name for file in written] == NAMES
    assert sorted(file.name for file in (tmp_path / "partner").iterdir()) == sorted(NAMES)
    for file, table in zip(written, made.tables.values(), strict=False):
        assert parquet.read_table(file).equals(table)
    files = {file.name: file.read_text("utf-8") for file in written[2:]}
    assert verify(json.loads(files["certificate.json"])).consistent
    assert files["explanation.zh.txt"] == made.explain("zh") + "\n"
    for language, says in (("en", "measured in tables with"), ("zh", "的表中测量")):
        text = files[f"dictionary.{language}.md"]
        assert [line for line in text.splitlines() if line.startswith("## ")] == [
            "## `persons.parquet`",
            "## `stays.parquet`",
        ]
        headings = [line for line in text.splitlines() if line.startswith("### ")]
        assert headings == ["### `sex`", "### `ward`", "### `cost`", "### `code_group`", "### `code`"]
        assert says in text
        assert "`stays.cost`" in text
        assert "cost >= 0" in text
    page = files["quality.html"]
    assert "stays.ward_1" in page
    assert "no such row" in page
    assert "没有这条记录" in page
    shown = re.sub("<[^>]*>", " ", page.partition("<pre")[0])
    assert "Synthetic persons of people, version 1" in shown
    assert "people（版本 1）的合成个人" in shown
    assert "which row it is of: stays.ward_1." in shown
    assert not re.search(r"(?<!stays\.)\bward_1", shown)  # one name for one column
    for wrong in ("Share of rows", "Bars: synthetic rows", "that the rows are furthest", "in rows;", "rows in persons"):
        assert wrong not in shown
    for wrong in ("条形：合成记录", "记录所占比例", "以记录数计", "persons 的行数"):
        assert wrong not in shown


def test_panels_stand_in_the_order_of_the_columns(made: SyntheticRelations) -> None:
    sections = {section.name: section for section in related_page(made, made._parts()).sections}
    names = [column.name for column in made._parts().columns]

    def titles(section: str) -> list[str]:
        (figure,) = [block for block in sections[section].blocks if isinstance(block, PageFigure)]
        words = [
            panel.title.words["name"] if isinstance(panel.title, Phrase) else panel.title for panel in figure.panels
        ]
        return [str(word.word) for word in words]

    alone = [names.index(title) for title in titles("alone")]
    assert alone == sorted(alone)
    pairs = [[names.index(one) for one in title.split(" × ")] for title in titles("pairs")]
    assert pairs == sorted(pairs)


def test_the_files_of_a_partner_may_be_csv_in_one_language(made: SyntheticRelations, tmp_path: Path) -> None:
    chosen = made.write(tmp_path / "csv", format="csv", languages=["zh"])
    assert [file.name for file in chosen[:2]] == ["persons.csv", "stays.csv"]
    assert csv.read_csv(chosen[1]).num_rows == made.tables["stays"].num_rows


def test_the_schema_says_how_tables_are_linked_and_every_row_meets_it(made: SyntheticRelations, tmp_path: Path) -> None:
    persons, stays, _, schema, *_ = made.write(tmp_path / "partner")
    found = json.loads(schema.read_text("utf-8"))
    assert found["kind"] == "synthetic_relations"
    assert found["release"] == made.release.statement.identifier
    for file, resource in zip((persons, stays), found["resources"], strict=True):
        assert resource["path"] == file.name
        assert resource["bytes"] == file.stat().st_size
        assert resource["hash"] == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
        rows = parquet.read_table(file)
        assert resource["rows"] == rows.num_rows
        fields = {each["name"]: each["constraints"] for each in resource["schema"]["fields"]}
        assert list(fields) == rows.column_names
        for name, holds in fields.items():
            values = set(rows[name].to_pylist())
            assert None not in values
            if "enum" in holds:
                assert values <= set(holds["enum"])
            else:
                assert holds["minimum"] <= min(values) <= max(values) <= holds.get("maximum", max(values))
        keys = resource["schema"]["primaryKey"]
        assert len(set(zip(*(rows[key].to_pylist() for key in keys), strict=True))) == rows.num_rows
    (link,) = found["resources"][1]["schema"]["foreignKeys"]
    assert link == {"fields": "id", "reference": {"resource": "persons", "fields": "id"}}
    owners, known = (set(parquet.read_table(file)["id"].to_pylist()) for file in (stays, persons))
    assert owners <= known


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_every_file_is_a_function_of_the_release_and_what_was_declared(
    made: SyntheticRelations, tmp_path: Path, form: str
) -> None:
    again = asked(37, other=True).made(made.release, made.quality.reason)
    one, two = made.write(tmp_path / "one", format=form), again.write(tmp_path / "two", format=form)
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]
    assert not any(SECRET.encode() in file.read_bytes() for file in one)


def test_the_page_compares_persons_with_each_measured_table(made: SyntheticRelations, tmp_path: Path) -> None:
    assert made.parts is not None
    page = related_page(made, made.parts)
    assert [section.name for section in page.sections][:4] == ["kept", "lacking", "tables", "together"]
    assert page.spend == made.release.statement.spend
    for table in made.parts.measured:  # the fit is near the tables, so cells stand where the tables have them
        shares = cells_of(made.parts.codes, table.columns, [column.size for column in made.parts.columns]) / 600
        noisy = table.counts.ravel() / max(made.quality.estimated_persons, 1)
        assert np.abs(shares - noisy).max() < 0.3
    assert made.report(tmp_path / "page.html").read_text("utf-8").count("<h1") >= 1


def test_persons_become_one_wide_row_with_a_cell_for_rows_that_are_not_there() -> None:
    shape = RelatedShape(persons=(2,), children=(ChildShape(sizes=(3,), most=2),))
    rows = MadeChild(
        owner=np.array([0, 0, 2]),
        number=np.array([1, 2, 1]),
        codes=np.array([[1], [2], [0]], dtype=np.int32),
        misfits=(),
    )
    family = MadeFamily(persons=np.array([[0], [1], [1]], dtype=np.int32), children=(rows,), misfit=None)
    assert wide_codes(family, shape).tolist() == [[0, 2, 1, 2], [1, 0, 3, 3], [1, 1, 0, 3]]


def test_what_makes_no_sense_is_refused_and_nothing_is_overwritten(made: SyntheticRelations, tmp_path: Path) -> None:
    for given, words in (({"format": "excel"}, "parquet or csv"), ({"languages": ["fr"]}, "en and zh")):
        with pytest.raises(InvalidInput, match=words):
            made.write(tmp_path / "partner", **given)  # type: ignore[arg-type]  # wrong on purpose
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine", "utf-8")
    with pytest.raises(InvalidInput, match="not an empty folder"):
        made.write(tmp_path / "full")
    bare = SyntheticRelations(release=made.release, tables=made.tables, person="id", quality=made.quality)
    with pytest.raises(InvalidInput, match="without what they were made of"):
        bare.write(tmp_path / "partner")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["full"]
