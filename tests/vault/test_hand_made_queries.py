"""An adversary writes query documents by hand and sends them to the vault: refused before anything is charged."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.engines.expressions import col
from sfumato.tables.clamped import Clamped
from sfumato.tables.joins import Join
from sfumato.tables.keys import Keys
from sfumato.tables.measures.person_count import PersonCount
from sfumato.tables.measures.total import Total
from sfumato.tables.public import PublicTable
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.contributions import Contributions
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.gram import GramMatrix
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.spline_counts import SplineCounts
from sfumato.tables.queries.top import TopGroups
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.tables.question_parts import TABLE_QUERIES
from sfumato.vault import Vault
from tests.engines.test_sources import all_words_of, damage

SPEND = Budget(epsilon=1, delta="1/1000000")
NOTHING = sf.Budget(epsilon=0)
VISITS, LABS, HOSPITALS, DOUBLE = (
    Dataset(name=name, edition="1") for name in ("visits", "labs", "hospitals", "double")
)
ROWS = pa.table({"id": [1, 1, 2, 3], "hosp": ["a", "b", "a", "c"], "day": [1, 2, 1, 3]})
TESTS = pa.table({"id": [1, 1, 2, 4], "hosp": ["a", "a", "b", "c"], "result": [1.0, 2.0, 3.0, 9.0]})
LIMIT = sf.Limit(groups=2, rows_per_group=2)
PLACES = pa.table({"hosp": ["a", "b"], "region": ["N", "S"]})
CONTENT = PublicTable.of(PLACES, HOSPITALS).content


def vault_for(unit: Any) -> Vault:
    """Two private tables and two public ones, one of which has a key twice."""
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=100, delta="1/1000"), name="trial", population=100)
    limit = None if unit == sf.record(relation="add/remove") else LIMIT
    vault.table(ROWS, name="visits", version="1", limit=limit, keys={"hosp": ["a", "b"]}, bounds={"day": (0, 5)})
    vault.table(TESTS, name="labs", version="1", limit=limit)
    vault.public(PLACES, name="hospitals")
    vault.public(pa.table({"hosp": ["a", "a"], "region": ["N", "S"]}), name="double")
    return vault


@pytest.fixture
def vault() -> Vault:
    return vault_for(sf.user("id", relation="add/remove"))


def queries(**changes: Any) -> list[Any]:
    """One query of each kind."""
    hosp = Keys(column="hosp", values=("a", "b"))
    day = Clamped(value=col("day").node, low=Fraction(0), high=Fraction(5))
    made = [
        Count(dataset=VISITS, by=(hosp,)),
        Aggregate(dataset=VISITS, measures=(PersonCount(name="persons"),), by=(hosp,)),
        Quantiles(dataset=VISITS, of=day, levels=(Fraction(1, 2),), by=(hosp,)),
        PartitionSelection(dataset=VISITS, over=("hosp",)),
        TopGroups(dataset=VISITS, by=(hosp,), choices=1),
        Marginals(dataset=VISITS, tables=((hosp,),)),
        Contributions(dataset=VISITS, most=4, by=(hosp,)),
        LimitSuggestion(dataset=VISITS, most=4, spends=(Fraction(1),), by=(hosp,)),
        Magnitudes(dataset=VISITS, of=Clamped(value=col("day").node, low=Fraction(-8), high=Fraction(8))),
        LayeredCount(dataset=VISITS, within=2, uncut_to=4, by=(hosp,)),
        GramMatrix(dataset=VISITS, outcome=day, factors=(hosp,), terms=((), ("hosp",))),
        SplineCounts(dataset=VISITS, numbers=(day,), pieces=2, by=(hosp,)),
        WeightedMarginals(dataset=VISITS, by=(hosp,), tables=((0,),), weights=(3,)),
    ]
    return [replace(query, **changes) for query in made]


def test_every_kind_of_query_is_tried() -> None:
    assert {type(query) for query in queries()} == set(TABLE_QUERIES)


def refused(vault: Vault, query: Any, error: type[Exception], words: str) -> None:
    """The query is refused wherever it is sent, and nothing is opened, charged or closed."""
    for ask in (
        lambda: vault.release(query, SPEND),
        lambda: vault.release(query, SPEND, fresh=True),
        lambda: vault.preview(query, SPEND),
        lambda: vault.epsilon_for(query, margin=1, confidence="0.95", delta="1/1000000"),
    ):
        with pytest.raises(error, match=words) as caught:
            ask()
        assert "nothing was" in str(caught.value).lower()
    assert vault.spent == NOTHING
    assert vault._ledger._closed == set()


JOINS: list[tuple[str, Join, type[Exception], str]] = [
    (
        "private as public",
        Join(dataset=LABS, on=(("id", "id"),), public=True),
        errors.InvalidInput,
        "no dataset 'labs'",
    ),
    (
        "itself as public",
        Join(dataset=VISITS, on=(("id", "id"),), public=True),
        errors.InvalidInput,
        "no dataset 'visits'",
    ),
    (
        "public as private",
        Join(dataset=HOSPITALS, on=(("id", "id"),), public=False),
        errors.InvalidInput,
        "no dataset 'hospitals'",
    ),
    (
        "another version",
        Join(dataset=replace(HOSPITALS, edition="2"), on=(("hosp", "hosp"),), public=True),
        errors.InvalidInput,
        "'hospitals' version '2'",
    ),
    ("a key twice", Join(dataset=DOUBLE, on=(("hosp", "hosp"),), public=True), errors.InvalidInput, "more than once"),
    (
        "no such column there",
        Join(dataset=HOSPITALS, on=(("hosp", "id"),), public=True),
        errors.InvalidInput,
        "has no column 'id'",
    ),
    (
        "without its content",
        Join(dataset=HOSPITALS, on=(("hosp", "hosp"),), public=True),
        errors.Refused,
        "its content is another",
    ),
    (
        "another content",
        Join(dataset=HOSPITALS, on=(("hosp", "hosp"),), public=True, content="0" * 32),
        errors.Refused,
        "its content is another",
    ),
    ("not the person", Join(dataset=LABS, on=(("hosp", "hosp"),), public=False), errors.Refused, "the same 'id'"),
    ("another's person", Join(dataset=LABS, on=(("day", "id"),), public=False), errors.Refused, "the same 'id'"),
    ("the person here", Join(dataset=LABS, on=(("id", "hosp"),), public=False), errors.Refused, "the same 'id'"),
]


@pytest.mark.parametrize(("join", "error", "words"), [case[1:] for case in JOINS], ids=[case[0] for case in JOINS])
def test_a_join_that_is_not_what_it_says_is_refused_in_every_query(
    vault: Vault, join: Join, error: type[Exception], words: str
) -> None:
    for query in queries(joins=(join,)):
        refused(vault, query, error, words)
    # Behind a join that is allowed it is no better.
    allowed = Join(dataset=HOSPITALS, on=(("hosp", "hosp"),), public=True, content=CONTENT)
    if join.dataset.name != "hospitals":
        refused(vault, Count(dataset=VISITS, joins=(allowed, join)), error, words)


def test_single_rows_are_never_joined_with_private_ones() -> None:
    vault = vault_for(sf.record(relation="add/remove"))
    for query in queries(joins=(Join(dataset=LABS, on=(("id", "id"),), public=False),)):
        refused(vault, query, errors.Refused, "one row could meet any number of others")


@pytest.mark.parametrize("name", ["hospitals", "labs"])
def test_two_joined_tables_have_two_names(vault: Vault, name: str) -> None:
    on = (("hosp", "hosp"),) if name == "hospitals" else (("id", "id"),)
    join = Join(dataset=Dataset(name=name, edition="1"), on=on, public=name == "hospitals")
    join = replace(join, content=CONTENT if join.public else None)
    for query in queries(joins=(join, join)):
        refused(vault, query, errors.InvalidInput, "two joined tables have one name")


def test_a_subclass_of_a_query_is_refused_whatever_it_says(vault: Vault) -> None:
    for query in queries():

        @dataclass(frozen=True, kw_only=True)
        class Modest(type(query)):  # type: ignore[misc]
            def sensitivity(self, unit: object, limit: object) -> Sensitivity:
                return Sensitivity.of(l0=1, l1="1/1000", l2_squared="1/1000", linf="1/1000")

        held = {field.name: getattr(query, field.name) for field in fields(query)}
        refused(vault, Modest(**held), errors.Unsupported, "cannot answer Modest")


def test_a_subclass_inside_a_query_is_refused_as_well(vault: Vault) -> None:
    """Each of these would be charged for less than it moves, or join what must not be joined."""

    class Few(Keys):
        __slots__ = ()
        size = property(lambda _: 1)  # type: ignore[assignment]

    class Everything(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return True

    class Sometimes(Join):
        __slots__ = ()
        public = property(lambda _: True)  # type: ignore[assignment]

    class Narrow(Clamped):
        __slots__ = ()
        width = property(lambda _: Fraction(1, 1000))  # type: ignore[assignment]

    narrow = object.__new__(Narrow)
    for name, value in (("value", col("day").node), ("low", Fraction(0)), ("high", Fraction(5))):
        object.__setattr__(narrow, name, value)
    sometimes = object.__new__(Sometimes)
    for name, value in (("dataset", LABS), ("on", (("hosp", "hosp"),))):
        object.__setattr__(sometimes, name, value)
    on = ((Everything("hosp"), Everything("hosp")),)
    for query, words in (
        (Count(dataset=VISITS, by=(Few(column="hosp", values=("a", "b", "c")),)), "a Few in it"),
        (Count(dataset=VISITS, joins=(Join(dataset=LABS, on=on, public=False),)), "a Everything in it"),
        (Count(dataset=VISITS, joins=(sometimes,)), "a Sometimes in it"),
        (Aggregate(dataset=VISITS, measures=(Total(name="days", of=narrow),)), "a Narrow in it"),
        (Count(dataset=VISITS, by=[Keys(column="hosp", values=("a",))]), "a list in it"),  # type: ignore[arg-type]
    ):
        refused(vault, query, errors.Unsupported, words)


@pytest.mark.parametrize(
    "foreign",
    [object(), None, "SELECT 1", 7, Keys(column="hosp", values=("a",))],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_query_is_refused(vault: Vault, foreign: Any) -> None:
    refused(vault, foreign, errors.Unsupported, f"cannot answer {type(foreign).__name__}")


@pytest.mark.parametrize("name", ["scale", "mechanism", "epsilon", "sensitivity", "noise"])
def test_a_query_has_no_field_for_its_noise(name: str) -> None:
    for query in queries():
        with pytest.raises(TypeError):
            replace(query, **{name: 1})


def test_a_public_number_that_nobody_declared_loosens_nothing(vault: Vault) -> None:
    """Under add/remove it is refused; under replace the claim is that of a replaced row, whatever the number says."""
    day = Clamped(value=col("day").node, low=Fraction(0), high=Fraction(5))
    query = Aggregate(dataset=VISITS, measures=(Total(name="days", of=day),), number=10**6)
    refused(vault, query, errors.Refused, "was not declared")
    unit = sf.user("id", relation="replace")
    claims = {
        replace(query, number=number).sensitivity(unit, sf.Limit(groups=1, rows_per_group=1)) for number in (1, 10**6)
    }
    assert len(claims) == 1


# --------------------------------------------------------------------------- what errors and stored answers tell


@pytest.mark.few(2)
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("many", [0, 1, 500])
def test_how_many_keys_were_considered_is_never_told(many: int, counted: bool) -> None:
    """Keys of one person each are never shown at this δ; the answer is the same for none and for many of them."""
    vault = sf.Vault(
        unit=sf.user("id", relation="add/remove"),
        budget=sf.Budget(epsilon=100, delta="1/1000"),
        name="trial",
        population=100,
    )
    rows = pa.table(
        {"id": pa.array(range(many), pa.int64()), "code": pa.array([f"K{key}" for key in range(many)], pa.string())}
    )
    table = vault.table(rows, name="codes", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    release = table.find_keys("code", counted=counted).release(epsilon=1, delta=1e-15)
    assert release.statement.found == ()
    assert release.values == ()
    assert release.to_arrow().num_rows == 0
    text = release.certificate.to_json()
    assert "K0" not in text
    assert "K499" not in text


@pytest.mark.parametrize("counted", [True, False])
def test_an_engine_that_fails_says_the_same_whatever_keys_it_met(counted: bool, tmp_path: Path) -> None:
    said = []
    for many in (3, 500):
        path = tmp_path / f"{many}.parquet"
        pq.write_table(pa.table({"id": range(many), "code": [f"K{key}" for key in range(many)]}), path)
        damage(path)
        vault = vault_for(sf.user("id", relation="add/remove"))
        table = vault.table(path, name="codes", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
        with pytest.raises(errors.EngineFailed, match="the engine stopped while it read 'codes'") as caught:
            table.find_keys("code", counted=counted).release(epsilon=1, delta=1e-15)
        said.append(str(caught.value))
        assert "K0" not in all_words_of(caught.value)
        assert vault.spent.epsilon == 1
    assert said[0] == said[1]


def test_a_stored_answer_belongs_to_its_joins(vault: Vault) -> None:
    hospitals = Join(dataset=HOSPITALS, on=(("hosp", "hosp"),), public=True, content=CONTENT)
    labs = Join(dataset=LABS, on=(("id", "id"),), public=False)
    asked = [
        (),
        (hospitals,),
        (labs,),
        (hospitals, labs),
        (labs, hospitals),
        (replace(labs, on=(*labs.on, *hospitals.on)),),
    ]
    for joins in asked:
        assert not vault.release(Count(dataset=VISITS, joins=joins), SPEND).repeated
    for joins in asked:
        assert vault.release(Count(dataset=VISITS, joins=joins), SPEND).repeated
    assert vault.spent.epsilon == len(asked)


def test_a_closed_dataset_is_closed_for_every_join(tmp_path: Path) -> None:
    vault = vault_for(sf.user("id", relation="add/remove"))
    path = tmp_path / "notes.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "hosp": ["a", "b", "c"]}), path)
    damage(path)
    vault.table(path, name="notes", version="1", limit=LIMIT)
    notes = Dataset(name="notes", edition="1")
    beside = Join(dataset=notes, on=(("id", "id"),), public=False)
    spend = Budget(epsilon=1)
    with pytest.raises(errors.EngineFailed, match="charge of ε = 1 is kept"):
        vault.release(Count(dataset=VISITS, joins=(beside,)), spend)
    assert vault.spent == sf.Budget(epsilon=1)
    asked: list[Callable[[], object]] = [
        lambda: vault.release(Count(dataset=VISITS, joins=(beside,)), spend),
        lambda: vault.release(Count(dataset=VISITS), spend),  # either of the two may have failed
        lambda: vault.release(Count(dataset=notes), spend),
        lambda: vault.release(Count(dataset=LABS, joins=(beside,)), spend),
        lambda: vault.release(
            Count(dataset=LABS, joins=(Join(dataset=VISITS, on=(("id", "id"),), public=False),)), spend
        ),
    ]
    for ask in asked:
        with pytest.raises(errors.Refused, match="was closed after its engine failed"):
            ask()
    assert vault.spent == sf.Budget(epsilon=1)
    assert not vault.release(Count(dataset=LABS), spend).repeated  # this one never failed


def test_tables_that_no_engine_reads_together_are_refused_before_the_charge(vault: Vault, tmp_path: Path) -> None:
    import duckdb

    from sfumato.engines import sources

    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE far AS SELECT 1 AS id")
    vault.table(sources.duckdb(path, table="far"), name="far", version="1", limit=LIMIT)
    join = Join(dataset=Dataset(name="far", edition="1"), on=(("id", "id"),), public=False)
    for query in queries(joins=(join,)):
        if isinstance(query, LayeredCount):  # takes no private join, wherever the tables lie
            refused(vault, query, errors.Refused, "so no count of them is uncut")
            continue
        if isinstance(query, Contributions | LimitSuggestion | Magnitudes):
            refused(vault, query, errors.Refused, "in a join with a private table these multiply")
            continue
        with pytest.raises(errors.Unsupported, match=r"do not lie in one place.*nothing was spent"):
            vault.release(query, SPEND)
    assert vault.spent == NOTHING
    assert vault._ledger._closed == set()


def test_columns_of_one_name_are_refused_before_the_charge() -> None:
    """An engine takes capital letters for small ones, and would read one column for the other."""
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    rows = pa.table({"id": [1], "hosp": ["a"], "labs.Result": [1.0]})
    visits = vault.table(rows, name="visits", version="1", limit=LIMIT)
    labs = vault.table(TESTS, name="labs", version="1", limit=LIMIT)
    one, two = (vault.public(pa.table({"hosp": ["a"], "x": [1]}), name=name) for name in ("h", "H"))
    for joined in (visits.join(labs, on="id"), visits.join(one, on="hosp").join(two, on="hosp")):
        with pytest.raises(errors.InvalidInput, match=r"a second column .*capital letters aside"):
            joined.count().release(epsilon=1)
    assert vault.spent == NOTHING
