"""How far one unit moves what the queries beside counts and measures ask for, written out by hand."""

from fractions import Fraction
from itertools import product

import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, family, record, user
from sfumato.engines.expressions import col
from sfumato.errors import NotDeclared, Refused
from sfumato.tables.clamped import Clamped
from sfumato.tables.joins import Join
from sfumato.tables.keys import Keys
from sfumato.tables.queries.contributions import Contributions
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
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


def test_a_person_is_in_one_cell_whatever_the_limit() -> None:
    both = Clamped(value=col("x").node, low=Fraction(-1), high=Fraction(1))
    asked = [Contributions(dataset=DATA, most=1), Contributions(dataset=DATA, most=9, by=(keys(3),))]
    for query in (*asked, Magnitudes(dataset=DATA, of=both)):
        for limit in (None, Limit(groups=3, rows_per_group=2)):
            one = query.sensitivity(user("id", relation=ADD), limit)
            assert one == Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)
            two = query.sensitivity(user("id", relation=REPLACE), limit)
            assert two == Sensitivity.of(l0=2, l1=2, l2_squared=2, linf=1)


def test_persons_above_a_limit_move_by_one_under_both_relations() -> None:
    query = LimitSuggestion(dataset=DATA, most=9, spends=(Fraction(1),), by=(keys(3),))
    for relation in (ADD, REPLACE):
        assert query.sensitivity(user("id", relation=relation), None) == Sensitivity.of(linf=1)


@pytest.mark.parametrize(
    ("share", "steps"), [(Fraction(1, 2), (7, 3)), (Fraction(1, 5), (28, 3)), (Fraction(9, 10), (7, 27))]
)
def test_both_layers_move_as_far_as_their_shares_say(share: Fraction, steps: tuple[int, int]) -> None:
    query = LayeredCount(dataset=DATA, within=3, uncut_to=10, share=share)
    lower, upper = steps
    assert query.steps == steps
    limit, first, second = Limit(groups=1, rows_per_group=3), 3 * lower, 7 * upper
    for relation in (ADD, REPLACE):
        one = Sensitivity.of(l0=2, l1=first + second, l2_squared=first**2 + second**2, linf=max(first, second))
        assert query.sensitivity(user("id", relation=relation), limit) == one
        two = Sensitivity.of(
            l0=2, l1=2 * (first + second), l2_squared=4 * (first**2 + second**2), linf=2 * max(first, second)
        )
        assert query.sensitivity(family(2, "id", relation=relation), limit) == two
    grouped = LayeredCount(dataset=DATA, within=3, uncut_to=10, share=share, by=(keys(2),))
    for groups in (2, 5):
        wide = grouped.sensitivity(user("id", relation=ADD), Limit(groups=groups, rows_per_group=3))
        assert wide == Sensitivity.of(
            l0=4, l1=2 * (first + second), l2_squared=2 * (first**2 + second**2), linf=max(first, second)
        )
    with pytest.raises(Refused, match="keeps 1 of 2 groups"):
        grouped.sensitivity(user("id", relation=ADD), limit)
    for rows in (2, 4):
        with pytest.raises(NotDeclared):
            query.sensitivity(user("id", relation=ADD), Limit(groups=1, rows_per_group=rows))


def test_layers_of_a_private_join_and_of_single_rows_are_refused() -> None:
    public, private = (
        Join(dataset=Dataset(name="labs", edition="1"), on=(("id", "id"),), public=public) for public in (True, False)
    )
    limit = Limit(groups=1, rows_per_group=3)
    asked = [LayeredCount(dataset=DATA, within=3, uncut_to=10, joins=(join,)) for join in (public, private)]
    assert asked[0].sensitivity(user("id", relation=ADD), limit).l0 is not None
    with pytest.raises(Refused, match="so no count of them is uncut"):
        asked[1].sensitivity(user("id", relation=ADD), limit)
    with pytest.raises(Refused, match="every row counts"):
        asked[0].sensitivity(record(relation=ADD), None)


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
