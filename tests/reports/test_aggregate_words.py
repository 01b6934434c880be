"""Releases with several computed columns, in words: what was measured, how exact each is, what was held back."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.description import plain
from sfumato.core.release import presenter_of
from sfumato.inference.ratio import Ratio
from sfumato.reports.columns import AnswerColumn, columns_of, magnitude
from sfumato.reports.words import AUDIENCES, Facts
from sfumato.reports.words.rendering import render
from sfumato.tables.describe import measured
from tests.reports.aggregates import five, fresh_mean_of, table
from tests.reports.readers import MEASURES

LANGUAGES = ("en", "zh")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reader", AUDIENCES)
def test_every_reader_hears_of_every_column_its_margin_and_its_range(reader: str, language: str) -> None:
    text = five().explain(language, reader)
    for column in columns_of(five()):
        widest = magnitude(max(column.told))
        assert re.search(rf"{column.name} [^;；]*±{re.escape(widest)}", text), column.name
    assert {"en": "below 80 were counted as 80", "zh": "低于 80 的值按 80 计"}[language] in text
    assert {"en": "value is missing", "zh": "值缺失"}[language] in text
    assert not any(str(value) in text for value in five().values), "the numbers behind the columns are no results"


def test_each_measure_has_its_own_words_in_both_languages() -> None:
    for language in LANGUAGES:
        words = [render(measured(measure), language) for measure in MEASURES]
        assert len(set(words)) == len(MEASURES)
    assert render(measured(MEASURES[4]), "en") == "the mean of sbp"
    assert render(measured(MEASURES[10]), "zh") == "sbp 与 age 的相关系数"
    assert render(measured(MEASURES[2], persons=False), "en") == "the number of rows"


def test_one_column_with_one_margin_is_said_as_one() -> None:
    made = table().group_by("sex").sum("sbp").release(epsilon=20)
    facts = Facts.of(made)
    assert facts.margins is not None
    assert facts.spans == ()
    low, high = made["sum"].interval()[0]
    assert facts.margins.each == Fraction(high - low) / 2
    assert facts.margins.joint >= facts.margins.each
    text = made.explain("en", "clinician")
    assert "the sum of sbp, over the rows of" in text
    assert "Beside a count of" not in text, "advice about counts is not about sums"
    counted = table().group_by("sex").agg(p=sf.persons()).release(epsilon=1)
    assert "Beside a count of" in counted.explain("en", "clinician")
    assert "the number of persons" in counted.explain()


def test_numbers_that_say_nothing_are_called_so() -> None:
    # Noise worth hundreds of rows on 400: three draws of four and more leave any mean possible; none of 40 below 1e-24.
    draws = (fresh_mean_of(2, epsilon="1/50") for _ in range(40))
    made = next(made for made in draws if columns_of(made)[0].open == 2)
    for reader in AUDIENCES:
        assert "For 2 numbers of mean the noise leaves every possible value open" in made.explain("en", reader)
        assert "mean ±" not in made.explain("en", reader)
        assert "mean 中有 2 个数字" in made.explain("zh", reader)


def test_a_public_number_is_said() -> None:
    data = pa.table({"id": list(range(50)), "sbp": [100.0 + place for place in range(50)]})
    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=10), name="trial")
    asked = vault.table(data, name="trial", version="1", bounds={"sbp": (80, 220)}, n_units=50)
    made = asked.mean(sf.coalesce(sf.col("sbp"), 150)).release(epsilon=1)
    assert made.statement.query.number == 50
    assert "Each row counts exactly once. The number of rows, 50, was declared as public." in made.explain()
    assert "middle of the range" not in made.explain()
    assert "总行数 50" in made.explain("zh")


def test_a_group_for_the_rest_leaves_nobody_out() -> None:
    facts = Facts.of(five())
    assert facts.description.at("uncounted")
    assert "none of the listed groups" in five().explain()
    query = five().statement.query
    rest = replace(query, by=tuple(replace(keys, other="else") for keys in query.by))  # type: ignore[attr-defined,type-var]
    said = replace(five().statement, query=rest, values=(10**9,) * rest.size)
    made = replace(five(), presenter=presenter_of(five()), statement=said)
    assert not Facts.of(made).description.at("uncounted")
    assert "none of the listed groups" not in made.explain()


@pytest.mark.parametrize(
    ("values", "ends", "shown"),
    [
        ((129.784,), ((129.644, 129.924),), ("129.78", "129.64", "129.93")),
        ((-0.5,), ((-0.5314, -0.4),), ("-0.50", "-0.54", "-0.40")),
        ((1228689.4,), ((1225147.2, 1232231.6),), ("1,228,689", "1,225,147", "1,232,232")),
        ((7,), ((1, 13),), ("7", "1", "13")),
        ((0.034,), ((0.034, 0.034),), ("0.034", "0.034", "0.034")),
    ],
)
def test_numbers_are_rounded_for_their_margin_and_ends_outward(
    values: Any, ends: Any, shown: tuple[str, str, str]
) -> None:
    column = AnswerColumn(name="x", measured=None, figure=None, values=values, ends=ends)
    assert (column.text(0), *(column.interval(0) or ())) == shown


def test_what_has_no_number_shows_none() -> None:
    column = AnswerColumn(
        name="x", measured=None, figure=None, values=(math.nan, 2.0), ends=((-math.inf, math.inf), (1.0, 3.0))
    )
    assert column.text(0) == "—"
    assert column.interval(0) is None
    assert column.open == 1
    assert column.shared is None


def test_bounds_are_written_as_people_write_them() -> None:
    assert [plain(Fraction(bound)) for bound in ("80", "221/2", "1/3", "-5000")] == ["80", "110.5", "1/3", "-5,000"]


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"ibis", "duckdb", "pandas", "numpy", "scipy", "pyarrow", "altair"}:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from sfumato.reports.verify import load, read, verify
assert verify(read(sys.argv[1])).consistent
print(load(sys.argv[1]).explain("en"))
"""


@pytest.mark.long
def test_words_come_without_numpy_and_engines(tmp_path: Path) -> None:
    path = five().certificate.save(tmp_path / "release.json")
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKED, str(path)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "the mean of sbp (sbp)" in answer.stdout
    assert re.search("sbp (±|not computed here)", answer.stdout)


def test_a_margin_that_cannot_be_worked_out_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocked(*_: object, **__: object) -> None:
        raise ImportError("numpy is blocked")

    made = table().group_by("sex").mean("sbp").release(epsilon=30)
    monkeypatch.setattr(Ratio, "interval", blocked)
    assert "mean not computed here (the library for it is missing)" in made.explain()
    assert "not computed here" in made._repr_html_()


def test_the_same_columns_are_worked_out_once() -> None:
    assert columns_of(five()) is columns_of(five())
