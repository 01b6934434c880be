"""A form becomes SQL over declared columns, and nothing that is typed becomes anything but a constant."""

from datetime import date
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError
from sfumato.server.asking.form import MEASURES, OPERATORS, QuestionForm, group_choices
from sfumato.server.asking.offers import no_rows
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table

SCHEMA = Schema(
    name='vis"its',
    edition="1",
    unit="patient_id",
    limit=sf.Limit(groups=2, rows_per_group=3),
    columns=(
        ColumnFacts(name="patient_id", type=Type.TEXT, keys=("p1", "p2")),
        ColumnFacts(name='re"gion', type=Type.TEXT, keys=("Dun'mere", "west")),
        ColumnFacts(name="age", type=Type.WHOLE, bounds=(Fraction(0), Fraction(99))),
        ColumnFacts(name="sbp", type=Type.NUMBER, bounds=(Fraction(70), Fraction(240))),
        ColumnFacts(name="day", type=Type.DATE, bounds=(date(2026, 1, 1), date(2026, 12, 31))),
        ColumnFacts(name="died", type=Type.TRUTH),
        ColumnFacts(name="note", type=Type.TEXT),
    ),
)


@cache
def declared() -> Table:
    vault = sf.Vault(unit=sf.user("patient_id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="x")
    return vault.table(no_rows(SCHEMA), schema=SCHEMA)


@pytest.fixture
def table() -> Table:
    return declared()


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_is_the_question_that_its_sql_asks(measure: str, table: Table) -> None:
    fields = {"measure": measure, "value": "age", "group1": 're"gion', "group2": "day/month"}
    fields |= {"share_column": "died", "share_value": "true", "where1_column": "age", "where1_operator": ">="}
    form = QuestionForm.read("visits", {**fields, "where1_value": "65"})
    found = table.sql(form.to_sql(SCHEMA)).query
    assert list(found.labels()) == ['re"gion', "day by month"]
    assert "age >= 65" in str(found.where)


def test_every_group_that_is_offered_can_be_asked_and_the_person_is_none(table: Table) -> None:
    codes = [choice.code for choice in group_choices(SCHEMA)]
    assert "patient_id" not in codes
    assert {'re"gion', "age/10", "day/year"} <= set(codes)
    for code in codes:
        found = table.sql(QuestionForm.read("visits", {"group1": code}).to_sql(SCHEMA)).query
        assert len(next(iter(found.labels().values()))) >= 1


@given(
    column=st.sampled_from(['re"gion', "note", "age", "sbp", "day", "died", "patient_id", "none"]),
    operator=st.sampled_from([*OPERATORS, "; DROP TABLE", "LIKE"]),
    value=st.one_of(
        st.text(max_size=30), st.sampled_from(["1", "-2.5", "2026-01-31", "true", "' OR 1=1 --", '"', "1e5"])
    ),
)
def test_whatever_is_typed_stays_a_constant(column: str, operator: str, value: str) -> None:
    fields = {"where1_column": column, "where1_operator": operator, "where1_value": value}
    typed = QuestionForm.read("visits", fields)
    if column in ("patient_id", "none") or operator not in OPERATORS:
        with pytest.raises(InvalidInput, match="nothing was done"):
            typed.to_sql(SCHEMA)
        return
    try:
        query = declared().sql(typed.to_sql(SCHEMA)).query
    except SfumatoError:  # what is no constant of the column's type; of a text, what SQL cannot hold
        return
    assert list(query.labels()) == []
    if column in ('re"gion', "note"):
        assert query.where == (sf.col(column) == value.strip() if operator == "=" else sf.col(column) != value.strip())
    else:
        assert not {" and ", " or "} & {word for word in (" and ", " or ") if word in str(query.where)}
    assert query.names == ("count",)


@pytest.mark.parametrize(
    ("fields", "wrong", "words"),
    [
        ({"group1": "patient_id"}, InvalidInput, "cannot be grouped by"),
        ({"measure": "mean", "value": "note"}, InvalidInput, "not a column"),
        ({"measure": "mean"}, InvalidInput, "Choose one of age, sbp"),
        ({"measure": "drop"}, InvalidInput, "SQL has"),
        ({"measure": "share"}, InvalidInput, "Choose them"),
        ({"where1_column": "day", "where1_value": "yesterday"}, InvalidInput, "a day such as"),
        ({"where1_column": "age", "where1_value": "1.5"}, InvalidInput, "whole numbers"),
        (
            {"where1_column": "died", "where1_operator": "<", "where1_value": "true"},
            InvalidInput,
            "is compared by = <>",
        ),
        ({"where1_column": "note", "where1_value": "x" * 201}, InvalidInput, "more than 200"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_would_do(
    fields: dict[str, str], wrong: type[Exception], words: str
) -> None:
    with pytest.raises(wrong, match=words):
        QuestionForm.read("visits", fields).to_sql(SCHEMA)


def test_persons_are_counted_only_where_a_column_identifies_them() -> None:
    bare = Schema(name="rows", edition="1", columns=(ColumnFacts(name="ward", type=Type.TEXT, keys=("a",)),))
    with pytest.raises(NotDeclared, match="Count rows"):
        QuestionForm.read("rows", {"measure": "persons"}).to_sql(bare)
