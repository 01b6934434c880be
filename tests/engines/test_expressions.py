"""The grammar of predicates is closed: what is in it has one form, what is not is refused by name."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.engines.expressions import (
    EXPRESSIONS,
    Column,
    Number,
    Text,
    Type,
    Whole,
    check,
    col,
    columns_of,
)
from sfumato.errors import InvalidInput, Unsupported

COLUMNS = {
    "name": Type.TEXT,
    "age": Type.WHOLE,
    "weight": Type.NUMBER,
    "urgent": Type.TRUTH,
    "when": Type.OTHER,
}


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (col("name") == 1, "'name' holds texts and cannot be compared with a constant of type whole"),
        (col("name") < 1.5, "'name' holds texts and cannot be compared with a constant of type number"),
        (col("name") == True, "'name' holds texts and cannot be compared with a constant of type truth"),  # noqa: E712
        (col("age") == "65", "'age' holds whole numbers and cannot be compared with a constant of type text"),
        (col("age") > 64.5, "'age' holds whole numbers and cannot be compared with a constant of type number"),
        (col("age") != False, "'age' holds whole numbers and cannot be compared with a constant of type truth"),  # noqa: E712
        (col("weight") == "x", "'weight' holds numbers and cannot be compared with a constant of type text"),
        (col("weight") == True, "'weight' holds numbers and cannot be compared with a constant of type truth"),  # noqa: E712
        (col("urgent") == 1, "'urgent' holds truth values and cannot be compared with a constant of type whole"),
        (col("urgent") == "t", "'urgent' holds truth values and cannot be compared with a constant of type text"),
        (col("age").isin([1, "2"]), "'age' holds whole numbers and cannot be compared with a constant of type text"),
    ],
)
def test_a_constant_of_the_wrong_type_is_named(expression, says) -> None:
    for nested in (expression, ~expression, expression & (col("age") == 1), (col("age") == 1) | ~expression):
        with pytest.raises(InvalidInput, match=says):
            check(nested, COLUMNS)


@pytest.mark.parametrize(
    "expression", [col("none") == 1, col("none").isnull(), col("none").isin([1]), ~(col("none") > 1)]
)
def test_an_unknown_column_is_named_with_the_known_ones(expression) -> None:
    with pytest.raises(InvalidInput, match=r"no column 'none'.*age, name, urgent, weight, when"):
        check(expression, COLUMNS)


@pytest.mark.parametrize("expression", [col("when") == "2020-01-01", col("when").isnull(), col("when").isin([1])])
def test_a_column_of_a_type_outside_the_grammar_is_refused(expression) -> None:
    with pytest.raises(Unsupported, match="'when' has a type that the grammar does not know"):
        check(expression, COLUMNS)


def test_truth_values_have_no_order() -> None:
    for expression in (col("urgent") < True, col("urgent") >= False, col("urgent") > True, col("urgent") <= True):
        with pytest.raises(Unsupported, match="truth values have no order"):
            check(expression, COLUMNS)


def test_what_fits_passes() -> None:
    for expression in (
        col("name") >= "",
        col("age").isin([1, 2]),
        col("weight") < 1,
        col("weight") < Fraction(1, 3),
        col("weight").isin([1, 0.5]),
        col("urgent") == True,  # noqa: E712
        col("urgent").isin([True, False]),
        ~((col("age") > 1) & col("name").isnull()) | (col("weight") != 0),
    ):
        check(expression, COLUMNS)


@pytest.mark.parametrize(
    "constant",
    [None, b"x", [1], Decimal(1), 1j, np.int64(1), object(), {1}],
    ids=lambda it: type(it).__name__,
)
def test_other_constants_are_refused_by_name(constant) -> None:
    for compare in (lambda it: col("age") == it, lambda it: col("age") > it, lambda it: col("age").isin([it])):
        with pytest.raises(Unsupported, match=f"constant of type {type(constant).__name__} is not in the grammar"):
            compare(constant)


@pytest.mark.parametrize("constant", [float("nan"), float("inf"), -float("inf")])
def test_a_constant_that_is_no_number_is_refused(constant) -> None:
    with pytest.raises(InvalidInput, match="not a finite number"):
        assert col("weight") < constant


@pytest.mark.parametrize("text", ["\0", "a\0", "\ud800", "\udfff!", "\ud800\U0001f600", "\U0001f600\udc00", "é\ud83d"])
def test_text_that_no_engine_can_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        Text(text)


@pytest.mark.parametrize("text", ["", "\n", "\x7f", "\ud7ff\ue000", "\uffff", "\U0010ffff"])
def test_all_other_text_is_a_constant(text: str) -> None:
    assert Text(text).value == text


def test_constants_are_held_to_64_bits_and_to_what_a_double_holds() -> None:
    assert (Whole(2**63 - 1).value, Whole(-(2**63)).value) == (2**63 - 1, -(2**63))
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(InvalidInput, match="64 bits"):
            Whole(value)
    assert Number(Fraction(2**1000 - 1)).value == 2**1000 - 1
    for value in (Fraction(2**1000), -Fraction(2**1000)):
        with pytest.raises(InvalidInput, match="beyond what a double holds"):
            Number(value)


def test_columns_and_predicates_have_no_truth_value() -> None:
    one, two = col("age") == 1, col("name") == "x"
    for wrong in (lambda: one and two, lambda: not one, lambda: 1 < col("age") < 5, lambda: bool(col("age"))):
        with pytest.raises(InvalidInput, match="truth value"):
            wrong()


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_column_is_named_by_text(name) -> None:
    with pytest.raises(InvalidInput, match="named by a non-empty text"):
        Column(name)


def test_only_predicates_combine() -> None:
    for wrong in (
        lambda: (col("age") == 1) & True,
        lambda: (col("age") == 1) | "x",
        lambda: (col("age") == 1) & col("b"),
    ):
        with pytest.raises(InvalidInput, match="not a predicate"):
            wrong()


def test_a_choice_among_nothing_is_refused_and_repeats_are_dropped() -> None:
    with pytest.raises(InvalidInput, match="given no value"):
        col("age").isin([])
    assert col("age").isin([2, 1, 2]) == col("age").isin((1, 2))


def test_columns_of_finds_every_column() -> None:
    assert columns_of(~((col("a") == 1) & (col("b").isnull() | col("c").isin([1])))) == {"a", "b", "c"}


def test_order_of_writing_does_not_change_the_form() -> None:
    one, two, three = col("a") == 1, col("b") > 2, col("c").isnull()
    assert canonical(encode(one & two & three)) == canonical(encode(three & (one & two) & one))
    assert canonical(encode(one | two | three)) == canonical(encode((three | two) | one))
    assert canonical(encode(one & two)) != canonical(encode(one | two))
    assert one & one == one | one == one
    assert (one & two) & (two & one) == one & two


@pytest.mark.parametrize(
    "expression",
    [
        col("a") == "é\n",
        col("a") != -(2**63),
        col("a") < Fraction(-1, 3),
        col("a") == True,  # noqa: E712
        ~((col("a") <= 0.1) & (col("b").isin(["x", "y"]) | col("c").isnull())),
    ],
    ids=range(5),
)
def test_documents_are_read_back_as_they_were(expression) -> None:
    assert Registry(EXPRESSIONS).decode(parse(canonical(encode(expression)))) == expression


def test_one_and_one_point_zero_and_true_are_different_questions() -> None:
    forms = {canonical(encode(col("a") == value)) for value in (1, 1.0, True, "1")}
    assert len(forms) == 4
