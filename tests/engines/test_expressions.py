"""The grammar is closed: what is in it has one form, what is not is refused by name before anything is read."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.engines.expressions import (
    EXPRESSIONS,
    AllOf,
    Arithmetic,
    Column,
    Compare,
    Cut,
    Date,
    Named,
    Negative,
    Not,
    Number,
    Operator,
    Sign,
    Term,
    Text,
    Type,
    ValueCompare,
    Whole,
    check,
    coalesce,
    col,
    columns_of,
    greatest,
    least,
    possible_values,
    term,
    type_of,
    when,
    written,
)
from sfumato.errors import InvalidInput, Unsupported
from tests.engines.corpus import PREDICATES, VALUES

COLUMNS = {
    "name": Type.TEXT,
    "age": Type.WHOLE,
    "weight": Type.NUMBER,
    "urgent": Type.TRUTH,
    "when": Type.OTHER,
    "height": Type.NUMBER,
    "seen": Type.DATE,
    "born": Type.DATE,
}


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (col("name") == 1, "'name' holds texts and cannot be compared with a constant of type whole"),
        (col("name") < 1.5, "'name' holds texts and cannot be compared with a constant of type number"),
        (col("name") == True, "'name' holds texts and cannot be compared with a constant of type truth"),  # noqa: E712
        (col("age") == "65", "'age' holds whole numbers and cannot be compared with a constant of type text"),
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
    with pytest.raises(InvalidInput, match=r"no column 'none'.*age, born, height, name, seen, urgent, weight, when"):
        check(expression, COLUMNS)


@pytest.mark.parametrize("expression", [col("when") == "2020-01-01", col("when").isnull(), col("when").isin([1])])
def test_a_column_of_a_type_outside_the_grammar_is_refused(expression) -> None:
    with pytest.raises(Unsupported, match="'when' has a type that is not supported"):
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
    [
        None,
        b"x",
        [1],
        Decimal(1),
        1j,
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        datetime.time(1),
        np.int64(1),
        object(),
        {1},
    ],
    ids=lambda it: type(it).__name__,
)
def test_other_constants_are_refused_by_name(constant) -> None:
    for compare in (lambda it: col("age") == it, lambda it: col("age") > it, lambda it: col("age").isin([it])):
        with pytest.raises(Unsupported, match=f"constant of type {type(constant).__name__} is not supported"):
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
    ):
        with pytest.raises(InvalidInput, match="not a predicate"):
            wrong()
    for wrong in (lambda: col("b") & "x", lambda: "x" | col("b")):
        with pytest.raises(InvalidInput, match="not a predicate"):
            wrong()


def test_a_column_of_truth_values_is_a_predicate() -> None:
    died, old = col("died") == True, col("age") >= 65  # noqa: E712 - a predicate
    assert (old & col("died"), col("died") & old) == (old & died, old & died)
    assert (old | col("died"), col("died") | old) == (old | died, old | died)
    assert (~col("died"), when(col("died")).then(1).node) == (~died, when(died).then(1).node)
    with pytest.raises(InvalidInput, match="'age' holds whole numbers and cannot be compared with a constant of type"):
        check(~col("age"), COLUMNS)


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


# ------------------------------------------------------------------------------------------------- types of values

name, age, weight, height = col("name"), col("age"), col("weight"), col("height")
urgent, seen, born = col("urgent"), col("seen"), col("born")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (age + 1, Type.WHOLE),
        (age * age - age, Type.WHOLE),
        (age / 2, Type.NUMBER),
        (weight / height, Type.NUMBER),
        (weight + 1, Type.NUMBER),
        (1 - weight * 2, Type.NUMBER),
        (-age, Type.WHOLE),
        (abs(weight), Type.NUMBER),
        (weight.floor(), Type.NUMBER),
        (least(age, 65), Type.WHOLE),
        (greatest(weight, height, 1), Type.NUMBER),
        (greatest(seen, born), Type.DATE),
        (age.clip(0, 100), Type.WHOLE),
        (age.cast("number"), Type.NUMBER),
        (weight.cast("whole"), Type.WHOLE),
        (urgent.cast("whole"), Type.WHOLE),
        (name.cast("whole"), Type.WHOLE),
        (coalesce(weight, height, 0), Type.NUMBER),
        (name.fill(""), Type.TEXT),
        (when(age > 1).then(1).otherwise(0.5), Type.NUMBER),
        (when(age > 1).then(True), Type.TRUTH),
        (when(age > 1).then(seen).otherwise(datetime.date(2026, 1, 1)), Type.DATE),
        (seen.year(), Type.WHOLE),
        (seen.weekday(), Type.WHOLE),
        (seen.days_since(born), Type.WHOLE),
        (seen.days_since(datetime.date(2026, 1, 1)), Type.WHOLE),
        (name.length(), Type.WHOLE),
        (age.cut([0, 18]), Type.TEXT),
        (weight.cut([0, 18]), Type.TEXT),
        (seen.cut([datetime.date(2026, 1, 1)], above=True), Type.TEXT),
        (term("x"), Type.TEXT),
        (seen - born, Type.WHOLE),
        (seen + 1, Type.DATE),
        (age + weight, Type.NUMBER),
        (age / weight, Type.NUMBER),
        (age.floor(), Type.WHOLE),
        (greatest(age, weight), Type.NUMBER),
        (coalesce(age, 0.5), Type.NUMBER),
        (age.cut([0.5, 1]), Type.TEXT),
        (name.cast("number"), Type.NUMBER),
        (age.cast("whole"), Type.WHOLE),
        (name.cast("time"), Type.TIME),
        (name.cast("time") - seen, Type.SPAN),
        ((name.cast("time") - seen).seconds(), Type.NUMBER),
        (seen.shift(months=1), Type.TIME),
        (seen.truncate("month"), Type.DATE),
        (name.cast("time").truncate("hour"), Type.TIME),
        (seen + datetime.timedelta(days=1), Type.TIME),
        (seen.since(born, "year"), Type.WHOLE),
        (coalesce(name.cast("time"), seen), Type.DATE),
        (coalesce(seen, datetime.datetime(2026, 1, 1)), Type.TIME),
        (name.lower().strip().left(2).concat("x").replace("a", "b"), Type.TEXT),
        (weight.nearest(), Type.WHOLE),
        (weight.round(1), Type.NUMBER),
        (seen.cast("text"), Type.TEXT),
    ],
    ids=lambda it: repr(it) if isinstance(it, Term) else it.name,
)
def test_every_value_has_a_type(value: Term, kind: Type) -> None:
    assert type_of(value, COLUMNS) is kind
    assert type_of(value.node, COLUMNS) is kind


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (age + name, "in age \\+ name, 'name' is a text where whole numbers or numbers are taken"),
        (urgent * 2, "in urgent \\* 2, 'urgent' is a truth value where whole numbers or numbers are taken"),
        (seen * born, "'born' is a date where whole numbers or numbers are taken"),
        (seen + born, "'born' is a date where"),
        (seen + weight, "'seen' is a date where"),
        (name.cast("time") + 1, "is a time where"),
        (seen.hour(), "'seen' is a date where times are taken"),
        (age.seconds(), "'age' is a whole number where"),
        (age.lower(), "'age' is a whole number where texts are taken"),
        (name.concat(age), "'age' is a whole number where texts are taken"),
        (name.round(), "'name' is a text where"),
        (seen.nearest(), "'seen' is a date where"),
        (-name, "in -name, 'name' is a text"),
        (abs(seen), "'seen' is a date where"),
        (
            least(name, "x"),
            "'name' is a text where whole numbers or numbers or dates or times or time differences are taken",
        ),
        (greatest(age, seen), "the parts of greatest\\(age, seen\\) must have one type"),
        (least(urgent, True), "'urgent' is a truth value where"),
        (
            coalesce(age, name),
            "the parts of coalesce\\(age, name\\) must have one type and are texts and whole numbers",
        ),
        (when(age > 1).then(1).otherwise("x"), "the branches of .* must have one type and are texts and whole numbers"),
        (when(name > 1).then(1), "'name' holds texts and cannot be compared with a constant of type whole"),
        (when(urgent < col("urgent")).then(1), "truth values have no order"),
        (age.year(), "in year\\(age\\), 'age' is a whole number where dates or times are taken"),
        (seen.days_since(age), "'age' is a whole number where dates or times are taken"),
        (age.length(), "in length\\(age\\), 'age' is a whole number where texts are taken"),
        (name.cut([1, 2]), "'name' is a text where whole numbers or numbers or dates or times"),
        (seen.cut([1, 2]), "must have one type and are dates and whole numbers"),
        (col("none") + 1, "there is no column 'none'"),
    ],
    ids=lambda it: repr(it) if isinstance(it, Term) else "",
)
def test_a_value_of_the_wrong_type_is_named(value: Term, says: str) -> None:
    with pytest.raises((InvalidInput, Unsupported), match=says):
        type_of(value, COLUMNS)
    for predicate in (value.isnull(), value == value, ~(value.isnull() & (age == 1))):
        with pytest.raises((InvalidInput, Unsupported)):
            check(predicate, COLUMNS)


def test_a_column_outside_the_grammar_cannot_be_computed_with() -> None:
    for value in (col("when") + 1, col("when").year(), coalesce(col("when"), 1), col("when").cast("whole")):
        with pytest.raises(Unsupported, match="'when' has a type that is not supported"):
            type_of(value, COLUMNS)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (age.cast("date"), "'age' is a whole number and cannot be cast to a date"),
        (weight.cast("text"), "'weight' is a number and cannot be cast to a text"),
        (urgent.cast("number"), "'urgent' is a truth value and cannot be cast to a number"),
        (seen.cast("whole"), "'seen' is a date and cannot be cast to a whole number"),
    ],
    ids=lambda it: repr(it) if isinstance(it, Term) else "",
)
def test_every_other_cast_is_refused_by_name(value: Term, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        type_of(value, COLUMNS)


@pytest.mark.parametrize("to", ["int", "float64", "truth", "", "Whole", None])
def test_there_are_no_casts_to_other_types(to) -> None:
    with pytest.raises(Unsupported, match="casts lead to 'whole', 'number', 'text', 'date' and 'time' only"):
        age.cast(to)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: age // 2, "// on 'age' is not supported"),
        (lambda: 2 // age, "// on 'age' is not supported"),
        (lambda: age % 2, "% on 'age' is not supported"),
        (lambda: age**2, r"\*\* on 'age' is not supported"),
        (lambda: (age + 1) ** 2, r"\*\* on 'age \+ 1' is not supported"),
        (lambda: age + None, "constant of type NoneType is not supported"),
        (lambda: Decimal(1) + age, "constant of type Decimal is not supported"),
        (lambda: when(age > 1).then([1]), "constant of type list is not supported"),
        (lambda: age.fill(b""), "constant of type bytes is not supported"),
        (lambda: age.isin([age]), "constant of type Column is not supported"),
    ],
)
def test_other_operations_are_refused_by_name(wrong, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: age.isin("abc"), "takes a list of constants and was given str"),
        (lambda: age.isin(age), "takes a list of constants and was given Column"),
        (lambda: age.cut(3), "takes a list of constants and was given int"),
        (lambda: when(True), "when.* takes a predicate .* and was given bool"),
        (lambda: when(age > 1).then(1).when("x"), "takes a predicate .* and was given str"),
        (lambda: coalesce(), "the first present of no values"),
        (lambda: least(), "the least of no values"),
        (lambda: greatest(), "the greatest of no values"),
        (lambda: name.startswith(1), "a prefix is a text and not int"),
        (lambda: name.startswith(""), "empty prefix"),
        (lambda: name.startswith("a\0"), "null character"),
        (lambda: age.cut([]), "a cut without edges"),
        (lambda: age.cut([1]), "one edge makes no bin"),
        (lambda: age.cut([2, 1]), "edges must ascend"),
        (lambda: age.cut([1, 1]), "edges must ascend"),
        (lambda: weight.cut([Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)]), "edges must ascend"),
        (lambda: age.cut([True, False]), "edges must be all whole numbers, all numbers, all dates or all times"),
        (lambda: age.cut(["a", "b"]), "edges must be all whole numbers, all numbers, all dates or all times"),
        (lambda: age.cut([1, datetime.date(2026, 1, 1)]), "edges must be all"),
        (lambda: age.cut([1, 2, 3], labels=["a"]), "the edges make 2 bins, and 1 labels were given"),
        (lambda: age.cut([1, 2, 3], labels=["a", "a"]), "two bins have the same label"),
        (lambda: age.cut([1, 2, 3], labels=["a", 1]), "labels of bins are texts"),
        (lambda: age.cut([1, 2, 3], labels=["a", "\0"]), "null character"),
        (lambda: Date("2026-1-1"), "YYYY-MM-DD"),
        (lambda: Date("2026-02-30"), "YYYY-MM-DD"),
        (lambda: Date("20260101"), "YYYY-MM-DD"),
        (lambda: Date("0000-01-01"), "YYYY-MM-DD"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_written(wrong, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        wrong()


def test_a_comparison_of_two_values_needs_one_type() -> None:
    for predicate in (age == name, name < seen, (age + 1) > "x", age.cast("number") == seen, (weight / 2).isin(["x"])):
        with pytest.raises(InvalidInput, match=r"the two sides of .* must have one type"):
            check(predicate, COLUMNS)
    with pytest.raises(Unsupported, match="truth values have no order"):
        check(urgent < when(age > 1).then(True).otherwise(False), COLUMNS)
    with pytest.raises(InvalidInput, match="'age' is a whole number where texts are taken"):
        check(age.startswith("1"), COLUMNS)
    for predicate in (weight == height, (weight + 1).isin([1, 0.5]), age.cast("number") == 1, seen.between(born, seen)):
        check(predicate, COLUMNS)


# -------------------------------------------------------------------------------------------------- canonical forms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (age + weight, weight + age),
        (age * 2, 2 * age),
        (least(age, least(3, weight)), least(weight, age, 3, age)),
        (greatest(age, greatest(3)), greatest(3, age)),
        (coalesce(age, coalesce(weight, 1)), coalesce(age, weight, age, 1, height)),
        (coalesce(age), age),
        (least(age, age), age),
        (age.fill(1), coalesce(age, 1)),
        (age.clip(0, 9), greatest(least(9, age), 0)),
        (
            when(age > 1).then(1).otherwise(when(age > 0).then(2).otherwise(3)),
            when(age > 1).then(1).when(age > 0).then(2).otherwise(3),
        ),
        (weight.cut([0, 0.5]), weight.cut([0.0, 0.5])),
    ],
    ids=lambda it: repr(it),
)
def test_values_that_are_written_differently_have_one_form(one: Term, other: Term) -> None:
    assert canonical(encode(one.node)) == canonical(encode(other.node))


def test_values_that_differ_keep_their_forms() -> None:
    forms = [
        *(age - weight, weight - age, age / weight, weight / age, (age + weight) + height, age + (weight + height)),
        *(
            coalesce(age, weight),
            coalesce(weight, age),
            Term(Negative(part=(-age).node)),
            age,
            least(age, weight),
            greatest(age, weight),
        ),
        *(age + 1, age + 1.0, age.cut([1, 2]), age.cut([1.0, 2.0]), age.cut([1, 2], above=True), age.floor()),
    ]
    assert len({canonical(encode(form.node)) for form in forms}) == len(forms)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (age > weight, weight < age),
        (age >= weight, weight <= age),
        (age == weight, weight == age),
        (age != weight, weight != age),
        (term(1) < age, age > 1),
        (term("x") == name, name == "x"),
        (coalesce(age) == 1, age == 1),
        (age.between(1, 2), (age <= 2) & (age >= 1)),
        (age + 1 > 2, term(2) < age + 1),
    ],
)
def test_comparisons_that_are_written_differently_have_one_form(one, other) -> None:
    assert canonical(encode(one)) == canonical(encode(other))


def test_a_column_against_a_constant_is_written_as_it_always_was() -> None:
    """Certificates and stored answers of the first version stay what they are."""
    form = (
        '{"column":"age","constant":{"kind":"literal.whole","value":65,"version":1},"kind":"expression.compare",'
        '"operator":">=","version":1}'
    )
    assert canonical(encode(age >= 65)) == canonical(encode(term(65) <= age)) == form
    assert isinstance(age.isin([1]), type(Registry(EXPRESSIONS).decode(parse(canonical(encode(age.isin([1])))))))
    assert canonical(encode(age.isnull())) == '{"column":"age","kind":"expression.missing","version":1}'
    assert Registry(EXPRESSIONS).decode(parse(form)) == Compare(
        column="age", operator=Operator.AT_LEAST, constant=Whole(65)
    )


def test_every_node_of_the_corpus_is_read_back_as_it_was() -> None:
    registry = Registry(EXPRESSIONS)
    for one in [*PREDICATES, *(value.node for value in VALUES)]:
        assert registry.decode(parse(canonical(encode(one)))) == one


def test_expressions_are_written_in_one_line() -> None:
    value = when((weight / (height * height)).cut([0, 18.5]).isnull() & ~name.startswith('a"')).then(-age).otherwise(3)
    assert written(value.node) == (
        '(when (not (name starts with "a\\"")) and (cut(weight / (height * height), 0, 18.5) is missing) '
        "then -age otherwise 3)"
    )
    dates = written(seen.between(born, datetime.date(2026, 1, 2)))
    assert dates == "(seen <= 2026-01-02) and (born <= seen)"
    assert written(weight.abs().isin([1, 0.5]) | name.isin(["a", "b"]) | age.isnull()) == (
        '(age is missing) or (name in ("a", "b")) or (absolute(weight) in (0.5, 1))'
    )


# ------------------------------------------------------------------------------------------------- depth and size


def test_what_is_nested_too_deep_is_refused_when_it_is_made() -> None:
    value = weight
    for _ in range(49):
        value = -value
    with pytest.raises(InvalidInput, match="nested more than 50 deep"):
        abs(value)
    predicate = Compare(column="a", operator=Operator.EQUAL, constant=Whole(1))
    for _ in range(49):
        predicate = Not(part=predicate)
    with pytest.raises(InvalidInput, match="nested more than 50 deep"):
        Not(part=predicate)
    with pytest.raises(InvalidInput, match="nested more than 50 deep"):
        AllOf(parts=(predicate, predicate))


def test_what_is_written_out_too_long_is_refused_at_once() -> None:
    value = weight
    for _ in range(12):
        value = value * value  # 2^12 factors, if they were written out
    with pytest.raises(InvalidInput, match="more than 10,000 parts"):
        value * value


def test_what_is_too_deep_or_too_entangled_to_compute_is_refused_before_anything_is_read() -> None:
    product = weight
    for _ in range(11):
        product = product * height
    assert type_of(product, COLUMNS) is Type.NUMBER
    with pytest.raises(InvalidInput, match="nested too deeply to be computed; nothing was read"):
        type_of(product * height, COLUMNS)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        check(product * height > 1, COLUMNS)
    entangled = name
    for _ in range(8):
        entangled = entangled.cast("whole").cut([0, 1, 2, 3])
    with pytest.raises(InvalidInput, match="too entangled to be computed"):
        type_of(entangled, COLUMNS)


def test_sums_of_many_columns_are_neither_deep_nor_large() -> None:
    total = term(0)
    for place in range(45):
        total = total + col(f"c{place}")
    assert type_of(total, {f"c{place}": Type.WHOLE for place in range(45)}) is Type.WHOLE


# ----------------------------------------------------------------------------------------------- what is public


def test_the_labels_of_bins_are_public_and_name_the_bins() -> None:
    assert age.cut([0, 18, 65]).node.labels == ("[0, 18)", "[18, 65)")
    assert age.cut([0, 18], below=True, above=True).node.labels == ("< 0", "[0, 18)", ">= 18")
    assert weight.cut([-0.5, Fraction(1, 3), 2]).node.labels == ("[-0.5, 1/3)", "[1/3, 2)")
    assert seen.cut([datetime.date(2026, 1, 1)], above=True, below=True).node.labels == (
        "< 2026-01-01",
        ">= 2026-01-01",
    )
    assert age.cut([0, 18], labels=["minor"]).node.labels == ("minor",)


def test_the_list_of_all_values_follows_from_some_expressions() -> None:
    assert possible_values(age.cut([0, 18], above=True)) == ("[0, 18)", ">= 18")
    assert possible_values(seen.weekday()) == (1, 2, 3, 4, 5, 6, 7)
    assert possible_values(seen.month())[-1] == 12
    assert possible_values(seen.quarter()) == (1, 2, 3, 4)
    assert possible_values(when(age > 1).then("a").when(age > 0).then("b").otherwise("a")) == ("a", "b")
    assert possible_values(when(age > 1).then(True).otherwise(False).cast("whole")) == (0, 1)
    assert possible_values(coalesce(age.cut([0, 18]), "none")) == ("[0, 18)", "none")
    for unknown in (age, age + 1, seen, seen.year(), name.length(), when(age > 1).then(name).otherwise("x"), term(0.5)):
        assert possible_values(unknown) is None


def test_columns_are_found_everywhere() -> None:
    value = when(age > 1).then(coalesce(weight, height.floor())).otherwise(least(col("a") / col("b"), 1).fill(0))
    assert columns_of(value) == columns_of(value.node) == {"age", "weight", "height", "a", "b"}
    days = seen.days_since(born).cut([0, 1])
    assert columns_of(days.isin(["x"]) | name.startswith("a")) == {"seen", "born", "name"}
    assert columns_of(term(1)) == frozenset()


def test_nodes_can_be_written_by_hand_too() -> None:
    node = ValueCompare(
        left=Arithmetic(sign=Sign.OVER, left=Named(column="weight"), right=Negative(part=Named(column="height"))),
        operator=Operator.ABOVE,
        right=Number(Fraction(1, 2)),
    )
    check(node, COLUMNS)
    assert node == (weight / -height > 0.5)
    assert Cut(part=Named(column="age"), edges=(Whole(1),), labels=("x",), below=True, above=False)
