"""Declarations of programs over blocks at random: their fields depend on each other."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sfumato.boxes import BlockAnswer, BlockMean, BlockQuantiles, BlockTrimmedMean, SealedProgram
from sfumato.core.query import Dataset

NAMES = st.sampled_from(["slope", "北部", "a b", "ü"])
NUMBERS = st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6)


def _answer(name: str, numbers: list[Fraction]) -> BlockAnswer:
    low, missing, high = sorted(numbers)
    return BlockAnswer(name=name, low=low, high=high, missing=missing)


def answers(names: st.SearchStrategy[str] = NAMES) -> st.SearchStrategy[BlockAnswer]:
    """A range and what counts in it."""
    return st.builds(_answer, names, st.lists(NUMBERS, min_size=3, max_size=3, unique=True))


PROGRAMS = st.builds(
    SealedProgram,
    code=st.binary(min_size=32, max_size=32).map(bytes.hex),
    level=st.sampled_from(["A", "B"]),
    seconds=st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=1000),
    memory=st.integers(1, 2**20),
    interpreter=st.sampled_from(["CPython 3.12.1", "CPython 3.13.0"]),
    imported=st.sampled_from([(), ("pandas",)]),
    libraries=st.lists(st.sampled_from(["pandas 2.2.3 sha256:00", "pyarrow 20.0.0 sha256:01"]), unique=True).map(tuple),
    not_hidden=st.sampled_from(["a clock", "caches"]),
    control_groups=st.booleans(),
)
ASKED: dict[str, Any] = {
    "dataset": st.just(Dataset(name="visits", edition="1")),
    "program": PROGRAMS,
    "given": st.lists(NAMES, min_size=1, max_size=3, unique=True).map(tuple),
    "answers": st.lists(answers(), min_size=1, max_size=3, unique_by=lambda one: one.name).map(tuple),
    "blocks": st.integers(2, 1000),
}
LEVELS = st.lists(st.integers(1, 19), min_size=1, max_size=3, unique=True).map(
    lambda twentieths: tuple(Fraction(each, 20) for each in sorted(twentieths))
)
RARE: dict[str, st.SearchStrategy[Any]] = {
    "program.answer": answers(),
    "program.sealed": PROGRAMS,
    "query.block_mean": st.builds(BlockMean, **ASKED),
    "query.block_trimmed_mean": st.builds(
        BlockTrimmedMean, **{**ASKED, "blocks": st.integers(11, 1000)}, dropped=st.integers(1, 5)
    ),
    "query.block_quantiles": st.builds(BlockQuantiles, levels=LEVELS, **ASKED),
}
