"""What an adversary found in runs: none of it gives a sum without noise, a second draw, or another unit's treatment."""

import copy
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Subset, TensorDataset

import sfumato as sf
from sfumato.errors import InvalidInput, Refused
from sfumato.learning import InBatchContrast, Units
from sfumato.learning.library_code import LibraryCode
from sfumato.learning.optimisers import heard

SPEND: dict[str, Any] = {"epsilon": 1, "delta": Fraction(1, 10**7)}


def vault() -> sf.Vault:
    return sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="ward")


def units(number: int = 100) -> Units:
    return Units(torch.ones(number, 2), torch.zeros(number).long(), n_units=number, name="visits", version="1")


def test_no_step_is_made_while_another_one_is_learned_from() -> None:
    runs: list[Any] = []
    drawn: list[Tensor] = []

    class Again(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            drawn.append(self.param_groups[0]["params"][0].grad.clone())
            if runs:
                with pytest.raises(Refused, match="is being made"):
                    runs[0]._run.advance(1)

    run = (
        vault()
        .trainer(nn.Linear(2, 2), nn.functional.cross_entropy, data=units())
        .run(steps=1, batch=100, optimizer=Again, lr=0.0, **SPEND)
    )
    drawn.clear()  # one was a rehearsal without a gradient
    runs.append(run)
    for step in run:
        step.loss()
    assert len(drawn) == 1


def test_an_open_run_is_not_copied() -> None:
    run = vault().trainer(nn.Linear(2, 2), nn.functional.cross_entropy, data=units()).run(steps=1, batch=100, **SPEND)
    for way in (copy.copy, copy.deepcopy):
        with pytest.raises(InvalidInput, match="made once"):
            way(run)
    for step in run:
        step.loss()


def test_what_an_optimizer_was_given_is_never_written_to_again() -> None:
    """Neither is a gradient left on a parameter that the optimizer does not have."""
    held: list[Tensor] = []
    given: list[Tensor] = []

    class Keeping(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            held.append(self.param_groups[0]["params"][0].grad)
            given.append(held[-1].clone())

    kept: list[list[nn.Parameter]] = []

    def head(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        kept.append(parameters)
        return Keeping(parameters[1:], lr=0.0)

    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2))
    run = (
        vault()
        .trainer(model, nn.functional.cross_entropy, data=units())
        .run(steps=6, batch=50, max_physical_batch_size=48, optimizer=head, **SPEND)
    )
    for step in run:
        step.loss()
        assert kept[-1][0].grad is None
    assert len(held) >= 6
    assert all(torch.equal(one, other) for one, other in zip(held, given, strict=True))


def test_how_a_subset_is_read_depends_on_no_index() -> None:
    """Before, one index of -1 had all rows read in another way, in which those that are not finite do not count."""
    rows = torch.ones(50, 2)
    rows[:40, 1] = float("nan")
    whole = TensorDataset(rows, torch.zeros(50))

    def counted(index: list[int]) -> list[bool]:
        laid = Units.of_dataset(Subset(whole, index), n_units=50, name="v", version="1").laid(b"k")
        return laid.gathered(torch.arange(48), torch.ones(48, dtype=torch.bool))[2].tolist()

    assert counted(list(range(49))) == counted([*range(49), -1])


@pytest.mark.parametrize("way", ["register_state_dict_post_hook", "register_step_post_hook"])
def test_whoever_hooks_an_optimizer_hears_it(way: str) -> None:
    optimiser = torch.optim.SGD([torch.zeros(1)])
    assert not heard(optimiser, None)
    getattr(optimiser, way)(lambda *_: None)
    assert heard(optimiser, None)


def test_a_method_of_one_s_own_on_an_optimizer_hears_it() -> None:
    optimiser = torch.optim.SGD([torch.zeros(1)])
    optimiser.zero_grad = lambda *_, **__: None  # type: ignore[method-assign]
    assert heard(optimiser, None)


def test_a_search_hands_its_models_to_no_function() -> None:
    home = vault()
    search = home.tuning(
        lambda: nn.Linear(2, 2), nn.functional.cross_entropy, data=units(200), candidates=[{"clip": 1}]
    )
    with pytest.raises(Refused, match="no function of yours"):
        search.fit(steps=1, most=4, expected_runs=2, optimizer=lambda some: torch.optim.SGD(some, lr=0.1), **SPEND)
    assert home.spent == sf.Budget.none()


def test_a_function_that_was_put_into_torch_is_a_user_s_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def cross_entropy(found: Tensor, target: Tensor) -> Tensor:
        return nn.functional.nll_loss(found.log_softmax(1), target)

    monkeypatch.setattr(nn.functional, "cross_entropy", cross_entropy)
    assert not LibraryCode(nn.Linear(2, 2), nn.functional.cross_entropy)


def test_a_layer_that_hides_itself_is_found() -> None:
    class Hidden(nn.Sequential):
        def named_modules(self, *_: Any, **__: Any) -> Any:
            yield "", nn.Linear(2, 2)

    assert not LibraryCode(Hidden(nn.Linear(2, 2)), nn.functional.mse_loss)


def test_pairs_of_a_dataset_are_trained_on() -> None:
    rows = torch.randn(64, 3, generator=torch.Generator().manual_seed(1))
    data = Units.of_dataset(TensorDataset(rows, rows + 0.1), n_units=64, name="scans", version="1")
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    vault().trainer(model, InBatchContrast(model, each=1), data=data).fit(steps=2, batch=32, **SPEND)
    assert not torch.equal(model.weight, before)
