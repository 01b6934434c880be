"""``units`` and ``plot``: tables, JSON, pictures, and what is wrong with a request."""

import json

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.signature import SigningKey
from tests import parts


def test_a_graph_in_a_table(run):
    outcome = run("units", "--max-degree", 20, "--epsilon", "0.5")
    assert outcome.exit_code == 0
    lines = [line.split() for line in outcome.stdout.splitlines()]
    assert ["one", "edge", "1", "0.5", "±6", "0.5"] in lines
    assert ["one", "node", "of", "degree", "up", "to", "20", "20", "10", "±120", "nothing", "follows"] in lines
    assert "whoever counts must" in outcome.stdout


def test_a_narrow_terminal_gets_paragraphs(run, monkeypatch):
    from typer.testing import CliRunner

    from sfumato.cli.app import app

    runner = CliRunner(env={"COLUMNS": "40", "TERM": "dumb", "NO_COLOR": "1"})
    outcome = runner.invoke(app, ["units", "--events", "12", "--family", "3", "--epsilon", "0.5"])
    assert outcome.exit_code == 0
    assert all(len(line) <= 40 for line in outcome.stdout.splitlines())
    assert "any 3 persons\n  moves it by: 36\n  ε for the same error: 18\n" in outcome.stdout


def test_the_certificate_brings_its_unit_and_its_price(run, place):
    outcome = run("units", place / "ili.json", "--family", 3, "--max-degree", 4, "--json", "--key", place / "key.pub")
    assert outcome.exit_code == 0
    table, graph = json.loads(outcome.stdout)["comparisons"]
    assert table["spend"] == graph["spend"] == {"epsilon": "1/2", "delta": "0"}
    assert [unit["epsilon_for_the_same_error"] for unit in table["units"]] == ["1/2", "1/2", "3/2"]
    assert [unit["unit"]["kind"] for unit in table["units"]] == ["unit.user", "unit.record", "unit.family"]
    assert [unit["epsilon_for_the_same_error"] for unit in graph["units"]] == ["1/2", "2"]


def test_chinese_words(run):
    outcome = run("units", "--groups", 2, "--rows", 3, "--margin", 20, "--lang", "zh")
    assert outcome.exit_code == 0
    assert "一个人" in outcome.stdout
    assert "one person" not in outcome.stdout


@pytest.mark.long
@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_pictures_of_units_and_of_releases(run, place, ending):
    parts.package("vl_convert")
    units = run("units", "--max-degree", 20, "--epsilon", 1, "--plot", place / f"units.{ending}")
    release = run("plot", place / "ili.json", "-o", place / f"ili.{ending}", "--json")
    assert (units.exit_code, release.exit_code) == (0, 0), (units.stderr, release.stderr)
    assert f"written: {place}/units.{ending}" in units.stdout
    assert json.loads(release.stdout) == {"written": f"{place}/ili.{ending}", "kind": "intervals"}
    starts = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!doctype html>"}
    for name in ("units", "ili"):
        assert (place / f"{name}.{ending}").read_bytes().startswith(starts[ending])


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["intervals", "noise", "belief", "frontier"])
@pytest.mark.parametrize(("lang", "theme"), [("en", "light"), ("zh", "dark")])
def test_every_kind_of_picture(run, place, kind, lang, theme):
    parts.package("vl_convert")
    outcome = run("plot", place / "ili.json", "--kind", kind, "--lang", lang, "--theme", theme)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    written = {"en": "written: ", "zh": "已写入："}[lang]
    assert outcome.stdout == f"{written}{place}/ili.svg\n"


@pytest.mark.long
def test_one_column_is_drawn_by_its_name(run, place):
    parts.package("vl_convert")
    made = two_columns(place)
    for kind in ("intervals", "noise", "frontier"):
        outcome = run("plot", made, "--kind", kind, "--column", "total", "-o", place / f"{kind}.svg")
        assert (outcome.exit_code, outcome.stderr) == (0, "")
    alone, all_of_them = (place / "intervals.svg").read_text(), place / "all.svg"
    assert run("plot", made, "-o", all_of_them).exit_code == 0
    assert ">n<" not in alone
    assert "total" in alone
    assert len(all_of_them.read_text()) > len(alone)
    assert run("plot", place / "ili.json", "--column", "count").exit_code == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--column", "age"), "this release has no column 'age'; it has n, total. Nothing was drawn."),
        (("--column", ""), "this release has no column ''; it has n, total. Nothing was drawn."),
        (("--kind", "belief", "--column", "n"), "not about a column; nothing was drawn"),
    ],
)
def test_a_column_that_is_not_there_is_refused(run, place, words, said):
    parts.package("altair")
    outcome = run("plot", two_columns(place), *words, "-o", place / "none.svg")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert said in outcome.stderr
    assert not (place / "none.svg").exists()


def two_columns(place):
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=50), name="clinic")
    rows = vault.table(pa.table({"x": [1.0, 2.0, 3.0]}), name="v", version="1", bounds={"x": (0, 4)})
    return rows.agg(n=sf.count(), total=sf.sum("x")).release(epsilon=10).certificate.save(place / "two.json")


def test_a_foreign_certificate_is_neither_drawn_nor_compared(run, place):
    for command in ("plot", "units"):
        outcome = run(command, place / "ili.json", "--key", SigningKey.new().public_text)
        assert outcome.exit_code == 1
        assert "signature.key" in outcome.stderr
    assert not (place / "ili.svg").exists()


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to compare"),
        (("--epsilon", "1"), "nothing to compare"),
        (("--max-degree", "3"), "--epsilon"),
        (("--groups", "3", "--epsilon", "1"), "go together"),
        (("--rows", "3", "--epsilon", "1"), "go together"),
        (("--max-degree", "3", "--epsilon", "1", "--margin", "3"), "either"),
        (("--max-degree", "3", "--epsilon", "two"), "not a number"),
        (("--groups", "1000000", "--rows", "1", "--epsilon", "1"), "at most 10,000"),
        (("--max-degree", "3", "--events", "3", "--epsilon", "1", "--plot", "x.svg"), "one comparison"),
    ],
)
def test_a_request_that_makes_no_sense(run, words, said):
    outcome = run("units", *words)
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("sfumato: ")
    assert said in outcome.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--epsilon", "1"), "its own ε"),
        (("--margin", "1"), "its own ε"),
        (("--delta", "1e-6"), "its own ε"),
        (("--groups", "1", "--rows", "1"), "its own limit"),
    ],
)
def test_what_a_certificate_says_is_not_said_again(run, place, words, said):
    outcome = run("units", place / "ili.json", *words)
    assert outcome.exit_code == 1
    assert said in outcome.stderr


def test_wrong_usage(run):
    for words in (("--family", "1"), ("--max-degree", "0"), ("--events", "x"), ("--lang", "fr")):
        assert run("units", *words).exit_code == 2
