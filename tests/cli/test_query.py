"""A question on the command line: from a file and its schema to numbers with margins, files, and honest refusals."""

import io
import json
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from rich.console import Console

import sfumato as sf
from sfumato.cli.answers import figures
from sfumato.core.signature import SigningKey
from sfumato.reports.waiting import waiting
from tests import parts

SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "visits"
version = "1"
{unit}
[columns.id]
type = "text"
[columns.sex]
type = "text"
keys = ["F", "M"]
[columns.age]
type = "whole"
bounds = [0, 100]
"""
UNIT = """[unit]
column = "id"
number = 40
population = 1000
[limit]
groups = 1
rows_per_group = 1
"""
SECRET = "XYZZY-4711"  # noqa: S105 - a data value that must never be quoted
ROWS = pa.table(
    {
        "id": [f"p{number}" for number in range(40)],
        "sex": ["F", "M"] * 20,
        "age": pa.array([20 + number for number in range(40)], pa.int64()),
        "note": [SECRET] * 40,
    }
)
COUNT = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.parquet.write_table(ROWS, tmp_path / "visits.parquet")
    pyarrow.csv.write_csv(ROWS, tmp_path / "visits.csv")
    (tmp_path / "visits.toml").write_text(SCHEMA.format(unit=UNIT), encoding="utf-8")
    (tmp_path / "rows.toml").write_text(SCHEMA.format(unit=""), encoding="utf-8")
    return tmp_path


def ask(
    folder: Path, text: str, *more: object, data: str = "visits.parquet", schema: str = "visits.toml"
) -> list[object]:
    return ["query", folder / data, text, "--schema", folder / schema, *more]


@pytest.mark.parametrize("data", ["visits.parquet", "visits.csv"])
def test_it_prints_numbers_with_margins_and_what_was_charged(run, folder, data):
    # ε = 500 leaves no noise: another count than 20 has a probability below 1e-200.
    outcome = run(*ask(folder, COUNT, "--epsilon", "500", data=data))
    assert outcome.exit_code == 0, outcome.stderr
    assert [line.split() for line in outcome.stdout.splitlines()[:3]] == [
        ["sex", "n", "95%", "interval"],
        ["F", "20", "20", "to", "20"],
        ["M", "20", "20", "to", "20"],
    ]
    assert "protected: user (id), add/remove\n" in outcome.stdout
    assert "charged: ε = 500\n" in outcome.stdout
    assert "ledger: none" in outcome.stdout


def test_programs_get_the_same(run, folder):
    outcome = run(*ask(folder, COUNT, "--epsilon", "1/2", "--confidence", "0.9", "--json"))
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert found["dataset"] == {"name": "visits", "version": "1"}
    assert found["charged"] == {"epsilon": "1/2", "delta": "0"}
    assert found["confidence"] == "9/10"
    assert found["ledger"] is None
    assert found["labels"] == {"sex": ["F", "M"]}
    column = found["columns"]["n"]
    assert all(low < value < high for value, low, high in zip(*column.values(), strict=True))
    assert outcome.stderr == ""


def test_a_workbook_holds_the_answer_and_its_explanation(run, folder):
    fastexcel = pytest.importorskip("fastexcel")
    outcome = run(*ask(folder, COUNT, "--epsilon", "500", "--excel", folder / "answer.xlsx"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "answer.xlsx" in outcome.stdout
    book = fastexcel.read_excel(str(folder / "answer.xlsx"))
    assert book.load_sheet("answer").to_arrow().to_pydict()["n"] == [20, 20]
    wrong = run(*ask(folder, COUNT, "--epsilon", "500", "--excel", folder / "answer.xls"))
    assert wrong.exit_code == 1
    assert "nothing was spent" in wrong.stderr


def test_rows_are_protected_where_that_is_said_and_what_it_means(run, folder):
    outcome = run(*ask(folder, "SELECT COUNT(*) FROM visits", "--epsilon", "1", "--unit", "record", schema="rows.toml"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "protected: record, add/remove; whoever has several rows is protected less" in outcome.stdout


def test_the_public_number_serves_under_replace(run, folder):
    text = "SELECT AVG(COALESCE(age, 40)) AS age FROM visits"
    outcome = run(
        *ask(folder, text, "--epsilon", "1000", "--unit-relation", "replace", "--json", "--save", folder / "c.json")
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["protected"] == "user (id), replace"
    assert json.loads((folder / "c.json").read_text("utf-8"))["statement"]["query"]["number"] == 40


def test_delta_buys_less_noise_and_is_charged(run, folder):
    schema = (folder / "visits.toml").read_text("utf-8").replace("groups = 1\n", "groups = 100\n", 1)
    (folder / "many.toml").write_text(schema, encoding="utf-8")
    text = "SELECT WIDTH_BUCKET(age, 0, 100, 100) AS year, COUNT(*) FROM visits GROUP BY year"
    outcome = run(*ask(folder, text, "--epsilon", "1", "--delta", "1e-6", "--json", schema="many.toml"))
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["charged"] == {"epsilon": "1", "delta": "1/1000000"}


def test_the_certificate_is_signed_with_the_key_and_verifies(run, folder):
    SigningKey.new().save(folder / "key")
    outcome = run(*ask(folder, COUNT, "--epsilon", "1", "--save", folder / "c.json", "--key", folder / "key"))
    assert outcome.exit_code == 0, outcome.stderr
    assert f"written: {folder / 'c.json'}" in outcome.stdout
    checked = run("verify", folder / "c.json", "--key", folder / "key.pub")
    assert (checked.exit_code, checked.stdout.startswith("consistent")) == (0, True)


@pytest.mark.long
def test_it_draws_and_reports(run, folder):
    parts.package("vl_convert")
    outcome = run(*ask(folder, COUNT, "--epsilon", "1", "--plot", folder / "p.svg", "--report", folder / "r.html"))
    assert outcome.exit_code == 0, outcome.stderr
    assert (folder / "p.svg").read_text("utf-8").startswith("<svg")
    assert "<html" in (folder / "r.html").read_text("utf-8")


def test_a_median_has_an_interval(run, folder):
    outcome = run(*ask(folder, "SELECT sex, MEDIAN(age) FROM visits GROUP BY sex", "--epsilon", "5"))
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.splitlines()[0].split() == ["sex", "median", "95%", "interval,", "population"]
    told = run(*ask(folder, "SELECT MEDIAN(age) FROM visits", "--epsilon", "5", "--json"))
    median = json.loads(told.stdout)["columns"]["median"]
    assert median["data_low"][0] <= median["values"][0] <= median["data_high"][0]
    assert (
        median["population_low"][0] <= median["data_low"][0] <= median["data_high"][0] <= median["population_high"][0]
    )


@pytest.fixture
def no_release(monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was released")

    monkeypatch.setattr(sf.Vault, "release", never)


REFUSED = [
    (COUNT, ["--epsilon", "0"], "epsilon"),
    (COUNT, ["--epsilon", "x"], "epsilon"),
    (COUNT, ["--epsilon", "1", "--delta", "1/10"], "δ = 1/10"),
    (COUNT, ["--epsilon", "1", "--confidence", "1"], "confidence"),
    (COUNT, ["--epsilon", "1", "--plot", "p.gif"], "p.gif cannot be written"),
    (COUNT, ["--epsilon", "1", "--report", "r.txt"], "r.txt cannot be written"),
    (COUNT, ["--epsilon", "1", "--report", "nowhere/r.html"], "there is no folder"),
    (COUNT, ["--epsilon", "1", "--report", "a.html", "--plot", "a.html"], "the same file"),
    (COUNT, ["--epsilon", "1", "--key", "nowhere.key"], "nowhere.key"),
    ("SELECT note, COUNT(*) FROM visits GROUP BY note", ["--epsilon", "1"], "'note' are not declared"),
    ("SELECT * FROM visits", ["--epsilon", "1"], "rows themselves are never released"),
    ("SELECT COUNT(*) FROM other", ["--epsilon", "1"], "no table 'other' here"),
    ("DROP TABLE visits", ["--epsilon", "1"], "DROP is no question"),
]


@pytest.mark.usefixtures("no_release")
@pytest.mark.parametrize(("text", "more", "words"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_cannot_be_done_is_refused_before_anything_is_read(run, folder, monkeypatch, text, more, words):
    monkeypatch.chdir(folder)
    outcome = run(*ask(folder, text, *more))
    assert outcome.exit_code == 1, outcome.stdout
    assert words in outcome.stderr
    assert outcome.stdout == ""
    assert SECRET not in outcome.stderr


@pytest.mark.usefixtures("no_release")
def test_a_certificate_is_never_overwritten(run, folder):
    (folder / "c.json").write_text("mine", encoding="utf-8")
    outcome = run(*ask(folder, COUNT, "--epsilon", "1", "--save", folder / "c.json"))
    assert (outcome.exit_code, (folder / "c.json").read_text("utf-8")) == (1, "mine")
    assert "nothing was spent" in outcome.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT(*) FROM visits WHERE note = 'x'", "no column 'note'"),  # the schema does not have it
        ("SELECT COUNT(*) FROM visits WHERE age = 'x'", "age"),
    ],
)
def test_a_question_that_does_not_fit_the_columns_is_refused(run, folder, text, words):
    outcome = run(*ask(folder, text, "--epsilon", "1"))
    assert outcome.exit_code == 1
    assert words in outcome.stderr
    assert "nothing was spent" in outcome.stderr
    assert SECRET not in outcome.stderr


def test_missing_and_broken_files_are_said_without_a_data_value(run, folder):
    for data, schema in [("none.parquet", "visits.toml"), ("visits.parquet", "none.toml")]:
        outcome = run(*ask(folder, COUNT, "--epsilon", "1", data=data, schema=schema))
        assert (outcome.exit_code, "none." in outcome.stderr) == (1, True)
    (folder / "broken.csv").write_text(f"id,sex,age\np1,F,{SECRET},1\n", encoding="utf-8")
    outcome = run(*ask(folder, "SELECT AVG(age) FROM visits", "--epsilon", "1", data="broken.csv"))
    assert outcome.exit_code == 1
    assert SECRET not in outcome.stderr + outcome.stdout
    assert isinstance(outcome.exception, SystemExit)


@pytest.mark.parametrize("missing", ["--schema", "--epsilon"])
def test_schema_and_epsilon_are_needed(run, folder, missing):
    given = {"--schema": folder / "visits.toml", "--epsilon": "1"}
    words = [word for name, value in given.items() if name != missing for word in (name, value)]
    assert run("query", folder / "visits.parquet", COUNT, *words).exit_code == 2


def test_an_answer_is_shown_even_where_a_file_cannot_be_written(run, folder, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "r.html")

    monkeypatch.setattr("sfumato.reports.page.write", broken)
    outcome = run(*ask(folder, COUNT, "--epsilon", "1", "--report", folder / "r.html", "--save", folder / "c.json"))
    assert outcome.exit_code == 1
    assert "charged: ε = 1" in outcome.stdout
    assert "No space left on device" in outcome.stderr
    assert (folder / "c.json").exists()


def test_a_database_is_asked_by_its_table(run, folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(folder / "clinic.duckdb") as engine:
        engine.register("rows", ROWS)
        engine.execute("CREATE TABLE stays AS SELECT * FROM rows")
    outcome = run(*ask(folder, COUNT, "--epsilon", "500", "--table", "stays", "--json", data="clinic.duckdb"))
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["columns"]["n"]["values"] == [20, 20]
    drafted = run("schema", "draft", folder / "clinic.duckdb", "--table", "stays")
    assert (drafted.exit_code, "[columns.age]" in drafted.stdout) == (0, True)


def test_a_draft_can_be_asked_with_at_once(run, folder):
    outcome = run("schema", "draft", folder / "visits.parquet", "-o", folder / "draft.toml")
    assert outcome.exit_code == 0, outcome.stderr
    outcome = run(
        *ask(folder, "SELECT COUNT(*) FROM visits", "--epsilon", "500", "--unit", "record", schema="draft.toml")
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.splitlines()[1].split()[0] == "40"
    assert run("schema", "draft", folder / "visits.parquet", "-o", folder / "draft.toml").exit_code == 1


def test_names_and_labels_cannot_play_tricks_with_the_terminal(run, folder):
    schema = (folder / "visits.toml").read_text("utf-8").replace('["F", "M"]', '["F", "[red]\\u001b[2J"]')
    (folder / "odd.toml").write_text(schema, encoding="utf-8")
    text = 'SELECT sex, COUNT(*) AS "[bold]\x1b]0;x" FROM visits GROUP BY sex'
    outcome = run(*ask(folder, text, "--epsilon", "1", schema="odd.toml"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "\x1b" not in outcome.stdout
    assert "[red]\\x1b[2J" in outcome.stdout
    assert "[bold]" in outcome.stdout


@pytest.mark.parametrize(
    ("value", "ends", "shown"),
    [
        (7, (-3, 17), ("7", "-3 to 17")),
        (1234567, (1234000, 1235000), ("1,234,567", "1,234,000 to 1,235,000")),
        (0.123456, (0.12095, 0.13005), ("0.1235", "0.1209 to 0.1301")),
        (0.5, (0.12345, 0.98765), ("0.50", "0.12 to 0.99")),
        (1234.5, (1000.4, 1500.6), ("1,234", "1,000 to 1,501")),
        (2.0, (2.0, 2.0), ("2", "2 to 2")),
        (float("nan"), (0.0, 1.0), ("unknown", "any")),
    ],
)
def test_numbers_are_short_and_intervals_rounded_outward(value, ends, shown):
    assert figures(value, ends) == shown


@pytest.mark.long
def test_a_sign_turns_only_once_patience_is_over():
    for wait, patience, turned in [(0.0, 30.0, False), (0.6, 0.05, True)]:
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=True, width=60)
        with waiting("counting", console=console, patience=patience):
            time.sleep(wait)
        assert ("counting" in stream.getvalue()) is turned
    stream = io.StringIO()
    with waiting("counting", console=Console(file=stream), patience=0.0):  # a file, where nobody looks
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_what_was_raised_inside_is_not_held_up():
    with pytest.raises(ZeroDivisionError), waiting("x", console=Console(file=io.StringIO(), force_terminal=True)):
        raise ZeroDivisionError


def test_who_is_protected_is_never_guessed(run, folder):
    """A schema without a unit column protects nobody until somebody says whom."""
    text = "SELECT COUNT(*) FROM visits"
    outcome = run(*ask(folder, text, "--epsilon", "1", schema="rows.toml"))
    assert outcome.exit_code == 1
    assert "neither the schema nor --unit says who is protected" in outcome.stderr
    assert "nothing was read and nothing was spent" in outcome.stderr
    assert "--unit record" in outcome.stderr
    more = ("--unit", "user:id", "--groups", "1", "--rows", "1")
    persons = run(*ask(folder, text, "--epsilon", "500", *more, schema="rows.toml"))
    assert persons.exit_code == 0, persons.stderr
    assert "protected: user (id), add/remove\n" in persons.stdout
    family = run(*ask(folder, text, "--epsilon", "1", "--unit", "family:2:id"))
    assert "protected: family of 2 (id), add/remove\n" in family.stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--unit", "record"), "would protect single rows, which is less"),
        (("--unit", "edge"), "rows of a table are protected as record"),
        (("--unit", "somebody"), "is not a unit"),
        (("--unit", "user:sex"), "these need not be the same people"),
        (("--groups", "1"), "--groups and --rows go together"),
    ],
)
def test_a_unit_that_does_not_fit_the_schema_is_refused(run, folder, more, words):
    outcome = run(*ask(folder, COUNT, "--epsilon", "1", *more))
    assert outcome.exit_code == 1
    assert words in outcome.stderr


@pytest.mark.long
def test_a_ledger_is_found_by_every_way_to_the_data(run, folder, tmp_path_factory, monkeypatch):
    """Links, folders, databases and folders above: the ledger of the data is the ledger of the data."""
    import duckdb

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    home = tmp_path_factory.mktemp("held")
    (home / "year" / "visits").mkdir(parents=True)
    file = home / "year" / "visits" / "a.parquet"
    pa.parquet.write_table(pa.table({"id": [1, 2]}), file)
    (elsewhere / "link.parquet").symlink_to(file)
    with duckdb.connect(str(home / "year" / "v 1.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS id")
    (elsewhere / "visits.toml").write_text(
        'kind = "schema"\nversion = 1\n[dataset]\nname = "visits"\n[unit]\ncolumn = "id"\n[limit]\ngroups = 1\n'
        'rows_per_group = 1\n[columns.id]\ntype = "whole"\n'
    )
    ways = [
        [file],
        [elsewhere / "link.parquet"],
        [file.parent],
        [f"duckdb://{home}/year/v%201.duckdb?table=visits"],
        [home / "year" / "v 1.duckdb", "--table", "visits"],
    ]

    def asked(data, *more):
        said = ("--schema", elsewhere / "visits.toml", "--epsilon", "1")
        return run("query", data, "SELECT COUNT(*) FROM visits", *said, *more)

    for way in ways:
        assert asked(*way).exit_code == 0, way
    (home / "ledger.toml").write_text("")
    for way in ways:
        outcome = asked(*way)
        assert outcome.exit_code == 1, way
        assert "ledger.toml, and no account to charge" in outcome.stderr
        assert asked(*way, "--no-ledger").exit_code == 0
    (home / "ledger.toml").rename(file.parent / "ledger.toml")
    assert "ledger.toml, and no account to charge" in asked(file.parent).stderr
    inside = elsewhere / "notebooks"
    inside.mkdir()
    monkeypatch.chdir(inside)
    (file.parent / "ledger.toml").rename(elsewhere / "ledger.toml")
    assert "ledger.toml, and no account to charge" in asked(file).stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("place", ["here", "beside the data", "in the environment"])
@pytest.mark.parametrize("command", ["query", "graph", "stream total"])
def test_a_ledger_that_is_there_is_not_passed_over(run, folder, tmp_path_factory, monkeypatch, place, command):
    """Its vetoes and caps would not hold for a release that it does not know of."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    (folder / "contacts.csv").write_text("source,target\n0,1\n")
    (folder / "arrivals.csv").write_text("time\n2026-01-01T00:10Z\n")
    words = {
        "query": ask(folder, COUNT, "--epsilon", "1"),
        "graph": ["graph", folder / "contacts.csv", "edges", "--nodes", "2", "--epsilon", "1"],
        "stream total": "stream total FILE --start 2026-01-01T00:00Z --every 1h --steps 2 --epsilon 1".replace(
            "FILE", str(folder / "arrivals.csv")
        ).split(),
    }[command]
    assert run(*words).exit_code == 0
    file = (
        elsewhere if place == "here" else folder if place == "beside the data" else tmp_path_factory.mktemp("x")
    ) / "ledger.toml"
    file.write_text("")
    if place == "in the environment":
        monkeypatch.setenv("SFUMATO_LEDGER", str(file))
    outcome = run(*words)
    assert outcome.exit_code == 1
    assert "ledger.toml, and no account to charge" in outcome.stderr
    assert "--account" in outcome.stderr
    assert "--no-ledger" in outcome.stderr
    kept_out = run(*words, "--no-ledger")
    assert kept_out.exit_code == 0, kept_out.stderr
    assert "ledger: none" in kept_out.stdout
    assert "say opposite things" in run(*words, "--no-ledger", "--account", "hospital").stderr
    if command != "query":
        assert run(*words, "--preview").exit_code == 0


def test_ctrl_c_while_the_engine_reads_ends_with_the_usual_words(run, folder, monkeypatch):
    """The engine turns the signal into an error of its own, as DuckDB does."""
    from sfumato.tables.store import TableStore

    def interrupted(*_):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        except KeyboardInterrupt:
            raise RuntimeError("Query interrupted") from None

    monkeypatch.setattr(TableStore, "read", interrupted)
    outcome = run(*ask(folder, COUNT, "--epsilon", "1"))
    assert outcome.exit_code == 130
    assert "sfumato: stopped. What was printed or written so far stands; nothing more was done." in outcome.stderr
