"""Declarations of training at random: their fields depend on each other, and chance hardly ever meets that."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sfumato.core.query import Dataset
from sfumato.learning import BandedSums, BestOfRuns, NoisySums, Training, Tuning
from sfumato.learning.evaluation import Evaluations
from sfumato.mechanisms.gaussian import Gaussian
from tests.learning.paradigms import documents as paradigms

SMALL = st.integers(1, 9)
SIZES = st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=10**6)
RATES = st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**6)
DATA = st.builds(Dataset, name=st.sampled_from(["visits", "北部"]), edition=st.just("1"))


def _run(units: str, times: int, records: int, steps: int, **rest: Any) -> Training:
    own = {"times": 1, "records": records} if units == "user" else {"times": times, "records": 1}
    return Training(units=units, steps=steps, done=steps // 2, **own, **rest)


def _search(held_out: Fraction, chosen: int, **rest: Any) -> Tuning:
    data = Dataset(name="visits", edition="1")
    facts: dict[str, Any] = {"dataset": data, "units": "record", "times": 1, "records": 1, "number": 80, "steps": 9}
    runs = [Training(clip=Fraction(clip), rate=Fraction(1, 2), parameters=7, **facts) for clip in (1, 2)]
    return Tuning(dataset=data, number=100, held_out=held_out, candidates=tuple(runs), chosen=chosen, **rest)


SUMS = st.builds(NoisySums, multiplier=SIZES, steps=st.integers(1, 10**6), rate=RATES, parameters=st.integers(1, 10**6))

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
    "query.evaluations": st.builds(
        Evaluations,
        dataset=DATA,
        units=st.sampled_from(["record", "user"]),
        evaluations=st.integers(9, 10**6),
        number=st.integers(1, 10**9),
        times=SMALL,
        records=SMALL,
        done=SMALL,
    ),
    "mechanism.noisy_sums": SUMS,
    "mechanism.banded_sums": st.builds(
        BandedSums,
        sigma=st.fractions(min_value=Fraction(1, 100), max_value=10, max_denominator=10**6),
        steps=st.integers(9, 10**4),
        rate=st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(1, 20), max_denominator=10**6),
        parameters=st.integers(1, 10**6),
        clip=SIZES,
        bands=SMALL,
        groups=st.integers(9, 20),
    ),
    "query.tuning": st.builds(
        _search,
        held_out=st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100), max_denominator=100),
        chosen=st.integers(0, 2),
        score=st.integers(-(2**62), 2**40),
        weights=st.just("") | st.binary(min_size=32, max_size=32).map(bytes.hex),
    ),
    "mechanism.best_of_runs": st.builds(
        BestOfRuns,
        runs=st.lists(SUMS, min_size=1, max_size=3).map(tuple),
        score=st.builds(Gaussian, l2_squared=st.just(Fraction(1)), sigma=SIZES),
        eta=st.fractions(min_value=0, max_value=5, max_denominator=10),
        gamma=RATES,
        most=st.integers(1, 50),
    ),
    **paradigms.RARE,
}
