"""Questions about examples at random: their fields depend on each other, and chance hardly ever meets that."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sfumato.core.query import Dataset
from sfumato.learning import (
    CloserStudent,
    ConfidentMax,
    ConfidentVotes,
    ContrastiveTraining,
    EdgeTraining,
    GraphTraining,
    SubgraphTraining,
)
from sfumato.learning.paradigms.distillation import CloserModel, floored

SMALL = st.integers(1, 9)
NAMES = st.sampled_from(["visits", "北部"])
SIZES = st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=10**6)
SHARES = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any)


def _confident(answers: int, more: int, **rest: Any) -> ConfidentVotes:
    return ConfidentVotes(answers=answers, questions=answers + more, **rest)


def _max(answers: int, more: int, **rest: Any) -> ConfidentMax:
    return ConfidentMax(answers=answers, questions=answers + more, **rest)


def _closer(first: list[int], second: list[int], **rest: Any) -> CloserModel:
    return CloserModel(first=floored(first), second=floored(second), **rest)


def _student(questions: int, classes: int, ratio: int, **rest: Any) -> CloserStudent:
    ratios = tuple(ratio * (-1) ** place for place in range(questions * classes))
    return CloserStudent(questions=questions, classes=classes, ratios=ratios, first="a", second="b", **rest)


def _contrast(steps: int, **rest: Any) -> ContrastiveTraining:
    return ContrastiveTraining(units="record", records=1, steps=steps, done=steps // 2, **rest)


def _graph(steps: int, **rest: Any) -> GraphTraining:
    return GraphTraining(units="record", times=1, records=1, steps=steps, done=steps // 2, **rest)


def _subgraphs(steps: int, **rest: Any) -> SubgraphTraining:
    return SubgraphTraining(units="record", times=1, records=1, steps=steps, done=steps // 2, **rest)


def _edges(names: int, classes: int, **rest: Any) -> EdgeTraining:
    one = Fraction(1)
    fixed: dict[str, Any] = {"units": "record", "times": 1, "records": 1, "clip": one, "rate": one}
    sizes = {"names_listed": names, "classes": classes, "parameters": names * classes, "number": names}
    return EdgeTraining(**fixed, **sizes, **rest)


_RUN: dict[str, st.SearchStrategy[Any]] = {
    "dataset": st.builds(Dataset, name=NAMES, edition=st.just("1")),
    "clip": SIZES,
    "number": st.integers(1, 10**9),
    "rate": st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**6),
    "steps": st.integers(1, 10**6),
    "parameters": st.integers(1, 10**9),
    "weights": st.just("") | st.binary(min_size=32, max_size=32).map(bytes.hex),
    "recipients": SMALL,
    "hops": SMALL,
}

RARE: dict[str, st.SearchStrategy[Any]] = {
    "query.confident_votes": st.builds(
        _confident,
        dataset=st.builds(Dataset, name=NAMES, edition=st.just("1")),
        ensemble=NAMES,
        asked=NAMES,
        parts=SMALL,
        classes=st.integers(2, 9),
        answers=SMALL,
        more=SMALL,
        threshold=SMALL,
        share=st.fractions(min_value=Fraction(1, 9), max_value=Fraction(8, 9), max_denominator=100),
    ),
    "mechanism.confident_max": st.builds(
        _max, answers=SMALL, more=SMALL, classes=st.integers(2, 9), threshold=SMALL, check_sigma=SIZES, sigma=SIZES
    ),
    "query.closer_model": st.builds(
        _closer,
        dataset=st.builds(Dataset, name=NAMES, edition=st.just("1")),
        first=SHARES,
        second=SHARES,
        number=st.integers(1, 10**9),
    ),
    "query.closer_student": st.builds(
        _student,
        dataset=st.builds(Dataset, name=NAMES, edition=st.just("1")),
        ensemble=NAMES,
        asked=NAMES,
        parts=SMALL,
        classes=st.integers(2, 9),
        questions=SMALL,
        ratio=st.integers(1, 10**6),
        content=st.just("0"),
    ),
    "query.contrastive_training": st.builds(
        _contrast,
        dataset=st.builds(Dataset, name=NAMES, edition=st.just("1")),
        clip=SIZES,
        times=SMALL,
        number=st.integers(1, 10**9),
        rate=st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**6),
        steps=st.integers(1, 10**6),
        parameters=st.integers(1, 10**9),
        weights=st.just("") | st.binary(min_size=32, max_size=32).map(bytes.hex),
        temperature=SIZES,
        both=st.booleans(),
        most=st.integers(2, 4096),
    ),
    "query.edge_training": st.builds(
        _edges,
        dataset=_RUN["dataset"],
        steps=SMALL,
        weights=_RUN["weights"],
        names=SMALL,
        classes=st.integers(2, 99),
        roster=st.binary(min_size=32, max_size=32).map(bytes.hex),
    ),
    "query.graph_training": st.builds(
        _graph,
        **_RUN,
        names_listed=st.integers(1, 10**9),
        classes=st.integers(2, 99),
        roster=st.binary(min_size=32, max_size=32).map(bytes.hex),
    ),
    "query.subgraph_training": st.builds(_subgraphs, **_RUN),
}
