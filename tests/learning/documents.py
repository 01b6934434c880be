"""Declarations of training at random: their fields depend on each other, and chance hardly ever meets that."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sfumato.core.query import Dataset
from sfumato.learning import NoisySums, Training
from tests.learning.paradigms import documents as paradigms

SMALL = st.integers(1, 9)
SIZES = st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=10**6)
RATES = st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**6)
DATA = st.builds(Dataset, name=st.sampled_from(["visits", "北部"]), edition=st.just("1"))


def _run(units: str, times: int, steps: int, **rest: Any) -> Training:
    return Training(units=units, times=1 if units == "user" else times, steps=steps, done=steps // 2, **rest)


RARE: dict[str, st.SearchStrategy[Any]] = {
    "query.training": st.builds(
        _run,
        dataset=DATA,
        units=st.sampled_from(["record", "user", "group"]),
        clip=SIZES,
        times=SMALL,
        records=SMALL,
        number=st.integers(1, 10**9),
        rate=RATES,
        steps=st.integers(1, 10**6),
        parameters=st.integers(1, 10**9),
        weights=st.just("") | st.binary(min_size=32, max_size=32).map(bytes.hex),
    ),
    "mechanism.noisy_sums": st.builds(
        NoisySums, multiplier=SIZES, steps=st.integers(1, 10**6), rate=RATES, parameters=st.integers(1, 10**6)
    ),
    **paradigms.RARE,
}
