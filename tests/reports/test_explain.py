"""Plain words, in two languages, with the right numbers and without promises that nobody can keep."""

import re
import string
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.reports.catalogue import message, messages

ROWS = pa.table({"id": [1, 2], "region": ["north", "south"]})
FORBIDDEN = {
    "en": r"\bsafe\b|\bleak|anonym|\bimpossible\b|\bguarantee[sd]? that nobody\b|probability of",
    "zh": "安全|泄露|泄漏|匿名|绝对|不可能",
}


def release_of(unit: Any, *, epsilon: str = "1/2", budget: int = 1, keys: bool = True, **limit: int) -> Any:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=budget), name="patients")
    held = (
        None
        if isinstance(unit, type(sf.record(relation="replace")))
        else sf.Limit(**(limit or {"groups": 1, "rows_per_group": 1}))
    )
    table = vault.table(ROWS, name="visits", version="1", limit=held, keys={"region": ["north", "south"]})
    return (table.group_by("region") if keys else table).count().release(epsilon=epsilon)


UNITS = {
    "user, add/remove": sf.user("id", relation="add/remove"),
    "user, replace": sf.user("id", relation="replace"),
    "family, add/remove": sf.family(3, "id", relation="add/remove"),
    "record, add/remove": sf.record(relation="add/remove"),
    "record, replace": sf.record(relation="replace"),
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("keys", [True, False])
def test_every_text_is_filled_in_and_promises_nothing_absolute(unit: Any, language: str, keys: bool) -> None:
    text = release_of(unit, keys=keys).explain(language)
    assert "{" not in text
    assert not re.search(FORBIDDEN[language], text, re.IGNORECASE)
    assert "1.649" in text  # e^(1/2), rounded up
    if language == "zh":
        english = set(re.findall(r"[A-Za-z]+", text)) - {"visits", "region"}
        assert english == set()


@pytest.mark.claim("S1-30")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_belief_moves_from_100_to_at_most_155_in_a_thousand(language: str) -> None:
    text = release_of(UNITS["user, add/remove"]).explain(language)
    for figure in ("100", "155", "63", "232", "39"):  # in: 15.48% and 6.31%; a trait at 2ε: 23.2% and 3.93%
        assert figure in re.findall(r"\d+", text)


def test_under_replace_no_text_speaks_of_a_missing_record() -> None:
    text = release_of(UNITS["user, replace"]).explain("en")
    assert "without them" not in text
    assert "someone else in their place" in text


def test_the_belief_speaks_of_all_releases_together() -> None:
    vault = sf.Vault(unit=UNITS["user, add/remove"], budget=sf.Budget(epsilon=2), name="patients")
    table = vault.table(ROWS, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    table.count().release(epsilon="1/2")
    text = table.count().release(epsilon="1/2", fresh=True).explain("en")
    assert "at most 232" in text  # ε = 1 by now
    assert "2 charge(s) used ε = 1 of 2" in text


def test_margins_limits_and_repeats_are_said() -> None:
    vault = sf.Vault(unit=UNITS["user, add/remove"], budget=sf.Budget(epsilon=1), name="patients")
    table = vault.table(
        ROWS,
        name="visits",
        version="1",
        limit=sf.Limit(groups=2, rows_per_group=3),
        keys={"region": ["north", "south"]},
    )
    first = table.group_by("region").count().release(epsilon=1)
    again = table.group_by("region").count().release(epsilon=1)
    assert f"±{first.statement.law.margin(Fraction(19, 20))} " in first.explain("en")
    assert "at most 2 group(s) count, with at most 3 row(s)" in first.explain("en")
    assert "It cost nothing" not in first.explain("en")
    assert "It cost nothing" in again.explain("en")
    assert "in memory only" in first.explain("en")


def test_the_languages_have_the_same_messages_with_the_same_facts() -> None:
    facts = {
        language: {
            name: {field for _, field, _, _ in string.Formatter().parse(text) if field}
            for name, text in messages(language).items()
        }
        for language in ("en", "zh-Hans")
    }
    assert facts["en"] == facts["zh-Hans"]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(errors.Unsupported, match="zh-Hans"):
        message("fr", "unit.user")


def test_a_release_as_table_and_picture() -> None:
    release = release_of(UNITS["user, add/remove"])
    assert list(release.to_pandas().columns) == ["region", "count", "low", "high"]
    assert release.to_polars().height == 2
    assert pa.table(release).num_rows == 2
    (low, high), _ = release.interval(0.95, joint=True)
    assert high - low > release.to_arrow()["high"][0].as_py() - release.to_arrow()["low"][0].as_py()
    for confidence in (0, 1, 2, float("nan")):
        with pytest.raises(errors.InvalidInput, match="confidence"):
            release.interval(confidence)
    assert "±" not in release.plot(language="zh").to_json()
    assert "计数" in release.plot(language="zh").to_dict()["title"]
