"""Results of studies: what is printed, explained and drawn of them, and files for other programs."""

import dataclasses
import importlib
import math
import pkgutil
import re
import tomllib
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import sfumato.studies
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.terminal import text_width, wrapped
from sfumato.demo.clinic import visits
from sfumato.errors import InvalidInput, MissingExtra, Unsupported
from sfumato.reports.plots import worked_out
from sfumato.reports.plots.theme import palette
from sfumato.reports.plots.worked_out import drawn
from sfumato.studies import exporting, printing
from sfumato.studies.printing import TextTable
from sfumato.studies.result import StudyResult
from sfumato.studies.result_table import (
    COLUMNS,
    TABLES,
    VALUES,
    ResultTable,
    TextColumn,
    column_key,
    finding,
    text_columns,
)
from tests.studies.fake import EVIL, SIZE, FakeResult, fake

MESSAGES = Path(sfumato.studies.__file__).parent / "messages"


@pytest.fixture(scope="module")
def result() -> FakeResult:
    return fake()


def shown(**columns: list[str | int | float | bool | None]) -> dict[str, tuple[str, ...]]:
    return {each.name: each.texts for each in text_columns(ResultTable(name="t", columns=columns))}


def test_an_estimate_and_its_interval_have_the_digits_of_the_error() -> None:
    found = shown(estimate=[0.123456], standard_error=[0.01234], low=[0.09927], high=[0.14764])
    assert found == {"estimate": ("0.123",), "standard_error": ("0.012",), "low": ("0.099",), "high": ("0.148",)}
    found = shown(ratio=[25.1], low=[11.04], high=[900.0])
    assert found == {"ratio": ("25",), "low": ("11",), "high": ("900",)}


def test_ends_are_rounded_outward_and_decimals_stay_as_they_are() -> None:
    found = shown(estimate=[1.0, 1.0], low=[0.4701, 0.47], high=[1.5301, 1.53])
    assert found["low"] == ("0.47", "0.47")
    assert found["high"] == ("1.54", "1.53")


def test_statistics_between_an_estimate_and_its_interval_do_not_take_it() -> None:
    found = shown(estimate=[2.0], z=[1.234], low=[1.951], high=[2.049])
    assert found == {"estimate": ("2.000",), "z": ("1.234",), "low": ("1.951",), "high": ("2.049",)}


def test_two_estimates_in_a_row_have_each_their_own_digits() -> None:
    found = shown(mean=[10.0], mean_low=[9.0], mean_high=[11.0], share=[0.5], share_low=[0.49], share_high=[0.51])
    assert [text for (text,) in found.values()] == ["10.0", "9.0", "11.0", "0.500", "0.490", "0.510"]


def test_small_chances_missing_numbers_and_open_ends() -> None:
    found = shown(p_value=[0.0123, 0.0009, math.nan], estimate=[1.0, math.nan, None], low=[-math.inf, math.nan, None])
    assert found["p_value"] == ("0.012", "<0.001", "–")
    assert found["estimate"] == ("1", "–", "–")
    assert found["low"] == ("-∞", "–", "–")
    assert shown(n=[17205.8, 2.0]) == {"n": ("17,206", "2")}, "nobody reads parts of a person"
    assert shown(n=[1234567], same=[True], name=[""]) == {"n": ("1,234,567",), "same": ("yes",), "name": ("–",)}
    assert shown(estimate=[-0.0004], standard_error=[0.1])["estimate"] == ("0.00",), "no minus before nothing"
    assert shown(estimate=[3e-15])["estimate"] == ("3.0e-15",)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_summary_is_aligned(result: FakeResult, language: str) -> None:
    lines = result.summary(language).split("\n")
    first = next(place for place, line in enumerate(lines) if line.startswith(("term", "项")))
    rows = lines[first : first + 1 + SIZE]
    assert len({text_width(row) for row in rows}) == 1, "the last column stands on the right"
    points = {text_width(row[: row.index(".", len(EVIL[3]))]) for row in rows[1:] if "–" not in row and "$" not in row}
    assert len(points) <= 2, "decimal points stand under each other"
    notes = lines[next(place for place, line in enumerate(lines) if line.startswith("- ")) :]
    assert all(text_width(line) <= 100 for line in notes)
    assert all(line.isprintable() for line in lines), "nothing moves a cursor"
    assert "ε = 1" in lines[-3] + lines[-2]


def test_printing_is_the_summary(result: FakeResult) -> None:
    assert str(result) == repr(result) == result.summary()
    assert "weighted least squares" in str(result)
    assert "<0.001" in str(result)
    assert "90%" in result.summary(confidence=0.9)


def test_a_result_of_the_stored_answer_prints_the_same() -> None:
    table = visits()
    first, again = (table.count().release(epsilon=1) for _ in range(2))
    assert again.repeated
    assert str(FakeResult(sources=(first,))) == str(FakeResult(sources=(again,)))
    assert str(first) != str(again), "a release says what its delivery cost"


def test_chinese_has_its_own_names_of_columns(result: FakeResult) -> None:
    assert "标准误" in result.summary("zh")
    assert "standard error" not in result.summary("zh")
    assert "standard error" in result.summary("en")


def test_every_known_column_has_words_and_every_word_a_column() -> None:
    for language in ("en", "zh-Hans"):
        found = tomllib.loads((MESSAGES / f"studies.{language}.toml").read_text("utf-8"))
        assert found["study_column"].keys() == COLUMNS
        assert found["study_table"].keys() == TABLES
        assert found["study_value"].keys() == frozenset().union(*VALUES.values())
    english = tomllib.loads((MESSAGES / "studies.en.toml").read_text("utf-8"))["study_column"]
    assert all(column_key(words) == key for key, words in english.items())


def test_names_of_frames_become_words() -> None:
    class Named(FakeResult):
        __slots__ = ()

        def tables(self, confidence: object = None) -> tuple[ResultTable, ...]:
            names = ("std_err", "p", "ratio_low", "what_else")
            return (ResultTable(name="named", columns={name: [0.5] for name in names}),)

    result = Named(sources=fake().sources)
    assert "Confidence" in result.summary()
    heads = [column.name for column in result.page("en", 0.95).tables[0].columns]
    assert heads == ["standard error", "p-value", "ratio low", "what_else"]
    assert [column.name for column in result.page("zh", 0.95).tables[0].columns][:3] == ["标准误", "p 值", "比下限"]


def test_a_result_without_a_release_says_that_nothing_was_spent() -> None:
    result = FakeResult(sources=())
    assert "no privacy budget was spent" in result.explain()
    assert "没有消耗隐私预算" in result.explain("zh")
    assert "spent" not in result.summary()


def test_many_rows_are_cut_and_said_to_be() -> None:
    class Long(FakeResult):
        __slots__ = ()

        def tables(self, confidence: object = None) -> tuple[ResultTable, ...]:
            return (ResultTable(name="long", columns={"time": [float(place) for place in range(100)]}),)

    result = Long(sources=fake().sources)
    assert "… and 75 more rows" in result.summary(), "every fourth row"
    rows = [line.strip() for line in result.summary().splitlines() if line.strip().isdigit()]
    assert (rows[:3], rows[-1]) == (["3", "7", "11"], "99"), "the last row is there"
    assert "Confidence" not in result.summary(), "there is no interval"
    assert "… and 50 more rows" in result._repr_html_()
    assert result.to_latex().count(r"\\") == 101, "a paper has all of them"


def test_of_several_long_curves_some_rows_of_each_are_printed() -> None:
    columns = {"arm": [arm for arm in "ab" for _ in range(40)], "week": [*range(40), *range(40)]}
    found = [TextColumn(name=name, texts=tuple(map(str, cells)), number=False) for name, cells in columns.items()]
    by_arm = TextTable(name="t", columns=(found[0], dataclasses.replace(found[1], number=True)))
    kept = printing.kept_rows(by_arm)
    assert len(kept) <= 30
    assert {39, 79} <= set(kept)
    assert sum(row < 40 for row in kept) == len(kept) // 2
    all_distinct = TextTable(name="t", columns=(TextColumn(name="n", texts=tuple(map(str, range(80))), number=False),))
    assert printing.kept_rows(all_distinct) == list(range(30))


def test_an_explanation_says_what_was_found_who_is_protected_and_what_it_cost(result: FakeResult) -> None:
    said = result.explain()
    assert "=1+1: 0.123 (95% confidence interval 0.104 to 0.143), p-value <0.001." in said
    assert "no estimate" in said
    assert "protected: one person" in said
    assert "ε = 1" in said
    assert "costs no privacy budget" in said
    chinese = result.explain("zh", confidence=0.9)
    assert "90% 置信区间" in chinese
    assert "保护对象：一个人" in chinese


def test_findings_of_tables_of_other_shapes() -> None:
    def said(**columns: list[str | float]) -> list[str]:
        found = finding(ResultTable(name="t", columns=columns), "95")
        return [fake().word(each) for each in found]

    assert said(p_value=[0.5]) == ["p-value 0.500."]
    assert said(test=["log-rank"], p_value=[0.0]) == ["log-rank: p-value <0.001."]
    assert said(time=[1.0], survival=[0.5], low=[0.25], high=[1.0]) == [
        "time 1: 0.50 (95% confidence interval 0.25 to 1.00)."
    ]
    assert said(mean=[0.5], low=[0.25], high=[1.0]) == ["0.50 (95% confidence interval 0.25 to 1.00)."]
    assert said(arm=["a"], week=[4], at_risk=[9.0], survival=[0.5], low=[0.25], high=[1.0]) == [
        "a · week 4: 0.50 (95% confidence interval 0.25 to 1.00)."
    ]
    assert said(n=[3.0]) == []
    assert said(arm=["a"], p=[math.nan], mean=[2.0], mean_low=[1.0], mean_high=[3.0]) == [
        "a: 2.0 (95% confidence interval 1.0 to 3.0)."
    ]


def test_what_was_asked_wrongly_is_refused(result: FakeResult, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="there is no text in 'fr'"):
        result.summary("fr")
    with pytest.raises(InvalidInput, match="confidence = 1 has no interval"):
        result.summary(confidence=1)
    with pytest.raises(InvalidInput, match="needs its languages"):
        result.to_excel(tmp_path / "a.xlsx", languages="en")
    with pytest.raises(InvalidInput, match=r"ends in \.docx"):
        result.to_word(tmp_path / "a.doc")
    for write in (result.to_latex, result.to_word):
        with pytest.raises(InvalidInput, match="cannot be written"):
            write(tmp_path / "none" / "a.docx")


def test_frames_have_the_numbers_unrounded(result: FakeResult) -> None:
    assert result.to_arrow().column("estimate")[0].as_py() == 0.123456
    assert result.to_arrow("fit: [all]").to_pydict() == {"rows": [6], "converged": [True]}
    with pytest.raises(InvalidInput, match="it has coefficients, fit"):
        result.to_arrow("coefficient")


def test_a_workbook_has_every_table_and_no_formula(result: FakeResult, tmp_path: Path) -> None:
    fastexcel = pytest.importorskip("fastexcel")
    file = result.to_excel(tmp_path / "a.xlsx", 0.9)
    book = fastexcel.read_excel(str(file))
    assert book.sheet_names == ["coefficients", "fit   all", "about", "说明"]
    found = book.load_sheet(0).to_arrow()
    assert found.column("estimate").to_pylist()[0] == 0.123456
    assert found.column("term").to_pylist()[:2] == list(EVIL[:2])
    assert found.column("high").to_pylist()[4] == "∞"
    about = book.load_sheet(2, header_row=None).to_arrow()
    words = [text for column in about.columns for text in column.to_pylist() if text]
    assert "90%" in words
    assert any("protected: one person" in text for text in words)
    for name in zipfile.ZipFile(file).namelist():
        assert b"<f>" not in zipfile.ZipFile(file).read(name)
        ElementTree.fromstring(zipfile.ZipFile(file).read(name))  # noqa: S314 - our own file
    assert pa.types.is_string(found.schema.field("term").type)


def test_latex_cannot_be_broken_out_of(result: FakeResult, tmp_path: Path) -> None:
    text = result.to_latex(tmp_path / "a.tex")
    assert (tmp_path / "a.tex").read_text("utf-8") == text
    commands = set(re.findall(r"\\([a-zA-Z]+)", text))
    own = {"usepackage", "begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule", "par"}
    own |= {"smallskip", "parbox", "linewidth", "footnotesize", "infty", "varepsilon"}
    assert commands - own <= {"textless", "textgreater", "textbackslash"}
    assert r"\textbackslash{}input\{/etc/passwd\} \% \$x\$ \& \{" in text
    body = re.sub(r"\\[{}%&$_#]", "", text.split("\n", 1)[1])
    assert body.count("{") == body.count("}")
    assert "%" not in body, "no comment"
    assert body.count("$") % 2 == 0
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows[: SIZE + 1]} == {7}, "no cell begins a new one"
    assert "$-$1,235" in text


@pytest.mark.parametrize("text", ["[1pt]", "a\\", "^^41", "%", "\\\\", "~", '"a"', "`", "a\x00b", "a\u2028b"])
def test_a_text_for_latex_is_one_line_of_harmless_signs(text: str) -> None:
    safe = exporting.latex_text(text)
    plain = re.sub(
        r"\\(textbackslash|textasciicircum|textasciitilde|textquotedbl|textasciigrave)\{\}|\\[%{}]", "", safe
    )
    assert not set(plain.strip("{}")) & set('\\%^~"`')
    assert safe.isprintable()
    assert not safe.startswith("[")


def test_html_is_escaped(result: FakeResult) -> None:
    page = result._repr_html_()
    tags = set(re.findall(r"<(/?\w+)", page))
    assert {tag.strip("/") for tag in tags} <= {
        "div",
        "p",
        "strong",
        "table",
        "tr",
        "th",
        "td",
        "caption",
        "thead",
        "tbody",
    }
    assert "&lt;script&gt;" in page
    ElementTree.fromstring(page)  # noqa: S314 - our own file


def test_a_document_for_word_has_tables_captions_and_notes(result: FakeResult, tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document(str(result.to_word(tmp_path / "a.docx", language="zh")))
    first, second = document.tables
    assert [cell.text for cell in first.rows[0].cells][:3] == ["项", "估计值", "标准误"]
    assert first.rows[1].cells[0].text == "=1+1"
    assert second.rows[1].cells[1].text == "是"
    said = "\n".join(paragraph.text for paragraph in document.paragraphs)
    assert "1. 系数" in said
    assert "针对总体的 95% 置信区间" in said
    assert "保护对象" in said
    for name in zipfile.ZipFile(tmp_path / "a.docx").namelist():
        if name.endswith(".xml"):
            ElementTree.fromstring(zipfile.ZipFile(tmp_path / "a.docx").read(name))  # noqa: S314 - our own file


def test_without_python_docx_the_extra_is_named(
    result: FakeResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(module: str, command: str) -> None:
        raise MissingExtra(f"{module}: {command}")

    monkeypatch.setattr(exporting, "need", absent)
    with pytest.raises(MissingExtra, match=r"sfumato\[studies\]"):
        result.to_word(tmp_path / "a.docx")


def test_a_csv_has_no_formula(result: FakeResult, tmp_path: Path) -> None:
    assert '"\'=1+1"' in result.to_csv(tmp_path / "a.csv").read_text("utf-8")


def classes(found: type[StudyResult]) -> Iterator[type[StudyResult]]:
    for each in found.__subclasses__():
        yield each
        yield from classes(each)


def test_all_results_print_their_summary() -> None:
    """A dataclass would print its fields: each is made with ``repr=False``."""
    for module in pkgutil.iter_modules(sfumato.studies.__path__):
        importlib.import_module(f"sfumato.studies.{module.name}")
    ours = [each for each in classes(StudyResult) if each.__module__.startswith("sfumato.")]
    assert [each.__name__ for each in ours if each.__repr__ is not StudyResult.__repr__] == []
    assert [each.__name__ for each in ours if each.__str__ is not StudyResult.__str__] == []


def test_lines_are_broken_at_spaces_and_between_wide_signs() -> None:
    assert wrapped("针对总体的置信区间，含噪声。", 10) == ["针对总体的", "置信区间，", "含噪声。"]
    assert wrapped("a" * 12, 5) == ["a" * 12], "a word is not broken"
    assert " ".join(wrapped("one two  three four", 9)) == "one two three four"


def curve(name: str, points: int = 5) -> list[PictureRow]:
    return [
        PictureRow(at=float(place), value=1 - place / 10, low=0.9 - place / 10, high=math.inf, group=name)
        for place in range(points)
    ]


def steps(*names: str) -> Picture:
    rows = [row for name in names for row in curve(name)]
    return Picture(kind="steps", rows=rows, title="Survival", across="weeks", upward="share", within=(0.0, 1.0))


def test_few_curves_lie_together_and_many_have_a_panel_each() -> None:
    pytest.importorskip("altair")
    together = drawn(steps("a", "b", "c")).to_dict()
    assert len(together["layer"]) == 2
    line = together["layer"][1]["encoding"]
    assert line["color"]["scale"]["domain"] == line["strokeDash"]["scale"]["domain"] == ["a", "b", "c"]
    assert len(set(line["color"]["scale"]["range"])) == 3
    panels = drawn(steps("a", "b", "c", "d")).to_dict()
    assert [panel["title"]["text"] for panel in panels["concat"]] == ["a", "b", "c", "d"]
    many = drawn(steps(*(str(place) for place in range(14)))).to_dict()
    assert len(many["concat"]) == 12
    assert many["title"]["subtitle"][-1] == "The first 12 of 14 groups."


def test_open_ends_of_a_band_run_to_the_edge() -> None:
    pytest.importorskip("altair")
    rows = drawn(steps("a")).to_dict()["data"]["values"]
    assert {row["high"] for row in rows} == {1.0}


def forest(*rows: tuple[str, float, float, float], log: bool = True) -> list[dict[str, object]]:
    marks = [PictureRow(at=name, value=value, low=low, high=high) for name, value, low, high in rows]
    picture = Picture(kind="forest", rows=marks, title="Ratios", across="ratio", reference=1.0 if log else 0.0, log=log)
    found: list[dict[str, object]] = drawn(picture).to_dict()["layer"][1]["data"]["values"]
    return found


def test_a_forest_marks_what_is_open_with_an_arrow() -> None:
    pytest.importorskip("altair")
    first, second, third, last = forest(
        ("a", 1.2, 0.8, 1.8), ("b", 1.1, 0.0, math.inf), ("c", 1.3, 0.9, 1e6), ("d", math.nan, math.nan, math.nan)
    )
    assert (first["low_open"], first["high_open"], first["figures"]) == (False, False, "1.20 (0.80, 1.80)")
    assert (second["low_open"], second["high_open"], second["figures"]) == (True, True, "1.1 (0.0, ∞)")
    assert (third["low_open"], third["high_open"]) == (False, True)
    assert (last["value"], last["figures"]) == (None, "–")
    high = second["high"]
    assert isinstance(high, float)
    assert third["high"] == high < 10, "one wide interval does not squeeze the others"


@pytest.mark.parametrize(("first", "last"), [(0.001, 900.0), (0.3, 4.0), (0.72, 1.02), (0.99, 1.004)])
def test_a_logarithmic_axis_has_a_few_round_numbers(first: float, last: float) -> None:
    ticks = worked_out._ticks(first, last)
    assert 4 <= len(ticks) <= 12
    assert all(first <= tick <= last for tick in ticks)
    assert all(len(f"{tick:g}") <= 6 for tick in ticks)


def test_names_that_look_alike_have_a_line_each_and_none_turns_the_text_around() -> None:
    pytest.importorskip("altair")
    found = forest(("a", 1.0, 0.5, 2.0), ("a", 1.0, 0.5, 2.0), (EVIL[4], 1.0, 0.5, 2.0), log=False)
    assert [row["name"] for row in found] == ["a", "a (2)", "1\ufffd2"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_those_of_the_theme(theme: str) -> None:
    pytest.importorskip("altair")
    spec = drawn(steps("a", "b"), "zh", theme).to_dict()
    colours = palette(theme)
    assert spec["layer"][1]["encoding"]["color"]["scale"]["range"] == [colours.mark, colours.band]
    assert spec["background"] == colours.paper


def test_a_result_draws_its_picture_or_says_that_there_is_none(result: FakeResult) -> None:
    pytest.importorskip("altair")
    assert result.plot(language="zh", theme="dark").to_dict()["title"]["text"].startswith("A result")

    class Plain(FakeResult):
        __slots__ = ()

        def picture(self, confidence: object = Fraction(19, 20)) -> None:
            return None

    with pytest.raises(InvalidInput, match="nothing to draw"):
        Plain(sources=result.sources).plot()
    with pytest.raises(InvalidInput, match="nothing to draw"):
        drawn(Picture(kind="lines", rows=[], title="", across=""))
