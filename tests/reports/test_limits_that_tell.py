"""A figure under a limit that can cut says so wherever it is shown; "exact" is said of others alone."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.cut import cut_by, cut_of, person_word
from sfumato.core.limits import Limit
from sfumato.core.release import Release, limit_column
from sfumato.errors import InvalidInput
from sfumato.reports.page import page
from sfumato.reports.words.rendering import render
from sfumato.streams.describe import cut_steps

ROWS = pa.table({
    "patient_id": [person for person in range(300) for _ in range(6)],
    "region": ["north", "south"] * 900,
    "age": [20 + row % 60 for row in range(1800)],
})  # fmt: skip
PERSONS = sf.user("patient_id", relation="add/remove")
EN = "at most 3 rows per patient in each of at most 2 groups"
ZH = "每个患者最多计入 2 个组，每组最多 3 行"


def table(limit: Limit | None = None, unit: Any = PERSONS) -> Any:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=1000), name="patients")
    given = {"limit": limit or sf.Limit(groups=2, rows_per_group=3)} if unit == PERSONS else {}
    return vault.table(
        ROWS, name="visits", version="1", keys={"region": ["north", "south", "west"]}, bounds={"age": (0, 120)}, **given
    )


@pytest.fixture(scope="module")
def by_region() -> Release:
    return table().group_by("region").count().release(epsilon=1)


def subtitle(release: Release, language: str = "en") -> str:
    return " ".join(release.plot(language=language).to_dict()["title"]["subtitle"])


def test_the_first_count_says_what_it_counts_in_a_frame() -> None:
    release = table().count().release(epsilon=1)
    frame = release.to_pandas()
    assert list(frame.columns) == ["count", "count_data_low", "count_data_high", "limit"]
    assert "at most 3 rows per patient" in frame.to_string()
    assert "at most 3 rows per patient" in frame.to_csv()
    assert list(frame["limit"]) == ["at most 3 rows per patient"]
    assert release.to_polars()["limit"].to_list() == ["at most 3 rows per patient"]
    assert release.to_arrow()["limit"].to_pylist() == ["at most 3 rows per patient"]


@pytest.mark.parametrize(("language", "words"), [("en", EN), ("zh", ZH)])
def test_it_stands_wherever_the_figure_is_shown(by_region: Release, language: str, words: str) -> None:
    assert by_region.limit_words(language) == words
    assert words in by_region.explain(language).split("\n\n")[0]
    assert words in subtitle(by_region, language)
    shown = page(by_region, [language])
    assert shown.count(words) >= 4  # the question, the picture, the head of the column, under the table
    assert words in shown.split("<h2")[0]
    if language == "en":
        assert words in by_region._repr_html_()
        assert words in str(by_region + 1)


def test_previews_say_it() -> None:
    asked = table().group_by("region")
    assert f"Counted: {EN}; what that cuts is not in the margin." in str(asked.count().preview(epsilon=1))
    mean = str(asked.agg(n=sf.count(), age=sf.mean("age")).preview(epsilon=1, rows=10))
    assert "at most 3 rows' worth per patient in each of at most 2 groups" in mean
    assert "Counted" not in str(table().agg(n=sf.persons()).preview(epsilon=1))
    assert "Counted" not in str(table(unit=sf.record(relation="replace")).count().preview(epsilon=1))


def test_exact_is_said_where_nothing_is_cut_alone(by_region: Release) -> None:
    rows = table(unit=sf.record(relation="add/remove")).group_by("region").count().release(epsilon=1)
    assert rows.limit_words() == ""
    assert "limit" not in rows.to_arrow().column_names
    assert "of the exact count, all" in subtitle(rows)
    assert "与准确值相差" in rows.explain("zh")
    assert "限额内" not in rows.explain("zh")
    assert "of the count of these data under the limit, all" in subtitle(by_region)
    assert "与限额内的准确计数相差" in subtitle(by_region, "zh")
    for audience in ("public", "patient", "clinician", "manager", "board"):
        told = by_region.explain("en", audience)
        assert "of the figure of these data under the limit" in told
        assert "exact figure" not in told
        assert "限额内的准确值" in by_region.explain("zh", audience)


def test_pictures_say_that_sampling_and_what_was_cut_are_not_in_the_interval(by_region: Release) -> None:
    assert "neither what the limit cut nor sampling is in it" in subtitle(by_region)
    assert "既不含被截去的部分，也不含抽样误差" in subtitle(by_region, "zh")
    rows = table(unit=sf.record(relation="add/remove")).group_by("region").count().release(epsilon=1)
    assert "sampling is not in it" in subtitle(rows)
    assert "limit" not in subtitle(rows)


@pytest.mark.parametrize(
    ("limit", "asked", "words", "cuts"),
    [
        ((2, 3), lambda rows: rows.count(), "at most 3 rows per patient", True),
        ((1, 1), lambda rows: rows.count(), "each patient once", False),
        ((3, 1), lambda rows: rows.group_by("region").count(), "each patient once in a group", False),
        (
            (2, 1),
            lambda rows: rows.group_by("region").count(),
            "at most one row per patient in each of at most 2 groups",
            True,
        ),
        ((1, 4), lambda rows: rows.group_by("region").count(), "at most 4 rows per patient, all in one group", True),
        ((3, 4), lambda rows: rows.group_by("region").count(), "at most 4 rows per patient in each group", True),
        ((2, 3), lambda rows: rows.agg(n=sf.persons()), "", False),
        ((2, 3), lambda rows: rows.group_by("region").agg(n=sf.persons()), "each patient in at most 2 groups", True),
        ((1, 3), lambda rows: rows.group_by("region").agg(n=sf.persons()), "each patient in one group only", True),
        ((3, 3), lambda rows: rows.group_by("region").agg(n=sf.persons()), "", False),
        ((2, 3), lambda rows: rows.agg(n=sf.count(), age=sf.mean("age")), "at most 3 rows' worth per patient", True),
        ((2, 3), lambda rows: rows.agg(p=sf.persons(), n=sf.count()), "at most 3 rows per patient", True),
        ((2, 3), lambda rows: rows.quantiles("age", [0.5]), "at most 3 rows per patient", True),
        ((2, 3), lambda rows: rows.group_by("region").top(1), EN, True),
    ],
)
def test_what_a_limit_can_cut(limit: tuple[int, int], asked: Any, words: str, cuts: bool) -> None:
    held = sf.Limit(groups=limit[0], rows_per_group=limit[1])
    query = asked(table(held)).query
    cut = cut_of(query, PERSONS, held)
    assert ("" if cut.words is None else render(cut.words, "en")) == words
    assert cut.cuts is cuts
    assert cut.words is None or render(cut.words, "zh")


@pytest.mark.parametrize("shown", [False, True])
def test_what_cannot_be_cut_is_that_of_all_rows(shown: bool) -> None:
    """Without noise: where no cut is possible the answer is the plain one, where one is it differs on these rows."""
    exactly = 1000
    vault = sf.Vault(unit=PERSONS, budget=sf.Budget(epsilon=10**4), name="patients")
    held = sf.Limit(groups=2, rows_per_group=3 if shown else 2)
    rows = vault.table(ROWS, name="visits", version="1", keys={"region": ["north", "south"]}, limit=held)
    release = rows.group_by("region").agg(n=sf.persons()).release(epsilon=exactly)
    assert not release.limit_cuts()
    assert release["n"].values == (300, 300)
    counted = rows.group_by("region").count().release(epsilon=exactly)
    assert counted.limit_cuts()
    assert counted.values == ((900, 900) if shown else (600, 600))


def test_words_for_persons_come_from_the_column() -> None:
    for column, word in (
        ("patient_nbr", "patient"), ("PatientID", "patient"), ("id", "person"), ("person", "person"), ("mrn", "mrn"),
        ("ward_no", "ward"), ("covid", "covid"), ("student number", "student"), ("_id", "person"), ("userid", "user"),
        ("患者编号", "患者编号"), ("evil\nrow", "evil row"),
    ):  # fmt: skip
        assert render(person_word(sf.user(column, relation="replace")), "en") == word
    assert render(person_word(sf.user("patient_id", relation="replace")), "zh") == "患者"
    cut = cut_by(sf.family(3, "resident_id", relation="replace"), sf.Limit(groups=1, rows_per_group=2), cells=1)
    assert cut.words is not None
    assert render(cut.words, "zh") == "每个居民最多 2 行"


def test_a_column_that_is_called_limit_keeps_its_name() -> None:
    assert limit_column("w", ["a", "limit"], 1) == {"contribution_limit": ["w"]}
    assert limit_column("", ["a"], 3) == {}
    rows = ROWS.append_column("limit", pa.array([f"{row % 2}" for row in range(1800)]))
    vault = sf.Vault(unit=PERSONS, budget=sf.Budget(epsilon=1), name="patients")
    once, keys = sf.Limit(groups=1, rows_per_group=1), {"limit": ["0", "1"]}
    shown = (
        vault.table(rows, name="v", version="1", limit=once, keys=keys)
        .group_by("limit")
        .count()
        .release(epsilon=1)
        .to_arrow()
    )
    assert shown.column_names == ["limit", "count", "count_data_low", "count_data_high", "contribution_limit"]


def test_the_old_names_of_ends_are_answered_with_the_new_ones(by_region: Release) -> None:
    with pytest.raises(InvalidInput, match="count_data_low and count_data_high"):
        by_region["low"]


def test_the_command_line_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet
    from typer.testing import CliRunner

    from sfumato.cli.app import app

    monkeypatch.chdir(tmp_path)
    parquet.write_table(ROWS, "visits.parquet")
    assert CliRunner().invoke(app, ["schema", "draft", "visits.parquet", "-o", "visits.toml"]).exit_code == 0
    asked = ["query", "visits.parquet", "SELECT COUNT(*) FROM visits", "--schema", "visits.toml"]
    asked += ["--unit", "user:patient_id", "--groups", "1", "--rows", "3", "--epsilon", "1"]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    assert "counted: at most 3 rows per patient; not in the interval: what this limit cut, and sampling" in told.output
    document = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)
    assert document["limit"] == "at most 3 rows per patient"
    assert set(document["columns"]["count"]) == {"values", "data_low", "data_high"}


def test_graphs_and_streams_say_it_too() -> None:
    node = sf.node(max_degree=20, relation="add/remove")
    vault = sf.Vault(unit=node, budget=sf.Budget(epsilon=1), name="contacts")
    links = vault.graph([(0, 1), (1, 2)], name="wards", version="1").edges().release(epsilon=1)
    assert links.limit_words() == "at most 20 links per node"
    assert links.limit_words("zh") == "每个节点最多 20 条连接"
    assert links.limit_cuts()
    edges = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=1), name="contacts")
    assert edges.graph([(0, 1)], name="wards", version="1", nodes=3).edges().release(epsilon=1).limit_words() == ""
    cut = cut_steps(PERSONS, sf.Limit(groups=7, rows_per_group=2))
    assert cut.cuts
    assert cut.words is not None
    assert render(cut.words, "en") == "at most 2 per patient and step, in at most 7 steps"
    assert render(cut.words, "zh") == "每个患者最多计入 7 步，每步最多 2"
