"""The brute-force law of one row a person: what one unit moves once its rows were made into one, or stand beside it.

Every table is one of the laws of counts: visits of a few persons, one of whom has more rows than any limit, and a row
of nobody. Worlds never meet.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation, Unit, event
from sfumato.engines.counts import KeyColumn, Share, rows_by_cell
from sfumato.engines.expressions import Expression, Named, col
from sfumato.engines.joined import joined
from sfumato.engines.per_person import beside_person, per_person
from sfumato.engines.person_values import Fold, PersonValue
from sfumato.errors import InvalidInput, Refused
from sfumato.tables.joins import Join
from sfumato.tables.keys import Keys
from sfumato.tables.persons import ONE_ROW_A_PERSON, PerPerson, PersonJoin
from sfumato.tables.queries.count import Count
from tests.laws.neighbours import (
    Neighbours,
    Plan,
    Rows,
    Visit,
    around_couples,
    around_persons,
    around_records,
    owned,
    slack,
    stated,
    violations,
)
from tests.laws.plans import loaded, matrix
from tests.laws.scenarios import RELATIONS, SECRET, unit_of

pytestmark = pytest.mark.no_cover  # thousands of worlds: measuring coverage would double their time

DATA = Dataset(name="visits", edition="1")
LIMITS = [Limit(groups=groups, rows_per_group=rows) for groups, rows in ((1, 1), (2, 2))]
AGE, WARD, ZIP = Named(column="age"), Named(column="ward"), Named(column="zip")
VALUES = (
    PersonValue(name="n", fold=Fold.ROWS),
    PersonValue(name="urgent", fold=Fold.ANY, where=col("urgent") == True),  # noqa: E712 - of a term
    PersonValue(name="zip", fold=Fold.FIRST, value=ZIP, by=AGE),
    PersonValue(name="oldest", fold=Fold.GREATEST, value=AGE),
    PersonValue(name="total", fold=Fold.SUM, value=WARD, low=Fraction(0), high=Fraction(3)),
    PersonValue(name="wards", fold=Fold.DISTINCT, value=WARD),
)
ASKED: dict[str, tuple[tuple[Keys, ...], Expression | None]] = {
    "all": ((), None),
    "often": ((), col("n") >= 3),
    "by number": ((Keys(column="n", values=(1, 2, 3, 4)),), None),
    "by first place": ((Keys(column="zip", values=("a", "b")),), col("oldest") >= 10),
    "by ever and total": (
        (Keys(column="urgent", values=(False, True)), Keys(column="total", values=tuple(range(13)))),
        None,
    ),
    "by different wards": ((Keys(column="wards", values=(0, 1, 2)),), None),
}


def row(zip_code: str | None, ward: int | None = 1, age: int | None = 70, *, urgent: bool | None = True) -> Visit:
    return Visit(person=None, zip=zip_code, ward=ward, urgent=urgent, age=age)


@cache
def around(kind: str) -> Neighbours:
    base = (
        *owned("p", (row("a"), row("b", 2, 65), row("a", 3, 80, urgent=False)) * 2),
        *owned("q", (row("b", urgent=False), row(None, None, None))),
        *owned("r", (row("a", urgent=None),)),
        row("b"),
    )
    one: list[Rows] = [(row("a", ward, age),) for ward, age in product((1, 2), (5, 70))]
    sets = [(), *one, (row("b", urgent=False),), (row("a"), row("b", 2, 65)), (row("b"), row("a", 2, 65, urgent=False))]
    sets += [(row("a"),) * 3, (row("b", 3, None),) * 4, (row(None, None, None, urgent=None),)]
    sets += [tuple(row(zip_code, ward) for zip_code, ward in product("ab", (1, 2, 3)))]
    if kind == "record":
        return around_records(base, [*owned("p", (row("a"),)), *owned("x", (row("b"),)), *owned("q", (row("a", 2),))])
    if kind == "family":
        return around_couples(base, sets[::2], newcomers=("x", "y"))
    return around_persons(base, sets, newcomer="x")


def counted(
    made: Callable[[Neighbours], Any], keys: tuple[Keys, ...], where: Expression | None, limit: Limit | None
) -> Plan:
    """The counts of all worlds, from the plan that a release runs."""
    columns = tuple(KeyColumn(column=each.column, values=each.values) for each in keys)  # type: ignore[arg-type]
    share = None if limit is None else Share(column="person", limit=limit, secret=SECRET)

    @cache
    def plan(some: Neighbours) -> np.ndarray:
        found = rows_by_cell(made(some), where=where, keys=columns, share=share, world="world")
        return matrix(found, some, cells=int(np.prod([each.size for each in keys])))

    return plan


def one_row(some: Neighbours) -> Any:
    return per_person(loaded(some), person="person", where=None, values=VALUES, world="world")


def half(claim: Sensitivity) -> Sensitivity:
    """What a claim would be with every bound halved."""
    found = stated(claim)
    return Sensitivity.of(
        l0=max(1, int(found["l0"]) // 2),
        l1=found["l1"] / 2,
        l2_squared=found["l2 squared"] / 4,
        linf=found["linf"] / 2,
    )


@pytest.mark.parametrize("kind", ["user", pytest.param("family", marks=pytest.mark.long)])
def test_one_row_a_person_moves_one_cell_by_one(kind: str) -> None:
    """Whatever the limit of the table is: a person with six rows, far beyond it, is one row."""
    step = PerPerson(person="person", values=VALUES)
    for name, (keys, where) in ASKED.items():
        plan = counted(one_row, keys, where, ONE_ROW_A_PERSON)
        for relation in RELATIONS:
            query = Count(dataset=DATA, where=where, by=keys, joins=(step,))
            claim = query.sensitivity(unit_of(kind, relation), ONE_ROW_A_PERSON)
            assert violations(plan, claim, around=around(kind), relation=relation) == [], name
            if kind == "user":
                assert violations(plan, half(claim), around=around(kind), relation=relation) != [], name
                if keys:
                    assert slack(plan, claim, around=around(kind), relation=relation) == [], name


def test_the_row_of_one_person_never_depends_on_others() -> None:
    """Not only the counts: between neighbours, every row of every other person is the same."""
    found = one_row(around("user")).to_pyarrow().to_pylist()
    rows: dict[int, dict[str, Any]] = {}
    for each in found:
        world, person = each.pop("world"), each["person"]
        assert person not in rows.setdefault(world, {}), "two rows of one person"
        rows[world][person] = each
    for rest, plus in around("user").around:
        for world in plus:
            changed = {
                person
                for person in {*rows.get(rest, {}), *rows.get(world, {})}
                if rows.get(rest, {}).get(person) != rows.get(world, {}).get(person)
            }
            assert len(changed) <= 1


# ------------------------------------------------------------------------------------------- beside rows of the same

IN_ZIP = PerPerson(person="person", where=col("ward") == 2)
BESIDE = PersonJoin(dataset=DATA, name="within", steps=(IN_ZIP,))
MEMBER = ~col("within.person").isnull()


def beside(some: Neighbours) -> Any:
    """All rows, with whether their person was ever in ward 2."""
    rows = loaded(some)
    there = per_person(rows, person="person", where=IN_ZIP.where, values=(), world="world")
    return beside_person(rows, there, person="person", named="within", world="world")


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("where", [MEMBER, ~MEMBER, (col("age") < 66) | ~MEMBER], ids=["in", "not in", "or not in"])
def test_rows_of_persons_who_are_in_a_subquery_move_no_more_than_the_limit_says(
    limit: Limit, where: Expression
) -> None:
    keys = (Keys(column="zip", values=("a", "b")),)
    query = Count(dataset=DATA, where=where, by=keys, joins=(BESIDE,))
    plan = counted(beside, keys, where, limit)
    for relation in RELATIONS:
        claim = query.sensitivity(unit_of("user", relation), limit)
        assert violations(plan, claim, around=around("user"), relation=relation) == []
        assert violations(plan, half(claim), around=around("user"), relation=relation) != []


def test_no_row_is_lost_or_made_twice_beside_a_person() -> None:
    rows, made = loaded(around("user")), beside(around("user"))
    assert rows.count().to_pyarrow() == made.count().to_pyarrow()
    assert made.columns == (*rows.columns, "within.person")


def test_a_subquery_on_anything_but_the_person_is_caught_by_the_law_and_refused_at_the_door() -> None:
    """The broken twin: rows count if anyone was in ward 2 of the same place, so one person moves the rows of all."""

    def by_place(some: Neighbours) -> Any:
        rows = loaded(some)
        there = rows.filter(rows.ward == 2).select("world", "zip").distinct()
        return joined(rows, there, on=[("world", "world"), ("zip", "zip")], named="within")

    keys = (Keys(column="zip", values=("a", "b")),)
    query = Count(dataset=DATA, by=keys, joins=(BESIDE,))
    for relation in RELATIONS:
        claim = query.sensitivity(unit_of("user", relation), LIMITS[0])
        broken = counted(by_place, keys, None, LIMITS[0])
        assert violations(broken, claim, around=around("user"), relation=relation) != []
        other = PersonJoin(dataset=DATA, name="within", steps=(PerPerson(person="zip"),))
        with pytest.raises(Refused, match="persons are identified by 'person'"):
            Count(dataset=DATA, by=keys, joins=(other,)).sensitivity(unit_of("user", relation), LIMITS[0])


def test_under_single_rows_both_are_caught_by_the_law_and_refused_at_the_door() -> None:
    """One more row moves its person between two cells, and lets all rows of that person in or out."""
    plain = Count(dataset=DATA).sensitivity(unit_of("record", Relation.ADD_REMOVE), None)
    keys, _ = ASKED["by number"]
    by_number = Count(dataset=DATA, by=keys).sensitivity(unit_of("record", Relation.ADD_REMOVE), None)
    for broken, claim in (
        (counted(beside, (), MEMBER, None), plain),
        (counted(one_row, keys, None, None), by_number),
    ):
        assert violations(broken, claim, around=around("record"), relation=Relation.ADD_REMOVE) != []
    units: list[Unit] = [unit_of("record", Relation.ADD_REMOVE), event(relation="add/remove")]
    for step, unit in product((BESIDE, PerPerson(person="person")), units):
        with pytest.raises(Refused, match=r"where persons are protected.*sf\.user"):
            Count(dataset=DATA, joins=(step,)).sensitivity(unit, None)


def test_steps_that_could_give_a_person_several_rows_are_refused() -> None:
    labs = Join(dataset=Dataset(name="labs", edition="1"), on=(("person", "person"),), public=False)
    with pytest.raises(InvalidInput, match="may have several"):
        PersonJoin(dataset=DATA, name="within", steps=(PerPerson(person="person"), labs))
    with pytest.raises(InvalidInput, match="must have one row a person"):
        PersonJoin(dataset=DATA, name="within", steps=(labs,))
    with pytest.raises(InvalidInput, match="one a person already"):
        Count(dataset=DATA, joins=(PerPerson(person="person"),) * 2).sensitivity(
            unit_of("user", Relation.REPLACE), ONE_ROW_A_PERSON
        )
    with pytest.raises(InvalidInput, match="capital letters aside"):
        PerPerson(person="person", values=(PersonValue(name="Person", fold=Fold.ROWS),))


def test_steps_are_few_and_names_are_told_apart_by_every_engine() -> None:
    def nested(deep: int) -> PersonJoin:
        inner = () if deep == 0 else (nested(deep - 1),)
        return PersonJoin(dataset=DATA, name="within", steps=(*inner, IN_ZIP))

    assert nested(8).person == "person"
    with pytest.raises(InvalidInput, match="nested more than 8 deep"):
        nested(9)
    many = tuple(PersonJoin(dataset=DATA, name=f"within{place}", steps=(IN_ZIP,)) for place in range(30))
    with pytest.raises(InvalidInput, match="more than 50 steps"):
        Count(dataset=DATA, joins=many).sensitivity(unit_of("user", Relation.REPLACE), LIMITS[0])
    with pytest.raises(InvalidInput, match="more than 50 steps"):
        PersonJoin(dataset=DATA, name="all", steps=(*many, IN_ZIP))
    long = "x" * 63
    with pytest.raises(InvalidInput, match="63 bytes"):
        PerPerson(person="person", values=tuple(PersonValue(name=f"{long}{end}", fold=Fold.ROWS) for end in "ab"))
    with pytest.raises(InvalidInput, match="two joined tables have one name"):
        Count(dataset=DATA, joins=(BESIDE, BESIDE)).sensitivity(unit_of("user", Relation.REPLACE), LIMITS[0])
