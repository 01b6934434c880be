"""The brute-force law of persons with their rows: one person, with all rows in all tables, moves no more."""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.sensitivity import L0, L1, L2, LInf, Sensitivity
from sfumato.core.units import Relation
from sfumato.engines import marginal_counts as engine_part
from sfumato.synthesis.related_rows import RelatedShape
from sfumato.tables.keys import Keys
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.tables.related import RelatedSynthesis
from tests.laws.neighbours import Neighbours, around_persons, slack, violations
from tests.laws.scenarios import RELATIONS

pytestmark = pytest.mark.no_cover

MOST = 3
WINGS = {"A": "north", "B": "south", "X": "south"}
ONE = sf.Limit(groups=1, rows_per_group=1)


class Row(NamedTuple):
    """A row of the persons, which has a sex, or of the stays, which has a day."""

    person: str | None
    sex: str | None = None
    day: int | None = None
    ward: str | None = None
    cost: float | None = None
    stay: bool = False


def stay(day: int | None, ward: str | None, cost: float | None = 1.0) -> Row:
    return Row(None, day=day, ward=ward, cost=cost, stay=True)


MAN, WOMAN, NOBODY = Row(None, sex="M"), Row(None, sex="F"), Row(None)
STAYS = (
    (),
    (stay(1, "A"),),
    (stay(1, "B", 9.0), stay(2, "A")),
    (stay(2, "A", 9.0), stay(1, "B"), stay(3, "B")),
    tuple(stay(day, "A") for day in range(40)),  # far more than the first three
    tuple(stay(day, "B", 9.0) for day in range(7)),
    (stay(None, "A"), stay(1, None), stay(2, "X"), stay(3, "A", None), stay(4, "B")),  # one of them counts
    (stay(5, "A"), stay(5, "B"), stay(5, "B", 9.0), stay(5, "A", 9.0)),  # on one day
)
PERSONS = ((MAN,), (WOMAN,), (NOBODY,), (), (MAN, WOMAN), (MAN,) * 5)
SETS = [tuple(one + two) for one, two in product(PERSONS, STAYS)]
TABLE = (
    *(row._replace(person="ö0") for row in (WOMAN, *STAYS[2])),
    *(row._replace(person="1") for row in (MAN, *STAYS[4])),
)


@cache
def neighbours() -> Neighbours:
    return around_persons(TABLE, SETS, newcomer="2")  # type: ignore[arg-type]


def tables(relation: str, hierarchies: dict[str, Any]) -> tuple[Any, Any, int]:
    """A vault, with the persons and the stays of all worlds in it; a person of another world is another person."""
    persons, stays = [], []
    for world, rows in enumerate(neighbours().worlds):
        for row in rows:
            of = f"{world}·{row.person}"  # type: ignore[attr-defined]
            if row.stay:  # type: ignore[attr-defined]
                stays.append((of, row.day, row.ward, row.cost))  # type: ignore[attr-defined]
            else:
                persons.append((of, world, row.sex))  # type: ignore[attr-defined]
    unit = sf.user("id", relation=relation)
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=1), name="trial")
    above = pa.table(dict(zip(("id", "world", "sex"), map(list, zip(*persons, strict=True)), strict=True)))
    below = pa.table(dict(zip(("id", "day", "ward", "cost"), map(list, zip(*stays, strict=True)), strict=True)))
    people = vault.table(above, name="people", version="1", keys={"sex": ["F", "M"]}, limit=ONE)
    rows = vault.table(below, name="raw", version="1", keys={"ward": ["A", "B"]}, bounds={"cost": (0, 10)})
    child = sf.ChildRows(rows, order="day", most=MOST, follow=["ward"], bins={"cost": 2}, hierarchies=hierarchies)
    return vault, people.related_synthesis({"stays": child}), len(neighbours().worlds)


def counted(
    relation: str, *, with_weights: bool = True, hierarchies: dict[str, Any] | None = None
) -> tuple[WeightedMarginals, np.ndarray, RelatedShape]:
    """The exact numbers of all worlds, from one reading: the world is one column more in every table."""
    vault, asked, worlds = tables(relation, hierarchies or {})
    assert isinstance(asked, RelatedSynthesis)
    query = asked.question(epsilon=1).query
    assert isinstance(query, WeightedMarginals)
    world = Keys(column="world", values=tuple(range(worlds)))
    everywhere = replace(
        query,
        by=(*query.by, world),
        tables=tuple((*some, len(query.by)) for some in query.tables),
        weights=query.weights if with_weights else (1,) * len(query.weights),
    )
    numbers = np.array(vault._stores["tables"].read(everywhere))
    return query, numbers.reshape(-1, worlds).T, asked.shape


@pytest.mark.claim("S1-16")
@pytest.mark.parametrize("hierarchies", [{}, {"ward": WINGS}], ids=["wards", "wards in wings"])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_no_person_moves_the_tables_further_than_claimed_and_some_as_far(
    relation: Relation, hierarchies: dict[str, Any]
) -> None:
    query, sums, _ = counted(relation.value, hierarchies=hierarchies)
    claim = query.sensitivity(sf.user("id", relation=relation.value), ONE)
    assert claim.l2 is not None
    times = 1 if relation is Relation.ADD_REMOVE else 2
    assert claim.l2.squared == times * sum(weight**2 for weight in query.weights)  # whatever the number of stays
    assert violations(lambda _: sums, claim, around=neighbours(), relation=relation) == []
    loose = slack(lambda _: sums, claim, around=neighbours(), relation=relation)
    assert [it for it in loose if not it.startswith("l0")] == []


def test_a_person_with_two_rows_in_the_persons_is_found_out_where_the_limit_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_part, "few_rows", lambda rows, **_: rows)
    query, sums, _ = counted("add/remove")
    claim = query.sensitivity(sf.user("id", relation="add/remove"), ONE)
    assert violations(lambda _: sums, claim, around=neighbours(), relation=Relation.ADD_REMOVE) != []


def test_rows_that_are_added_up_move_by_the_limit_and_not_by_its_root() -> None:
    """The same tables added up over a person's rows: l2 = L√k, and the wrong claim √(L·k) is found out.

    Noise that is added up with them has the same size as noise for L√k: measuring row by row loses nothing.
    """
    query, sums, shape = counted("add/remove", with_weights=False)
    ends = np.cumsum([0, *query.cells])
    pooled = []
    for column, above in product(range(2), range(shape.top)):
        parts = []
        for row in range(1, MOST + 1):
            table = query.tables.index((above, shape.place(0, row, column)))
            counts = sums[:, ends[table] : ends[table + 1]].reshape(len(sums), shape.sizes[above], -1)
            parts.append(counts[:, :, :-1].reshape(len(sums), -1))  # but for those without such a row
        pooled.append(np.sum(parts, axis=0))
    moved = np.concatenate(pooled, axis=1)
    tables = len(pooled)

    def claimed(l2_squared: int) -> Sensitivity:
        return Sensitivity(l0=L0(moved.shape[1]), l1=L1(MOST * tables), l2=L2(l2_squared), linf=LInf(MOST))

    right, wrong = claimed(MOST**2 * tables), claimed(MOST * tables)
    assert violations(lambda _: moved, right, around=neighbours(), relation=Relation.ADD_REMOVE) == []
    assert violations(lambda _: moved, wrong, around=neighbours(), relation=Relation.ADD_REMOVE) != []


def test_what_is_counted_of_a_person_is_as_by_hand() -> None:
    """How many stays count, and which wards the first of them are in; days in order, undeclared values left out."""
    query, sums, shape = counted("add/remove", with_weights=False)
    ends = np.cumsum([0, *query.cells])
    assert shape.top == 2
    number = query.tables.index((0, 1))
    steps = query.tables.index((shape.place(0, 1, 0), shape.place(0, 2, 0)))
    for world, rows in enumerate(neighbours().worlds):
        by_number, by_step = np.zeros((2, MOST + 1), dtype=int), np.zeros((3, 3), dtype=int)
        twice = False
        for person in {row.person for row in rows}:
            own = [row for row in rows if row.person == person]
            sexes = {row.sex for row in own if not row.stay} - {None}  # type: ignore[attr-defined]
            twice = twice or len(sexes) > 1
            if len(sexes) != 1:
                continue
            stays = [
                row
                for row in own
                if row.stay and row.day is not None and row.ward in ("A", "B") and row.cost is not None  # type: ignore[attr-defined]
            ]
            wards = [row.ward for row in sorted(stays, key=lambda it: (it.day, it.ward))]  # type: ignore[attr-defined]
            by_number["FM".index(sexes.pop()), min(MOST, len(wards))] += 1
            one, two = (("AB".index(wards[place]) if place < len(wards) else 2) for place in (0, 1))
            by_step[one, two] += 1
        if not twice:  # of two rows one counts, by chance
            assert sums[world, ends[number] : ends[number + 1]].tolist() == by_number.ravel().tolist()
            assert sums[world, ends[steps] : ends[steps + 1]].tolist() == by_step.ravel().tolist()
