"""Every number that is shown lies in the interval that is shown beside it."""

from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.inference.consistency import non_negative, rising, rising_medians, whole_table
from sfumato.reports.columns import NOTHING, columns_of

ROWS = pa.table({
    "id": list(range(120)) * 2,
    "sex": ["F", "M", "M"] * 80,
    "age": [18 + row % 70 for row in range(240)],
    "sbp": [90.0 + row % 80 for row in range(240)],
})  # fmt: skip


def inside(figure: Any) -> None:
    for joint, of in product((False, True), (None, "data")):
        for value, (low, high) in zip(figure.values, figure.interval(joint=joint, of=of), strict=True):
            assert low <= value <= high or value != value


def table() -> Any:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=100), name="people")
    return vault.table(
        ROWS,
        name="visits",
        version="1",
        keys={"sex": ["F", "M", "X"]},
        bounds={"age": (0, 120), "sbp": (80, 200)},
        limit=sf.Limit(groups=1, rows_per_group=2),
    )


@pytest.fixture(scope="module")
def many() -> Release:
    return (
        table()
        .group_by("sex")
        .agg(
            n=sf.count(),
            p=sf.persons(),
            old=sf.proportion(sf.col("age") >= 65),
            age=sf.mean("age"),
            sbp=sf.sum("sbp"),
            spread=sf.standard_deviation("sbp"),
            both=sf.ratio("sbp", "age"),
        )
        .release(epsilon=2)
    )


def test_columns_hold_their_points(many: Release) -> None:
    for figure in many.columns.values():
        inside(figure)


def test_counts_beside_means_are_whole_and_their_intervals_hold_the_finer_ones(many: Release) -> None:
    for name in ("n", "p"):
        column = many[name]
        assert all(isinstance(number, int) for number in column.values)
        ends = [end for pair in column.interval() for end in pair]
        assert all(isinstance(end, int) for end in ends)
        for form, (low, high) in zip(column.forms, column.interval(), strict=True):
            margin = form.margin(Fraction(19, 20))
            assert low <= form.value - margin <= form.value + margin <= high
            assert high - low <= 2 * margin + 2
    assert many.to_arrow()["n"].type == pa.int64()
    assert str(many["n"].total()).split()[0].lstrip("-").isdigit()


def test_numbers_are_rounded_for_their_own_margin(many: Release) -> None:
    """A share near 0 with a wide margin is not 0.00000 because another group has a narrow one."""
    for column in columns_of(many):
        for place, half in enumerate(column.halves):
            text = column.text(place)
            if half and not column.counts:
                digits = len(text.partition(".")[2])
                assert 10.0**-digits >= float(half) / 100 or digits == 0, (column.name, text, half)
            ends = column.interval(place)
            if ends is not None and text != NOTHING:
                low, value, high = (float(each.replace(",", "")) for each in (ends[0], text, ends[1]))
                assert low <= value <= high


@pytest.mark.parametrize("adjust", [rising, rising_medians, non_negative, lambda given: whole_table(given, total=40)])
def test_adjusted_numbers_lie_in_their_intervals(adjust: Any) -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=100), name="rows")
    held = vault.table(ROWS, name="v", version="1", keys={"age": list(range(120))})
    inside(adjust(held.group_by("age").count().release(epsilon="1/20")))


def test_a_sequence_of_degrees_lies_in_its_intervals() -> None:
    vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=100), name="contacts")
    ring = [(person, (person + step) % 60) for person in range(60) for step in (1, 2)]
    release = vault.graph(ring, name="wards", version="1", nodes=80).degree_sequence().release(epsilon="1/4")
    inside(next(iter(release.columns.values())))
