"""Bounds that follow from an expression hold for every row whose columns keep theirs."""

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import sfumato.engines.expressions.bounds as bounds_module
from sfumato.engines.expressions import Term, Type, bounds_of, coalesce, col, greatest, least, term, type_of, when
from tests.engines.asking import FEW
from tests.engines.corners import COLUMNS
from tests.engines.corners import TYPES as COLUMN_TYPES
from tests.engines.corners import rows as corners
from tests.engines.corpus import VALUES
from tests.engines.fuzz import terms
from tests.engines.truth import Row, value_of

a, w, v, d, e = col("a"), col("w"), col("v"), col("d"), col("e")
number, amount, whole, other = col("number"), col("amount"), col("whole"), col("other")
DECIMALS = ("price", "sum")  # read as the nearest doubles, which may lie outside by as much; what is summed is clamped
NUMERIC = (Type.WHOLE, Type.NUMBER)
NAMES = [name for name, kind in COLUMN_TYPES.items() if kind in NUMERIC and name not in DECIMALS]
PLACES: dict[str, list[Any]] = {
    name: [cell for cell in COLUMNS[name][1] if cell is not None and math.isfinite(cell)]  # type: ignore[arg-type]
    for name in NAMES
}
EVERYWHERE = {name: (Fraction(min(cells)), Fraction(max(cells))) for name, cells in PLACES.items()}
MANY = 2000 if os.environ.get("SFUMATO_LONG") == "1" else 150


def exact(low: object, high: object) -> tuple[Fraction, Fraction]:
    return Fraction(low), Fraction(high)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "bounds", "expected"),
    [
        (w, {"w": (0, 120)}, (0, 120)),
        (w + v, {"w": (0, 120), "v": (-1, 1)}, (-1, 121)),
        (w - v, {"w": (0, 120), "v": (-1, 2)}, (-2, 121)),
        (w - w, {"w": (0, 120)}, (-120, 120)),
        (w * v, {"w": (-2, 3), "v": (-5, 7)}, (-15, 21)),
        (w / v, {"w": (-2, 3), "v": (1, 4)}, (-2, 3)),
        (w / v, {"w": (-2, 3), "v": (-4, -1)}, (-3, 2)),
        (-w, {"w": (-2, 3)}, (-3, 2)),
        (-(a * 0.5), {"a": (0, 4)}, (-2, 0)),
        (abs(w), {"w": (-2, 1)}, (0, 2)),
        (abs(w), {"w": (1, 2)}, (1, 2)),
        (abs(w), {"w": (-2, -1)}, (1, 2)),
        (a.floor(), {"a": ("-1/2", "5/2")}, (-1, 2)),
        (a.cast("whole"), {"a": ("-1/2", "5/2")}, (-1, 2)),
        (w.cast("number"), {"w": (0, 2)}, (0, 2)),
        (least(w, 7), {"w": (0, 120)}, (0, 7)),
        (greatest(w, 7), {"w": (0, 120)}, (7, 120)),
        (w.clip(0, 30), {}, (0, 30)),
        (a.clip(0.5, 30), {}, ("1/2", 30)),
        (coalesce(w, v), {"w": (0, 1), "v": (5, 9)}, (0, 9)),
        (w.fill(-7), {"w": (0, 1)}, (-7, 1)),
        (when(v > 1).then(w).otherwise(w * 2), {"w": (1, 2)}, (1, 4)),
        (when(v > 1).then(w), {"w": (1, 2)}, (1, 2)),
        (d.year(), {}, (1, 9999)),
        (d.month(), {}, (1, 12)),
        (d.day(), {}, (1, 31)),
        (d.weekday() * 10, {}, (10, 70)),
        (d.quarter(), {}, (1, 4)),
        (d.days_since(e), {}, (-3652058, 3652058)),
        (term(3) + 4, {}, (7, 7)),
        (d.month() + (2**63 - 1), {}, (2**63 - 1, 2**63 - 1)),
        (d.month() * -(2**62), {}, (-(2**63), -(2**62))),
        (w * 2**62, {"w": (-8, 1)}, (-(2**65), 2**62)),  # whole numbers would stop at -2^63
        (-w, {"w": (-(2**63), 0)}, (0, 2**63)),  # a number would be just that
        (-(w * 1 + v), {"w": (0, 1), "v": (0, 1)}, (-2, 0)),
        (a * 1e200, {"a": (0, "1e300")}, (0, 2**480)),
        (a * 1e-200, {"a": (0, 1)}, (0, 0)),
        (a + 0.1, {"a": ("1/10", "1/10")}, (0.2, math.nextafter(0.2, 1))),
    ],
    ids=lambda it: repr(it) if isinstance(it, Term) else "",
)  # fmt: skip
def test_bounds_follow(value: Term, bounds: dict, expected: tuple) -> None:
    low, high = exact(*expected)
    found = bounds_of(value, {name: exact(*pair) for name, pair in bounds.items()})
    assert found is not None
    if isinstance(expected[0], float):  # rounding outward may take the neighbours of the nearest double
        assert low - Fraction(1, 2**50) <= found[0] <= low <= found[1] <= high
    else:
        assert found == (low, high)


@pytest.mark.parametrize(
    "value",
    [w, w + 1, w * 0, -w, abs(w), a.floor(), least(w, 1), greatest(w, 1), w.fill(0), 1 / v, w / v, col("t").length(),
     w.cast("number"), a.cast("whole"), when(w > 0).then(1).otherwise(w), col("t").cast("whole"), term("x")],
    ids=repr,
)  # fmt: skip
def test_what_does_not_follow_is_none(value: Term) -> None:
    assert bounds_of(value, {"v": exact(-1, 1)}) is None


def test_a_divisor_that_may_be_next_to_nothing_bounds_nothing() -> None:
    assert bounds_of(1 / a, {"a": exact(0, 1)}) is None
    assert bounds_of(1 / a, {"a": (Fraction(1, 10**400), Fraction(1))}) is None  # held, it may be 0
    assert bounds_of(1 / a, {"a": exact("1/4", 1)}) == exact(1, 4)


# ------------------------------------------------------------------------------ by brute force over what is inside


@cache
def rows() -> list[Row]:
    return corners(FEW)


def within(bounds: Mapping[str, tuple[Fraction, Fraction]], row: Row) -> Row:
    """The row with each cell brought into the bounds of its column; what is missing stays so."""

    def inside(name: str, cell: Any) -> Any:
        if name not in bounds or cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return cell
        low, high = (type(cell)(end) for end in bounds[name])
        return max(low, min(high, cell))

    return Row({name: inside(name, cell) for name, cell in row.items()}, row.numbers, row.clocks)


def outside(value: Term, bounds: Mapping[str, tuple[Fraction, Fraction]]) -> list[Any]:
    """What the value is on rows within the bounds of the columns, where that is not within its own."""
    said = bounds_of(value, bounds)
    if said is None:
        return []
    found = [value_of(value, within(bounds, row)) for row in rows()]
    return [one for one in found if one is not None and not said[0] <= Fraction(one) <= said[1]]  # type: ignore[arg-type]


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, tuple[Fraction, Fraction]]:
    """Bounds of all numeric columns but perhaps one, from the corners of each."""
    unbounded = draw(st.sampled_from([None, *NAMES]))
    bounds = {}
    for name in NAMES:
        ends = draw(st.lists(st.sampled_from(PLACES[name]), min_size=2, max_size=2))
        if name != unbounded:
            bounds[name] = (Fraction(min(ends)), Fraction(max(ends)))
    return bounds


@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=terms(Type.NUMBER, 3) | terms(Type.WHOLE, 3), bounds=worlds())
@example(value=greatest(number, 2**53 + 1), bounds=EVERYWHERE)  # beside a number, that is 2^53
@example(value=abs(-number) + amount, bounds=EVERYWHERE)
@example(value=-number + amount, bounds=EVERYWHERE)  # an opposite of what may be either kind may still be either
@example(value=-whole + other, bounds=EVERYWHERE)
def test_no_row_leaves_the_bounds(value: Term, bounds: dict[str, tuple[Fraction, Fraction]]) -> None:
    assert outside(value, bounds) == []


def test_no_row_of_the_corpus_leaves_the_bounds_and_most_bounds_are_known() -> None:
    numeric = [value for value in VALUES if type_of(value, COLUMN_TYPES) in (Type.WHOLE, Type.NUMBER)]
    assert [value for value in numeric if outside(value, EVERYWHERE)] == []
    known = [value for value in numeric if bounds_of(value, EVERYWHERE) is not None]
    assert len(known) >= 80
    assert len(numeric) - len(known) <= 80  # lengths, texts read as numbers, divisors that may be 0


@pytest.mark.few(1)
@pytest.mark.parametrize("broken", ["_down", "_held", "_saturated"])
def test_twin_a_rule_left_out_is_caught(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """Without outward rounding, or without the ends that arithmetic is held to, bounds are wrong and it shows."""
    halved = {"_down": lambda value: value, "_held": _halved, "_saturated": _halved}
    numeric = [value for value in VALUES if type_of(value, COLUMN_TYPES) in (Type.WHOLE, Type.NUMBER)]
    monkeypatch.setattr(bounds_module, broken, halved[broken])
    assert any(outside(value, EVERYWHERE) for value in numeric)


def _halved(value: Fraction | None) -> Fraction | None:
    return None if value is None else value / 2
