"""What Aggregate claims, of real questions on the real lattices, by arithmetic that anyone can redo."""

from fractions import Fraction

import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation, Unit, family, record, user
from sfumato.engines.expressions import col
from sfumato.errors import Refused
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Measure
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.person_count import PersonCount
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.measures.total import Total
from sfumato.tables.measures.variation import Variation
from sfumato.tables.queries.aggregate import Aggregate

pytestmark = pytest.mark.kills

AGE = Clamped(value=col("age").node, low=Fraction(0), high=Fraction(100))
CHANGE = Clamped(value=col("change").node, low=Fraction(-3), high=Fraction(1))
FULL = 2**30
MANY, ONE = Limit(groups=2, rows_per_group=3), Limit(groups=1, rows_per_group=1)
NUMBER, MEAN = RowCount(name="n"), MeanValue(name="m", of=AGE)


def asked(*measures: Measure, cells: int = 5, number: int | None = None) -> Aggregate:
    by = (Keys(column="ward", values=tuple(range(cells))),) if cells > 1 else ()
    return Aggregate(dataset=Dataset(name="visits", edition="1"), measures=measures, by=by, number=number)


def claimed(query: Aggregate, unit: Unit, limit: Limit | None) -> tuple[int, Fraction, Fraction, Fraction]:
    claim = query.sensitivity(unit, limit)
    return claim.l0.count, claim.l1.value, claim.l2.squared, claim.linf.value


def of(kind: str, relation: Relation) -> tuple[Unit, Limit | None]:
    match kind:
        case "record":
            return record(relation=relation), None
        case "user":
            return user("id", relation=relation), MANY
    return family(2, "id", relation=relation), MANY


@pytest.mark.parametrize(
    ("kind", "relation", "expected"),
    [
        ("record", Relation.ADD_REMOVE, (3, 1, 1, 1)),
        ("record", Relation.REPLACE, (6, 2, 2, 1)),
        ("user", Relation.ADD_REMOVE, (6, 6, 2 * 9, 3)),
        ("user", Relation.REPLACE, (12, 12, 4 * 9, 3)),
        ("family", Relation.ADD_REMOVE, (12, 12, 2 * 36, 6)),
        ("family", Relation.REPLACE, (15, 24, 4 * 36, 6)),
    ],
)
def test_a_mean_and_a_count_cost_as_much_as_a_count(
    kind: str, relation: Relation, expected: tuple[int, int, int, int]
) -> None:
    l0, l1, squares, linf = expected
    full = (l0, l1 * FULL, squares * FULL**2, linf * FULL)
    assert claimed(asked(NUMBER, MEAN), *of(kind, relation)) == full


def test_in_one_cell_old_and_new_must_meet() -> None:
    query = asked(NUMBER, MEAN, cells=1)
    assert claimed(query, *of("user", Relation.REPLACE)) == (3, 2 * 3 * FULL, 2 * 9 * FULL**2, 3 * FULL)
    assert claimed(query, *of("user", Relation.ADD_REMOVE)) == (3, 3 * FULL, 9 * FULL**2, 3 * FULL)


def test_a_sum_of_both_signs_moves_from_one_end_to_the_other() -> None:
    query = asked(Total(name="s", of=CHANGE), cells=1)
    span = FULL + -(-FULL // 3)  # from -3 to 1, in steps of 3/2^30, upwards
    assert claimed(query, *of("record", Relation.REPLACE)) == (1, span, span**2, span)
    assert claimed(query, *of("record", Relation.ADD_REMOVE)) == (1, FULL, FULL**2, FULL)


def test_persons_are_counted_once() -> None:
    assert claimed(asked(PersonCount(name="p")), *of("user", Relation.ADD_REMOVE)) == (2, 2, 2, 1)
    both = asked(PersonCount(name="p"), MEAN)
    assert claimed(both, *of("user", Relation.ADD_REMOVE)) == (6, (2 + 6) * FULL, (2 + 18) * FULL**2, 3 * FULL)


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        ((MEAN,), (1, FULL, FULL**2, FULL)),
        ((Variation(name="v", of=AGE), MEAN), (2, Fraction(4, 3) * FULL, Fraction(128, 125) * FULL**2, FULL)),
    ],
)
def test_a_public_number_of_units_costs_less(
    measures: tuple[Measure, ...], expected: tuple[int, Fraction, Fraction, Fraction]
) -> None:
    query = asked(*measures, cells=1, number=7)
    assert claimed(query, record(relation="replace"), None) == expected
    assert claimed(query, user("id", relation="replace"), ONE) == expected


@pytest.mark.parametrize(
    ("unit", "limit"),
    [
        (record(relation="add/remove"), None),
        (user("id", relation="add/remove"), ONE),
        (user("id", relation="replace"), Limit(groups=2, rows_per_group=1)),
        (user("id", relation="replace"), Limit(groups=1, rows_per_group=2)),
        (user("id", relation="replace"), MANY),
    ],
)
def test_a_public_number_is_refused_where_units_may_count_otherwise_than_once(unit: Unit, limit: Limit | None) -> None:
    with pytest.raises(Refused, match="a public number of units can be used under replace alone"):
        asked(MEAN, cells=1, number=7).sensitivity(unit, limit)
    assert asked(MEAN, cells=1).sensitivity(unit, limit).l1 is not None
