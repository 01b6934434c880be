"""Sums stay within the error that is charged for them, whatever the number of units."""

from fractions import Fraction
from typing import Any

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.errors import InvalidInput  # noqa: E402
from sfumato.learning.engine import SLACK, Engine  # noqa: E402
from sfumato.learning.engine.accumulate import DEEP, chunk, outer, rows  # noqa: E402
from sfumato.learning.engine.bounds import CROWD, DEEPEST, FEW, MANY, OVER, UNIT_ROUNDOFF, WIDE, ErrorBudget  # noqa: E402

UNITS = [1, 2, 7, 64, 256, 1000, 4096, 30_000]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("batches", [1, 2, 5])
def test_the_parts_of_the_slack_add_up(units: int, batches: int) -> None:
    plain, crowded = (ErrorBudget(units=units, batches=batches, crowded=many) for many in (False, True))

    def error(budget: ErrorBudget, crowd: int) -> Fraction:
        return units * crowd * (1 + OVER) * (max(budget.terms(crowd=crowd), -3) + 3) * UNIT_ROUNDOFF

    assert OVER + 2 * batches * error(plain, 1) <= SLACK
    assert OVER + 2 * batches * (error(crowded, 1) + error(crowded, CROWD)) <= SLACK
    if plain.terms() < DEEPEST:
        assert OVER + 2 * batches * units * (1 + OVER) * (plain.terms() + 4) * UNIT_ROUNDOFF > SLACK


def test_squares_of_the_roundoff_fit_into_two_terms() -> None:
    assert (1 + UNIT_ROUNDOFF) ** DEEPEST - 1 <= (DEEPEST + 2) * UNIT_ROUNDOFF


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("places", [1, 8, 64])
def test_chunks_are_no_deeper_than_allowed(units: int, places: int) -> None:
    for crowd in (1, CROWD):
        terms = ErrorBudget(units=units, batches=2, crowded=crowd > 1).terms(crowd=crowd)
        step = chunk(units, places, terms)
        assert step == 0 or step * places + -(-units // step) <= terms
        assert 0 <= step <= units


def test_double_precision_has_room_for_the_rest() -> None:
    depth = max(DEEP, 1638) + MANY
    assert MANY * CROWD * WIDE * depth * Fraction(1, 2**53) < ErrorBudget(units=1, batches=2, crowded=True).error() / 8


def test_a_sum_of_few_units_may_be_kept_in_single_precision() -> None:
    """What was summed in double precision is rounded once more, by u of the norm of the sum at most."""
    depth = max(DEEP, 1638) + FEW
    rest = FEW * CROWD * WIDE * depth * Fraction(1, 2**53) + FEW * (1 + OVER) * UNIT_ROUNDOFF
    assert rest < ErrorBudget(units=1, batches=2, crowded=True).error() / 8
    model = nn.Linear(3, 2)
    for units, batches, kept in ((FEW, 2, torch.float32), (FEW + 1, 2, torch.float64), (8, 3, torch.float64)):
        engine = Engine(model, F.mse_loss, batches=batches)
        assert engine.sum(torch.zeros(units, 3), torch.zeros(units, 2)).flat.dtype is kept
    wide = Engine(nn.Linear(3, 2).double(), F.mse_loss)
    assert wide.sum(torch.zeros(4, 3).double(), torch.zeros(4, 2).double()).flat.dtype is torch.float64
    assert (
        Engine(model, F.mse_loss, grad_mode="semantic").sum(torch.zeros(4, 3), torch.zeros(4, 2)).flat.dtype
        is torch.float64
    )


def test_there_is_a_largest_batch() -> None:
    with pytest.raises(InvalidInput, match="smaller"):
        Engine(nn.Linear(1, 1), F.mse_loss).sum(torch.zeros(MANY + 1, 1), torch.zeros(MANY + 1, 1))


@pytest.mark.parametrize("terms", [0, 5, 40, 10_000])
def test_weighted_sums_are_near_the_exact_ones(terms: int) -> None:
    torch.manual_seed(1)
    factors, left, right = torch.rand(100).double(), torch.randn(100, 2, 5), torch.randn(100, 2, 7)
    exact = torch.einsum("u,uti,utj->ij", factors, left.double(), right.double())
    found = torch.zeros(5, 7, dtype=torch.float64)
    beside = torch.ones(5, dtype=torch.float64)
    outer(factors, left, right, found, terms, beside=beside)
    assert float((found - exact).abs().max()) < 200 * 2**-24 * 200
    torch.testing.assert_close(beside - 1, torch.einsum("u,uti->i", factors, left.double()), rtol=1e-5, atol=1e-5)
    total = torch.zeros(5, dtype=torch.float64)
    rows(factors, left[:, 0], total, terms)
    torch.testing.assert_close(total, torch.einsum("u,ui->i", factors, left[:, 0].double()), rtol=1e-5, atol=1e-5)


def test_sums_are_in_full_precision_whatever_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    true = torch.nan_to_num

    def watched(*given: Any) -> Tensor:
        seen.append(torch.get_float32_matmul_precision())
        return true(*given)

    monkeypatch.setattr(torch.Tensor, "nan_to_num", watched)
    torch.set_float32_matmul_precision("high")
    try:
        outer(torch.ones(2), torch.ones(2, 1, 3), torch.ones(2, 1, 3), torch.zeros(3, 3, dtype=torch.float64), 10)
        rows(torch.ones(2), torch.ones(2, 3), torch.zeros(3, dtype=torch.float64), 10)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert seen == ["highest", "highest"]


@pytest.mark.long
@pytest.mark.parametrize("unit", ["record", "user"])
def test_a_sum_is_that_of_its_units(unit: str) -> None:
    """Units of very different sizes that nearly cancel: the sum of all is within the error of the sum of each alone."""
    torch.manual_seed(2)
    model = nn.Linear(4, 3)
    shape = (120, 4) if unit == "record" else (120, 2, 4)
    x = torch.randn(shape) * 10.0 ** torch.randint(-3, 4, (120, *(1,) * (len(shape) - 1)))
    x[1::2] = -x[::2] * (1 + 1e-3)
    y = torch.randint(0, 3, shape[:-1])
    engine = Engine(model, F.cross_entropy, clip=1.0, unit=unit, grad_mode="fast")  # type: ignore[arg-type]
    whole, alone = engine.sum(x, y).flat, torch.zeros(15, dtype=torch.float64)
    for number in range(120):
        present = torch.zeros(shape[:-1], dtype=torch.bool)
        present[number] = True
        alone += engine.sum(x, y, present).flat
    assert float((whole - alone).norm()) <= float((SLACK - OVER) / 4)


def test_one_unit_more_moves_the_sum_by_at_most_what_is_charged() -> None:
    torch.manual_seed(3)
    model, x, y = nn.Linear(20, 4), torch.randn(500, 20) * 50, torch.randint(0, 4, (500,))
    engine = Engine(model, F.cross_entropy, clip=1.0, grad_mode="fast")
    whole, farthest = engine.sum(x, y).flat, 0.0
    for number in range(0, 500, 7):
        present = torch.arange(500) != number
        farthest = max(farthest, float((whole - engine.sum(x, y, present).flat).norm()))
    assert 0.999 < farthest <= float(1 + SLACK)
