"""Answers that would say nothing are refused before they are charged, unless somebody asks for them all the same."""

from datetime import date
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import Refused
from sfumato.tables.table import Table

DAYS = pa.array([date(2026, 1, 1)] * 50, pa.date32())
ROWS = pa.table({"id": list(range(50)), "came": DAYS, "left": DAYS, "x": [1.0] * 50, "sex": ["F", "M"] * 25})
STAY = "DATE_DIFF('day', came, left)"
AVERAGE = "SELECT AVG(DATE_DIFF('day', came, left)) FROM visits"


def declared(*, population: int | None = None, relation: str = "add/remove", n_units: int | None = None) -> Table:
    vault = sf.Vault(
        unit=sf.user("id", relation=relation), budget=sf.Budget(epsilon=100), name="clinic", population=population
    )
    table = vault.table(
        ROWS,
        name="visits",
        version="1",
        limit=sf.Limit(groups=1, rows_per_group=1),
        keys={"sex": ["F", "M"]},
        bounds={"x": (0, 10)},
        n_units=n_units,
    )
    return _Kept.keep(table, vault)


class _Kept:
    """Vaults are held by nobody else."""

    vaults: list[sf.Vault] = []  # noqa: RUF012 - one list for all

    @classmethod
    def keep(cls, table: Table, vault: sf.Vault) -> Table:
        cls.vaults.append(vault)
        return table

    @classmethod
    def spent(cls) -> Fraction:
        return cls.vaults[-1].spent.epsilon


def test_a_distance_of_dates_that_nobody_bounded_is_not_charged_without_a_word() -> None:
    table = declared()
    for asked in (AVERAGE, " ".join(("SELECT sex, SUM(1 +", STAY, ") AS days FROM visits GROUP BY sex"))):
        with pytest.raises(Refused, match=r"any distance of two dates, .*margin would be ±.*even_if_useless"):
            table.sql(asked).release(epsilon=1)
    with pytest.raises(Refused, match="Nothing was read and nothing was spent"):
        table.mean(sf.col("left").days_since(sf.col("came"))).release(epsilon=1, fresh=True)
    assert _Kept.spent() == 0
    assert table.sql(AVERAGE).release(epsilon=1, even_if_useless=True).charged.epsilon == 1
    assert table.sql(AVERAGE).release(epsilon=1).repeated, "what is stored costs nothing"


@pytest.mark.parametrize(
    "value",
    [
        f"GREATEST(0, LEAST(365, {STAY}))",
        f"CASE WHEN {STAY} > 7 THEN 1 ELSE 0 END",
    ],
)
def test_a_distance_of_dates_with_a_range_is_charged(value: str) -> None:
    assert declared().sql(AVERAGE.replace(STAY, value)).release(epsilon=1).charged.epsilon == 1


def test_a_margin_wider_than_all_that_a_figure_can_be_is_not_charged_without_a_word() -> None:
    table = declared(population=100)
    for question in (
        table.count(),
        table.group_by("sex").count(),
        table.sum("x"),
        table.mean("x"),
        table.mean(sf.col("x") > 0),
        table.agg(n=sf.count(), x=sf.variance("x")),
        table.marginals(["sex"]),
    ):
        with pytest.raises(Refused, match="would say nothing: its 95% margin would be ±"):
            question.release(epsilon="1/1000")
        assert _Kept.spent() == 0
    table.count().release(epsilon="1/1000", even_if_useless=True)
    assert _Kept.spent() == Fraction(1, 1000)


def test_the_limit_is_where_the_margin_is_as_wide_as_the_range() -> None:
    question = declared(population=100).count()
    least = question.epsilon_for(margin=99)
    assert question.release(epsilon=least).charged.epsilon == least
    with pytest.raises(Refused, match="all that it can be is 0 to 100"):
        question.release(epsilon=least * Fraction(97, 100))


def test_without_a_public_bound_nothing_is_known_and_nothing_is_refused() -> None:
    table = declared()
    for question in (table.count(), table.sum("x"), table.mean("x")):
        assert question.release(epsilon="1/1000").charged.epsilon == Fraction(1, 1000)


def test_a_public_number_of_units_is_such_a_bound() -> None:
    table = declared(relation="replace", n_units=50)
    with pytest.raises(Refused, match="all that it can be is 0 to 10"):
        table.mean("x").release(epsilon="1/1000")
    assert table.mean("x").release(epsilon=1).charged.epsilon == 1


def test_whether_it_is_refused_does_not_depend_on_the_rows() -> None:
    said = []
    for rows in (ROWS, ROWS.slice(0, 0)):
        vault = sf.Vault(
            unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="clinic", population=100
        )
        table = vault.table(rows, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
        with pytest.raises(Refused) as caught:
            table.count().release(epsilon="1/1000")
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_schema_with_a_population_bounds_it_too(tmp_path: Path) -> None:
    schema = tmp_path / "visits.toml"
    schema.write_text(
        'kind = "schema"\nversion = 1\n[dataset]\nname = "visits"\nversion = "1"\n[unit]\ncolumn = "id"\n'
        'population = 100\n[limit]\ngroups = 1\nrows_per_group = 1\n[columns.id]\ntype = "whole"\n',
        encoding="utf-8",
    )
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="clinic")
    with pytest.raises(Refused, match="0 to 100"):
        vault.table(ROWS.select(["id"]), schema=schema).count().release(epsilon="1/1000")
