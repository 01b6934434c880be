"""One row a person: the same questions in Python and in SQL, and what DuckDB says of the same rows.

So large an ε leaves no noise: a count is wrong with probability below 1e-400.
"""

from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.reports.verify import verify
from sfumato.tables.persons import PerPerson, are_single
from sfumato.tables.table import Table

duckdb = pytest.importorskip("duckdb")

DAYS = [date(2026, 1, day) for day in range(1, 13)]
STAYS = pa.table(
    {
        "id": ["a", "a", "a", "a", "a", "b", "b", "c", "d", "d", None, None],
        "ward": ["x", "y", "x", "x", None, "y", "y", "x", None, "x", "y", "y"],
        "day": pa.array([DAYS[4], DAYS[1], DAYS[2], DAYS[3], DAYS[5], DAYS[0], DAYS[9], DAYS[6], *DAYS[7:11]]),
        "cost": pa.array([1.25, 2.5, None, 4.0, 8.0, 10.25, 20.5, 3.0, None, None, 5.0, 6.0]),
        "beds": pa.array([1, 2, 3, 1, 2, 4, 4, 1, None, 2, 3, 3], pa.int64()),
        "urgent": pa.array([True, False, None, False, False, None, None, True, False, None, True, True]),
    }
)
PEOPLE = pa.table({"id": ["a", "b", "c", "d", "e", None], "sex": ["F", "M", "F", "F", "M", "F"]})


def asked(unit: Any = None, limit: sf.Limit | None = None) -> dict[str, Table]:
    unit = unit or sf.user("id", relation="add/remove")
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6), name="persons")
    limit = limit or sf.Limit(groups=3, rows_per_group=5)
    keys, bounds = {"ward": ["x", "y"], "beds": [1, 2, 3, 4]}, {"cost": (0, 32), "beds": (0, 4)}
    return {
        "stays": vault.table(STAYS, name="stays", version="1", limit=limit, keys=keys, bounds=bounds),
        "people": vault.table(PEOPLE, name="people", version="1", limit=limit, keys={"sex": ["F", "M"]}),
    }


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    return asked()


@cache
def engine() -> Any:
    """DuckDB with the rows that have a person: rows of nobody never count here."""
    connection = duckdb.connect()
    for name, rows in (("stays", STAYS), ("people", PEOPLE)):
        connection.register(f"all_{name}", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM all_{name} WHERE id IS NOT NULL")  # noqa: S608
    return connection


def theirs(text: str) -> list[tuple[Any, ...]]:
    return list(engine().execute(text).fetchall())


COUNTED = [
    "SELECT COUNT(*) FROM (SELECT id FROM stays GROUP BY id HAVING COUNT(*) >= 3) AS p",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) AS p WHERE n BETWEEN 2 AND 4",
    "SELECT COUNT(*) FROM (SELECT id FROM stays WHERE ward = 'x' GROUP BY id HAVING COUNT(*) >= 2) AS p",
    "SELECT COUNT(*) FROM (SELECT DISTINCT id FROM stays WHERE urgent) AS p",
    "SELECT COUNT(*) FROM (SELECT id AS who, COUNT(*) + 0 AS v, MAX(beds) AS value1 FROM stays GROUP BY who) AS p "
    "WHERE v > value1",
    "WITH p AS (SELECT id, SUM(cost) AS total FROM stays GROUP BY 1) SELECT COUNT(*) FROM p WHERE total > 15.75",
    "SELECT COUNT(*) FROM (SELECT id, SUM(cost) AS total FROM stays GROUP BY id) AS p WHERE total IS NULL",
    "SELECT COUNT(*) FROM (SELECT id, AVG(cost) AS m FROM stays GROUP BY id) AS p WHERE m >= 3.9375",
    "SELECT COUNT(*) FROM (SELECT id, MAX(beds) - MIN(beds) AS span FROM stays GROUP BY id) AS p WHERE span >= 1",
    "SELECT COUNT(*) FROM (SELECT id FROM stays GROUP BY id HAVING MAX(day) > DATE '2026-01-08') AS p",
    "SELECT COUNT(*) FROM (SELECT id, BOOL_OR(urgent) AS ever FROM stays GROUP BY id) AS p WHERE NOT ever",
    "SELECT COUNT(*) FROM (SELECT id, BOOL_OR(urgent) AS ever FROM stays GROUP BY id) AS p WHERE ever IS NULL",
    "SELECT COUNT(*) FROM (SELECT id, BOOL_AND(urgent) AS ever FROM stays GROUP BY id) AS p WHERE ever",
    "SELECT COUNT(*) FROM (SELECT id, BOOL_OR(beds IS NULL) AS gone FROM stays GROUP BY id) AS p WHERE NOT gone",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(DISTINCT ward) AS w FROM stays GROUP BY id) AS p WHERE w = 1",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(cost) AS k FROM stays GROUP BY id) AS p WHERE k = 0 OR k > 3",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) FILTER (WHERE beds > 1) AS k FROM stays GROUP BY id) AS p WHERE k > 1",
    "SELECT COUNT(*) FROM (SELECT id, ARG_MIN(ward, day) AS w FROM stays GROUP BY id) AS p WHERE w = 'y'",
    "SELECT COUNT(*) FROM (SELECT id, MAX_BY(ward, day) AS w FROM stays GROUP BY id) AS p WHERE w = 'x'",
    "SELECT COUNT(*) FROM (SELECT id, FIRST(ward ORDER BY day DESC) AS w FROM stays GROUP BY id) AS p WHERE w = 'x'",
    "SELECT COUNT(*) FROM (SELECT id, FIRST(ward ORDER BY day DESC) AS w FROM stays GROUP BY id) AS p WHERE w = 'y'",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (id) id, ward FROM stays ORDER BY id, day DESC) AS p WHERE ward IS NULL",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) * 10 + MIN(beds) AS v FROM stays GROUP BY id HAVING SUM(cost) > 1) AS p "
    "WHERE v < 30",
    "SELECT COUNT(*) FROM stays WHERE id IN (SELECT id FROM stays WHERE ward = 'y')",
    "SELECT COUNT(*) FROM stays WHERE id NOT IN (SELECT id FROM stays WHERE ward = 'y')",
    "SELECT COUNT(*) FROM stays WHERE NOT (id IN (SELECT id FROM stays WHERE ward = 'y') AND beds > 2)",
    "SELECT COUNT(*) FROM stays WHERE beds = 1 OR id IN (SELECT id FROM stays GROUP BY id HAVING COUNT(*) = 2)",
    "SELECT COUNT(*) FROM stays WHERE id IN (SELECT id FROM stays WHERE urgent) "
    "AND id NOT IN (SELECT id FROM stays WHERE ward = 'y')",
    "SELECT COUNT(*) FROM stays WHERE id IN (SELECT id FROM stays WHERE id IN (SELECT id FROM people WHERE sex = 'F'))",
    "SELECT COUNT(*) FROM stays AS s WHERE EXISTS (SELECT 1 FROM people AS p WHERE p.id = s.id AND p.sex = 'F')",
    "SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT * FROM stays s WHERE s.id = p.id)",
    "SELECT COUNT(*) FROM people WHERE id NOT IN (SELECT id FROM stays)",
    "SELECT COUNT(*) FROM stays JOIN (SELECT id, MIN(day) AS d FROM stays GROUP BY id) AS f ON stays.id = f.id "
    "WHERE DATE_DIFF('day', f.d, stays.day) > 1",
    "WITH f AS (SELECT id, MIN(day) AS d FROM stays GROUP BY id) SELECT COUNT(DISTINCT stays.id) FROM stays "
    "JOIN f USING (id) WHERE stays.day > f.d",
    "SELECT COUNT(*) FROM people LEFT JOIN (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) AS c "
    "ON people.id = c.id WHERE COALESCE(c.n, 0) < 2",
    "SELECT COUNT(*) FROM people LEFT JOIN (SELECT id, COALESCE(SUM(cost), 0) AS c FROM stays GROUP BY id) AS t "
    "ON people.id = t.id WHERE COALESCE(t.c, 5) > 4",
    "SELECT COUNT(*) FROM people LEFT JOIN (SELECT id, COUNT(*) > 1 AS often FROM stays GROUP BY id) AS t "
    "ON people.id = t.id WHERE NOT t.often",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) AS p JOIN people ON p.id = people.id "
    "WHERE n >= 2 AND people.sex = 'F'",
    "SELECT COUNT(*) FROM (SELECT s.id, COUNT(*) AS n FROM stays AS s JOIN people AS p ON s.id = p.id "
    "WHERE p.sex = 'F' GROUP BY s.id) AS c WHERE n >= 2",
    "SELECT COUNT(*) FILTER (WHERE id IN (SELECT id FROM stays WHERE ward = 'y')) FROM stays",
    "WITH o AS (SELECT id FROM stays GROUP BY id HAVING COUNT(*) > 1) SELECT COUNT(*) FROM stays WHERE id IN "
    "(SELECT id FROM o)",
]


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=pytest.mark.long) if place % 3 else text for place, text in enumerate(COUNTED)]
)
def test_questions_about_persons_mean_what_they_mean_elsewhere(tables: dict[str, Table], text: str) -> None:
    stays, people = tables["stays"], tables["people"]
    try:
        question = stays.sql(text, people)
    except InvalidInput:  # the question is about the other table
        question = people.sql(text, stays)
    release = question.release(epsilon=300)
    values = release.values if len(release.values) == 1 else release[question.query.names[0]].values
    assert [(round(value),) for value in values] == theirs(text)


def test_groups_means_and_medians_of_persons(tables: dict[str, Table]) -> None:
    stays = tables["stays"]
    text = "SELECT n, COUNT(*) AS persons FROM (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) AS p GROUP BY n"
    release = stays.sql(text).release(epsilon=1000)
    found = dict(zip(release.statement.query.labels()["n"], release["persons"].values, strict=True))
    assert {n: count for n, count in found.items() if count} == dict(theirs(text)) == {5: 1, 2: 2, 1: 1}
    assert list(found) == list(range(1, 16))  # the limit of the table: three groups of five rows
    text = (
        "SELECT LEAST(n, 2) AS n, COUNT(*) AS k FROM (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) AS p GROUP BY 1"
    )
    release = stays.sql(text).release(epsilon=1000)
    assert dict(zip((1, 2), release["k"].values, strict=True)) == dict(theirs(text))
    text = "SELECT AVG(n) AS mean FROM (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) AS p"
    assert abs(stays.sql(text).release(epsilon=5000)["mean"].values[0] - theirs(text)[0][0]) < 0.1
    text = "SELECT MEDIAN(total) FROM (SELECT id, SUM(cost) AS total FROM stays GROUP BY id) AS p"
    chosen = stays.per_person(total=sf.sum("cost")).quantiles("total", ["1/2"]).release(epsilon=1000)
    assert abs(chosen["median"].values[0] - theirs(text)[0][0]) < 0.01
    ((low, high),) = stays.sql(text).release(epsilon=1000)["median"].interval(of="data")
    assert low <= theirs(text.replace("MEDIAN(total)", "QUANTILE_DISC(total, 0.5)"))[0][0] <= high


def test_the_time_from_the_first_to_the_second_row(tables: dict[str, Table]) -> None:
    """NTH_VALUE is no aggregate in DuckDB: the days between are 1 for a, 9 for b, 1 for d; c came once."""
    text = (
        "SELECT COUNT(*) FROM (SELECT id, MIN(day) AS one, NTH_VALUE(day, 2) AS two FROM stays GROUP BY id) AS p "
        "WHERE DATE_DIFF('day', one, two) = {days}"
    )
    counts = [tables["stays"].sql(text.format(days=days)).release(epsilon=300).values[0] for days in (1, 2, 9)]
    assert counts == [2, 0, 1]
    second = tables["stays"].per_person(ward=sf.first("ward", by="day", place=2)).where(sf.col("ward").isnull())
    assert second.count().release(epsilon=300).values == (1,)  # of c, who came once; d's second row has a ward


def test_the_limit_is_outside_and_cuts_no_rows_inside() -> None:
    """A limit of one row would make "at least five stays" nobody."""
    stays = asked(limit=sf.Limit(groups=1, rows_per_group=1))["stays"]
    often = stays.per_person(n=sf.count()).where(sf.col("n") >= 5)
    assert often.count().release(epsilon=1000).values == (1,)
    member = stays.with_persons(often=often).where(~sf.col("often.id").isnull())
    assert member.count().release(epsilon=1000).values == (1,)  # of five rows the limit lets one count


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n, MIN(day) AS d, SUM(cost) AS c FROM stays WHERE beds > 1 "
            "GROUP BY id) AS p WHERE n > 2",
            lambda stays: (
                stays.where(sf.col("beds") > 1)
                .per_person(n=sf.count(), d=sf.min("day"), c=sf.sum("cost"))
                .where(sf.col("n") > 2)
                .count()
            ),
        ),
        (
            "SELECT w, COUNT(*) FROM (SELECT id, FIRST(ward ORDER BY day) AS w FROM stays GROUP BY id) AS p GROUP BY w",
            lambda stays: stays.per_person(w=sf.first("ward", by="day")).group_by("w").count(),
        ),
        (
            "SELECT COUNT(*) FROM stays WHERE id IN (SELECT id FROM stays WHERE ward = 'y')",
            lambda stays: (
                stays.with_persons(within1=stays.where(sf.col("ward") == "y").per_person())
                .where(~sf.col("within1.id").isnull())
                .count()
            ),
        ),
    ],
)
def test_sql_becomes_the_question_of_the_methods(tables: dict[str, Table], text: str, made: Any) -> None:
    assert tables["stays"].sql(text).query == made(tables["stays"]).query


INNER = [
    ("SELECT ward FROM stays GROUP BY ward", Unsupported, "only by the person is: GROUP BY id"),
    ("SELECT id, ward FROM stays GROUP BY id, ward", Unsupported, "only by the person"),
    ("SELECT id, ward FROM stays GROUP BY id", InvalidInput, "MIN_BY"),
    ("SELECT DISTINCT ward FROM stays", Unsupported, "DISTINCT"),
    ("SELECT DISTINCT ON (ward) ward FROM stays ORDER BY ward", Unsupported, "DISTINCT ON"),
    ("SELECT DISTINCT ON (id) ward FROM stays ORDER BY id", InvalidInput, "needs an order"),
    ("SELECT id FROM stays GROUP BY id ORDER BY id", Unsupported, "ORDER BY"),
    ("SELECT id, FIRST(ward) AS w FROM stays GROUP BY id", InvalidInput, "need an order"),
    ("SELECT id, VAR_POP(beds) AS v FROM stays GROUP BY id", Unsupported, "VAR_POP of the rows"),
    ("SELECT id, COUNT(*) OVER () AS v FROM stays GROUP BY id", Unsupported, "OVER"),
    ("SELECT id FROM stays GROUP BY id HAVING COUNT(*) > (SELECT COUNT(*) FROM stays)", Unsupported, "subquery"),
    ("SELECT id, COUNT(*) AS n, MIN(day) AS n FROM stays GROUP BY id", InvalidInput, "twice"),
    ("SELECT id, COUNT(*) AS n FROM (SELECT id FROM stays GROUP BY id) AS q GROUP BY id", InvalidInput, "already"),
    ("SELECT id, SUM(day) AS s FROM stays GROUP BY id", NotDeclared, "does not follow"),
    ("SELECT id AS ward, COUNT(*) AS n FROM stays GROUP BY ward", Unsupported, "only by the person"),
    ("SELECT COUNT(*) AS id FROM stays GROUP BY id", InvalidInput, "one name"),
]
OUTER = [
    ("WHERE EXISTS (SELECT COUNT(*) FROM people p WHERE p.id = stays.id)", Unsupported, "an aggregate in EXISTS"),
    ("WHERE ward IN (SELECT ward FROM stays)", Unsupported, "only persons"),
    ("WHERE id IN (SELECT ward FROM stays)", Unsupported, "only persons"),
    ("WHERE id IN (SELECT id, ward FROM stays)", Unsupported, "only persons"),
    ("WHERE id IN (SELECT id FROM secrets)", InvalidInput, "no table 'secrets'"),
    ("WHERE EXISTS (SELECT 1 FROM people WHERE sex = 'F')", Unsupported, "same person"),
    ("WHERE EXISTS (SELECT 1 FROM people p WHERE p.sex = stays.ward)", Unsupported, "same person"),
    ("JOIN (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) c ON stays.beds = c.n", Unsupported, "only on the person"),
    ("RIGHT JOIN (SELECT id FROM stays GROUP BY id) c ON stays.id = c.id", Unsupported, "RIGHT"),
    (
        "JOIN (SELECT id FROM stays GROUP BY id) c ON stays.id = c.id WHERE c.n > 1",
        InvalidInput,
        "no column 'n' in 'c'",
    ),
]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        *((f"SELECT COUNT(*) FROM ({text}) AS p", error, says) for text, error, says in INNER),  # noqa: S608
        *((f"SELECT COUNT(*) FROM stays {text}", error, says) for text, error, says in OUTER),  # noqa: S608
        ("SELECT MAX(n) FROM (SELECT id, COUNT(*) AS n FROM stays GROUP BY id) AS p", Unsupported, "MAX"),
        (
            "SELECT d, COUNT(*) FROM (SELECT id, MIN(day) AS d FROM stays GROUP BY id) AS p GROUP BY d",
            NotDeclared,
            "'d'",
        ),
    ],
)
def test_anything_that_is_not_about_one_person_is_refused(
    tables: dict[str, Table], text: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        tables["stays"].sql(text, tables["people"])


@pytest.mark.parametrize("unit", [sf.record(relation="add/remove")])
def test_where_no_persons_are_protected_it_is_refused_with_what_to_do(unit: Any) -> None:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=1), name="rows")
    stays = vault.table(STAYS, name="stays", version="1")
    for ask in (
        lambda: stays.per_person(n=sf.count()),
        lambda: stays.sql("SELECT COUNT(*) FROM (SELECT id FROM stays GROUP BY id) AS p"),
        lambda: stays.sql("SELECT COUNT(*) FROM stays WHERE id IN (SELECT id FROM stays)"),
    ):
        with pytest.raises(Refused, match=r"where persons are protected.*record, add/remove.*sf\.user\('patient_id'"):
            ask()


def test_refusals_of_the_methods_say_what_to_do(tables: dict[str, Table]) -> None:
    stays, one = tables["stays"], tables["stays"].per_person(n=sf.count())
    with pytest.raises(InvalidInput, match="one row a person already"):
        one.per_person()
    with pytest.raises(InvalidInput, match="neither grouped"):
        stays.group_by("ward").per_person()
    with pytest.raises(InvalidInput, match=r"takes sf\.count\(\)"):
        stays.per_person(v=sf.variance("beds"))
    with pytest.raises(InvalidInput, match=r"use it in per_person"):
        stays.agg(v=sf.min("beds"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="with one row a person"):
        stays.with_persons(other=stays)
    with pytest.raises(InvalidInput, match=r"by with_persons"):
        stays.join(one, on="id")
    with pytest.raises(NotDeclared, match="does not follow from declared bounds"):
        stays.per_person(v=sf.sum("day"))
    wide = asked(limit=sf.Limit(groups=100, rows_per_group=100))["stays"].per_person(n=sf.count())
    with pytest.raises(NotDeclared, match=r"from 1 to 10,000.*sf\.least.*LEAST\(n, 10\).*with_keys\(n=range"):
        wide.group_by("n")
    assert wide.group_by(m=sf.least(sf.col("n"), 3)).by[0].values == (1, 2, 3)
    assert wide.with_keys(n=range(1, 4)).group_by("n").by[0].values == (1, 2, 3)


def test_the_price_is_that_of_one_row_whatever_the_limit(tables: dict[str, Table]) -> None:
    for limit in (sf.Limit(groups=1, rows_per_group=1), sf.Limit(groups=50, rows_per_group=70)):
        one = asked(limit=limit)["stays"].per_person(n=sf.count())
        moved = one.count().preview(epsilon=1).sensitivity
        assert moved.l1 is not None
        assert moved.l1.value == 1
    family = asked(unit=sf.family(3, "id", relation="add/remove"))["stays"].per_person(n=sf.count())
    moved = family.count().preview(epsilon=1).sensitivity
    assert moved.l1 is not None
    assert moved.l1.value == 3
    assert tables["stays"].per_person(n=sf.count()).bounds == {"n": (Fraction(1), Fraction(15))}


def test_a_join_behind_one_row_a_person_is_held_to_one_row_again() -> None:
    """Nothing is kept back where nobody can have two rows; where a join could give more, one counts."""
    rows = pa.table({"id": [1, 1, 1, 2], "ward": ["a", "b", "b", "a"]})
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="wards")
    limit = sf.Limit(groups=2, rows_per_group=3)
    stays, labs = (vault.table(rows, name=n, version="1", limit=limit, keys={"ward": ["a", "b"]}) for n in ("s", "l"))
    made = stays.per_person(n=sf.count())
    joined = made.join(labs, on="id")
    assert are_single(made.joins)
    assert not are_single(joined.joins)
    assert joined.count().release(epsilon=10**4).values == (2,)
    assert sum(joined.group_by("l.ward").count().release(epsilon=10**4).values) == 2
    assert made.group_by("n").count().release(epsilon=10**4).values[:3] == (1, 0, 1)


def test_both_datasets_are_charged_and_closed_together(tables: dict[str, Table]) -> None:
    text = "SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM stays)"
    people, stays = tables["people"], tables["stays"]
    query = people.sql(text, stays).query
    store = people._gate._stores["tables"] if hasattr(people._gate, "_stores") else None  # type: ignore[attr-defined]
    assert store is not None
    assert [each.name for each in store.private(query)] == ["people", "stays"]


def test_a_certificate_states_the_step_and_verifies_and_says_it_in_words(tables: dict[str, Table]) -> None:
    stays = tables["stays"]
    one = stays.where(sf.col("beds") >= 1).per_person(
        n=sf.count(),
        first=sf.first("ward", by="day"),
        total=sf.sum("cost"),
        ever=sf.any(sf.col("urgent") == True),  # noqa: E712
    )
    release = one.where(sf.col("n") >= 2).group_by("first").count().release(epsilon=1)
    assert isinstance(release.statement.query.joins[0], PerPerson)
    assert release.statement.limit == sf.Limit(groups=1, rows_per_group=1)
    assert verify(release.certificate.document).consistent
    english, chinese = release.explain("en"), release.explain("zh")
    for words in (
        "made into one row a person",
        "n is the number of rows",
        "first is ward in the first row by day",
        "total is the sum of cost",
        "Each person counts as one row at most",
    ):
        assert words in english
    assert "每人合并为一行" in chinese
    assert "按 day 排序的首行中的 ward" in chinese
    beside = (
        stays.with_persons(all=stays.per_person(n=sf.count())).where(sf.col("all.n") >= 2).count().release(epsilon=1)
    )
    assert "Beside each row stands what other rows of the same person say: all, one row a person of" in beside.explain(
        "en"
    )


def test_an_aggregate_with_a_subquery_can_be_written_again_in_having_and_order(tables: dict[str, Table]) -> None:
    """It is the same aggregate, asked for once; a subquery in HAVING outside of FILTER stays refused."""
    kept = "COUNT(*) FILTER (WHERE id IN (SELECT id FROM stays WHERE ward = 'y'))"
    text = "SELECT ward, {0} AS n FROM stays GROUP BY ward HAVING {1} > 1 ORDER BY {1} DESC"
    again, alias = (tables["stays"].sql(text.format(kept, word)) for word in (kept, "n"))
    assert (again.query, again.view) == (alias.query, alias.view)
    with pytest.raises(Unsupported):
        tables["stays"].sql("SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward HAVING id IN (SELECT id FROM stays)")


def test_one_row_made_of_what_a_join_leaves_is_said_to_be_that() -> None:
    """The sides of a private join are held to their limits: "all rows of that person" would be untrue behind it."""
    rows = pa.table({"id": [1, 1, 1, 2], "ward": ["a", "b", "b", "a"]})
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10), name="wards")
    limit = sf.Limit(groups=1, rows_per_group=3)
    stays, labs = (vault.table(rows, name=name, version="1", limit=limit) for name in ("stays", "labs"))
    whole = stays.per_person(n=sf.count()).count().release(epsilon=1)
    cut = stays.join(labs, on="id").per_person(n=sf.count()).count().release(epsilon=1)
    for told, there in ((whole, True), (cut, False)):
        assert ("all rows of that person:" in told.explain("en")) is there
        assert ("that the limits of the joined tables leave" in told.explain("en")) is not there
        assert ("由该人在所连接各表的上限以内的记录合并而成" in told.explain("zh")) is not there
