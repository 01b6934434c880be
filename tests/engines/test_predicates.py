"""Predicates on the engine mean what the plain-Python evaluator says, on columns full of corners."""

import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.engines.expressions import AllOf, AnyOf, Expression, Type, col
from sfumato.engines.sources import Source
from tests.engines import asking
from tests.engines.asking import FEW
from tests.engines.corners import COLUMNS, CONSTANTS, TYPES, frame
from tests.engines.corners import rows as corners
from tests.engines.truth import Row, holds

OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@cache
def source() -> Source:
    return Source(frame(FEW))


def rows() -> list[Row]:
    return corners(FEW)


def ask(expressions: Sequence[Expression], of: Source) -> list[list[bool | None]]:
    """What the engine says of each row, for each predicate."""
    return asking.ask(expressions, of)


def expected(expressions: Sequence[Expression]) -> list[list[bool]]:
    return [[holds(expression, row) for row in rows()] for expression in expressions]


def constants(column: str) -> Sequence[Any]:
    return CONSTANTS[column]


def rounded(name: str, values: Sequence[Any]) -> list[Any]:
    """The values as their column holds them."""
    return pa.array(values, COLUMNS[name][0]).to_pylist()


def test_the_rows_hold_every_corner() -> None:
    for name, (_, values) in COLUMNS.items():
        found = {repr(row[name]) for row in rows()}
        assert found == {repr(value) for value in rounded(name, values)}, name


@pytest.mark.few(12)
@pytest.mark.parametrize("compare", OPERATORS, ids=lambda it: it.__name__)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_comparison_with_every_constant(column: str, compare: Any) -> None:
    if TYPES[column] is Type.TRUTH and compare not in OPERATORS[:2]:
        compare = operator.eq
    asked = [compare(col(column), constant) for constant in constants(column)]
    assert ask(asked, source()) == expected(asked)


@pytest.mark.few(4)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_choice_of_two_constants(column: str) -> None:
    given = constants(column)
    asked = [col(column).isin([one, two]) for one, two in zip(given, [*given[1:], given[0]], strict=True)]
    asked.append(col(column).isin(list(given)))
    assert ask(asked, source()) == expected(asked)


def test_missing_is_null_and_nan_and_nothing_else() -> None:
    asked = [part for column in COLUMNS for part in (col(column).isnull(), ~col(column).isnull())]
    assert ask(asked, source()) == expected(asked)
    (number,) = ask([col("number").isnull()], source())
    assert {repr(row["number"]) for row, is_null in zip(rows(), number, strict=True) if is_null} == {"None", "nan"}


def test_a_comparison_with_a_missing_value_is_false_and_its_opposite_true() -> None:
    gone = [place for place, row in enumerate(rows()) if row["number"] is None or row["number"] != row["number"]]
    assert gone
    for compare in OPERATORS:
        plain, opposite = ask([compare(col("number"), 1), ~compare(col("number"), 1)], source())
        assert not any(plain[place] for place in gone)
        assert all(opposite[place] for place in gone)


leaves: st.SearchStrategy[Expression] = st.one_of(
    *(
        st.builds(
            lambda compare, constant, name=name: compare(col(name), constant),
            st.sampled_from(OPERATORS[:2] if TYPES[name] is Type.TRUTH else OPERATORS),
            st.sampled_from(list(constants(name))),
        )
        for name in COLUMNS
    ),
    *(
        st.lists(st.sampled_from(list(constants(name))), min_size=1, max_size=4).map(
            lambda some, name=name: col(name).isin(some)
        )
        for name in COLUMNS
    ),
    st.sampled_from(list(COLUMNS)).map(lambda name: col(name).isnull()),
)
trees: st.SearchStrategy[Expression] = st.recursive(
    leaves,
    lambda parts: st.one_of(
        parts.map(lambda part: ~part),
        st.tuples(parts, parts).map(lambda two: two[0] & two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] | two[1]),
    ),
    max_leaves=8,
)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(several=st.lists(trees, min_size=4, max_size=10))
def test_combinations_of_predicates(several: list[Expression]) -> None:
    assert ask(several, source()) == expected(several)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(one=trees, two=trees)
def test_the_laws_of_logic_hold_on_every_row(one: Expression, two: Expression) -> None:
    both, neither, either, not_neither, twice, plain = ask(
        [one & two, ~one & ~two, one | two, ~(~one & ~two), ~~one, one], source()
    )
    assert twice == plain
    assert either == not_neither
    assert [not it for it in neither] == either
    assert all(it in (True, False) for it in both)


text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(values=st.lists(text, min_size=1, max_size=6), constant=text)
@example(values=["\\", "'", "''"], constant="'")
@example(values=["x' OR 1=1 --", "x"], constant="x' OR 1=1 --")
def test_text_is_compared_by_its_bytes_whatever_it_holds(values: list[str], constant: str) -> None:
    words = Source(pa.table({"place": range(len(values)), "x": values}))
    asked = [compare(col("x"), word) for compare in OPERATORS for word in (constant, values[0])]
    asked.append(col("x").isin([constant, values[0]]))
    said = ask(asked, words)
    assert said == [[holds(expression, {"x": value}) for value in values] for expression in asked]


def test_text_beyond_ascii_is_neither_normalised_nor_folded() -> None:
    words = ["é", "e\u0301", "É", "ﬁ", "fi", "K", "\u212a", "ß", "SS"]
    words = Source(pa.table({"place": range(len(words)), "x": words}))
    asked = [col("x") == "é", col("x") == "fi", col("x") == "K"]
    assert [sum(map(bool, answers)) for answers in ask(asked, words)] == [1, 1, 1]


def test_a_column_called_like_a_method_or_with_odd_signs_is_a_column() -> None:
    names = ["count", "filter", "select", "a b", 'q"uote', "区", "limit", "1", "Case"]
    table = Source(pa.table({"place": [0, 1]} | {name: [place, None] for place, name in enumerate(names)}))
    asked = [col(name) == place for place, name in enumerate(names)]
    assert ask(asked, table) == [[True, False]] * len(names)


def test_twin_three_valued_logic_is_caught() -> None:
    """The engine's own rules for null and NaN, unguarded, differ from ours: the evaluator tells them apart."""
    with source().opened() as table:
        unguarded = table.select(p=~(table.number > 1)).to_pyarrow()["p"].to_pylist()
        greatest = table.select(p=table.number > 1).to_pyarrow()["p"].to_pylist()
    assert [unguarded] != expected([~(col("number") > 1)])
    assert [greatest] != expected([col("number") > 1])
    assert None in unguarded


def test_nested_parts_are_merged_and_opposites_kept() -> None:
    one, two, three = col("a") == 1, col("b") == 2, col("c") == 3
    assert (one & two) & three == three & (two & one) == AllOf(parts=(one & two & three).parts)
    assert len((one & two & three).parts) == 3
    assert (one | two) | one == AnyOf(parts=(one | two).parts)
    assert ((one & two) | three).parts != (one & (two | three)).parts
    assert ~~one == one
