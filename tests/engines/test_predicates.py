"""Predicates on the engine mean what the plain-Python evaluator says, on columns full of corners."""

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.engines.compile import predicate
from sfumato.engines.expressions import AllOf, AnyOf, Expression, check, col
from sfumato.engines.sources import Source
from tests.engines.truth import Value, holds

WHOLES = [0, 1, -1, 65, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
NUMBERS = [0.0, -0.0, 0.1, -0.1, 1.0, 65.0, 5e-324, 2.0**53, 1e300, -1e300, 16777216.0]
TEXTS = ["", " ", "a", "A", "a ", "é", "e\u0301", "区", "\U0001f600", "\ufb01", "it's", '"', "\\", "\\n", "\n", "\t",
         "%", "_", "$1", "?", "--", "/*", "\x1f", "\x7f", "\u2028", "\ufeff", "\uffff", "\U0010ffff"]  # fmt: skip
COLUMNS: dict[str, tuple[pa.DataType, list[Value]]] = {
    "text": (pa.string(), [None, *TEXTS]),
    "whole": (pa.int64(), [None, *WHOLES]),
    "tiny": (pa.int8(), [None, 0, 1, -1, 65, 127, -128]),
    "natural": (pa.uint32(), [None, 0, 1, 65, 2**32 - 1]),
    "number": (pa.float64(), [None, math.nan, math.inf, -math.inf, *NUMBERS]),
    "single": (pa.float32(), [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, 65.0, 16777216.0, 0.1]),
    "truth": (pa.bool_(), [None, True, False]),
}
CONSTANTS: dict[str, Sequence[object]] = {
    "text": TEXTS,
    "whole": WHOLES,
    "tiny": [*WHOLES, 127, -128, 128, -129, 300],
    "natural": [*WHOLES, 2**32 - 1, 2**32],
    "number": [*NUMBERS, *WHOLES, Fraction(1, 3), Fraction(1, 10**400), Fraction(2**53 + 1)],
    "single": [*NUMBERS, 16777217, 16777216, 0.5],
    "truth": [True, False],
}
OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
LENGTH = 211


@cache
def source() -> Source:
    """Rows that cycle through all values of each column, out of step with each other."""
    columns = {
        name: pa.array([values[(place + shift * (place // 31)) % len(values)] for place in range(LENGTH)], kind)
        for shift, (name, (kind, values)) in enumerate(COLUMNS.items())
    }
    return Source(pa.table(columns))


@cache
def rows() -> list[dict[str, Value]]:
    with source().opened() as table:
        return table.to_pyarrow().to_pylist()


def ask(expressions: Sequence[Expression], of: Source) -> list[list[bool | None]]:
    """What the engine says of each row, for each predicate."""
    columns = of.columns()
    for expression in expressions:
        check(expression, columns)
    with of.opened() as table:
        asked = {f"p{place}": predicate(expression, table) for place, expression in enumerate(expressions)}
        found = table.select(**asked).to_pyarrow()
    return [column.to_pylist() for column in found.columns]


def expected(expressions: Sequence[Expression]) -> list[list[bool]]:
    return [[holds(expression, row) for row in rows()] for expression in expressions]


def constants(column: str) -> Sequence[Any]:
    return CONSTANTS[column]


def test_the_rows_hold_every_corner() -> None:
    for name, (_, values) in COLUMNS.items():
        found = {repr(row[name]) for row in rows()}
        assert len(found) == len(values), name


@pytest.mark.parametrize("compare", OPERATORS, ids=lambda it: it.__name__)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_comparison_with_every_constant(column: str, compare: Any) -> None:
    if column == "truth" and compare not in OPERATORS[:2]:
        compare = operator.eq
    asked = [compare(col(column), constant) for constant in constants(column)]
    assert ask(asked, source()) == expected(asked)


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
            st.sampled_from(OPERATORS[:2] if name == "truth" else OPERATORS),
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


@settings(max_examples=40, deadline=None)
@given(several=st.lists(trees, min_size=4, max_size=10))
def test_combinations_of_predicates(several: list[Expression]) -> None:
    assert ask(several, source()) == expected(several)


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=40, deadline=None)
@given(values=st.lists(text, min_size=1, max_size=6), constant=text)
@example(values=["\\", "'", "''"], constant="'")
@example(values=["x' OR 1=1 --", "x"], constant="x' OR 1=1 --")
def test_text_is_compared_by_its_bytes_whatever_it_holds(values: list[str], constant: str) -> None:
    words = Source(pa.table({"x": values}))
    asked = [compare(col("x"), word) for compare in OPERATORS for word in (constant, values[0])]
    asked.append(col("x").isin([constant, values[0]]))
    said = ask(asked, words)
    assert said == [[holds(expression, {"x": value}) for value in values] for expression in asked]


def test_text_beyond_ascii_is_neither_normalised_nor_folded() -> None:
    words = Source(pa.table({"x": ["é", "e\u0301", "É", "ﬁ", "fi", "K", "\u212a", "ß", "SS"]}))
    asked = [col("x") == "é", col("x") == "fi", col("x") == "K"]
    assert [sum(map(bool, answers)) for answers in ask(asked, words)] == [1, 1, 1]


def test_a_column_called_like_a_method_or_with_odd_signs_is_a_column() -> None:
    names = ["count", "filter", "select", "a b", 'q"uote', "区", "limit", "1", "Case"]
    table = Source(pa.table({name: [place, None] for place, name in enumerate(names)}))
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
