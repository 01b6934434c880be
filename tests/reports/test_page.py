"""The page of a release: complete, self-contained, harmless whatever the names are, in both languages."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports.page import page
from sfumato.reports.verify import verify
from tests import parts

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;</pre></style>"
VOID = {"meta", "br", "img", "link", "rect", "path", "line", "circle"}


def release(
    *, name: str = "visits", keys: tuple[str, ...] = ("north", "south"), column: str = "region", where: Any = None
) -> Release:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name=name)
    rows = pa.table({"id": ["a", "b"], column: [keys[0], keys[-1]], "age": [70, 20], "sick": [True, False]})
    limit = sf.Limit(groups=2, rows_per_group=3)
    table = vault.table(rows, name=name, version=name, limit=limit, keys={column: keys})
    return (table if where is None else table.where(where)).group_by(column).count().release(epsilon=0.5)


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


def test_each_number_stands_with_its_interval_in_both_languages() -> None:
    made = release()
    cells = Reader(page(made)).cells
    rows = [
        [region, f"{value:,}", f"{low:,}", f"{high:,}"]
        for region, value, (low, high) in zip(("north", "south"), made.values, made.interval(), strict=True)
    ]
    assert [row for row in cells if row[0] in ("north", "south")] == rows + rows
    assert ["region", "count, noise included", "95% interval from", "to"] in cells
    assert ["region", "计数（含噪声）", "95% 区间下限", "上限"] in cells


def test_the_explanation_is_there_in_both_languages() -> None:
    made = release()
    paragraphs = Reader(page(made)).texts["p"]
    for language in ("en", "zh"):
        assert all(paragraph in paragraphs for paragraph in made.explain(language).split("\n\n"))


def test_the_facts_are_there() -> None:
    made = release(where=sf.col("age") >= 65)
    words = Reader(page(made)).texts
    facts = dict(zip(words["dt"], words["dd"], strict=False))
    assert facts["Protected"] == "one person, with all rows of that person (told by id)"
    assert facts["Neighbours"].endswith("(add/remove)")
    assert facts["Limit"] == "at most 2 group(s) of a person, with at most 3 row(s) in each"
    assert (facts["ε of this release"], facts["δ of this release"]) == ("1/2", "0")
    assert facts["Noise"] == "discrete Laplace, scale 12"
    assert facts["Sensitivity"] == "one protected unit moves the numbers by at most 6 in all"
    assert facts["Margin, 95%"] == "±36 for each number, ±44 for all at once"
    assert facts["Account"] == "“visits”: ε = 1/2 spent, out of ε = 1"
    assert facts["Signed with the key"] == made.certificate.document["signature"]["key"]  # type: ignore[index,call-overload]
    assert "Rows counted where age ≥ 65, by region" in words["p"]
    assert "统计满足条件 age ≥ 65 的记录行，按 region 分组" in words["p"]


def test_the_embedded_certificate_verifies() -> None:
    made = release(name=EVIL)
    (text,) = Reader(page(made)).texts["pre"]
    document = json.loads(text)
    assert document == made.certificate.document
    assert verify(document).consistent


@pytest.mark.parametrize("plots", [True, False])
def test_names_that_are_programs_stay_names(plots: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if plots:
        parts.package("vl_convert")
    else:
        monkeypatch.setitem(sys.modules, "vl_convert", None)
    made = release(name=EVIL, keys=(EVIL, "south"), column=EVIL, where=sf.col("id") != EVIL)
    text = page(made)
    read = Reader(text)
    tags = {tag for tag, _ in read.tags}
    assert not tags & {"script", "img", "iframe", "object", "embed", "link", "form", "base", "foreignobject", "image"}
    assert ("svg" in tags) is plots
    for _, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
        assert "src" not in attributes
    assert text.count("<style>") == text.count("</style>") == text.count("</pre>") == 1
    assert EVIL in read.texts["title"][0]


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page(release())
    assert "default-src 'none'" in text
    for address in re.findall(r"""(?:https?:|//|url\(|@import)[^\s"']*""", text):
        assert address.startswith("http://www.w3.org/")  # the name of SVG, which is not an address to fetch


def test_the_picture_is_drawn_in_each_language() -> None:
    parts.package("vl_convert")
    drawings = re.findall(r"<figure[^>]*>(.*?)</figure>", page(release()), flags=re.DOTALL)
    words = ["".join(ET.fromstring(drawing).itertext()) for drawing in drawings]  # noqa: S314 - drawn by ourselves
    assert len(words) == 2
    assert all("north" in text for text in words)
    assert "count (noise included)" in words[0]
    assert "计数（含噪声）" in words[1]


def test_chinese_text_has_no_english_in_it() -> None:
    made = release(where=((sf.col("age") >= 65) | sf.col("age").isnull()) & ~(sf.col("sick") == True))  # noqa: E712
    words = set(re.findall(r"[A-Za-z]{2,}", without_tags(section(page(made), "zh-Hans"))))
    said = made.statement
    key = made.certificate.document["signature"]["key"]  # type: ignore[index,call-overload]
    known = {"visits", "region", "north", "south", "age", "id", "sick", "sfumato"}
    assert words - known <= set(re.findall(r"[A-Za-z]{2,}", f"{said.identifier} {said.issued} {key}"))


@pytest.mark.parametrize(
    ("where", "english", "chinese"),
    [
        (None, "Rows counted, within the limits", "统计记录行"),
        (sf.col("id") == "a", "id = “a”", "id = “a”"),
        (sf.col("age") != 1, "age ≠ 1", "age ≠ 1"),
        (sf.col("age") < 5, "age &lt; 5", "age &lt; 5"),
        (sf.col("sick") == True, "sick = true", "sick = 真"),  # noqa: E712
        (sf.col("sick") == False, "sick = false", "sick = 假"),  # noqa: E712
        (sf.col("age").isin([1, 2]), "age is one of 1, 2", "age 为 1, 2 之一"),
        (sf.col("age").isnull(), "age is missing", "age 缺失"),
        (~(sf.col("age") <= 5), "not (age ≤ 5)", "并非（age ≤ 5）"),
        (
            (sf.col("age") > 5) & ((sf.col("id") == "a") | (sf.col("id") == "b")),
            "age &gt; 5 and (id = “a” or id = “b”)",
            "age &gt; 5 并且 （id = “a” 或者 id = “b”）",
        ),
    ],
)
def test_the_condition_is_spelled_out(where: Any, english: str, chinese: str) -> None:
    text = page(release(where=where))
    assert english in section(text, "en")
    assert chinese in section(text, "zh-Hans")


def test_negative_counts_are_explained_where_they_occur() -> None:
    made = release()
    for values, expected in (((5, 0), False), ((5, -1), True)):
        shown = replace(made, statement=replace(made.statement, values=values))
        text = page(shown)
        assert ("can make a small count negative" in text) is expected
        assert ("变为负数" in text) is expected


def test_a_long_table_is_cut_with_a_word_about_it() -> None:
    made = release(keys=tuple(f"place {number}" for number in range(2005)))
    text = page(made, ["en"])
    assert len(Reader(text).cells) == 1 + 2000
    assert "The first 2,000 of 2,005 numbers" in text
    assert "<svg" not in text


def test_one_number_and_one_language() -> None:
    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="rows")
    made = vault.table(pa.table({"a": [1, 2]}), name="rows", version="1").count().release(epsilon=1)
    text = page(made, ["zh"])
    assert text.count("<section") == 1
    assert "<nav>" not in text
    assert '<html lang="zh-Hans">' in text
    assert "数据中的该保护对象换成另一个（替换）" in text
    assert "English" not in text
    assert ["计数（含噪声）", "95% 区间下限", "上限"] in Reader(text).cells


def test_languages_that_are_not_there_are_refused() -> None:
    with pytest.raises(Unsupported, match="'fr'"):
        page(release(), ["fr"])
    with pytest.raises(InvalidInput, match="needs a language"):
        page(release(), [])
