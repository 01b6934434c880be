"""The quality page: what is on it, in both languages, for few columns and for thirty; and that it claims no more."""

import re
from collections import Counter
from dataclasses import replace
from datetime import date
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.reports.document import document
from sfumato.synthesis.agreement import cells_of
from sfumato.synthesis.columns import ListedColumn
from sfumato.synthesis.measured import MeasuredTable
from sfumato.synthesis.quality_page import quality_page
from sfumato.synthesis.result import SyntheticTable
from tests.reports.made import HOSTILE
from tests.synthesis.test_synthesize import CLAIMS

RANDOM = np.random.default_rng(2)


def vault() -> Any:
    return sf.Vault(
        unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=100, delta="1/1000000"), name="trial"
    )


def few() -> SyntheticTable:
    """Columns of every kind, two of them missing at times."""
    number = 2_000
    age = RANDOM.integers(0, 100, number)
    rows = pa.table(
        {
            "sex": np.array(["F", "M"])[RANDOM.integers(0, 2, number)],
            "ill": RANDOM.random(number) < 0.1 + 0.7 * (age > 60),
            "age": age,
            "day": [date(2026, 1 + place % 12, 1) for place in range(number)],
            "weight": [None if place % 7 == 0 else 40.5 + place % 70 for place in range(number)],
        }
    )
    table = vault().table(
        rows,
        name="stays",
        version="2026-10",
        keys={"sex": ["F", "M"], "ill": [True, False]},
        bounds={"age": (0, 99), "day": (date(2026, 1, 1), date(2026, 12, 31)), "weight": (2.5, 120)},
    )
    return table.synthesize(rows=1_500, missing=["weight"], epsilon=2, delta="1/10000000", bins={"age": 14, "day": 4})


@pytest.fixture(scope="module")
def made() -> SyntheticTable:
    return few()


@pytest.fixture(scope="module")
def thirty(made: SyntheticTable) -> SyntheticTable:
    """As if a release had measured 561 pairs of 34 columns: a fit of so wide a table takes too long for a test."""
    codes = (RANDOM.integers(0, 3, (500, 1)) + RANDOM.integers(0, 2, (500, 34))) % 3
    columns = tuple(ListedColumn(name=f"c{place:02d}", values=(0, 1, 2)) for place in range(34))
    measured = tuple(
        MeasuredTable(
            columns=pair,
            counts=(cells_of(codes.astype(np.int32), pair, [3] * 34) + RANDOM.normal(0, 9, 9)).reshape(3, 3),
            sigma=9.0,
        )
        for pair in combinations(range(34), 2)
    )
    rows = pa.table({column.name: codes[:, place] for place, column in enumerate(columns)})
    return SyntheticTable(
        release=made.release,
        rows=rows,
        quality=replace(made.quality, estimated_rows=500.0),
        making=SimpleNamespace(columns=columns, measured=measured, tables=()),  # type: ignore[arg-type]  # all that a page reads of it
        fitted_association=np.full((34, 34), 0.2),
    )


class Read(HTMLParser):
    """Ids, labels, tags and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: Counter[str] = Counter()
        self.links: list[str] = []
        self.images: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        held = dict(attrs)
        if "id" in held:
            self.ids.append(str(held["id"]))
        if str(held.get("href", "")).startswith("#"):
            self.links.append(str(held["href"])[1:])
        if held.get("role") == "img":
            self.images.append(str(held.get("aria-label", "")))


def visible(text: str) -> str:
    """What a reader reads: no tags, no style, no certificate."""
    body = re.sub(r"<style>.*?</style>|<pre>.*?</pre>|<title>.*?</title>", " ", text, flags=re.S)
    return unescape(re.sub(r"<[^>]+>", " ", body))


@pytest.mark.claim("S1-17")
def test_the_page_says_what_was_measured_how_well_and_what_is_not_kept(made: SyntheticTable, tmp_path: Path) -> None:
    text = made.report(tmp_path / "quality.html", languages=["en"]).read_text("utf-8")
    words = visible(text)
    for part in (
        "Synthetic rows of stays, version 2026-10",
        "One row of the file stands for one row of the data",
        "ε = 2",
        "privacy budget used so far, out of",
        "χ²",
        "Cramér's V",
        "It is not the distance from the data",
        "expected error",
        "95% interval of the noise",
        "was not measured",
        "The data were not asked",
        "missing",
        "2026-01-01",
    ):
        assert part in words, part
    for table in made.quality.marginals:
        assert " × ".join(table.columns) in words
    assert made.release.statement.identifier in text
    assert "Draft" in words
    reasoned = made.report(tmp_path / "q.html", languages=["en"], reason="For a study.", legal_basis="Article 9.")
    assert "Draft" not in visible(reasoned.read_text("utf-8"))


def test_it_costs_nothing_and_is_the_same_each_time(tmp_path: Path) -> None:
    ward = vault()
    rows = pa.table({"sex": ["F", "M"] * 300, "ill": [True, False, False] * 200})
    table = ward.table(rows, name="stays", version="1", keys={"sex": ["F", "M"], "ill": [True, False]})
    found = table.synthesize(epsilon=1, rows=300)
    spent = ward.spent
    pages = [found.report(tmp_path / f"{place}.html").read_text("utf-8") for place in range(2)]
    assert pages[0] == pages[1]
    assert ward.spent == spent
    with pytest.raises(InvalidInput, match="Nothing was written"):
        found.report(tmp_path / "page.txt")
    with pytest.raises(InvalidInput, match="cannot be written"):
        found.report(tmp_path / "nowhere" / "page.html")


@pytest.mark.claim("S0-28")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_claims_no_more_than_the_guarantee(made: SyntheticTable, language: str, tmp_path: Path) -> None:
    text = made.report(tmp_path / "page.html", languages=[language]).read_text("utf-8")
    own = visible(text).split({"en": "The facts", "zh": "发布信息"}[language])[0].casefold()
    for claim in CLAIMS[language]:
        assert claim not in own, claim
    assert {"en": "may be equal to a row of the data", "zh": "可能与数据中的某条记录相同"}[language] in own


def test_both_languages_have_the_same_parts_and_every_link_leads_somewhere(made: SyntheticTable) -> None:
    read = Read(document(quality_page(made)))
    assert not [name for name, times in Counter(read.ids).items() if times > 1]
    assert set(read.links) <= set(read.ids)
    parts = {language: [name for name in read.ids if name.startswith(f"{language}-")] for language in ("en", "zh-Hans")}
    assert [name.removeprefix("en-") for name in parts["en"]] == [
        name.removeprefix("zh-Hans-") for name in parts["zh-Hans"]
    ]
    assert len(read.images) == 2 * 3
    assert all(len(label) > 20 for label in read.images), "whoever does not see a picture hears what it shows"
    assert read.tags["details"] == 2 * 3 + 1, "and unfolds its figures"
    assert read.tags["script"] == read.tags["img"] == read.tags["link"] == 0


def test_thirty_columns_are_cut_to_what_can_be_read_and_what_is_left_out_is_said(thirty: SyntheticTable) -> None:
    text = document(quality_page(thirty), ["en"])
    words = " ".join(visible(text).split())
    assert "the first 30 of 34 columns; 4 are left out" in words
    assert "the other 501 of 561 are nearer" in words
    assert "the other 22 of 34 are nearer" in words
    assert "the other 555 of 561 are nearer" in words
    assert len(text) < 1_500_000
    assert text.count("<svg") == 2 + 12 + 6


def test_names_that_are_programs_are_shown_as_names() -> None:
    rows = pa.table({HOSTILE[0]: [HOSTILE[1], HOSTILE[2]] * 200, "ill": [True, False, False, True] * 100})
    table = vault().table(
        rows, name=HOSTILE[0], version="1", keys={HOSTILE[0]: list(HOSTILE[1:3]), "ill": [True, False]}
    )
    text = document(quality_page(table.synthesize(epsilon=3, rows=200)))
    read = Read(text)
    assert read.tags["script"] == read.tags["img"] == read.tags["b"] - 2 * len(re.findall("<li><b>", text)) // 2 == 0


def test_one_column_and_independent_columns_have_a_page() -> None:
    rows = pa.table({"sex": ["F", "M"] * 20, "ward": ["A", "B"] * 20})
    table = vault().table(rows, name="stays", version="1", keys={"sex": ["F", "M"], "ward": ["A", "B"]})
    alone = document(quality_page(table.synthesize(["sex"], epsilon=1, rows=40)), ["en", "zh"])
    assert "There is one column alone." in alone
    singles = table.synthesize(epsilon="1/100", expected_rows=40, rows=40)
    assert singles.quality.reason == "singles"
    text = document(quality_page(singles), ["en"])
    assert "Columns two by two" not in text
    assert "Columns one by one" in text


def test_rows_that_know_no_cells_have_a_page_without_tables(made: SyntheticTable) -> None:
    bare = SyntheticTable(release=made.release, rows=made.rows, quality=made.quality)
    text = document(quality_page(bare), ["en"])
    assert "What they do not keep" in text
    assert "<svg" not in text


@pytest.mark.claim("S0-27")
def test_figures_of_the_data_are_on_the_page_once_they_were_asked_for(tmp_path: Path) -> None:
    ward = vault()
    age = RANDOM.integers(0, 100, 3_000)
    rows = pa.table({"age": age, "ill": RANDOM.random(3_000) < 0.1 + 0.7 * (age > 60)})
    table = ward.table(rows, name="stays", version="1", keys={"ill": [True, False]}, bounds={"age": (0, 99)})
    found = table.synthesize(epsilon=2, rows=1_000, bins={"age": 6})
    asked = table.compare_synthetic(found, outcome="ill").release(epsilon=3)
    assert ward.spent.epsilon == 5
    for language, parts in {
        "en": ("It cost ε = 3", "Jensen–Shannon divergence, bits", "area under the curve", "persons who were not"),
        "zh": ("另花费 ε = 3", "詹森–香农散度（比特）", "曲线下面积", "未参与者"),
    }.items():
        text = found.report(tmp_path / "page.html", languages=[language], comparison=asked).read_text("utf-8")
        for part in (*parts, f"{asked.auc:.3f}"):
            assert part in text, part
        assert "The data were not asked" not in text
