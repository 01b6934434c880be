"""Keys whose place is worked out row by row: the same cells as by a look-up in the list, and as by hand."""

import os
from collections.abc import Sequence
from datetime import date, datetime
from itertools import product
from math import isnan, nan
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.engines import contribution_limits
from sfumato.engines.bounded import bounded_totals
from sfumato.engines.counts import KeyColumn, Share, bounded_counts
from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.expressions import col, when
from sfumato.engines.key_places import is_placed
from sfumato.engines.lattice import Lattice
from sfumato.engines.quantile_counts import lattice_counts
from sfumato.engines.sources import Source
from sfumato.engines.sufficient_statistics import RowIndicator
from sfumato.errors import EngineFailed
from tests.laws.scenarios import SECRET

FIRST, LAST = -(2**63), 2**63 - 1
COLUMNS: dict[str, list[Any]] = {
    "text": ["a", "b", "A", "", None, "it's", "é", "a "],
    "truth": [True, False, None],
    "number": [0, 1, 2, 3, -1, FIRST, LAST, None],
    "size": [0.0, 9.5, 10.0, 19.9, 20.0, -0.1, nan, None],
    "day": [date(2026, 1, 1), date(2026, 1, 2), date(1, 1, 1), None],
    "time": [datetime(2026, 1, 1, 23, 59), datetime(2026, 1, 2), None],
}
NUMBER = 2_400
FRAME = pa.table(
    {"id": [at % 7 for at in range(NUMBER)]}
    | {
        name: [held[at * (3 + place) % 97 % len(held)] for at in range(NUMBER)]
        for place, (name, held) in enumerate(COLUMNS.items())
    }
)
CUT = col("size").cut([0, 10, 20]).node
ENDS = col("number").cut([0, 2], below=True, above=True).node
CASE = when(col("truth")).then("yes").when(col("number") > 1).then("many").otherwise("no").node
OPEN = when(col("truth")).then(1).when(col("number") > 1).then(2).node


def keys() -> dict[str, KeyColumn]:
    return {
        "few texts": KeyColumn(column="text", values=("a", "it's", "é")),
        "few texts and others": KeyColumn(column="text", values=("", "b"), other=True),
        "a truth": KeyColumn(column="truth", values=(True, False)),
        "one side": KeyColumn(column="truth", values=(False,)),
        "numbers in a row": KeyColumn(column="number", values=(-1, 0, 1, 2, 3, 4, 5)),
        "the greatest": KeyColumn(column="number", values=(LAST - 1, LAST)),
        "the least": KeyColumn(column="number", values=(FIRST, FIRST + 1)),
        "few numbers": KeyColumn(column="number", values=(3, 0, FIRST)),
        "days": KeyColumn(column="day", values=(date(2026, 1, 2), date(2026, 1, 1))),
        "days of times": KeyColumn(column="time", values=(date(2026, 1, 1),)),
        "a cut": KeyColumn(column="size", values=CUT.labels, value=CUT),
        "some bins": KeyColumn(column="size", values=CUT.labels[1:], value=CUT, other=True),
        "a cut with open ends": KeyColumn(column="number", values=ENDS.labels, value=ENDS),
        "a case": KeyColumn(column="case", values=("no", "yes"), value=CASE),
        "an open case": KeyColumn(column="case", values=(2, 1), value=OPEN),
    }


def meant(key: KeyColumn, row: dict[str, Any]) -> Any:
    """The key of a row, by hand."""
    if key.value is CUT:
        size = row["size"]
        inside = size is not None and not isnan(size) and 0 <= size < 20
        return CUT.labels[int(size // 10)] if inside else None
    if key.value is ENDS:
        number = row["number"]
        return None if number is None else ENDS.labels[0 if number < 0 else 1 if number < 2 else 2]
    if key.value is CASE or key.value is OPEN:
        texts = ("yes", "many", "no") if key.value is CASE else (1, 2, None)
        return texts[0] if row["truth"] else texts[1] if (row["number"] or 0) > 1 else texts[2]
    found = row[key.column]
    return found.date() if isinstance(found, datetime) else found


def by_hand(asked: Sequence[KeyColumn], *, by_person: bool) -> list[int]:
    places = [[*key.values, ...] if key.other else [*key.values] for key in asked]
    counts = dict.fromkeys(product(*(range(len(place)) for place in places)), 0)
    own: dict[tuple[int, tuple[int, ...]], int] = {}
    for row in FRAME.to_pylist():
        found = []
        for key, place in zip(asked, places, strict=True):
            said = meant(key, row)
            known = [at for at, each in enumerate(key.values) if type(each) is type(said) and each == said]
            found += known or ([len(place) - 1] if key.other else [])
        if len(found) == len(asked):
            own[row["id"], tuple(found)] = own.get((row["id"], tuple(found)), 0) + 1
    for (_, cell), rows in own.items():
        counts[cell] += min(rows, 5) if by_person else rows
    return list(counts.values())


def counted(asked: Sequence[KeyColumn], share: Share | None) -> list[int]:
    with Source(FRAME).opened() as table:
        return bounded_counts(table, where=None, keys=asked, share=share)


def share(groups: int) -> Share:
    return Share(column="id", limit=Limit(groups=groups, rows_per_group=5), secret=SECRET)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", keys())
def test_the_cells_are_those_of_a_look_up_and_of_plain_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, beside = keys()[name], keys()["few texts and others"]
    assert is_placed(one.value, one.values, DUCKDB)
    cases = [(asked, each) for asked in ([one], [one, beside], [beside, one]) for each in (None, share(100))]
    found = [counted(*case) for case in cases]
    assert all(sum(counts) > 0 for counts in found)
    assert found == [by_hand(asked, by_person=each is not None) for asked, each in cases]
    monkeypatch.setattr(type(DUCKDB), "places_keys", False)
    assert not is_placed(one.value, one.values, DUCKDB)
    assert [counted(*case) for case in cases] == found


def test_a_key_beside_one_that_is_looked_up_is_in_its_cell() -> None:
    many = KeyColumn(column="text", values=("a", "b", "A", "", "it's", "é"))
    assert not is_placed(many.value, many.values, DUCKDB)
    for asked in ([many, keys()["a cut"]], [keys()["a truth"], many, keys()["numbers in a row"]]):
        assert counted(asked, None) == by_hand(asked, by_person=False)


def test_a_null_character_is_looked_up() -> None:
    assert not is_placed(None, ("a\0", "b"), DUCKDB)
    assert counted([KeyColumn(column="text", values=("a\0", "b"))], None)[0] == 0


def test_values_by_cell_leave_out_rows_in_no_cell() -> None:
    lattice = Lattice(value=col("size").node, low=0, high=20, steps=2)
    with Source(FRAME).opened() as table:
        found = lattice_counts(table, where=None, keys=[keys()["a truth"]], share=None, lattice=lattice)
    rows = [row for row in FRAME.to_pylist() if row["size"] is not None and not isnan(row["size"])]
    assert [int(counts.sum()) for _, counts in found] == [
        sum(row["truth"] is side for row in rows) for side in (True, False)
    ]


def test_a_place_that_is_off_by_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = contribution_limits.key_place
    monkeypatch.setattr(contribution_limits, "key_place", lambda *asked: (true(*asked) + 1) % 2)
    one = keys()["a truth"]
    assert counted([one], None) != by_hand([one], by_person=False)


def test_the_text_of_a_plan_is_kept_for_that_plan_alone() -> None:
    """Other rows, another condition and another secret each have their own answer, however often they are asked."""
    other = Source(FRAME.slice(0, 1_000))
    own, texts = Source(FRAME), [KeyColumn(column="text", values=("a", "b"))]

    def totals(source: Source, where: Any = None, secret: str = SECRET) -> list[list[int]]:
        held = Share(column="id", limit=Limit(groups=1, rows_per_group=5), secret=secret)
        with source.opened() as table:
            free = bounded_totals(table, where=where, keys=texts, share=None, gauges=[RowIndicator(height=1)])
            return free + bounded_totals(table, where=where, keys=texts, share=held, gauges=[RowIndicator(height=1)])

    asked: list[dict[str, Any]] = [
        {"source": own},
        {"source": other},
        {"source": own, "where": col("number") > 0},
        {"source": own, "secret": "another secret"},
    ]
    first = [totals(**each) for each in asked]
    assert len({str(each) for each in first}) == len(asked)
    assert [totals(**each) for each in asked] == first


def test_a_process_that_was_forked_off_is_told_before_a_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its engine has no copy of the frame: the columns, which are looked at before a charge, are refused."""
    source = Source(FRAME)
    source.columns()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(EngineFailed, match="nothing was spent"):
        source.columns()
