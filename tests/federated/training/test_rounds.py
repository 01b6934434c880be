"""A training run across sites: one vote, one charge at each site, exact sums, and sites that leave."""

import numpy as np
import pytest
import torch

from sfumato.errors import Refused
from sfumato.federated import FedAdam, FederatedTraining, FedSGD
from sfumato.federated.training.contributions import SiteContributions
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.reports.verify import parsed, verify
from tests.federated.hospitals import without_noise
from tests.federated.training.networks import SPEND, loss, rows, training_network


def test_the_sites_charge_the_whole_run_once_and_the_coordinator_says_what_was_trained() -> None:
    network = training_network()
    trained = network.trainer().fit(**SPEND, rounds=2, lr=1.0)
    assert trained.rounds == 2
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [3, 3, 3]
    said = trained.release.statement.query
    assert isinstance(said, FederatedTraining)
    assert (said.done, said.run, said.sites_per_person) == (2, trained.run, 1)
    assert trained.release.statement.spend.epsilon == 3
    assert trained.votes == dict.fromkeys(network.vaults, "joins")
    assert {run: last for site in network.sites.values() for run, last in site.runs.items()} == {trained.run: 2}


def test_without_noise_a_round_of_everybody_is_the_plain_clipped_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    network = training_network()
    network.trainer(clip=0.5).fit(**SPEND, rounds=1, optimizer=FedSGD(lr=1.0))
    plain = torch.zeros(8)
    for seed in range(3):
        for row, target in zip(*map(torch.from_numpy, rows(30, seed)), strict=True):
            weights = torch.zeros(2, 3, requires_grad=True)
            bias = torch.zeros(2, requires_grad=True)
            lost = loss(torch.nn.functional.linear(row[None], weights, bias), target[None])
            own = torch.cat([part.flatten() for part in torch.autograd.grad(lost, [weights, bias])])
            plain += own * min(1.0, 0.5 / float(own.norm()))
    found = torch.cat([one.flatten() for one in network.model.parameters()]).detach()
    torch.testing.assert_close(found, -plain / 90, atol=1e-4, rtol=0)


@pytest.mark.long
def test_local_steps_on_each_person_are_federated_averaging(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    one, two = training_network(), training_network()
    one.trainer(local_steps=1).fit(**SPEND, rounds=1, lr=1.0)
    two.trainer(local_steps=3, local_lr=0.5).fit(**SPEND, rounds=1, lr=1.0)
    first = torch.cat([part.flatten() for part in one.model.parameters()]).detach()
    second = torch.cat([part.flatten() for part in two.model.parameters()]).detach()
    assert float((first - second).norm()) > 1e-3
    assert float(first @ second / (first.norm() * second.norm())) > 0.9


def test_a_committee_that_says_no_is_left_out_before_any_key_and_is_not_charged() -> None:
    seen: list[TrainingProposal] = []

    def no(proposal: TrainingProposal) -> bool:
        seen.append(proposal)
        return False

    network = training_network(committees={"west": no})
    trained = network.trainer().fit(**SPEND, rounds=1, lr=1.0)
    assert seen[0].training.rounds == 1
    assert seen[0].spend.epsilon == 3
    assert network.vaults["west"].spent.epsilon == 0
    assert list(network.sites["west"].declined.values()) == ["committee"]
    assert trained.rounds == 1


def test_a_site_that_leaves_mid_way_is_missed_and_the_run_goes_on() -> None:
    network = training_network()

    def watch(number: int, votes: object) -> None:
        if number == 1:
            (run,) = network.sites["west"].runs
            network.sites["west"].leave(run)

    trained = network.trainer().fit(**SPEND, rounds=2, lr=1.0, watch=watch)
    assert trained.rounds == 2
    assert trained.votes == {"north": "joins", "south": "joins", "west": "left"}
    assert [max(site.runs.values()) for site in network.sites.values()] == [2, 2, 1]


def test_a_site_that_falls_silent_in_a_round_is_left_out_of_its_sum() -> None:
    network = training_network()
    network.silent(west=4)  # its vote, its being there, its keys and its shares
    assert network.trainer().fit(**SPEND, rounds=2, lr=1.0).rounds == 2
    assert network.vaults["west"].spent.epsilon == 0


def test_nothing_is_charged_and_nothing_is_sent_where_the_budget_does_not_hold_the_run() -> None:
    network = training_network(budget=2)
    with pytest.raises(Refused, match="too few sites take part"):
        network.trainer().fit(**SPEND, rounds=1)
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [0, 0, 0]
    assert {why for site in network.sites.values() for why in site.declined.values()} == {"budget"}


def test_a_row_is_read_after_the_charge_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    network, spent = training_network(), []
    own = SiteContributions.summed

    def summed(self: SiteContributions, weights: np.ndarray, number: int) -> np.ndarray:
        spent.append([vault.spent.epsilon for vault in network.vaults.values()])
        return own(self, weights, number)

    monkeypatch.setattr(SiteContributions, "summed", summed)
    network.trainer().fit(**SPEND, rounds=1, lr=1.0)
    assert spent == [[3, 0, 0], [3, 3, 0], [3, 3, 3]]


@pytest.mark.long
def test_server_optimizers_are_post_processing_and_learn() -> None:
    network = training_network((300, 300, 300), budget=20)
    network.trainer(n_units=900).fit(epsilon=10, delta=1e-7, rounds=6, optimizer=FedAdam(lr=0.3))
    inputs, targets = rows(500, 99)
    found = network.model(torch.from_numpy(inputs)).argmax(1).numpy()
    assert (found == targets).mean() > 0.8


def test_a_certificate_of_the_run_is_verified() -> None:
    network = training_network()
    release = network.trainer().fit(**SPEND, rounds=1, lr=1.0).release
    assert verify(parsed(release.certificate.text), key=network.consortium._notary.key.public_text).authenticated
    assert "query.federated_training" in release.certificate.text
