"""Schemas: declared facts, checked where they are written; the same again after a round trip; drafted without a row."""

import os
import re
import tomllib
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.schema import schema as command
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.limits import Limit
from sfumato.core.units import Unit
from sfumato.engines import sources
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError, Unsupported
from sfumato.tables.schema import ColumnFacts, Schema
from sfumato.tables.schema_draft import draft
from tests.engines.test_sources import damage

LONG = os.environ.get("SFUMATO_LONG") == "1"

FILE = """
kind = "schema"
version = 1

[dataset]
name = "visits"
version = "2026-10"

[unit]
column = "patient_id"
number = 71518
population = 100000

[limit]
groups = 3
rows_per_group = 5

[columns.patient_id]
type = "text"

[columns.sbp]
type = "whole"
bounds = [80, 220]

[columns.weight]
type = "number"
bounds = [0.1, "400/3"]

[columns.zip]
type = "text"
keys = ["1010", "区"]

[columns."urgent or not"]
type = "truth"
keys = [true, false]

[columns.day]
type = "date"
keys = [2026-01-31, 0001-01-01]
"""
VISITS = Schema(
    name="visits",
    edition="2026-10",
    unit="patient_id",
    limit=Limit(groups=3, rows_per_group=5),
    n_units=71518,
    population=100_000,
    columns=(
        ColumnFacts(name="patient_id", type=Type.TEXT),
        ColumnFacts(name="sbp", type=Type.WHOLE, bounds=(Fraction(80), Fraction(220))),
        ColumnFacts(name="weight", type=Type.NUMBER, bounds=(Fraction(1, 10), Fraction(400, 3))),
        ColumnFacts(name="zip", type=Type.TEXT, keys=("1010", "区")),
        ColumnFacts(name="urgent or not", type=Type.TRUTH, keys=(True, False)),
        ColumnFacts(name="day", type=Type.DATE, keys=("2026-01-31", "0001-01-01")),
    ),
)
PERSON = sf.user("patient_id", relation="add/remove")


def test_a_file_is_read_as_it_is_written() -> None:
    assert Schema.from_toml(FILE) == VISITS
    assert VISITS.to_toml().split() == FILE.split()


def test_a_schema_in_the_words_of_a_vault() -> None:
    facts = VISITS.declaration(PERSON)
    assert facts == {
        "name": "visits",
        "version": "2026-10",
        "limit": Limit(groups=3, rows_per_group=5),
        "bounds": {"sbp": (80, 220), "weight": (Fraction(1, 10), Fraction(400, 3))},
        "keys": {
            "zip": ("1010", "区"),
            "urgent or not": (True, False),
            "day": (date(2026, 1, 31), date(1, 1, 1)),
        },
        "provenance": {},
        "zones": {},
    }
    assert VISITS.declaration(sf.record(relation="add/remove"))["limit"] is None
    assert VISITS.declaration(sf.family(3, "patient_id", relation="replace"))["limit"] == VISITS.limit
    assert list(VISITS.types) == ["patient_id", "sbp", "weight", "zip", "urgent or not", "day"]


def test_a_vault_takes_what_a_schema_declares() -> None:
    frame = pa.table({"patient_id": ["a", "b"], "zip": ["1010", None], "left": [1, 2]})
    columns = (VISITS.columns[0], VISITS.columns[3])
    schema = Schema(name="visits", edition="1", unit="patient_id", limit=VISITS.limit, columns=columns)
    vault = sf.Vault(unit=PERSON, budget=sf.Budget(epsilon=1), name="trial")
    table = vault.table(frame, **schema.declaration(PERSON))
    assert table.group_by("zip").count().release(epsilon=1).statement.query.size == 2
    assert Source(frame, schema.types).columns() == {"patient_id": Type.TEXT, "zip": Type.TEXT}


@pytest.mark.parametrize(
    ("unit", "error", "words"),
    [
        (sf.user("visit_id", relation="add/remove"), Refused, "persons by 'patient_id', and the vault protects user"),
        (sf.family(2, "visit_id", relation="replace"), Refused, "need not be the same people"),
    ],
)
def test_a_schema_about_other_persons_is_refused(unit: Unit, error: type[SfumatoError], words: str) -> None:
    with pytest.raises(error, match=words):
        VISITS.declaration(unit)


def test_a_declaration_that_lacks_something() -> None:
    bare = Schema(columns=(ColumnFacts(name="x", type=Type.TEXT),))
    with pytest.raises(NotDeclared, match="does not name its dataset"):
        bare.declaration(sf.record(relation="replace"))
    named = Schema(name="x", columns=bare.columns)
    assert named.declaration(sf.record(relation="replace"))["version"] is None
    with pytest.raises(InvalidInput, match="declares no column 'patient_id'"):
        named.declaration(PERSON)


# --------------------------------------------------------------------------------------------------------- round trips

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(lambda name: name.strip())
bounds = st.tuples(st.fractions(), st.fractions()).map(lambda pair: (min(pair), max(pair)))
wholes = st.integers(-(2**63), 2**63 - 1)


@st.composite
def columns(draw: st.DrawFn, name: str) -> ColumnFacts:
    kind = draw(st.sampled_from([kind for kind in Type if kind is not Type.OTHER]))
    values: dict[Type, st.SearchStrategy[Any]] = {
        Type.TEXT: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        Type.WHOLE: wholes,
        Type.TRUTH: st.booleans(),
        Type.DATE: st.dates().map(date.isoformat),
    }
    facts: dict[str, Any] = {}
    if kind in values:
        facts["keys"] = tuple(draw(st.lists(values[kind], max_size=4, unique=True)))
    if kind is Type.NUMBER:
        facts["bounds"] = draw(st.none() | bounds)
    if kind is Type.WHOLE:
        low, high = sorted(draw(st.tuples(wholes, wholes)))
        facts["bounds"] = draw(st.none() | st.just((Fraction(max(low, 1 - 2**63)), Fraction(max(high, 1 - 2**63)))))
    return ColumnFacts(name=name, type=kind, **facts)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    called = draw(st.lists(names, min_size=1, max_size=4, unique_by=str.casefold))
    found = [draw(columns(name)) for name in called]
    units = [column.name for column in found if column.type in (Type.TEXT, Type.WHOLE)]
    unit = draw(st.sampled_from([None, *units]))
    facts: dict[str, Any] = {"population": draw(st.none() | st.integers(10**6, 10**9))}
    if unit is not None:
        facts["n_units"] = draw(st.none() | st.integers(1, 10**6))
        facts["limit"] = draw(st.none() | st.builds(Limit, groups=st.integers(1, 9), rows_per_group=st.integers(1, 9)))
    return Schema(
        name=draw(st.none() | names), edition=draw(st.none() | names), unit=unit, columns=tuple(found), **facts
    )


@pytest.mark.long
@settings(max_examples=150 if LONG else 40, deadline=None)
@given(schema=schemas())
def test_what_is_written_is_read_again(schema: Schema) -> None:
    assert Schema.from_toml(schema.to_toml()) == schema
    registry = Registry((Schema, ColumnFacts, Limit))
    assert registry.decode(parse(canonical(encode(schema)))) == schema


def test_a_schema_on_disk(tmp_path: Path) -> None:
    assert Schema.load(VISITS.save(tmp_path / "visits.toml")) == VISITS
    assert Schema.load(str(tmp_path / "visits.toml")) == VISITS


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[limit]", "[limits]", "the file has an unknown field 'limits'.*Known are cells, columns, dataset"),
        ('name = "visits"', 'title = "visits"', "dataset has an unknown field 'title'"),
        ("bounds = [80, 220]", "bound = [80, 220]", r"columns\.sbp has an unknown field 'bound'"),
        ("bounds = [80, 220]", "bounds = [220, 80]", r"columns\.sbp: the bounds .* wrong way round: 220 is above 80"),
        ("bounds = [80, 220]", "bounds = [nan, 220]", "not a finite number"),
        ("bounds = [80, 220]", "bounds = [80, inf]", "not a finite number"),
        ("bounds = [80, 220]", "bounds = [80]", "two numbers, such as"),
        ("bounds = [80, 220]", "bounds = 80", "two numbers, such as"),
        ("bounds = [80, 220]", 'bounds = ["many", 220]', "is not a number"),
        ("bounds = [80, 220]", "bounds = [true, 220]", "bool"),
        ("bounds = [80, 220]", "bounds = [80.5, 220]", "must be whole numbers"),
        ("bounds = [80, 220]", "bounds = [80, 1e30]", "beyond what a column can hold"),
        ('keys = ["1010", "区"]', "bounds = [0, 1]", r"columns\.zip: column 'zip' holds texts, which have no bounds"),
        ('keys = ["1010", "区"]', 'keys = ["1010", "1010"]', "key 2 of column 'zip' is listed already"),
        ('keys = ["1010", "区"]', 'keys = ["1010", 7]', "key 2 of column 'zip' is not of its type.*Its keys are texts"),
        ('keys = ["1010", "区"]', "keys = []", "at least one value"),
        ('keys = ["1010", "区"]', 'keys = "1010"', "must be a list"),
        ("keys = [true, false]", "keys = [1, 0]", "Its keys are true and false"),
        ("keys = [2026-01-31, 0001-01-01]", 'keys = ["31.1.2026"]', "dates such as 2026-01-31"),
        ("keys = [2026-01-31, 0001-01-01]", "keys = [2026-01-31T10:00:00]", "dates such as 2026-01-31"),
        ('bounds = [0.1, "400/3"]', "keys = [0.5]", "numbers, which cannot be listed as keys"),
        ('type = "truth"', 'type = "boolean"', "must be one of text, whole, number, truth, date"),
        ('type = "truth"', 'type = ["text"]', "must be one of"),
        ('type = "truth"\n', "", "must be one of"),
        ('column = "patient_id"', 'column = "ssn"', "unit column 'ssn' is not one of the columns"),
        ('column = "patient_id"', 'column = "weight"', "must hold text or whole numbers"),
        ('column = "patient_id"', "column = 7", r"unit\.column must be a text"),
        ('column = "patient_id"\n', "", "without the column that identifies persons"),
        ("groups = 3\n", "", "limit needs both"),
        ("groups = 3", "groups = 0", "limit: groups = 0 must be a whole number"),
        ("number = 71518", "number = 100001", "more persons"),
        ("number = 71518", "number = -1", "number = -1 must be a whole number"),
        ("population = 100000", 'population = "many"', "population = 'many' must be a whole number"),
        ('name = "visits"', 'name = ""', "name of a dataset"),
        ('kind = "schema"', 'kind = "certificate"', "another kind of file"),
        ("version = 1\n", "", "version must be a whole number"),
        ("version = 1\n", "version = 2\n", "newer than this code"),
        ("[columns.sbp]", "[columns.Patient_ID]", "the same name, capital letters aside"),
        ("[columns.sbp]", "[columns.zip]", "not TOML"),
        ("[columns.sbp]", "[columns", "not TOML"),
        ("[limit]", "limit = 3\n[other]", "not TOML|unknown field|must be a table"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in FILE
    path = tmp_path / "visits.toml"
    path.write_text(FILE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SfumatoError, match=rf"(?s)visits\.toml: .*({words})"):
        Schema.load(path)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "could not be read"), (b"\xff\xfe", "not a text in UTF-8"), (b"", 'kind = "schema"')]
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"x\.toml.*{words}"):
        Schema.load(tmp_path / "x.toml")


def test_a_schema_of_no_columns_and_columns_of_no_type() -> None:
    with pytest.raises(InvalidInput, match="at least one column"):
        Schema(columns=())
    with pytest.raises(InvalidInput, match="must be a table"):
        Schema.from_toml('kind = "schema"\nversion = 1')
    with pytest.raises(InvalidInput, match="text, whole, number, truth, date or time"):
        ColumnFacts(name="x", type=Type.OTHER)
    with pytest.raises(InvalidInput, match="name of a column"):
        ColumnFacts(name="", type=Type.TEXT)


@pytest.mark.long
def test_ten_million_keys_are_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"lists 10,000,000 keys, more than 1,000,000.*coarser"):
        ColumnFacts(name="zip", type=Type.WHOLE, keys=tuple(range(10**7)))


# -------------------------------------------------------------------------------------------------------------- drafts

ROWS = pa.table(
    {
        "patient_id": ["Zaphod-4711"],
        "age": [42],
        "weight": [80.5],
        "urgent": [True],
        "day": pa.array([date(2026, 1, 31)]),
        "photo": [b"x"],
        'it\'s "odd"\n# column = "age"': ["x"],
        "visit_id": [4711],
    }
)


def test_a_draft_is_written_without_reading_a_row(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(ROWS, path)
    damage(path)
    text = draft(path)
    schema = Schema.from_toml(text)
    assert schema.name == "visits"
    assert schema.types == {
        "patient_id": Type.TEXT,
        "age": Type.WHOLE,
        "weight": Type.NUMBER,
        "urgent": Type.TRUTH,
        "day": Type.DATE,
        'it\'s "odd"\n# column = "age"': Type.TEXT,
        "visit_id": Type.WHOLE,
    }
    assert (schema.unit, schema.limit, schema.bounds, schema.keys) == (None, None, {}, {})
    assert '# column = "patient_id"  # or "visit_id"\n' in text
    assert "# [columns.photo]" in text
    assert "Zaphod" not in text


def test_every_hint_of_a_draft_can_be_filled_in() -> None:
    """Taking the # away from each line that looks like TOML gives a schema that is accepted."""
    text = draft(ROWS.select(["patient_id", "age", "weight", "urgent", "day"]))
    filled = re.sub(
        r"^# (?=(\[limit\]|version =|column =|population|number|groups|rows_|bounds|keys))", "", text, flags=re.M
    )
    filled = filled.replace('["…", "…"]', '["a", "b"]').replace("bounds = [0, 100]", "bounds = [0, 9.0]", 0)
    schema = Schema.from_toml(filled)
    assert schema.unit == "patient_id"
    assert schema.limit == Limit(groups=1, rows_per_group=1)
    assert set(schema.keys) == {"patient_id", "age", "urgent", "day"}
    assert set(schema.bounds) == {"age", "weight"}


def test_a_draft_from_a_csv_file_takes_its_first_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(b"id;age;\xe9\n\xff\xfe not even text \n")
    text = draft(path)
    assert Schema.from_toml(text).types == dict.fromkeys(["id", "age", "\ufffd"], Type.TEXT)
    assert "the file does not say" in text
    assert "not even" not in text


@pytest.mark.parametrize("content", [b"", b"\n", b"a,,b\n", None])
def test_a_csv_file_without_a_header_has_no_draft(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "visits.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"'visits\.csv'"):
        draft(path)


def test_a_draft_from_a_database(tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS id")
    with psycopg.connect(postgres_url) as server:
        server.execute("DROP TABLE IF EXISTS drafted; CREATE TABLE drafted AS SELECT 1 AS id")
    for data, name in (
        (sources.duckdb(path, table="main.visits"), "visits"),
        (f"{postgres_url}?table=public.drafted", "drafted"),
    ):
        text = draft(data)
        assert Schema.from_toml(text).types == {"id": Type.WHOLE}
        assert Schema.from_toml(text).name == name
        assert "pass" not in text


def test_data_that_no_schema_could_hold_has_no_draft() -> None:
    with pytest.raises(InvalidInput, match="at least one column"):
        draft(pa.table({"x": [b"1"]}))
    with pytest.raises(Unsupported, match="not a source"):
        draft(7)


# ------------------------------------------------------------------------------------------------------------- command


def run(*words: object) -> Any:
    app = typer.Typer()
    app.add_typer(command, name="schema")
    app.command("other")(lambda: None)
    return CliRunner().invoke(app, ["schema", "draft", *map(str, words)])


def test_the_command_writes_a_draft_and_overwrites_nothing(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    out = tmp_path / "visits.toml"
    first = run(tmp_path / "visits.parquet", "-o", out)
    assert first.exit_code == 0, first.output
    assert "written:" in first.output
    assert Schema.load(out).name == "visits"
    before = out.read_text("utf-8")
    again = run(tmp_path / "visits.parquet", "-o", out)
    assert isinstance(again.exception, InvalidInput)
    assert "not overwritten" in str(again.exception)
    assert out.read_text("utf-8") == before


def test_the_command_prints_a_draft(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "clinic.duckdb") as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS id")
    printed = run(tmp_path / "clinic.duckdb", "--table", "visits")
    assert printed.exit_code == 0, printed.output
    assert tomllib.loads(printed.output)["columns"] == {"id": {"type": "whole"}}
    told = run(tmp_path / "clinic.duckdb", "--table", "visits", "--json")
    assert '"id": "whole number"' in told.output
