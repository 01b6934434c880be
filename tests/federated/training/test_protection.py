"""How far one person moves a round, what a run costs, and runs that sites decline."""

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import sfumato as sf
from sfumato.accounting import rdp
from sfumato.core.budget import Budget
from sfumato.core.events import PoissonSampled, Repeated, Skellam
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import record
from sfumato.errors import Refused, SfumatoError
from sfumato.federated import FederatedTraining, PersonRounding, SharedRounds, TrainingProposal
from sfumato.federated.messages import packed
from sfumato.federated.training.run_rounds import RunRounds
from sfumato.federated.training.training_site import PROPOSE_RUN, TRAIN
from sfumato.federated.transports import InProcess
from sfumato.learning.person_updates import PersonUpdates, flat_weights
from tests.federated.training.networks import SPEND, loss, model, plain, rows, training_network

ADDED = record(relation="add/remove")


def run(**said: Any) -> FederatedTraining:
    facts: dict[str, Any] = {
        "dataset": Dataset(name="stays", edition="1"),
        "units": "record",
        "records": 1,
        "clients": "persons",
        "clip": Fraction(1),
        "step": Fraction(1, 64),
        "slack": Fraction(21, 20),
        "number": 100,
        "rate": Fraction(1),
        "rounds": 4,
        "parameters": 8,
        "sites_per_person": 1,
        "model": "",
        "run": "",
    }
    return FederatedTraining(**{**facts, **said})


def test_the_declared_norm_is_the_one_that_rounding_enforces() -> None:
    said = run()
    rule = PersonRounding(dimensions=8, norm=said.clip, unit=said.step, slack=said.slack)
    moved = said.sensitivity(ADDED, None)
    assert (moved.l1, moved.l2) == (Sensitivity.of(l1=rule.l1).l1, Sensitivity.of(l2_squared=rule.l2_squared).l2)
    twice = run(sites_per_person=2).sensitivity(ADDED, None).l2
    swapped = run().sensitivity(record(relation="replace"), None).l2
    sites = run(clients="sites").sensitivity(ADDED, None).l2
    assert twice == swapped == sites == Sensitivity.of(l2_squared=4 * rule.l2_squared).l2


def test_one_person_moves_a_round_by_no_more_than_the_declared_norm_and_no_other_by_anything() -> None:
    from sfumato.learning import Units

    inputs, targets = rows(12, 5)
    inputs[3] *= 1e6  # somebody far away
    inputs[4] = np.nan
    rule = PersonRounding(dimensions=8, norm=Fraction(1), unit=Fraction(1, 64))
    data = Units(inputs, targets, n_units=12, name="stays", version="1")
    updates = PersonUpdates(model(), loss, data)
    updates.read(bytes(32))
    weights = flat_weights(model())
    parts = [np.concatenate(list(updates.parts(weights, np.array([at]), expected=4))) for at in range(12)]
    alone = [np.nan_to_num(part).sum(0) for part in parts]
    together = np.nan_to_num(np.concatenate(list(updates.parts(weights, np.arange(12), expected=4))))
    found = together[np.abs(together).sum(1) > 0]
    assert len(found) == 11  # of whom nothing can be computed counts nothing
    for one in alone:
        assert not np.abs(one).sum() or (np.abs(found - one).max(1) < 1e-6 * max(1, np.abs(one).max())).any()
    whole = rule.whole(found)
    assert (whole**2).sum(1).max() <= rule.l2_squared
    pairs = itertools.combinations(range(11), 2)
    assert all(((whole[i] + whole[j]) ** 2).sum() <= 4 * rule.l2_squared for i, j in pairs)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10)])
@pytest.mark.parametrize("k", [1, 3])
def test_a_person_in_several_sites_is_charged_for_the_union_of_their_samples(rate: Fraction, k: int) -> None:
    said = run(rate=rate, sites_per_person=k)
    moved = said.sensitivity(ADDED, None)
    event = SharedRounds(variance=Fraction(10**4), rounds=4, rate=rate, sites_per_person=k).loss(moved)
    assert isinstance(event, Repeated)
    inner = event.event
    if rate < 1:
        assert isinstance(inner, PoissonSampled)
        assert inner.rate == 1 - (1 - rate) ** k
        inner = inner.event
    assert isinstance(inner, Skellam)
    assert inner.l2_squared == k**2 * said.l2_squared


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("k", [1, 2])
def test_the_bound_for_samples_is_above_the_divergence_of_the_mixture_itself(shift: int, k: int) -> None:
    """All ways to be in k samples at once: shifts of 0 to k·shift with binomial weights, in both directions."""
    from scipy.stats import binom, skellam

    rate, variance, grid = Fraction(1, 5), Fraction(16), np.arange(-60, 61)
    here = skellam.pmf(grid, 8, 8)
    there = sum(binom.pmf(j, k, float(rate)) * skellam.pmf(grid - j * shift, 8, 8) for j in range(k + 1))
    mechanism = SharedRounds(variance=variance, rounds=1, rate=rate, sites_per_person=k)
    event = mechanism.loss(Sensitivity.of(l1=k * shift, l2_squared=(k * shift) ** 2))
    for order in (2, 3, 5, 8):
        bound = float(rdp.compose(event, orders=[order])[0].curve[0][1])
        for one, other in ((here, there), (there, here)):
            assert np.log((one**order / other ** (order - 1)).sum()) / (order - 1) <= bound * (1 + 1e-9)


@pytest.mark.claim("S3-14")
def test_a_smaller_rate_costs_less_and_leaves_more_noise_in_the_mean() -> None:
    """At the same noise multiplier ε falls with the rate, and the noise of the mean update grows as one over it."""
    trainer = training_network().trainer(n_units=1000)
    plan = trainer.plan(epsilon=2, delta=1e-6, rounds=20, batch=100)
    training, noise = plan.training, plan.mechanism
    spent, relative = [], []
    for batch in (50, 100, 200, 400):
        rate = Fraction(batch, 1000)
        said = replace(training, rate=rate)
        event = replace(noise, rate=rate).loss(said.sensitivity(ADDED, None))
        spent.append(float(rdp.epsilon(event, delta=1e-6, orders=range(2, 65))))
        again = replace(plan, training=said, mechanism=replace(noise, rate=rate))
        relative.append(float(noise.variance) ** 0.5 * float(_state(again).unit_of(3)))
    assert spent == sorted(spent)
    assert spent[1] <= 2 < spent[2]
    assert relative == pytest.approx([relative[0] / ratio for ratio in (1, 2, 4, 8)], rel=1e-12)


def _state(plan: TrainingProposal) -> Any:
    from sfumato.federated.training.run_state import RunState

    return RunState(proposal=plan, roster=plan.sites, weights=np.zeros(8))


def test_known_clients_are_not_sampled_and_replaced_people_are_not_either() -> None:
    with pytest.raises(Refused, match="knows which of them are in a round"):
        run(clients="sites", rate=Fraction(1, 2)).sensitivity(ADDED, None)
    with pytest.raises(Refused, match="relation is replace"):
        run(rate=Fraction(1, 2)).sensitivity(record(relation="replace"), None)


def test_calibrated_noise_keeps_the_spend_and_little_less_does_not() -> None:
    said = run(rate=Fraction(1, 20), rounds=30)
    moved, spend = said.sensitivity(ADDED, None), Budget(epsilon=2, delta=1e-6)
    found = SharedRounds.calibrated(moved, spend, rounds=30, rate=Fraction(1, 20))
    assert rdp.epsilon(found.loss(moved), delta=spend.delta, orders=range(2, 65)) <= 2
    less = replace(found, variance=found.variance * Fraction(97, 100))
    assert rdp.epsilon(less.loss(moved), delta=spend.delta, orders=range(2, 65)) > 2


def test_hostile_proposals_are_declined() -> None:
    network = training_network(sites_per_person=1)
    trainer = network.trainer(n_units=90)
    plan = trainer.plan(**SPEND, rounds=2)
    foreign = sf.Vault(unit=ADDED, budget=Budget(epsilon=1), name="nobody").public_key
    hostile = {
        "less noise": replace(plan, mechanism=replace(plan.mechanism, variance=plan.mechanism.variance / 4)),
        "another model": replace(plan, training=replace(plan.training, model="0" * 64)),
        "an invented site": replace(plan, sites=(*plan.sites, foreign)),
        "more may leave": replace(plan, missing=2),
        "no lying server": replace(plan, lying=False),
        "other people": replace(plan, unit=record(relation="replace")),
        "a longer clip": replace(plan, training=replace(plan.training, clip=2 * plan.training.clip)),
    }
    asked = network.sites["north"]
    for name, proposal in hostile.items():
        rounds = RunRounds(proposal=proposal, transport=InProcess([asked]))
        assert rounds.votes({"north": asked.public_key}) == {"north": "declined"}, name
        head = [TRAIN, b"advertise", proposal.digest.encode(), b"1", bytes(32)]
        with pytest.raises(Refused, match="takes no part"):
            asked.answer(packed([*head, *map(str.encode, plan.sites)]))
    assert set(asked.declined.values()) == {"declaration"}
    assert all(vault.spent.epsilon == 0 for vault in network.vaults.values())
    with pytest.raises(SfumatoError):
        asked.answer(packed([TRAIN, PROPOSE_RUN, b"{}"]))
    with pytest.raises(SfumatoError):
        asked.answer(b"no message")


def test_a_site_sends_the_numbers_of_a_round_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that begins a round again, with another roster or other weights, gets no second numbers."""
    network = training_network()
    kept: list[bytes] = []
    own = InProcess.ask

    def ask(self: InProcess, site: str, request: bytes) -> bytes | None:
        kept.append(plain(request))
        return own(self, site, request)

    monkeypatch.setattr(InProcess, "ask", ask)
    trained = network.trainer().fit(**SPEND, rounds=1, lr=1.0)
    north = network.sites["north"]
    masked = next(one for one in kept if b"mask" in one[:40])
    assert north.answer(masked) == north.answer(masked)
    keys = [site.public_key.encode() for site in network.sites.values()]
    for roster, weights in ((keys, bytes(range(32))), (keys[:2], bytes(32))):
        with pytest.raises(Refused, match=r"once|other weights"):
            north.answer(packed([TRAIN, b"advertise", trained.run.encode(), b"1", weights, *roster]))
    with pytest.raises(SfumatoError):  # a round beyond those that were charged
        north.answer(packed([TRAIN, b"advertise", trained.run.encode(), b"2", bytes(32), *keys]))


def test_a_site_alone_is_a_client_and_a_person_in_it_moves_its_update_twice_as_far() -> None:
    network = training_network()
    trained = network.trainer(clients="sites", local_steps=2).fit(**SPEND, rounds=1, lr=1.0)
    said = trained.release.statement
    assert isinstance(said.query, FederatedTraining)
    assert said.query.clients == "sites"
    assert said.sensitivity.l2 is not None
    assert said.sensitivity.l2.squared == 4 * said.query.l2_squared
    assert torch.isfinite(torch.cat([one.flatten() for one in network.model.parameters()])).all()
