"""How far one unit moves what the queries beside counts and measures ask for, written out by hand."""

from fractions import Fraction
from itertools import product

import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, family, record, user
from sfumato.engines.expressions import col
from sfumato.errors import Refused
from sfumato.tables.clamped import Clamped
from sfumato.tables.joins import Join
from sfumato.tables.keys import Keys
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.top import TopGroups

pytestmark = pytest.mark.kills

DATA = Dataset(name="visits", edition="1")
OF = Clamped(value=col("x").node, low=Fraction(0), high=Fraction(1))
LIMITS = [(1, 1), (1, 3), (2, 1), (3, 2)]
ADD, REPLACE = "add/remove", "replace"


def keys(size: int, name: str = "zip") -> Keys:
    return Keys(column=name, values=tuple(range(size)))


def units(relation: str, groups: int, rows: int) -> list[tuple[Unit, Limit | None, int, int, int]]:
    """A unit and its limit, with groups, rows and members."""
    limit = Limit(groups=groups, rows_per_group=rows)
    return [
        (record(relation=relation), None, 1, 1, 1),
        (user("id", relation=relation), limit, groups, rows, 1),
        (family(2, "id", relation=relation), limit, groups, rows, 2),
    ]


CASES = [(relation, *case) for relation, pair in product((ADD, REPLACE), LIMITS) for case in units(relation, *pair)]


@pytest.mark.few(36)
@pytest.mark.parametrize(("relation", "unit", "limit", "groups", "rows", "members"), CASES)
@pytest.mark.parametrize("size", [None, 2, 5])
@pytest.mark.parametrize("levels", [(Fraction(3, 4),), (Fraction(1, 4), Fraction(1, 2))])
def test_quantiles(
    relation: str,
    unit: Unit,
    limit: Limit | None,
    groups: int,
    rows: int,
    members: int,
    size: int | None,
    levels: tuple[Fraction, ...],
) -> None:
    query = Quantiles(dataset=DATA, of=OF, levels=levels, by=() if size is None else (keys(size),))
    touched = 1 if size is None else min(groups, size)
    lots = touched if members == 1 else 1
    moved = Fraction(rows * members * touched, lots)
    if relation == REPLACE:
        moved *= Fraction(4, 3) if size is None and len(levels) == 1 else 2
    assert query.sensitivity(unit, limit) == Sensitivity.of(l0=lots, linf=moved)


@pytest.mark.parametrize(("relation", "unit", "limit", "groups", "rows", "members"), CASES)
def test_partition_selection(
    relation: str, unit: Unit, limit: Limit | None, groups: int, rows: int, members: int
) -> None:
    query = PartitionSelection(dataset=DATA, over=("zip",))
    touched = groups * members * (2 if relation == REPLACE else 1)
    assert query.sensitivity(unit, limit) == Sensitivity.of(l0=touched, l1=touched, linf=members)


@pytest.mark.few(36)
@pytest.mark.parametrize(("relation", "unit", "limit", "groups", "rows", "members"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_top_and_marginals_move_as_counts_do(
    relation: str, unit: Unit, limit: Limit | None, groups: int, rows: int, members: int, size: int
) -> None:
    def counts(cells: int) -> tuple[int, int, int, int]:
        times = 2 if relation == REPLACE else 1
        full = min(times * groups, cells)
        height = rows * members
        return min(times * groups * members, cells), full * height, full * height**2, height

    l0, l1, l2_squared, linf = counts(size)
    top = TopGroups(dataset=DATA, by=(keys(size),), choices=1)
    assert top.sensitivity(unit, limit) == Sensitivity.of(l0=l0, l1=l1, l2_squared=l2_squared, linf=linf)
    tables = ((keys(size),), (keys(2, "sex"), keys(size)))
    both = [counts(size), counts(2 * size)]
    assert Marginals(dataset=DATA, tables=tables).sensitivity(unit, limit) == Sensitivity.of(
        l0=sum(each[0] for each in both),
        l1=sum(each[1] for each in both),
        l2_squared=sum(each[2] for each in both),
        linf=linf,
    )


@pytest.mark.parametrize(
    "query",
    [
        Quantiles(dataset=DATA, of=OF, levels=(Fraction(1, 2),)),
        PartitionSelection(dataset=DATA, over=("zip",)),
        TopGroups(dataset=DATA, by=(keys(2),), choices=1),
        Marginals(dataset=DATA, tables=((keys(2),),)),
    ],
    ids=lambda query: query.KIND,
)
def test_a_join_that_lets_people_meet_is_refused(query: Quantiles | PartitionSelection | TopGroups | Marginals) -> None:
    from dataclasses import replace

    limit = Limit(groups=1, rows_per_group=1)
    other = Dataset(name="labs", edition="1")
    apart = replace(query, joins=(Join(dataset=other, on=(("id", "id"),), public=False),))
    assert apart.sensitivity(user("id", relation=ADD), limit) == query.sensitivity(user("id", relation=ADD), limit)
    with pytest.raises(Refused):
        apart.sensitivity(record(relation=ADD), None)
    meeting = replace(query, joins=(Join(dataset=other, on=(("day", "day"),), public=False),))
    with pytest.raises(Refused):
        meeting.sensitivity(user("id", relation=ADD), limit)
