"""Settings of a run that no site computes with, requests that nobody signed, and shares that read nothing."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import sfumato as sf
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.federated import InProcess, SiteAgreement
from sfumato.federated.messages import packed, unpacked
from sfumato.federated.signed_requests import signed_request
from sfumato.federated.training.contributions import SiteContributions
from sfumato.federated.training.training_site import PROPOSE_RUN, TRAIN
from sfumato.learning.engine.updates import unit_updates
from tests.federated.training.networks import SPEND, loss, plain, training_network


def written(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}" if value.denominator > 1 else str(value.numerator)


@pytest.mark.parametrize("clip", [Fraction(1, 2**1065), Fraction(10**400), Fraction(1, 10**320)])
def test_a_clip_that_is_no_float_is_no_proposal(clip: Fraction) -> None:
    """It once made steps of zero, and vectors that no clip had cut."""
    network = training_network()
    with pytest.raises(InvalidInput):
        network.trainer(clip=clip).plan(**SPEND, rounds=1)
    plan = json.loads(network.trainer(clip=1).plan(**SPEND, rounds=1).to_json())
    changed = 0

    def foul(value: Any) -> Any:
        nonlocal changed
        if isinstance(value, dict):
            found = {}
            for name, each in value.items():
                own = name in ("clip", "local_rate") and isinstance(each, str)
                changed += own
                found[name] = written(clip) if own else foul(each)
            return found
        return [foul(each) for each in value] if isinstance(value, list) else value

    text = json.dumps(foul(plan)).encode()
    assert changed
    with pytest.raises(SfumatoError):
        network.sites["north"].answer(packed([TRAIN, PROPOSE_RUN, text]))
    assert network.vaults["north"].spent.epsilon == 0


def test_a_rate_that_is_no_float_is_no_proposal() -> None:
    network = training_network()
    with pytest.raises(InvalidInput):
        network.trainer(local_steps=2, local_lr=Fraction(10**400)).plan(**SPEND, rounds=1)


def test_foul_shares_read_nothing_in_any_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a coordinator could ask for the same round again and again, and watch how long it takes."""
    network, read = training_network(), []
    true = SiteContributions.numbers

    def numbers(self: SiteContributions, *given: Any) -> Any:
        read.append(1)
        return true(self, *given)

    monkeypatch.setattr(SiteContributions, "numbers", numbers)
    run = network.trainer().fit(**SPEND, rounds=2, lr=1.0).run
    north, before = network.sites["north"], len(read)
    keys = [site.public_key.encode() for site in network.sites.values()]
    for number in (b"1", b"2"):
        for told in (b"", b"foul", packed([b"x"])):
            with pytest.raises(SfumatoError):
                north.answer(packed([TRAIN, b"advertise", run.encode(), number, bytes(32), *keys]))
            with pytest.raises(SfumatoError):
                north.answer(packed([TRAIN, b"mask", run.encode(), number, told]))
    assert len(read) == before


def test_shares_of_a_round_that_has_begun_are_checked_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    network, read = training_network(), []
    ask, true, foul = InProcess.ask, SiteContributions.numbers, 0

    def numbers(self: SiteContributions, *given: Any) -> Any:
        read.append(1)
        return true(self, *given)

    monkeypatch.setattr(SiteContributions, "numbers", numbers)

    def asked(self: InProcess, site: str, request: bytes) -> bytes | None:
        nonlocal foul
        parts = unpacked(plain(request))
        if parts[:2] == (TRAIN, b"mask") and site == network.sites["north"].public_key:
            before = len(read)
            assert ask(self, site, packed([*parts[:-1], b"foul"])) is None
            foul += len(read) == before
        return ask(self, site, request)

    monkeypatch.setattr(InProcess, "ask", asked)
    network.trainer().fit(**SPEND, rounds=2, lr=1.0)
    assert foul == 2


def test_a_stranger_trains_nothing_where_the_agreement_names_the_coordinator() -> None:
    coordinator = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="coordinator")
    network = training_network()
    north = network.sites["north"]
    north._agreement = SiteAgreement(  # the paper that names who may ask
        members=north._agreement.members,
        missing=1,
        sites_per_person=1,
        least_sites=2,
        coordinator=coordinator.public_key,
    )
    text = packed([TRAIN, PROPOSE_RUN, network.trainer().plan(**SPEND, rounds=1).to_json().encode()])
    stranger = network.vaults["south"]._notary.key
    for request in (text, signed_request(stranger, north.public_key, text)):
        with pytest.raises(Refused, match="signed by the coordinator"):
            north.answer(request)


def test_a_unit_that_cannot_be_computed_changes_no_number_of_another() -> None:
    model = nn.Linear(3, 2)
    inputs = torch.from_numpy(np.random.default_rng(3).normal(size=(37, 3)).astype(np.float32))
    targets = torch.zeros(37, dtype=torch.int64)
    present = torch.ones(37, dtype=torch.bool)
    sound = unit_updates(model, loss, (inputs,), targets, present, kind="record")
    foul = targets.clone()
    foul[[4, 20]] = 99
    found = unit_updates(model, loss, (inputs,), foul, present, kind="record")
    others = [place for place in range(37) if place not in (4, 20)]
    assert torch.equal(found[others], sound[others])
    assert not found[[4, 20]].any()
