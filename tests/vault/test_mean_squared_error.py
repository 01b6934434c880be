"""The least ε for a mean squared error: noise at it is within, noise at less is not, and nothing is spent."""

from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.tables.table import Table

ROWS = pa.table({"id": [1, 2], "x": [1.0, 2.0]})


@pytest.fixture(scope="module")
def vault() -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1, delta=1e-6), name="clinic")


@pytest.fixture(scope="module")
def table(vault: sf.Vault) -> Table:
    return vault.table(
        ROWS, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=2), bounds={"x": (0, 10)}
    )


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_the_variance_of_the_noise_is_the_one_that_was_asked_for(table: Table, delta: float) -> None:
    question = table.count()
    least = question.epsilon_for(mse=50, delta=delta)
    assert question.preview(epsilon=least, delta=delta).mechanism.law.variance <= 50
    assert question.preview(epsilon=least * Fraction(99, 100), delta=delta).mechanism.law.variance > 50


def test_a_mean_in_a_group_of_this_many_rows_has_the_variance_that_follows_from_its_weights(table: Table) -> None:
    question = table.mean("x")
    least = question.epsilon_for(mse="1/100", rows=100)
    law = question.preview(epsilon=least).mechanism.law
    block = question.query.blocks[0]
    spots = [Fraction(place, block.degree) for place in range(block.degree + 1)]
    weights = [10 * spot / (block.height * 100) for spot in spots]
    assert sum(weight**2 for weight in weights) * law.variance <= Fraction(1, 100)
    assert question.epsilon_for(mse="1/400", rows=100) == pytest.approx(2 * least, rel=0.01)
    assert question.epsilon_for(mse="1/100", rows=200) == pytest.approx(least / 2, rel=0.01)


def test_what_is_not_known_beforehand_is_said(vault: sf.Vault, table: Table) -> None:
    with pytest.raises(InvalidInput, match="Say rows="):
        table.mean("x").epsilon_for(mse=1)
    with pytest.raises(InvalidInput, match="depends on the data"):
        table.median("x").epsilon_for(mse=1)
    for said in ({}, {"mse": 1, "margin": 1}):
        with pytest.raises(InvalidInput, match="one of the two"):
            table.count().epsilon_for(**said)
    with pytest.raises(InvalidInput, match="Leave joint out"):
        table.count().epsilon_for(mse=1, joint=True)
    with pytest.raises(InvalidInput, match="above 0"):
        table.count().epsilon_for(mse=0)
    assert vault.spent.epsilon == 0
