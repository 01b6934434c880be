"""The page of a release: complete, self-contained, harmless whatever the names are, in both languages."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jinja2 import UndefinedError

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.release import Release, presenter_of
from sfumato.errors import InvalidInput, Unsupported
from sfumato.mechanisms import Gaussian
from sfumato.reports import page as page_module
from sfumato.reports.drawings import Drawing
from sfumato.reports.page import file_name, page, snippet
from sfumato.reports.particulars import particulars
from sfumato.reports.rendering import Markup, render
from sfumato.reports.verify import verify
from sfumato.reports.words import AUDIENCES
from tests import parts
from tests.reports.made import release

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;</pre></style>"
VOID = {"meta", "br", "img", "link", "rect", "path", "line", "circle"}
CERTIFICATE = "data:application/json;base64,"


@pytest.fixture(autouse=True)
def plain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, which take the time, but for tests that ask for them."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setitem(sys.modules, "vl_convert", None)


@pytest.fixture
def pictures() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


@pytest.fixture(scope="module")
def small() -> Release:
    return release()


class Reader(HTMLParser):
    """Reads a page as a browser would: tags, attributes, and the text in each tag."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.cells: list[list[str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data
            if self._open[-1] in ("td", "th"):
                self.cells[-1][-1] += data


def section(text: str, language: str) -> str:
    return text[text.index(f'<section id="{language}"') :].partition("</section>")[0]


def without_tags(text: str) -> str:
    return re.sub(r"<[^>]*>", " ", re.sub(r"<figure.*?</figure>", " ", text, flags=re.DOTALL))


def test_each_number_stands_with_its_interval_in_both_languages(small: Release) -> None:
    made = small
    cells = Reader(page(made)).cells
    rows = [
        [region, f"{value:,}", f"{low:,}", f"{high:,}"]
        for region, value, (low, high) in zip(("north", "south"), made.values, made.interval(), strict=True)
    ]
    assert [row for row in cells if row[0] in ("north", "south")] == rows + rows
    assert ["region", "count, noise included", "95% interval from", "to"] in cells
    assert ["region", "计数（含噪声）", "95% 置信区间下限", "上限"] in cells


def test_the_explanation_is_there_for_every_reader_in_both_languages(small: Release) -> None:
    text = page(small)
    for language, tag in (("en", "en"), ("zh", "zh-Hans")):
        read = Reader(section(text, tag))
        told = {reader: small.explain(language, reader).split("\n\n") for reader in AUDIENCES}
        assert len({tuple(words) for words in told.values()}) == len(AUDIENCES)
        for words in told.values():
            assert all(paragraph in read.texts["p"] for paragraph in words)
        assert len(read.texts["details"]) == len(read.texts["summary"]) == len(AUDIENCES) - 1


def test_the_words_of_the_field_stand_on_its_face(small: Release) -> None:
    text = page(small)
    for language, named in (
        ("en", ("differential privacy", "ε (epsilon)", "privacy budget", "privacy loss", "margin of error")),
        ("zh-Hans", ("差分隐私", "ε", "隐私预算", "隐私损失", "误差范围")),
    ):
        face = without_tags(section(text, language)).partition("</h2>")[0]
        assert all(words in face for words in named)
    assert Reader(text).texts["title"] == [
        "Draft: not for publication · visits, version visits · Statistics released under differential privacy"
    ]
    cards = Reader(section(text, "en")).texts
    assert cards["b"] == ["±36", "ε = 1/2", "ε = 1/2"]
    assert "privacy budget used so far, out of ε = 1" in cards["span"]


def test_one_language_is_shown_at_a_time_and_links_lead_to_the_other(small: Release) -> None:
    text = page(small)
    links = [attributes for tag, attributes in Reader(text).tags if tag == "a" and "hreflang" in attributes]
    assert [link["href"] for link in links] == ["#zh-Hans", "#en"], "from each language to the other"
    style = text.partition("</style>")[0]
    assert "display: none" in style.partition("@supports selector(:has(a))")[2]
    assert "@supports" not in page(small, unfolded=True), "on paper all languages stand"
    targets = {
        attributes["href"] for tag, attributes in Reader(text).tags if tag == "a" and "download" not in attributes
    }
    known = {f"#{attributes['id']}" for _, attributes in Reader(text).tags if "id" in attributes}
    assert targets < known


def test_a_template_without_a_fact_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="line"):
        render("snippet.html", table=None)


def test_the_facts_are_there() -> None:
    made = release(where=sf.col("age") >= 65)
    words = Reader(page(made)).texts
    facts = dict(zip(words["dt"], words["dd"], strict=False))
    assert facts["Protected"] == "one person, with all rows of that person (identified by id)"
    assert facts["Neighbours"].endswith("(add/remove)")
    assert facts["Limit"] == "at most 2 groups of a person, with at most 3 rows in each"
    assert (facts["ε of this release"], facts["δ of this release"]) == ("1/2", "0")
    assert facts["Noise"] == "discrete Laplace, scale 12"
    assert facts["Sensitivity"] == "one protected unit moves the numbers by at most 6 in all"
    assert facts["Margin, 95%"] == "±36 for each number, ±44 for all at once"
    assert facts["Account"] == "“visits”: ε = 1/2 spent, out of ε = 1"
    assert facts["Signed with the key"] == made.certificate.document["signature"]["key"]  # type: ignore[index,call-overload]
    english, chinese = "at most 3 rows per person in each group", "每个人每组最多 3 行"
    assert f"Rows counted where age ≥ 65, by region ({english})" in words["p"]
    assert f"统计满足条件（age ≥ 65）的记录行，按 region 分组（{chinese}）" in words["p"]


def test_the_embedded_certificate_verifies() -> None:
    made = release(name=EVIL)
    (text,) = Reader(page(made)).texts["pre"]
    document = json.loads(text)
    assert document == made.certificate.document
    assert verify(document).consistent


@pytest.mark.long
@pytest.mark.usefixtures("pictures")
def test_names_that_are_programs_stay_names_in_pictures() -> None:
    _only_names(plots=True)


def test_names_that_are_programs_stay_names() -> None:
    _only_names(plots=False)


def _only_names(*, plots: bool) -> None:
    made = release(name=EVIL, keys=(EVIL, "south"), column=EVIL, where=sf.col("id") != EVIL)
    text = page(made, ["en"] if plots else ["en", "zh"])
    read = Reader(text)
    tags = {tag for tag, _ in read.tags}
    assert not tags & {"script", "img", "iframe", "object", "embed", "link", "form", "base", "foreignobject", "image"}
    assert ("svg" in tags) is plots
    for _, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith(("#", CERTIFICATE))
        assert "src" not in attributes
    assert text.count("<style>") == text.count("</style>") == text.count("</pre>") == 1
    assert EVIL in read.texts["title"][0]


@pytest.mark.usefixtures("pictures")
def test_nothing_is_loaded_from_elsewhere(small: Release) -> None:
    text = re.sub(r"base64,[^\"]*", "", page(small, ["en"]))
    assert "default-src 'none'" in text
    for address in re.findall(r"""(?:https?:|//|url\(|@import)[^\s"']*""", text):
        assert address.startswith("http://www.w3.org/")  # the name of SVG, which is not an address to fetch


@pytest.mark.long
@pytest.mark.usefixtures("pictures")
def test_the_pictures_are_drawn_in_each_language(small: Release) -> None:
    drawings = re.findall(r"<figure[^>]*>.*?</figure>", page(small), flags=re.DOTALL)
    words = ["".join(ET.fromstring(drawing).itertext()) for drawing in drawings]  # noqa: S314 - drawn by ourselves
    for drawing in drawings:
        wide, narrow = (float(width) for width in re.findall(r'<svg[^>]* width="([0-9.]+)"', drawing))
        assert narrow <= min(wide, 400) or "1,000" in drawing, "the dots of people keep their shape"
    for said, expected in zip(
        words,
        (
            ("north", "count (noise included)"),
            ("155 in 1,000", "that a given person is in the data"),
            ("error: what the noise adds",),
            ("north", "计数（含噪声）"),
            ("15.5%", "某个人在数据中的可能性"),
            ("误差（噪声引起的变动）",),
        ),
        strict=True,
    ):
        assert all(part in said for part in expected)


@pytest.mark.long
@pytest.mark.usefixtures("pictures")
def test_every_colour_of_a_drawing_has_a_dark_twin(small: Release) -> None:
    text = page(small, ["en"])
    (drawn, *_), style = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL), text.partition("</style>")[0]
    dark = style.partition("prefers-color-scheme: dark")[2]
    used = set(re.findall(r'(fill|stroke)="(#[^"]*)"', drawn))
    assert len(used) > 4
    for part, colour in used:
        assert f'figure svg [{part}="{colour}"] {{ {part}: #' in dark


def test_chinese_text_has_no_english_in_it() -> None:
    made = release(where=((sf.col("age") >= 65) | sf.col("age").isnull()) & ~(sf.col("sick") == True))  # noqa: E712
    words = set(re.findall(r"[A-Za-z]{2,}", without_tags(section(page(made), "zh-Hans"))))
    said = made.statement
    key = made.certificate.document["signature"]["key"]  # type: ignore[index,call-overload]
    known = {"visits", "region", "north", "south", "age", "id", "sick", "sfumato", "English"}  # the last: a link
    assert words - known <= set(re.findall(r"[A-Za-z]{2,}", f"{said.identifier} {said.issued} {key}"))


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("where", "english", "chinese"),
    [
        (None, "Rows counted", "统计记录行"),
        (sf.col("id") == "a", "id = “a”", "id = “a”"),
        (sf.col("age") != 1, "age ≠ 1", "age ≠ 1"),
        (sf.col("age") < 5, "age < 5", "age < 5"),
        (sf.col("sick") == True, "sick = true", "sick = 真"),  # noqa: E712
        (sf.col("sick") == False, "sick = false", "sick = 假"),  # noqa: E712
        (sf.col("age").isin([1, 2]), "age is one of 1, 2", "age 为 1、2 之一"),
        (sf.col("age").isnull(), "age is missing", "age 缺失"),
        (~(sf.col("age") <= 5), "not (age ≤ 5)", "并非（age ≤ 5）"),
        (
            (sf.col("age") > 5) & ((sf.col("id") == "a") | (sf.col("id") == "b")),
            "age > 5 and (id = “a” or id = “b”)",
            "age > 5 并且（id = “a”或者 id = “b”）",
        ),
    ],
)
def test_the_condition_is_spelled_out(where: Any, english: str, chinese: str) -> None:
    text = page(release(where=where))
    for words, language in ((english, "en"), (chinese, "zh-Hans")):
        assert words in " ".join(Reader(section(text, language)).texts["p"])


def test_negative_counts_are_explained_where_they_occur() -> None:
    made = release()
    for values, expected in (((5, 0), False), ((5, -1), True)):
        shown = replace(made, presenter=presenter_of(made), statement=replace(made.statement, values=values))
        text = page(shown)
        assert ("can make a small count negative" in text) is expected
        assert ("变为负数" in text) is expected


@pytest.mark.long
def test_a_long_table_is_cut_with_a_word_about_it() -> None:
    made = release(keys=tuple(f"place {number}" for number in range(2005)))
    text = page(made, ["en"])
    assert len(Reader(text).cells) == 1 + 2000
    assert "The first 2,000 of 2,005 numbers" in text
    windows = [attributes for _, attributes in Reader(text).tags if "long" in (attributes.get("class") or "").split()]
    assert [window["tabindex"] for window in windows] == ["0"], "the keyboard reaches the window that scrolls"


def test_more_numbers_than_can_be_seen_are_not_drawn(monkeypatch: pytest.MonkeyPatch, small: Release) -> None:
    def named(release: Release, kind: str, language: str) -> Drawing:
        return Drawing(title=kind, lines=(), label=kind, roomy=Markup(), narrow=Markup())

    monkeypatch.setattr(page_module, "drawing", named)
    assert re.findall(r"<figcaption><strong>(\w+)", page(small, ["en"])) == ["intervals", "people", "noise"]
    monkeypatch.setattr(page_module, "MOST_POINTS", 1)
    assert re.findall(r"<figcaption><strong>(\w+)", page(small, ["en"])) == ["people", "noise"]


def test_one_number_and_one_language() -> None:
    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="rows")
    made = vault.table(pa.table({"a": [1, 2]}), name="rows", version="1").count().release(epsilon=1)
    text = page(made, ["zh"])
    assert text.count("<section") == 1
    assert 'class="languages"' not in text, "one language needs no switch"
    assert ":target" not in text
    assert '<html lang="zh-Hans">' in text
    assert "把一个保护对象替换为另一个" in text
    assert "English" not in text
    assert ["计数（含噪声）", "95% 置信区间下限", "上限"] in Reader(text).cells


def test_languages_that_are_not_there_are_refused() -> None:
    with pytest.raises(Unsupported, match="'fr'"):
        page(release(), ["fr"])
    with pytest.raises(InvalidInput, match="needs a list of languages"):
        page(release(), [])
    with pytest.raises(InvalidInput, match="list of languages"):
        page(release(), "en")


def test_a_language_named_twice_stands_once(small: Release) -> None:
    assert page(small, ["zh", "zh-Hans"]).count("<section") == 1


def test_the_certificate_can_be_saved_under_a_name_of_its_own(small: Release) -> None:
    text, said = page(small), small.statement
    (link,) = [attributes for tag, attributes in Reader(text).tags if tag == "a" and "download" in attributes]
    assert link["download"] == f"visits-visits-{said.identifier[:8]}.json"
    assert b64decode((link["href"] or "").removeprefix(CERTIFICATE)).decode() == small.certificate.to_json()
    command = f"sfumato verify {link['download']} --key key.pub"
    assert Reader(text).texts["code"] == [command, command]


@pytest.mark.parametrize(
    ("name", "edition", "expected"),
    [
        ("就诊", "2026/10", "就诊-2026-10-0123abcd.json"),
        ("../../etc/passwd", ".", "etc-passwd-0123abcd.json"),
        ("<'\">", "\n", "release-0123abcd.json"),
        ("a" * 500, "b" * 500, f"{'a' * 40}-{'b' * 20}-0123abcd.json"),
    ],
)
def test_file_names_hold_no_path_and_no_shell(name: str, edition: str, expected: str) -> None:
    dataset = Dataset(name=name, edition="x")
    object.__setattr__(dataset, "edition", edition)
    assert file_name(dataset, "0123abcdef") == expected


def test_the_report_is_written_where_it_is_asked_for(small: Release, tmp_path: Path) -> None:
    path = small.report(tmp_path / "report.html", languages=["zh"])
    assert path.read_text("utf-8") == page(small, ["zh"])
    with pytest.raises(InvalidInput, match=r"report\.docx is to be a \.docx.*as \.html or \.pdf"):
        small.report(tmp_path / "report.docx")
    with pytest.raises(InvalidInput, match="cannot be written: No such file"):
        small.report(tmp_path / "nowhere" / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_gaussian_noise_is_named_with_its_own_sensitivity(small: Release) -> None:
    said = small.statement
    assert said.sensitivity.l2 is not None
    mechanism = Gaussian.calibrated(l2=said.sensitivity.l2, epsilon=1, delta=1e-6)
    changed = replace(
        small, presenter=presenter_of(small), statement=replace(said, mechanism=mechanism, law=mechanism.law)
    )
    facts = dict(particulars(changed, "en"))
    assert facts["noise"] == "rounded Gaussian, standard deviation 17.93"
    assert facts["sensitivity"] == "one protected unit moves the numbers by at most √18 in Euclidean length"
    assert dict(particulars(changed, "zh"))["noise"] == "取整的高斯噪声，标准差 17.93"


def test_a_notebook_shows_a_small_table_and_the_promise() -> None:
    made = release(name=EVIL, keys=(EVIL, *(f"place {number}" for number in range(60))), column=EVIL)
    text = made._repr_html_()
    read = Reader(text)
    assert {tag for tag, _ in read.tags} <= {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "br", "small"}
    assert len(read.cells) == 1 + 50
    assert read.cells[1] == [EVIL, *(f"{number:,}" for number in (made.values[0], *made.interval()[0]))]
    assert "The first 50 of 61 numbers." in text
    assert "neither what the limit cut nor sampling is in it" in read.texts["p"][-1]
    assert read.texts["p"][-2] == (
        "ε = 1/2 protects one person, with all rows of that person, whether in the data or not (add/remove). "
        f"95% margin: ±36 for each number, ±{made.statement.law.margin(0.95, numbers=61)} for all at once."
    )


def test_a_notebook_under_replace() -> None:
    text = snippet(release(relation="replace"), "zh")
    assert "相邻关系：替换" in text
