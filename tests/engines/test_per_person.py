"""DuckDB, PostgreSQL and Spark make the same row of each person: extremes, ties, and what is missing."""

import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from sfumato.engines.expressions import Named, Type, col
from sfumato.engines.per_person import beside_person, decimal_scale, per_person
from sfumato.engines.person_values import Fold, PersonValue
from sfumato.engines.sources import Source
from sfumato.engines.totals import brought_out
from sfumato.errors import InvalidInput, Unsupported
from tests.engines.loading import on

ENGINES = ["DuckDB", "PostgreSQL", "Spark"]
TEXTS = [None, "", "a", "A", "B", "b", "é", "e\u0301", "区", "\U0001f469", "ß", "Z", " "]
WHOLES = [None, 0, 1, -1, 7, 2**62, 2**63 - 1, -(2**63)]
DAYS = [None, date(1, 1, 1), date(2026, 2, 28), date(2026, 2, 28), date(9999, 12, 31)]
NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 0.2, 1e-320, -2.5, 1e300, 19.99, 5e-324]
LOW, HIGH = Fraction(-5), Fraction(30)
WIDE = (Fraction(-(2**63)), Fraction(2**63 - 1))
NAMES = ("person", "zip", "ward", "urgent", "day", "number")
ZIP, WARD, DAY, NUMBER, URGENT = (Named(column=name) for name in ("zip", "ward", "day", "number", "urgent"))
IS_URGENT = col("urgent") == True  # noqa: E712 - of a term
Place = Callable[[pa.Table, str], Source]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> Place:
    """Puts rows on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return lambda frame, name: on(engine, frame, name, url=url, session=session)


def rows() -> list[tuple[Any, ...]]:
    """Many persons with up to nine rows, in which all values meet each other; some rows of nobody."""
    found = []
    for number, person in enumerate([*(f"p{each}" for each in range(43)), None]):
        for step in range(number % 10):
            at = 13 * number + 7 * step
            found.append(
                (
                    person,
                    TEXTS[at % len(TEXTS)],
                    WHOLES[(at // 3) % len(WHOLES)],
                    (True, False, None)[at % 3],
                    DAYS[(at // 2) % len(DAYS)],
                    NUMBERS[(at * 5 + step) % len(NUMBERS)],
                )
            )
    return found


def framed(some: list[tuple[Any, ...]]) -> pa.Table:
    kinds = (pa.string(), pa.string(), pa.int64(), pa.bool_(), pa.date32(), pa.float64())
    columns = zip(*some, strict=True)
    return pa.table({name: pa.array(column, kind) for name, column, kind in zip(NAMES, columns, kinds, strict=True)})


VALUES = (
    PersonValue(name="n", fold=Fold.ROWS),
    PersonValue(name="urgent rows", fold=Fold.ROWS, where=IS_URGENT),
    PersonValue(name="zips", fold=Fold.DISTINCT, value=ZIP),
    PersonValue(name="days of urgent", fold=Fold.DISTINCT, value=DAY, where=IS_URGENT),
    PersonValue(name="wards", fold=Fold.SUM, value=WARD, low=LOW, high=HIGH),
    PersonValue(name="all wards", fold=Fold.SUM, value=WARD, low=WIDE[0], high=WIDE[1]),
    PersonValue(name="numbers", fold=Fold.SUM, value=NUMBER, low=LOW, high=HIGH),
    PersonValue(name="tiny numbers", fold=Fold.SUM, value=NUMBER, low=Fraction(0), high=Fraction(1, 2**800)),
    PersonValue(name="huge numbers", fold=Fold.SUM, value=NUMBER, low=Fraction(0), high=Fraction(2**900)),
    PersonValue(name="mean number", fold=Fold.MEAN, value=NUMBER, low=LOW, high=HIGH, where=IS_URGENT),
    PersonValue(name="mean ward", fold=Fold.MEAN, value=WARD, low=LOW, high=HIGH),
    PersonValue(name="least", fold=Fold.LEAST, value=NUMBER),
    PersonValue(name="latest", fold=Fold.GREATEST, value=DAY, where=IS_URGENT),
    PersonValue(name="greatest", fold=Fold.GREATEST, value=WARD),
    PersonValue(name="first zip", fold=Fold.FIRST, value=ZIP, by=DAY),
    PersonValue(name="first urgent", fold=Fold.FIRST, value=URGENT, by=DAY),
    PersonValue(name="last zip", fold=Fold.LAST, value=ZIP, by=WARD),
    PersonValue(name="last number", fold=Fold.LAST, value=NUMBER, by=ZIP, where=IS_URGENT),
    PersonValue(name="second zip", fold=Fold.FIRST, value=ZIP, by=DAY, place=2),
    PersonValue(name="third ward from the end", fold=Fold.LAST, value=WARD, by=WARD, place=3),
    PersonValue(name="ever", fold=Fold.ANY, where=col("number") > 1),
    PersonValue(name="always", fold=Fold.EVERY, where=col("number") > 1),
)


def present(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def key(value: Any) -> tuple[int, Any]:
    """The canonical order: what is missing last, text by its bytes."""
    if not present(value):
        return 1, b"" if isinstance(value, str) else 0
    return 0, value.encode() if isinstance(value, str) else value


def by_hand(some: list[dict[str, Any]], each: PersonValue, values: tuple[PersonValue, ...]) -> Any:
    """One value of one person, in plain Python."""
    holds = {
        None: lambda _: True,
        IS_URGENT: lambda row: row["urgent"] is True,
        VALUES[-1].where: lambda row: present(row["number"]) and row["number"] > 1,
    }[each.where]
    if each.fold is Fold.ANY:
        return any(map(holds, some))
    if each.fold is Fold.EVERY:
        return all(map(holds, some))
    some = [row for row in some if holds(row)]
    if each.fold is Fold.ROWS:
        return len(some)
    assert isinstance(each.value, Named)
    of = each.value.column
    if isinstance(each.by, Named):
        by = each.by.column
        same = [each.fold, each.by, each.where, each.place]
        alike = [one.value for one in values if [one.fold, one.by, one.where, one.place] == same]
        some = [row for row in some if present(row[by])]
        some.sort(key=lambda row: [key(row[one.column]) for one in alike if isinstance(one, Named)])
        some.sort(key=lambda row: key(row[by]), reverse=each.fold is Fold.LAST)
        at = each.place or 1
        chosen = some[at - 1][of] if len(some) >= at else None
        return chosen if present(chosen) else None
    held = [row[of] for row in some if present(row[of])]
    if each.fold is Fold.DISTINCT:
        return len(set(held))
    if not held:
        return None
    if each.fold is Fold.LEAST:
        return min(held)
    if each.fold is Fold.GREATEST:
        return max(held)
    return added(held, each)


def added(held: list[Any], each: PersonValue) -> Any:
    assert each.low is not None
    assert each.high is not None
    if all(isinstance(value, int) for value in held):
        total = sum(min(max(value, math.ceil(each.low)), math.floor(each.high)) for value in held)
        total = min(max(total, -(2**63)), 2**63 - 1)
        return total if each.fold is Fold.SUM else float(total) / len(held)
    scale = float(Fraction(10) ** decimal_scale(each.low, each.high))
    steps = 0
    for value in held:
        within = min(max(value, float(each.low)), float(each.high))
        if abs(within) < float(max(abs(each.low), abs(each.high))) * 2.0**-60:
            within = 0.0
        steps += math.floor(within * scale + 0.5)
    total = float(steps) / scale
    return total if each.fold is Fold.SUM else total / len(held)


def expected(some: list[tuple[Any, ...]], values: tuple[PersonValue, ...]) -> dict[str, dict[str, Any]]:
    persons: dict[str, list[dict[str, Any]]] = {}
    for row in some:
        if row[0] is not None:
            persons.setdefault(row[0], []).append(dict(zip(NAMES, row, strict=True)))
    return {
        person: {each.name: by_hand(own, each, values) for each in values} for person, own in sorted(persons.items())
    }


def found(table: Any) -> dict[str, dict[str, Any]]:
    columns = brought_out(table)
    people = columns.pop("person")
    made = {person: {name: column[at] for name, column in columns.items()} for at, person in enumerate(people)}
    assert len(made) == len(people), "two rows of one person"
    return dict(sorted(made.items()))


SOME = tuple(each for each in VALUES if each.name in ("zips", "all wards", "mean number", "last number", "second zip"))


@pytest.mark.parametrize("values", [SOME, pytest.param(VALUES, marks=pytest.mark.long)], ids=["some", "all"])
def test_every_engine_makes_the_row_that_is_worked_out_by_hand(place: Place, values: tuple[PersonValue, ...]) -> None:
    some = rows()
    with place(framed(some), "persons_one").opened() as table:
        made = found(per_person(table, person="person", where=None, values=values))
    wanted = expected(some, values)
    assert made.keys() == wanted.keys()
    for person, own in wanted.items():
        assert {
            name: repr(value + 0.0 if isinstance(value, float) else value) for name, value in made[person].items()
        } == {name: repr(value + 0.0 if isinstance(value, float) else value) for name, value in own.items()}, person


def test_the_order_in_which_rows_are_stored_decides_nothing() -> None:
    some = rows()
    for other in (some[::-1], some[1::2] + some[::2]):
        with Source(framed(other)).opened() as table:
            made = found(per_person(table, person="person", where=None, values=SOME))
        assert repr(made) == repr(found_of(some, SOME))


def found_of(some: list[tuple[Any, ...]], values: tuple[PersonValue, ...]) -> dict[str, dict[str, Any]]:
    with Source(framed(some)).opened() as table:
        return found(per_person(table, person="person", where=None, values=values))


def test_what_a_person_has_beside_a_row_is_the_same_everywhere(place: Place) -> None:
    """Text ids that differ in case alone are different persons, and nobody stands beside a row of nobody."""
    frame = pa.table({"person": ["a", "A", "a", None, "b"], "ward": pa.array([1, 2, 3, 4, 5], pa.int64())})
    with place(frame, "persons_beside").opened() as table:
        there = per_person(
            table, person="person", where=col("ward") < 5, values=(PersonValue(name="n", fold=Fold.ROWS),)
        )
        made = brought_out(beside_person(table, there, person="person", named="all"))
    pairs = zip(made["ward"], made["all.person"], made["all.n"], strict=True)
    assert sorted(pairs) == [(1, "a", 2), (2, "A", 1), (3, "a", 2), (4, None, None), (5, None, None)]


def test_values_and_orders_are_worked_out_together_on_the_embedded_engine() -> None:
    assert found_of(rows(), VALUES) == expected(rows(), VALUES)


def test_the_greatest_values_neither_fail_nor_wrap() -> None:
    """The sum of one person stays within 64 bits: it is held at the end, not refused."""
    step = PersonValue(name="x", fold=Fold.SUM, value=WARD, low=WIDE[0], high=WIDE[1])
    for value in (2**63 - 1, -(2**63)):
        frame = pa.table({"person": ["p"] * 5, "ward": pa.array([value] * 5, pa.int64())})
        with Source(frame).opened() as table:
            assert found(per_person(table, person="person", where=None, values=(step,))) == {"p": {"x": value}}


def test_sums_of_decimals_are_those_that_people_expect() -> None:
    frame = pa.table({"person": ["p"] * 10, "number": [0.1] * 10})
    step = PersonValue(name="x", fold=Fold.SUM, value=NUMBER, low=Fraction(0), high=Fraction(30000))
    with Source(frame).opened() as table:
        assert found(per_person(table, person="person", where=None, values=(step,))) == {"p": {"x": 1.0}}


@pytest.mark.parametrize(
    ("value", "error", "says"),
    [
        (PersonValue(name="x", fold=Fold.LEAST, value=ZIP), InvalidInput, "where whole numbers or numbers or dates"),
        (PersonValue(name="x", fold=Fold.SUM, value=ZIP, low=LOW, high=HIGH), InvalidInput, "needs numbers"),
        (PersonValue(name="x", fold=Fold.DISTINCT, value=NUMBER), InvalidInput, "does not compare exactly"),
        (PersonValue(name="x", fold=Fold.FIRST, value=ZIP, by=URGENT), InvalidInput, "truth value"),
        (PersonValue(name="x", fold=Fold.FIRST, value=Named(column="gone"), by=DAY), InvalidInput, "no column 'gone'"),
        (PersonValue(name="x", fold=Fold.GREATEST, value=Named(column="odd")), Unsupported, "not supported"),
    ],
    ids=str,
)
def test_what_does_not_fit_the_columns_is_refused_before_anything_is_read(
    value: PersonValue, error: type[Exception], says: str
) -> None:
    kinds = (Type.TEXT, Type.WHOLE, Type.TRUTH, Type.DATE, Type.NUMBER, Type.OTHER)
    columns = dict(zip(("zip", "ward", "urgent", "day", "number", "odd"), kinds, strict=True))
    with pytest.raises(error, match=says):
        value.type_in(columns)


def test_types_are_those_that_the_engine_makes() -> None:
    frame = framed(rows())
    with Source(frame).opened() as table:
        made = Source(per_person(table, person="person", where=None, values=VALUES).to_pyarrow()).columns()
    held = Source(frame).columns()
    assert made == {"person": Type.TEXT, **{each.name: each.type_in(held) for each in VALUES}}


@pytest.mark.parametrize(
    "said",
    [
        {"fold": Fold.ROWS, "value": ZIP},
        {"fold": Fold.SUM, "value": WARD},
        {"fold": Fold.SUM, "low": LOW, "high": HIGH},
        {"fold": Fold.FIRST, "value": ZIP},
        {"fold": Fold.LEAST, "value": WARD, "by": DAY},
        {"fold": Fold.ANY},
        {"fold": Fold.LEAST, "value": WARD, "place": 2},
        {"fold": Fold.FIRST, "value": WARD, "by": DAY, "place": 0},
        {"fold": Fold.LEAST, "value": WARD, "low": LOW, "high": HIGH},
        {"fold": Fold.SUM, "value": WARD, "low": HIGH, "high": LOW},
    ],
    ids=str,
)
def test_a_value_that_says_too_little_or_too_much_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        PersonValue(name="x", **said)
