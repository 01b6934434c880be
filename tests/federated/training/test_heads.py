"""Heads of a site's own: fitted after the run, charged to the site alone, and in no message."""

import pytest
import torch

from sfumato.errors import InvalidInput
from sfumato.federated.training.training_site import TrainingSite
from tests.federated.training.networks import training_network


def test_a_head_is_charged_to_its_site_alone_and_leaves_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    network, messages = training_network(), list[bytes]()
    own = TrainingSite.answer

    def answer(self: TrainingSite, request: bytes) -> bytes:
        messages.append(own(self, request))
        return messages[-1]

    monkeypatch.setattr(TrainingSite, "answer", answer)
    trained = network.trainer().fit(epsilon=1, delta=1e-7, rounds=1, lr=1.0)
    body = {name: one.detach().clone() for name, one in trained.model.named_parameters()}
    before = len(messages)
    head = (
        network.sites["north"]
        .head_trainer(trained.model, "bias")
        .fit(epsilon=1, delta=1e-7, steps=2, batch=30, lr=1.0, progress=False)
    )
    parts = dict(head.model.named_parameters())
    assert torch.equal(parts["weight"], body["weight"])
    assert not torch.equal(parts["bias"], body["bias"])
    assert all(torch.equal(one, body[name]) for name, one in trained.model.named_parameters())
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [2, 1, 1]
    network.trainer().fit(epsilon=1, delta=1e-7, rounds=1, lr=1.0)
    fitted = parts["bias"].detach().numpy().tobytes()
    assert len(messages) > before
    assert not any(fitted in message for message in messages)


def test_a_head_is_named_by_layers_of_the_model() -> None:
    network = training_network()
    with pytest.raises(InvalidInput, match="no layer 'tail'"):
        network.sites["north"].head_trainer(network.model, "tail")
