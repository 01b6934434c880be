"""The page, the notebook table and the particulars of several computed columns; and units set side by side."""

import re
import sys
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import Unsupported
from sfumato.reports.columns import columns_of
from sfumato.reports.comparison import Case, cases_of, compare
from sfumato.reports.comparison_words import document, notes, rows, title
from sfumato.reports.page import page, snippet
from sfumato.reports.particulars import particulars
from tests.reports.aggregates import five, mean_of, table
from tests.reports.test_page import Reader, section, without_tags


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)


@pytest.mark.few(1)
@pytest.mark.parametrize(("language", "to"), [("en", "to"), ("zh-Hans", "至")])
def test_every_number_stands_with_its_interval_under_it(language: str, to: str) -> None:
    cells = Reader(section(page(five()), language)).cells
    for place, key in enumerate(("F", "M")):
        row = next(row for row in cells if row[0].startswith(key))
        for cell, column in zip(row[1:], columns_of(five()), strict=True):
            low, high = column.interval(place) or ("", "")
            assert cell == f"{column.text(place)}", "the interval stands in a small line of its own"
            assert f"<br><small>{low} {to} {high}</small>" in page(five())
    assert not any(str(value) in without_tags(section(page(five()), language)) for value in five().values)


def test_one_column_has_its_interval_beside_it() -> None:
    text = snippet(mean_of(30))
    column = columns_of(mean_of(30))[0]
    for place in (0, 29):
        low, high = column.interval(place) or ("", "")
        assert f"<td>{column.text(place)}</td><td>{low}</td><td>{high}</td>" in text
    assert "mean<br><small>the mean of sbp</small>" in text


def test_the_first_columns_are_told_at_a_glance() -> None:
    text = page(five())
    assert len([figure for figure in Reader(text).texts["b"] if figure.startswith("±")]) == 8, "four in two languages"
    assert "margin of error of sbp" in text
    alone = page(table().group_by("sex").sum("sbp").release(epsilon=30))
    assert "margin of error of each number" in alone


def test_the_facts_speak_of_rows_and_of_the_ranges() -> None:
    facts = dict(particulars(five(), "en"))
    said = five().statement
    height = said.query.row_height  # type: ignore[attr-defined]
    assert height == 2**30
    assert facts["range"] == "sbp from 80 to 220"
    moved = said.sensitivity.l1
    assert moved is not None
    assert facts["sensitivity"].endswith(f"by at most {moved.value / height} rows")
    assert f"{len(said.values)} numbers that the columns are computed from" in facts["noise"]
    assert "scale 0.4," in facts["noise"]
    assert all(f"{column.name} ±" in facts["margin"] for column in columns_of(five()))
    assert set(re.findall("[A-Za-z]{2,}", " ".join(dict(particulars(five(), "zh")).values()))) <= {
        *("sbp", "total", "sd", "old", "id", "patients", "sfumato"),
        *re.findall("[A-Za-z]{2,}", " ".join([said.issued, said.identifier, facts["key"]])),
    }


def test_negative_means_are_no_negative_counts() -> None:
    made = table().group_by("sex").agg(d=sf.mean(sf.col("age") - 100)).release(epsilon=50)
    assert min(made["d"].values) < 0
    assert "can make a small count negative" not in page(made)


def test_units_are_compared_in_rows() -> None:
    made = five()
    found = compare(made, cases_of(made, family=3))
    row, person = rows(found, "en")[1], rows(found, "en")[0]
    assert (row[0], person[0]) == ("one row", "one person")
    assert person[1] == "20"
    assert Fraction(row[1]) * 10 == Fraction(person[1]), "a person has ten rows' worth: five in each of two groups"
    assert title(found, "en").endswith("measures of “visits” (version 2026-10)")
    assert any("in rows" in note for note in notes(found, "en"))
    assert any("以行计" in note for note in notes(found, "zh"))
    assert document(found)["margin"] == str(Fraction(found.margin, 2**30)) or "/" in str(document(found)["margin"])
    with pytest.raises(Unsupported, match="one margin for all of them says nothing"):
        compare(made.statement.query, [Case(unit=made.statement.unit, limit=made.statement.limit)], margin=5)
