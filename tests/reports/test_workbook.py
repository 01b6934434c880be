"""A release as a workbook for Excel: the table of its frame, and beside it what a reader must know."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput

fastexcel = pytest.importorskip("fastexcel")

KEYS = ["=1+1", "north", "@south"]


@pytest.fixture(scope="module")
def release() -> Release:
    unit = sf.user("patient_id", relation="add/remove")
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=9), name="clinic")
    rows = pa.table({"patient_id": [i // 2 for i in range(60)], "=k": [KEYS[i % 3] for i in range(60)]})
    limit = sf.Limit(groups=1, rows_per_group=3)
    table = vault.table(rows, name="visits", version="1", keys={"=k": KEYS}, limit=limit)
    return table.group_by("=k").count().release(epsilon="1/2")


def test_the_first_sheet_is_the_frame(release: Release, tmp_path: Path) -> None:
    book = fastexcel.read_excel(str(release.to_excel(tmp_path / "a.xlsx", 0.9)))
    assert book.sheet_names == ["answer", "about", "说明"]
    found = book.load_sheet("answer").to_arrow()
    assert found.to_pydict() == release.to_arrow(0.9).to_pydict()
    assert found.column("=k").to_pylist() == KEYS, "text, never a formula"
    assert all(pa.types.is_floating(found.schema.field(name).type) for name in ("count", "count_data_low"))


def test_the_other_sheets_say_what_counts_and_what_was_charged(release: Release, tmp_path: Path) -> None:
    book = fastexcel.read_excel(str(release.to_excel(tmp_path / "a.xlsx", 0.9)))
    for language, names in (("en", ("about", "ε of this release")), ("zh", ("说明", "本次发布的 ε"))):
        left, right = book.load_sheet(names[0], header_row=None).to_arrow().to_pydict().values()
        assert right[0] == "90%"
        assert release.limit_words(language) in right
        assert right[left.index(names[1])] == "1/2"
        assert release.statement.identifier in right
        for paragraph in release.explain(language).split("\n\n"):
            assert paragraph in right


def test_figures_have_one_too_and_say_where_they_come_from(release: Release, tmp_path: Path) -> None:
    figure = release.figure.at(**{"=k": "north"}) + 1
    book = fastexcel.read_excel(str(figure.to_excel(tmp_path / "a.xlsx", languages=["en"])))
    assert book.sheet_names == ["answer", "about"]
    assert book.load_sheet(0).to_arrow().to_pydict() == figure.to_arrow().to_pydict()
    about = book.load_sheet(1, header_row=None).to_arrow().column(1).to_pylist()
    assert release.statement.identifier in about
    assert figure.explain().split("\n\n")[0] in about


def test_a_ratio_without_a_margin_still_has_its_numbers(release: Release, tmp_path: Path) -> None:
    nothing = release.figure.at(**{"=k": "north"}) - release.figure.at(**{"=k": "north"})
    ratio = release.figure.at(**{"=k": "north"}) / (nothing + release.figure.at(**{"=k": "@south"}) * 0 + 1)
    assert ratio.to_excel(tmp_path / "a.xlsx").exists()


def test_what_cannot_be_written_is_said(release: Release, tmp_path: Path) -> None:
    for name, languages in (("a.csv", ["en"]), ("a.xlsx", []), ("a.xlsx", "en"), ("a.xlsx", ["zh", "zh-Hans"])):
        with pytest.raises(InvalidInput, match="othing was written"):
            release.to_excel(tmp_path / name, languages=languages)
    assert not list(tmp_path.iterdir())
