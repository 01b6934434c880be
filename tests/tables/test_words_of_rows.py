"""A declared word for rows and for persons: it stands wherever a limit is shown, and is no part of the question."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import encode
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.reports.verify import verify

ROWS = pa.table({"id": [i // 4 for i in range(80)], "k": ["ab"[i % 2] for i in range(80)], "d": [1.0] * 80})
SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "visits"
version = "1"
[unit]
column = "id"
[limit]
groups = 1
rows_per_group = 3
row = { one = "visit", many = "visits", zh = "次就诊" }
person = "patient"
[columns.id]
type = "whole"
[columns.k]
type = "text"
keys = ["a", "b"]
[columns.d]
type = "number"
bounds = [0, 10]
"""
EN, ZH = "at most 3 visits per patient, all in one group", "每个患者最多 3 次就诊，且只计入一组"


def vault() -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="clinic")


@pytest.fixture(scope="module")
def release() -> Release:
    return vault().table(ROWS, schema=sf.Schema.from_toml(SCHEMA)).group_by("k").count().release(epsilon=1)


def test_every_place_that_shows_the_limit_has_the_words(release: Release, tmp_path: Path) -> None:
    assert (release.limit_words(), release.limit_words("zh")) == (EN, ZH)
    assert set(release.to_arrow()["limit"].to_pylist()) == {EN}
    page = release.report(tmp_path / "page.html").read_text("utf-8")
    for text, words in ((str(release), EN), (release._repr_html_(), EN), (page, EN), (page, ZH)):
        assert words in text
    for language, words in (("en", "with at most 3 visits in each"), ("zh", "每组最多 3 次就诊")):
        assert words in release.explain(language)
        assert words in page
    assert "visits" in str(release.plot().to_dict())
    assert (release.figure * 2).limit_words() == EN


def test_certificates_hold_them(release: Release, tmp_path: Path) -> None:
    assert verify(release.certificate.document).consistent
    assert sf.load(release.certificate.save(tmp_path / "c.json")).limit_words("zh") == ZH
    assert encode(sf.Limit(groups=1, rows_per_group=3)) == {
        "kind": "limit",
        "version": 1,
        "groups": 1,
        "rows_per_group": 3,
    }, "without words a document is what it was"


def test_words_are_no_part_of_the_question() -> None:
    """Else whoever mends a word would pay again for what was answered."""
    limit, asked = sf.Limit(groups=1, rows_per_group=3), vault()
    table = asked.table(ROWS, name="visits", version="1", limit=limit, keys={"k": ["a", "b"]})
    first = table.count().release(epsilon=1)
    again = table.with_limit(sf.Limit(groups=1, rows_per_group=3, row="visit")).count().release(epsilon=1)
    assert again.repeated
    assert again.values == first.values
    assert asked.spent == sf.Budget(epsilon=1)
    worded = sf.Limit(groups=1, rows_per_group=3, row="visit")
    assert worded == limit
    assert hash(worded) == hash(limit)


def test_another_limit_keeps_the_words_of_the_table() -> None:
    table = vault().table(ROWS, schema=sf.Schema.from_toml(SCHEMA), limit=sf.Limit(groups=2, rows_per_group=2))
    assert table.count().release(epsilon=1).limit_words() == "at most 2 visits per patient"
    once = table.with_limit(sf.Limit(groups=1, rows_per_group=1))
    assert once.group_by("k").sum("d").release(epsilon=1).limit_words() == (
        "at most one visit's worth per patient, all in one group"
    )


def test_without_chinese_words_the_usual_ones_stand() -> None:
    limit = sf.Limit(groups=1, rows_per_group=3, row="stay", person=sf.Noun(one="resident", many="residents"))
    found = vault().table(ROWS, name="stays", version="1", limit=limit).count().release(epsilon=1)
    assert (found.limit_words(), found.limit_words("zh")) == ("at most 3 stays per resident", "每个居民最多 3 行")


def test_a_schema_is_read_again_with_its_words() -> None:
    schema = sf.Schema.from_toml(SCHEMA)
    again = sf.Schema.from_toml(schema.to_toml()).limit
    assert again is not None
    assert schema.limit is not None
    assert (again.row, again.person) == (schema.limit.row, schema.limit.person)
    assert again.row == sf.Noun(one="visit", many="visits", zh="次就诊")


@pytest.mark.parametrize("word", ["", "x" * 41, "a\nb", "\u202eevil", 3, ["visit"]])
def test_what_is_no_word_is_refused(word: object) -> None:
    with pytest.raises(InvalidInput, match="nothing was done"):
        sf.Limit(groups=1, rows_per_group=1, row=word)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="both one and many"):
        sf.Schema.from_toml(SCHEMA.replace('{ one = "visit", many = "visits", zh = "次就诊" }', '{ one = "visit" }'))


def test_a_word_is_text_on_a_page_and_never_markup() -> None:
    limit = sf.Limit(groups=1, rows_per_group=3, row="<b>visit</b>")
    found = vault().table(ROWS, name="visits", version="1", limit=limit).count().release(epsilon=1)
    assert "<b>" not in found._repr_html_()
