"""The least ε of a study is that: noise is small there, and not one step below; nothing is read for it."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.study import LADDER, Study


@cache
def trial() -> Any:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    rows = pa.table({"arm": ["A"], "week": [1], "died": [True], "age": [40], "stays": [1]})
    return vault, vault.table(
        rows,
        name="trial",
        version="1",
        keys={"arm": ["A", "B"], "died": [False, True]},
        bounds={"week": (1, 52), "age": (18, 90), "stays": (0, 10)},
    )


STUDIES: dict[str, Callable[[Any], Study[Any]]] = {
    "survival": lambda table: table.survival("week", "died", by="arm"),
    "linear": lambda table: table.linear_regression(outcome="age", covariates=["arm"]),
    "cells": lambda table: table.logistic_regression(outcome="died", covariates=["arm"]),
    "splines": lambda table: table.logistic_regression(outcome="died", covariates=["age"]),
    "poisson": lambda table: table.poisson_regression(outcome="stays", covariates=["arm"]),
    "robust": lambda table: table.linear_regression(outcome="age", covariates=["arm"], robust=True),
}


@pytest.mark.parametrize("kind", STUDIES)
def test_noise_is_small_at_the_least_epsilon_and_not_one_step_below(kind: str) -> None:
    vault, table = trial()
    study = STUDIES[kind](table)
    found = study.epsilon_for(rows=4_000)
    below = LADDER[LADDER.index(found) - 1]
    assert study.enough is not None
    assert study.enough(study.question.preview(epsilon=found), 4_000)
    assert not study.enough(study.question.preview(epsilon=below), 4_000)
    assert study.epsilon_for(rows=40_000) < found
    assert vault.spent == sf.Budget(epsilon=0)


def test_the_ladder_rises_by_two_digits() -> None:
    assert list(LADDER) == sorted(set(LADDER))
    assert (LADDER[0], LADDER[-1]) == (Fraction(1, 1000), Fraction(99))


def test_where_no_epsilon_is_enough_or_none_is_known_it_is_said_and_nothing_is_spent() -> None:
    vault, table = trial()
    with pytest.raises(InvalidInput, match="with 1 rows noise is not small"):
        STUDIES["linear"](table).epsilon_for(rows=1)
    with pytest.raises(InvalidInput, match="rows"):
        STUDIES["linear"](table).epsilon_for(rows=0)
    with pytest.raises(Unsupported, match="Say epsilon=…"):
        table.two_sample("died", by="arm").epsilon_for(rows=100)
    assert vault.spent == sf.Budget(epsilon=0)
