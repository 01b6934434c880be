"""The membership attack on one noisy mean gradient, through vault, trainer, clip and noise."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import audit
from sfumato.core.adversary import accuracy
from sfumato.core.guarantees import Approximate
from sfumato.errors import InvalidInput
from sfumato.vault import Vault
from tests.alpha import likely
from tests.parts import package

package("torch")

import torch  # noqa: E402

from sfumato.learning import Canaries, Trained, Trainer, Units  # noqa: E402
from tests.audit.test_one_run import Axes, loss  # noqa: E402
from tests.learning.words import TestWords  # noqa: E402

NUMBER, BATCH = 6_000, 100
CLASSICAL = math.sqrt(2 * math.log(1.25 / 1e-5))  # σ of ε = 1 in clips


def tossed(number: int) -> Any:
    """The same coins in each run."""
    return np.random.default_rng(3).integers(0, 2, number).astype(bool)


def attacked(ratio: float) -> tuple[int, int]:
    """Right guesses over canaries that pull at a weight each, at ``ratio`` times the clip, in one step of all units."""
    vault = Vault(
        unit=sf.record(relation="add/remove"),
        budget=sf.Budget(epsilon=2, delta="1/100000"),
        name="one",
        population=9999,
    )
    data = Units(torch.full((BATCH,), NUMBER), torch.ones(BATCH), n_units=BATCH, name="visits", version="1")
    canaries = Canaries(torch.arange(NUMBER), torch.full((NUMBER,), float(ratio)))
    trainer = vault.trainer(Axes(NUMBER + 1), loss, data=data, canaries=canaries)
    said: dict[str, Any] = {
        "noise_multiplier": round(CLASSICAL, 6),
        "delta": "1/100000",
        "max_physical_batch_size": 4096,
    }
    done: Trained = trainer.fit(steps=1, batch=BATCH, optimizer=torch.optim.SGD, lr=1.0, progress=False, **said)
    assert done.epsilon <= 1
    return audit.gradient_attack(done, step_length=1 / BATCH, pull=min(ratio, 1))


@pytest.mark.claim("S3-16")
def test_the_accuracies_are_those_of_the_formula_and_below_the_general_bound() -> None:
    found = [audit.gradient_attack_accuracy(epsilon=1, delta=1e-5, ratio=ratio) for ratio in (0, 0.5, 1, 3)]
    assert [round(one, 4) for one in found] == [0.5, 0.5206, 0.5411, 0.5411]
    replaced = audit.gradient_attack_accuracy(epsilon=1, delta=1e-5, ratio=1, moved=2)
    assert round(replaced, 4) == 0.5206
    bound = float(accuracy(Approximate(epsilon=Fraction(1), delta=Fraction(1, 10**5))))
    assert round(bound, 4) == 0.7311
    assert max(found) < bound
    for wrong in ({"epsilon": 0}, {"delta": 0}, {"ratio": -1}, {"moved": 3}):
        with pytest.raises(InvalidInput, match="nothing was computed"):
            audit.gradient_attack_accuracy(**{"epsilon": 1, "delta": 1e-5, "ratio": 1, **wrong})  # type: ignore[arg-type]


@pytest.mark.claim("S3-16")
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_simulated_attacks_on_released_weights_are_right_as_often(
    ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6,000 coins of one run, with noise of a test's source, so that each run is the same: within 3 standard errors.

    A gradient that is not clipped, or half of the noise, is seen.
    """
    monkeypatch.setattr(Trainer, "_words", TestWords)
    monkeypatch.setattr("sfumato.learning.sealed_canaries._fair_coins", tossed)
    right, number = attacked(ratio)
    found = [audit.gradient_attack_accuracy(epsilon=epsilon, delta=1e-5, ratio=ratio) for epsilon in (1, 2)]
    within = 3 * math.sqrt(0.25 / number)
    assert abs(right / number - found[0]) < within
    assert ratio < 1 or abs(right / number - found[1]) > within


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_many_simulated_attacks_with_fresh_noise_are_right_as_often() -> None:
    """48,000 coins of eight runs: half of the noise, 0.58, would be seen."""
    rights = [attacked(1.0)[0] for _ in range(8)]
    chance = audit.gradient_attack_accuracy(epsilon=1, delta=1e-5, ratio=1)
    assert likely(sum(rights), 8 * NUMBER, chance, alpha=1e-9)
    assert not likely(sum(rights), 8 * NUMBER, 0.58, alpha=1e-9)


def test_a_run_without_canaries_is_not_attacked() -> None:
    vault = Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=2, delta="1/1000000"), name="one")
    data = Units(torch.zeros(9, dtype=torch.int64), torch.ones(9), n_units=9, name="visits", version="1")
    done = vault.trainer(Axes(2), loss, data=data).fit(steps=1, batch=9, epsilon=1, delta="1/10000000", progress=False)
    with pytest.raises(InvalidInput, match="no canaries"):
        audit.gradient_attack(done, step_length=1, pull=1)
