"""Declarations of streams at random: their fields depend on each other, and chance hardly ever meets that."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sfumato.core.query import Dataset
from sfumato.mechanisms.matrix.steps.pattern import ADDED, SWAPPED
from sfumato.mechanisms.matrix.steps.toeplitz import FORMS
from sfumato.streams import Alarms, Buffers, Doubling, Pattern, Rows, RunningTotal, SeriesNoise, Toeplitz, Tree
from sfumato.streams.alarms import WATCHED

BITS = st.integers(0, 20)
SMALL = st.integers(1, 9)
HALVES = st.fractions(min_value=0, max_value=Fraction(1, 4), max_denominator=2**20)
DATA = st.builds(Dataset, name=st.sampled_from(["er", "北部"]), edition=st.just("1"))

patterns = st.builds(Pattern, times=SMALL, separation=SMALL, change=st.sampled_from([ADDED, SWAPPED]))
strategies: dict[str, st.SearchStrategy[Any]] = {
    "strategy.toeplitz": st.builds(Toeplitz, form=st.sampled_from(FORMS), horizon=SMALL, bits=BITS),
    "strategy.tree": st.builds(Tree, arity=st.integers(2, 9), horizon=SMALL, bits=BITS),
    "strategy.doubling": st.builds(Doubling, first=SMALL, blocks=st.integers(1, 4), bits=BITS),
    "strategy.buffers": st.lists(st.tuples(HALVES, HALVES), min_size=1, max_size=3).flatmap(
        lambda pairs: st.builds(
            Buffers,
            horizon=SMALL,
            decays=st.just(tuple(decay for decay, _ in pairs)),
            weights=st.just(tuple(weight for _, weight in pairs)),
            bits=BITS,
            largest=SMALL,
        )
    ),
    "strategy.rows": st.integers(1, 4).flatmap(
        lambda size: st.builds(Rows, rows=st.just(tuple((*range(place, 0, -1), 9) for place in range(size))), bits=BITS)
    ),
}


def _total(dataset: Dataset, horizon: int, told: int, times: int, separation: int, bounds: Any) -> RunningTotal:
    lower, upper, each = bounds
    return RunningTotal(
        dataset=dataset,
        horizon=horizon,
        told=min(told, horizon),
        lower=-lower,
        upper=upper + each,
        each=each,
        times=min(times, horizon),
        separation=separation,
        groups=("A", "北")[: told % 3],
        kept=told != 1,
    )


def _alarms(dataset: Dataset, watched: str, numbers: Any, bounds: Any) -> Alarms:
    lower, upper, each = bounds
    threshold, drift, alarms, told, times, separation = numbers
    return Alarms(
        dataset=dataset,
        watched=watched,
        threshold=threshold,
        drift=drift,
        alarms=alarms,
        horizon=told + times,
        told=told,
        lower=-lower,
        upper=upper + each,
        each=each,
        times=times,
        separation=separation,
    )


BOUNDS = st.tuples(st.integers(0, 9), SMALL, SMALL)

RARE: dict[str, st.SearchStrategy[Any]] = {
    **strategies,
    "stream.pattern": patterns,
    "mechanism.series": st.builds(
        SeriesNoise,
        strategy=st.one_of(list(strategies.values())),
        pattern=patterns,
        norm=st.sampled_from(["l1", "l2"]),
        noise=st.fractions(min_value=Fraction(1, 9), max_value=99, max_denominator=99),
    ),
    "query.running_total": st.builds(_total, DATA, SMALL, SMALL, SMALL, SMALL, BOUNDS),
    "query.alarms": st.builds(_alarms, DATA, st.sampled_from(WATCHED), st.tuples(*[SMALL] * 6), BOUNDS),
}
