"""S0-23 across sites: the critic's sums are charged, clipped, masked and noisy, and the generator learns from these."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sfumato as sf
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import FederatedTraining
from sfumato.federated.server import SumResult
from sfumato.federated.training import federated_generator
from sfumato.federated.training.run_rounds import RunRounds
from sfumato.federated.training.run_state import RunState
from sfumato.learning import GeneratedTable, GeneratorSettings
from sfumato.learning.generative.critic_rounds import CriticRounds
from sfumato.learning.laid import Laid
from tests.federated.training.generators import FEW, NETWORK, GeneratorNetwork, TensorWalk, generator_network

SPEND: dict[str, Any] = {"epsilon": 3, "delta": 1e-7}
SIZES = (2, 3, 5)
CRITICS = pytest.mark.parametrize(
    "settings", [pytest.param(FEW, id="pairs"), pytest.param(NETWORK, id="network", marks=pytest.mark.long)]
)


def fitted(network: GeneratorNetwork, rounds: int = 2) -> GeneratedTable:
    return network.generator.fit(**SPEND, rounds=rounds, rows=30)


def weights_of(made: GeneratedTable) -> np.ndarray:
    return torch.cat([one.flatten() for one in made.generator.state.values()]).numpy()


def test_every_site_is_charged_for_the_whole_run_and_rows_have_the_declared_columns() -> None:
    network = generator_network()
    made = fitted(network)
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [3, 3, 3]
    assert isinstance(made.release.statement.query, FederatedTraining)
    assert made.charged == sf.Budget(**SPEND)
    assert made.rows.num_rows == 30
    assert made.rows.column_names == ["sex", "ward", "age"]
    assert made.quality.steps == 2
    assert made.quality.noise_multiplier > 0
    assert made.generator.rows(5, seed=1).num_rows == 5
    assert "was not measured" in made.explain()


def constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put constants in the place of all released sums; sites read, clip and mask as ever."""
    own = RunRounds.summed

    def summed(self: RunRounds, terms: Any, weights: bytes) -> SumResult | None:
        found = own(self, terms, weights)
        assert found is not None
        drawn = np.random.default_rng(terms.number).normal(scale=1e4, size=terms.length)
        return SumResult(terms=terms, total=np.rint(drawn).astype(np.int64), survivors=found.survivors)

    monkeypatch.setattr(RunRounds, "summed", summed)


@pytest.mark.long
@CRITICS
@pytest.mark.claim("S0-23")
def test_nothing_reaches_the_generator_across_sites_but_released_sums(
    settings: GeneratorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With constants for the sums, quite different people give the same generator, bit by bit."""
    constants(monkeypatch)
    here, there = (weights_of(fitted(generator_network(shift=shift, settings=settings))) for shift in (0, 1))
    assert np.array_equal(here, there)


def walked(monkeypatch: pytest.MonkeyPatch, settings: GeneratorSettings) -> tuple[TensorWalk, GeneratedTable]:
    """A run in which all tensors with rows are marked, and where marks went."""
    walk, gathered = TensorWalk(), Laid.gathered

    def seen(self: Laid, *given: Any) -> Any:
        found = gathered(self, *given)
        walk.mark(self.inputs)
        walk.mark(found[0])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Laid, "gathered", seen)
        network = generator_network(settings=settings)
        with walk:
            return walk, fitted(network, rounds=1)


@CRITICS
@pytest.mark.claim("S0-23")
def test_no_way_through_tensors_leads_from_rows_to_the_generator(
    settings: GeneratorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk, made = walked(monkeypatch, settings)
    assert len(walk.marked) > 10  # sites did compute with rows
    assert not walk.reached(made.generator._course.averaged.parameters())
    assert not walk.reached(made.generator._course._generator.parameters())


def shown_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken copy: beside released weights, the coordinator's generator gets rows of a site."""
    rows: list[torch.Tensor] = []
    gathered = Laid.gathered

    def leaking(self: Laid, *given: Any) -> Any:
        found = gathered(self, *given)
        rows[:] = [found[0][0]]
        return found

    class Peeking(CriticRounds):
        def course(self, kept: Any, rounds: int) -> Any:
            made = super().course(kept, rounds)
            with torch.no_grad():
                made.averaged.last.bias.add_(1e-3 * rows[0].reshape(-1, sum(SIZES)).mean(0))
            return made

    monkeypatch.setattr(Laid, "gathered", leaking)
    monkeypatch.setattr(federated_generator, "CriticRounds", Peeking)


@pytest.mark.claim("S0-23")
def test_a_generator_that_is_shown_rows_is_found_by_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    shown_rows(monkeypatch)
    walk, made = walked(monkeypatch, FEW)
    assert walk.reached(made.generator._course.averaged.parameters())


@pytest.mark.long
def test_a_generator_that_is_shown_rows_is_found_by_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    shown_rows(monkeypatch)
    constants(monkeypatch)
    here, there = (weights_of(fitted(generator_network(shift=shift), rounds=1)) for shift in (0, 1))
    assert not np.array_equal(here, there)


@CRITICS
@pytest.mark.claim("S0-23")
def test_the_generator_is_made_again_from_released_sums_alone(
    settings: GeneratorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[RunState, SumResult]] = []
    learned = RunState.learned

    def learns(self: RunState, result: SumResult, optimizer: Any) -> RunState:
        seen.append((self, result))
        return learned(self, result, optimizer)

    monkeypatch.setattr(RunState, "learned", learns)
    made = fitted(generator_network(settings=settings), rounds=2)
    monkeypatch.undo()
    again = CriticRounds(SIZES, settings=settings, clip=3 if settings is FEW else 1)
    state = seen[0][0]
    for _, result in seen:
        state = state.learned(result, again)
    assert len(seen) == 2
    course = again.course(state.kept, 2)
    found = torch.cat([one.flatten() for one in course.averaged.state_dict().values()]).numpy()
    assert np.array_equal(found, weights_of(made))


@pytest.mark.long
def test_a_run_that_had_ended_gives_the_same_generator_again(tmp_path: Path) -> None:
    network = generator_network()
    first, second = (network.generator.fit(**SPEND, rounds=2, rows=30, folder=tmp_path / "run") for _ in range(2))
    assert np.array_equal(weights_of(first), weights_of(second))
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [3, 3, 3]


def test_a_site_with_other_columns_declines_and_what_cannot_be_is_refused() -> None:
    with pytest.raises(Refused, match="too few sites take part"):
        fitted(generator_network(said={"bins": {"age": 5}}))
    network = generator_network()
    with pytest.raises(InvalidInput, match="rows"):
        network.generator.fit(**SPEND, rounds=1, rows=0)
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [0, 0, 0]


@pytest.mark.long
def test_shares_of_values_are_learned_across_sites_at_a_large_epsilon() -> None:
    """One row of eleven has no age; a generator that learned nothing leaves it out in one of five."""
    network = generator_network(number=600, settings=GeneratorSettings(hidden=32, noise=8, batch=128))
    made = network.generator.fit(epsilon=50, delta=1e-7, rounds=40, rows=2000)
    assert 0.05 < made.rows["age"].null_count / 2000 < 0.15
