"""The handle that questions are built with: it reads nothing, refuses what was not declared, and has one form."""

import pytest

from sfumato.core.documents import canonical, encode
from sfumato.core.query import Dataset
from sfumato.engines.expressions import col
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.queries.count import Count, Keys
from sfumato.tables.table import Table


class ClosedGate:
    """A gate that nothing may pass: building a question asks nobody."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"the gate was asked for {name}")


ZIP = Keys(column="zip", values=("a", "b"))
WARD = Keys(column="ward", values=(1, 2, 3))
DATASET = Dataset(name="visits", edition="1")


def table(**keys: Keys) -> Table:
    return Table(gate=ClosedGate(), dataset=DATASET, keys=keys, bounds={})


VISITS = table(zip=ZIP, ward=WARD)
OLD, HERE, ILL = col("age") >= 65, col("zip") == "a", col("diagnosis") == "ILI"


def form(table: Table) -> str:
    return canonical(encode(table.count().query))


def test_a_plain_count_is_of_all_rows() -> None:
    assert VISITS.count().query == Count(dataset=DATASET)


def test_methods_return_new_tables_and_leave_the_old_alone() -> None:
    narrowed = VISITS.where(OLD).group_by("zip")
    assert (VISITS.predicate, VISITS.by) == (None, ())
    assert narrowed.count().query == Count(dataset=DATASET, where=OLD, by=(ZIP,))


def test_several_filters_must_all_be_met_and_have_one_form() -> None:
    expected = form(VISITS.where(OLD & HERE & ILL))
    assert form(VISITS.where(OLD).where(HERE).where(ILL)) == expected
    assert form(VISITS.where(ILL).where(HERE & OLD)) == expected
    assert form(VISITS.where(ILL & OLD).where(HERE).where(OLD)) == expected
    assert form(VISITS.where(OLD).where(HERE | ILL)) != expected


def test_the_same_filter_twice_is_the_filter_once_more_and_not_another_question() -> None:
    assert form(VISITS.where(OLD).where(OLD).where(HERE)) == form(VISITS.where(OLD).where(HERE))
    assert form(VISITS.where(OLD).where(OLD)) == form(VISITS.where(OLD))


def test_filters_and_groups_may_come_in_any_order() -> None:
    assert form(VISITS.group_by("zip").where(OLD)) == form(VISITS.where(OLD).group_by("zip"))
    assert form(VISITS.group_by("zip").group_by("ward")) == form(VISITS.group_by("zip", "ward"))
    assert form(VISITS.group_by("zip", "ward")) != form(VISITS.group_by("ward", "zip"))


@pytest.mark.parametrize("predicate", [True, b"age > 65", None, lambda row: True, 1])
def test_only_predicates_filter(predicate: object) -> None:
    with pytest.raises(InvalidInput, match=f"was given {type(predicate).__name__}; nothing was done"):
        VISITS.where(predicate)


def test_a_column_without_declared_values_is_refused_with_what_to_declare() -> None:
    with pytest.raises(NotDeclared, match=r"'sex' are not declared.*keys=\{'sex': \[...\]\}.*\(declared: ward, zip\)"):
        VISITS.group_by("zip", "sex")
    with pytest.raises(NotDeclared, match=r"\(declared: none\)"):
        table().group_by("zip")


def test_the_same_column_twice_is_refused() -> None:
    for twice in (VISITS.group_by("zip", "zip"), VISITS.group_by("zip").group_by("ward").group_by("zip")):
        with pytest.raises(InvalidInput, match="grouped by once only"):
            twice.count()


def test_too_many_cells_are_refused_when_the_question_is_built() -> None:
    many = {name: Keys(column=name, values=tuple(range(300))) for name in "abc"}
    cube = table(**many)
    assert cube.group_by("a", "b").count().query.size == 90_000
    with pytest.raises(InvalidInput, match=r"27,000,000 cells, more than 10,000,000"):
        cube.group_by("a", "b", "c").count()
