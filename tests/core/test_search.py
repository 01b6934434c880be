"""The searches: always the least, whatever the sizes say, and never many more steps than halving."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.search import around_decimal, least_decimal, least_whole, over

SHAPES = {
    "straight": lambda n, edge: edge - n,
    "yes or no": lambda n, edge: 0.5 - (n >= edge),
    "steep before": lambda n, edge: 1e12 if n < edge else -1e-12,
    "steep after": lambda n, edge: 1e-12 if n < edge else -math.inf,
    "endless before": lambda n, edge: math.inf if n < edge else 0.0,
    "curved": lambda n, edge: float(edge) ** 3 - float(n) ** 3,
}


@pytest.mark.few(3)
@settings(max_examples=60, deadline=None)
@given(edge=st.integers(0, 5000) | st.integers(0, 10**30), near=st.integers(0, 10**4) | st.integers(0, 10**31))
@pytest.mark.parametrize("shape", SHAPES)
def test_the_least_whole_number_is_found(shape: str, edge: int, near: int) -> None:
    if shape == "curved":
        edge, near = edge % 10**5, near % 10**5  # where a double tells neighbours apart
    asked = []
    found = least_whole(lambda n: asked.append(n) or SHAPES[shape](n, edge), near=near)
    assert found == edge
    halvings = max(edge, near, 1).bit_length()
    assert len(asked) <= 2 * halvings + 4
    assert min(asked) >= 0


def test_a_smooth_function_takes_few_steps() -> None:
    asked = []
    edge = least_whole(lambda n: asked.append(n) or 3 - n / 2**45 - (n / 2**45) ** 2, near=2**45)
    assert abs(edge / 2**45 - (math.sqrt(13) - 1) / 2) < 1e-12
    assert len(asked) <= 14


@settings(max_examples=60, deadline=None)
@given(
    edge=st.fractions(Fraction(1, 10**9), 10**9, max_denominator=10**9),
    near=st.fractions(Fraction(1, 10**9), 10**9, max_denominator=10**9),
    digits=st.integers(1, 12),
)
def test_decimals_around_an_edge(edge: Fraction, near: Fraction, digits: int) -> None:
    low, high = around_decimal(lambda x: over(edge, x), digits=digits, near=near)
    assert low < edge <= high
    assert least_decimal(lambda x: 0.5 - (x >= edge), digits=digits, near=near) == high
    step = high - low
    assert low / step == int(low / step)
    assert 10 ** (digits - 1) <= low / step < 10**digits


def test_over_has_the_exact_sign() -> None:
    close = Fraction(10**400 + 1, 10**400)
    assert over(close, Fraction(1)) > 0
    assert over(Fraction(1), Fraction(1)) <= 0
    assert over(Fraction(1), close) <= 0
    assert over(Fraction(0), Fraction(1)) == over(Fraction(-1), Fraction(1)) == -math.inf
    assert over(Fraction(1, 2**40_000), Fraction(1, 2**40_001)) == pytest.approx(math.log(2), rel=1e-6)
