"""Bounds that follow from an expression hold for every row whose columns keep theirs."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines.expressions import Term, Type, bounds_of, coalesce, col, greatest, least, term, type_of, when
from sfumato.errors import InvalidInput
from tests.engines.truth import Row, value_of

a, b, w, v, d, e = col("a"), col("b"), col("w"), col("v"), col("d"), col("e")
TYPES = {"a": Type.NUMBER, "b": Type.NUMBER, "w": Type.WHOLE, "v": Type.WHOLE, "d": Type.DATE, "e": Type.DATE}


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

numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 0.1, -0.1, 1e-140, -1e-140, 1e300, -1e300, 5e-324, 3e144])
wholes = st.integers(-1000, 1000) | st.sampled_from([0, 2**53 + 1, 2**63 - 1, -(2**63), 2**62])


@st.composite
def values(draw: st.DrawFn, kind: Type, depth: int) -> Term:
    names = ["a", "b"] if kind is Type.NUMBER else ["w", "v"]
    if depth == 0:
        constants = numbers.map(lambda it: term(it)) if kind is Type.NUMBER else wholes.map(term)
        return draw(st.sampled_from(names).map(col) | constants)
    one, two = draw(values(kind, depth - 1)), draw(values(kind, depth - 1))
    ways = [one + two, one - two, one * two, -one, abs(one), least(one, two), greatest(one, two), coalesce(one, two)]
    if kind is Type.NUMBER:
        ways += [one / two, one.floor(), draw(values(Type.WHOLE, depth - 1)).cast("number")]
    else:
        ways += [draw(values(Type.NUMBER, depth - 1)).cast("whole")]
    return draw(st.sampled_from(ways))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, tuple[Fraction, Fraction]], Row]:
    bounds, cells = {}, {}
    for name in "abwv":
        found = sorted(draw(st.lists(numbers if name in "ab" else wholes, min_size=3, max_size=3)))
        bounds[name] = (Fraction(found[0]), Fraction(found[2]))
        cells[name] = draw(st.sampled_from([*found, None]))
    return bounds, Row(cells, frozenset("ab"))


@settings(max_examples=600, deadline=None)
@given(value=values(Type.NUMBER, 3) | values(Type.WHOLE, 3), world=worlds())
def test_no_row_leaves_the_bounds(value: Term, world: tuple[dict[str, tuple[Fraction, Fraction]], Row]) -> None:
    bounds, row = world
    try:
        type_of(value, TYPES)
    except InvalidInput:  # entangled beyond what can be computed
        return
    found, said = value_of(value, row), bounds_of(value, bounds)
    if said is not None and found is not None:
        assert said[0] <= Fraction(found) <= said[1]  # type: ignore[arg-type]


def test_twin_without_outward_rounding_is_caught() -> None:
    """Exact interval arithmetic alone is left by what doubles give: 0.1 + 0.2 is above 3/10."""
    row = Row({"a": 0.1, "b": 0.2}, frozenset("ab"))
    tight = Fraction(1, 10) + Fraction(2, 10)
    found = Fraction(value_of(a + b, row))  # type: ignore[arg-type]
    assert found > tight
    said = bounds_of(a + b, {"a": exact("1/10", "1/10"), "b": exact("1/5", "1/5")})
    assert said is not None
    assert said[0] <= found <= said[1]
