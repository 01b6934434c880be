"""The matrix mechanism across rounds: sites measure mixes of their last sums, and the server takes them apart."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.core.events import Skellam
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.federated import FedSGD, SharedRounds
from sfumato.federated.training.contributions import SiteContributions
from sfumato.federated.training.run_state import RunState
from tests.federated.hospitals import without_noise
from tests.federated.training.networks import SPEND, training_network

MIX = (4, 2, 1)


def test_the_norm_of_a_person_is_the_largest_over_all_ways_to_take_part() -> None:
    """Every set of rounds of one turn, every missing round, and unit updates in one direction: none moves further."""
    mechanism = SharedRounds(variance=Fraction(1), rounds=7, rate=Fraction(1, 2), mix=MIX, cycle=2)
    strategy = np.zeros((7, 7), dtype=np.int64)
    for row in range(7):
        for k, coefficient in enumerate(MIX[: row + 1]):
            strategy[row, row - k] = coefficient
    most = 0
    for turn in range(2):
        rounds = np.arange(turn, 7, 2)
        for chosen in range(1, 1 << len(rounds)):
            taken = np.zeros(7, dtype=np.int64)
            taken[rounds[[bool(chosen >> bit & 1) for bit in range(len(rounds))]]] = 1
            most = max(most, int(((strategy @ taken) ** 2).sum()))
    assert mechanism.squared == most
    event = mechanism.loss(Sensitivity.of(l1=3, l2_squared=9))
    assert event == Skellam(l1=Fraction(9 * most), l2_squared=Fraction(9 * most), variance=Fraction(1))


def test_mixes_that_have_no_bound_are_refused() -> None:
    hostile: tuple[dict[str, Any], ...] = ({"mix": (1, 2)}, {"mix": (0,)}, {"mix": (1,), "cycle": 3}, {"cycle": 2})
    for wrong in hostile:
        with pytest.raises(InvalidInput):
            SharedRounds(variance=Fraction(1), rounds=4, rate=Fraction(1, 2), **wrong)


def test_without_noise_the_server_finds_the_sums_of_every_round_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    sums: dict[int, np.ndarray] = {}
    own, learned, found = SiteContributions.summed, RunState.learned, []

    def summed(self: SiteContributions, weights: np.ndarray, number: int) -> np.ndarray:
        one = own(self, weights, number)
        sums[number] = sums.get(number, np.zeros_like(one)) + one
        return one

    def told(self: RunState, result: object, optimizer: object) -> RunState:
        state = learned(self, result, optimizer)  # type: ignore[arg-type]
        found.append(state.told[0])
        return state

    monkeypatch.setattr(SiteContributions, "summed", summed)
    monkeypatch.setattr(RunState, "learned", told)
    network = training_network()
    network.trainer().fit(**SPEND, rounds=4, batch=30, bands=3, optimizer=FedSGD(lr=0.5))
    for number, one in enumerate(found, start=1):
        np.testing.assert_allclose(one, sums[number], atol=1e-9)
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [3, 3, 3]


@pytest.mark.long
def test_every_person_counts_once_in_a_cycle_and_keeps_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[int, list[tuple[int, ...]]] = {}
    own = SiteContributions._places

    def drawn(self: SiteContributions, count: int, number: int) -> np.ndarray:
        found = own(self, count, number)
        places.setdefault(id(self), []).append(tuple(found))
        return found

    monkeypatch.setattr(SiteContributions, "_places", drawn)
    training_network().trainer().fit(**SPEND, rounds=4, batch=45, bands=2, lr=0.5)
    assert len(places) == 3
    for turns in places.values():
        assert turns[0] == turns[2]
        assert turns[1] == turns[3]
        assert sorted(turns[0] + turns[1]) == list(range(30))
