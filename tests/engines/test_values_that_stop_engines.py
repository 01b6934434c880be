"""Values that made an engine fail, or told something of themselves by a type or by time: each is one among others."""

from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Refused

ONE = sf.Limit(groups=1, rows_per_group=1)
SURE = 10**4


def vault() -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="odd")


@pytest.mark.parametrize("odd", [107_000_000, -(10**9), 10**9])
@pytest.mark.parametrize("unit", ["month", "quarter", "year"])
def test_a_day_beyond_the_calendar_does_not_stop_truncation(odd: int, unit: str) -> None:
    rows = pa.table({"id": [1, 2], "x": pa.array([18_000, odd], pa.int32()).cast(pa.date32())})
    days = {"x": (date(2019, 1, 1), date(2019, 12, 31))}
    table = vault().table(rows, name="t", version="1", limit=ONE, bounds=days)
    text = f"SELECT COUNT(*) FROM t WHERE DATE_TRUNC('{unit}', x) >= DATE '2019-01-01'"  # noqa: S608 - ours
    assert table.sql(text).release(epsilon=SURE).values == (1,)


@pytest.mark.parametrize(("unit", "odd"), [("s", 10**15), ("ms", 10**17), ("s", -(10**18))])
@pytest.mark.parametrize("as_file", [False, True], ids=["frame", "Feather"])
def test_a_time_beyond_microseconds_is_missing(unit: str, odd: int, as_file: bool, tmp_path: Path) -> None:
    good = 1_600_000_000 * (1 if unit == "s" else 1000)
    rows: Any = pa.table({"id": [1, 2], "x": pa.array([good, odd], pa.int64()).cast(pa.timestamp(unit))})
    if as_file:
        feather.write_feather(rows, tmp_path / "t.feather")
        rows = tmp_path / "t.feather"
    table = vault().table(rows, name="t", version="1", limit=ONE)
    assert table.count().release(epsilon=SURE).values == (2,)
    asked = table.sql("SELECT COUNT(*) FROM t WHERE x >= TIMESTAMP '2019-01-01'")
    assert asked.release(epsilon=SURE).values == (1,)
    assert table.sql("SELECT COUNT(*) FROM t WHERE x IS NULL").release(epsilon=SURE).values == (1,)


def test_a_missing_number_of_pandas_changes_no_question() -> None:
    """Pandas makes numbers of whole numbers where one is missing: what is asked may not tell."""
    sizes = set()
    for last in (3, None):
        frame = pd.DataFrame({"id": [1, 2], "n": [1, last]})
        table = vault().table(frame, name="t", version="1", limit=ONE, bounds={"n": (0, 10)})
        sizes.add(table.median("n").query.size)
    assert len(sizes) == 1


def joined() -> tuple[Any, Any]:
    rows = pa.table({"id": [1, 1, 2], "k": [1, 1, 2]})
    held = vault()
    limit = sf.Limit(groups=1, rows_per_group=10)
    return tuple(held.table(rows, name=name, version="1", limit=limit, bounds={"k": (0, 5)}) for name in ("s", "l"))  # type: ignore[return-value]


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.contributions(),
        lambda table: table.suggest_limit(spend=1),
        lambda table: table.suggest_bounds("k", most=100),
    ],
    ids=["contributions", "suggest_limit", "suggest_bounds"],
)
def test_rows_that_multiply_in_a_join_are_not_counted_without_a_limit(ask: Any) -> None:
    """One person's rows become their product: how long it takes would tell who is there."""
    stays, labs = joined()
    with pytest.raises(Refused, match="in a join with a private table these multiply"):
        ask(stays.join(labs, on="id")).release(epsilon=1)


def test_another_limit_before_a_join_that_makes_one_row_a_person_is_refused() -> None:
    """It would cut what rows are made of, and questions under different limits would share their answers."""
    stays, labs = joined()
    two = stays.with_limit(sf.Limit(groups=1, rows_per_group=2)).join(labs, on=["id", "k"]).per_person(n=sf.count())
    with pytest.raises(InvalidInput, match="another limit cannot be given where a private join comes before"):
        two.count()
    with pytest.raises(InvalidInput, match="was given another limit before a private join"):
        labs.with_persons(o=two)
    alone = stays.with_limit(sf.Limit(groups=1, rows_per_group=2)).per_person(n=sf.count())
    assert alone.count().preview(epsilon=1).sensitivity.l1.value == 1


def test_pairs_of_rows_are_not_called_by_the_word_for_rows() -> None:
    rows = pa.table({"id": [1, 1, 2], "k": [1, 1, 2]})
    held, limit = vault(), sf.Limit(groups=1, rows_per_group=3, row="visit", person="patient")
    stays, labs = (held.table(rows, name=name, version="1", limit=limit) for name in ("s", "l"))
    assert "at most 3 visits per patient" in str(stays.count().preview(epsilon=1))
    paired = str(stays.join(labs, on="id").count().preview(epsilon=1))
    assert "visits" not in paired
    assert "at most 3 rows per patient" in paired
