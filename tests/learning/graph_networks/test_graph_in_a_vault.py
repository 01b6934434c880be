"""S0-24 in a vault: a graph network is charged once, told with a certificate, and stays within its guarantee."""

from dataclasses import replace
from fractions import Fraction
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.audit.drawn import shrunk
from sfumato.audit.fit import Played, doubt, numbers
from sfumato.core.units import Unit, node, record, user
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused
from sfumato.gate.session import SessionGate
from sfumato.laws import RoundedGaussian
from sfumato.learning import GraphNodes, NoisyGraphSums
from sfumato.learning.graph_networks import recipients as choice
from sfumato.learning.noisy_sums import WIDTH
from sfumato.reports.verify import parsed, verify
from sfumato.reports.words import AUDIENCES
from tests import parts
from tests.learning.graph_networks.graphs import graph, random_graph

parts.package("torch")
import torch  # noqa: E402
from torch import nn  # noqa: E402

from sfumato.learning.graph_networks.network import direction  # noqa: E402

ADDED, SWAPPED = record(relation="add/remove"), record(relation="replace")
PERSON, EXCHANGED = user("name", relation="add/remove"), user("name", relation="replace")
RUN: dict[str, Any] = {"epsilon": 8, "delta": 1e-7, "steps": 2, "progress": False}


def vault(unit: Unit = ADDED, epsilon: float = 100) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="trial")


def test_a_run_is_charged_once_and_certified_and_resumes_for_nothing(tmp_path: Path) -> None:
    held, of = vault(), random_graph(12, 0.4, 3)
    made = held.graph_network(data=of.nodes(), recipients=2, hops=2)
    told = made.fit(**RUN, checkpoint=tmp_path / "run", every=1)
    assert held.spent == sf.Budget(epsilon=8, delta=1e-7)
    assert told.release.statement.query.weights == sf.learning.weights_digest(told.model)
    assert verify(parsed(told.release.certificate.text), key=held.public_key).authenticated
    for language, word in (("en", "names of its own list"), ("zh", "名单")):
        words = [told.release.explain(language, audience) for audience in AUDIENCES]
        assert all("{" not in each for each in words)
        assert any(word in each for each in words)
    gathered = told.model.gathered.clone()
    again = made.fit(**RUN, checkpoint=tmp_path / "run", every=1, resume=True)
    assert again.release.charged == sf.Budget.none()
    assert torch.equal(again.model.gathered, gathered)
    chances = told.predict(of.features, of.names)
    assert chances.shape == (12, 2)
    assert np.allclose(chances.sum(1), 1)
    assert told.predict(of.features[:1], ["nobody"]).shape == (1, 2)


def test_hops_are_not_drawn_again_when_a_process_died_after_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        """What ends a process before its release was stored."""

    seen: list[str] = []

    def died(self: Any, opened: Any, query: Any, values: Any) -> None:
        seen.append(query.weights)
        raise Died

    held = vault()
    made = held.graph_network(data=random_graph(6, 0.4, 3).nodes())
    with monkeypatch.context() as patch:
        patch.setattr(SessionGate, "close", died)
        with pytest.raises(Died):
            made.fit(**RUN, checkpoint=tmp_path / "run")
    told = made.fit(**RUN, checkpoint=tmp_path / "run", resume=True)
    assert [told.release.statement.query.weights] == seen
    assert held.spent.epsilon == 8


def test_sampled_steps_and_hops_are_accounted_together() -> None:
    held = vault()
    made = held.graph_network(data=random_graph(40, 0.1, 1).nodes())
    whole, part = (made.plan(epsilon=2, delta=1e-7, steps=20, batch=size) for size in (40, 10))
    for plan in (whole, part):
        assert isinstance(plan.mechanism, NoisyGraphSums)
        event = plan.mechanism.loss(plan.query.sensitivity(ADDED, None))
        spent = sf.accounting.epsilon(event, delta=1e-7)
        assert Fraction(199, 100) < spent <= Fraction(2001, 1000)
    assert part.mechanism.multiplier < whole.mechanism.multiplier  # type: ignore[attr-defined]  # noisy sums
    told = made.fit(epsilon=2, delta=1e-7, steps=3, batch=10, progress=False)
    assert verify(parsed(told.release.certificate.text), key=held.public_key).authenticated


@pytest.mark.parametrize(
    ("method", "unit"),
    [
        ("propagate", ADDED),
        ("propagate", SWAPPED),
        ("propagate", PERSON),
        ("subgraphs", PERSON),
        ("subgraphs", EXCHANGED),
    ],
)
def test_both_methods_run_for_each_unit_that_they_protect(method: str, unit: Unit) -> None:
    held = vault(unit)
    told = held.graph_network(data=random_graph(8, 0.4, 5).nodes(), method=method).fit(**RUN)
    assert held.spent.epsilon == 8
    assert all("{" not in told.release.explain("en", audience) for audience in AUDIENCES)


def test_subgraphs_predict_over_a_graph_of_the_asker_alone() -> None:
    held, private = vault(PERSON), random_graph(8, 0.4, 5).nodes()
    told = held.graph_network(data=private, method="subgraphs").fit(**RUN)
    own = graph({7: (8, 9), 8: (9,), 9: ()})
    features, listed = own.features, (own.names, own.lists)
    means = np.stack([np.zeros(2), features[0], (features[0] + features[1]) / 2])
    with torch.no_grad():
        scores = told.model(torch.from_numpy(np.concatenate([features, means], axis=1).astype("f4")))
    assert np.allclose(told.predict(features, *listed), torch.softmax(scores, 1).numpy(), atol=1e-6)
    assert told.classes(features, *listed).tolist() == scores.argmax(1).tolist()
    for wrong in ((features[:2], *listed), (features, (7, 7, 9), own.lists), (features, own.names, [()])):
        with pytest.raises(InvalidInput):
            told.predict(*wrong)


def test_subgraphs_predict_over_no_nodes_that_were_declared_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of the vault nor a copy of them nor others: nothing of them is read."""
    held, of = vault(PERSON), random_graph(8, 0.4, 5)
    private = of.nodes()
    told = held.graph_network(data=private, method="subgraphs").fit(**RUN)
    monkeypatch.setattr(GraphNodes, "read", None)
    for nodes in (private, private.within(PERSON), of.nodes(), of.nodes(name="other")):
        with pytest.raises(Refused, match="private"):
            told.predict(nodes, of.names, of.lists)
        with pytest.raises(Refused, match="private"):
            told.predict(nodes)
    assert held.spent.epsilon == 8


def test_of_a_person_with_two_rows_one_counts() -> None:
    twice = graph({0: (1,), 1: (0,), 2: (0, 1)})
    nodes = GraphNodes(
        twice.features,
        twice.labels,
        names=["a", "a", "b"],
        lists=[["b"], ["b"], []],
        roster=["a", "b"],
        classes=2,
        n_units=2,
        name="papers",
    )
    rows = nodes.within(PERSON).read(b"1", recipients=5)
    assert len(rows.names) == 2
    assert len(rows.sent.rows) == 1
    assert len(nodes.within(ADDED).read(b"1", recipients=5).sent.rows) == 2


def test_features_in_a_mapped_file_are_read_as_they_are(tmp_path: Path) -> None:
    of = random_graph(8, 0.4, 5)
    np.save(tmp_path / "features.npy", of.features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    nodes = replace(of, features=mapped).nodes()
    assert np.array_equal(nodes.within(ADDED).read(b"1", recipients=2).features.numpy(), of.features)
    told = vault(PERSON).graph_network(data=nodes, method="subgraphs").fit(**RUN)
    given = of.names, of.lists
    assert np.array_equal(told.predict(mapped, *given), told.predict(of.features, *given))
    passed = vault().graph_network(data=nodes).fit(**RUN)
    assert np.array_equal(passed.predict(mapped, of.names), passed.predict(of.features, of.names))


def test_a_model_that_fails_on_a_row_sends_zeros_for_that_row_alone() -> None:
    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            if len(rows) == 1 and rows[0, 0] > 90:
                raise ValueError("too large")
            return self.layer(rows)

    of = graph({0: (1,), 1: (0,)})
    of.features[0, 0] = 99
    told = vault().graph_network(Picky(), data=of.nodes()).fit(**{**RUN, "epsilon": 100})
    assert torch.isfinite(told.model.gathered).all()


def test_what_cannot_be_is_refused_before_anything_is_spent() -> None:
    of = random_graph(5, 0.4, 3)
    with pytest.raises(Refused, match=r"sf\.record"):
        vault(node(max_degree=3, relation="add/remove")).graph_network(data=of.nodes())
    held = vault()
    for wrong in (
        {"recipients": 0},
        {"hops": 99},
        {"share": 1},
        {"clip": {"": 1}},
        {"method": "magic"},
        {"method": "subgraphs", "share": "1/2"},
        {"model": nn.Linear(2, 3)},
        {"data": "nodes"},
    ):
        with pytest.raises(InvalidInput):
            held.graph_network(**{"data": of.nodes(), **wrong})
    with pytest.raises(NotDeclared):
        held.graph_network(data=of.nodes()).fit(delta=1e-7, steps=1)
    with pytest.raises(NotDeclared):
        held.graph_network(data=of.nodes()).fit(epsilon=1, delta=1e-7)
    people = vault(PERSON)
    with pytest.raises(Refused, match="all roots"):
        people.graph_network(data=of.nodes(), method="subgraphs", recipients=99, hops=2).fit(**RUN, batch=2)
    swapped = vault(EXCHANGED)
    with pytest.raises(Refused, match="relation is replace"):
        swapped.graph_network(data=of.nodes(), method="subgraphs").fit(**RUN, batch=2)
    with pytest.raises(BudgetExceeded):
        held.graph_network(data=of.nodes()).fit(**{**RUN, "epsilon": 101})
    assert held.spent == people.spent == swapped.spent == sf.Budget.none()


@pytest.mark.parametrize(
    "wrong",
    [
        {"lists": "abcde"},
        {"lists": [[]]},
        {"labels": np.zeros(5)},
        {"labels": np.zeros((5, 1), dtype=int)},
        {"features": np.zeros(5)},
        {"roster": [1, 1]},
        {"roster": []},
        {"classes": 1},
    ],
)
def test_nodes_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "features": np.zeros((5, 2), dtype="f4"),
        "labels": np.zeros(5, dtype=int),
        "names": list(range(5)),
        "lists": [[]] * 5,
        "roster": range(5),
        "classes": 2,
        "n_units": 5,
        "name": "papers",
        **wrong,
    }
    with pytest.raises(InvalidInput):
        GraphNodes(given.pop("features"), given.pop("labels"), **given)
    with pytest.raises(NotDeclared):
        GraphNodes(np.zeros((5, 2)), np.zeros(5, dtype=int), names=list(range(5)), lists=[[]] * 5, name="papers")


PLAYERS, LISTED = 120, 120


def attacked(seed: int, listed: int) -> tuple[int, Fraction]:
    """A coin decides for each player whether its record is there; whoever knows all but the coins guesses them.

    How many guesses were right, by what the vault told, and how much noise a hop had.
    """
    coins = np.random.default_rng(seed).integers(0, 2, PLAYERS)
    names = [name for name, coin in enumerate(coins) if coin]
    lists = [[PLAYERS + one * listed + place for place in range(listed)] for one in range(PLAYERS)]
    features = np.ones((PLAYERS, 1), dtype=np.float32)
    nodes = GraphNodes(
        features[names],
        np.full(len(names), -1),
        names=names,
        lists=[lists[name] for name in names],
        roster=range(PLAYERS + PLAYERS * listed),
        classes=2,
        n_units=PLAYERS,
        name="players",
    )
    told = vault().graph_network(data=nodes, recipients=3, share="9/10").fit(**{**RUN, "steps": 1})
    along = direction(told.model(torch.ones(1, 1)).detach())[0]
    heard = told.model.gathered[0].double() @ along
    seen = heard[PLAYERS:].reshape(PLAYERS, listed).sum(1).numpy()
    right = int(((seen > listed / 2) == coins).sum())
    return right, told.release.statement.mechanism.hop_multiplier


@pytest.mark.claim("S0-24")
@pytest.mark.alpha(2e-10)
def test_who_is_in_the_graph_is_guessed_no_better_than_was_charged() -> None:
    """The best guess at a coin behind Gaussian noise is right with chance Φ(μ/2), μ = 1/multiplier of the hop."""
    right, multiplier = attacked(5, 3)
    chance = (1 + erf(float(1 / (2 * multiplier)) / sqrt(2))) / 2
    assert binom.sf(right - 1, PLAYERS, chance) > 1e-10


@pytest.mark.alpha(1e-10)
def test_the_guess_sees_nodes_that_send_to_all_of_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    original = choice.recipients_of
    monkeypatch.setattr(
        choice, "recipients_of", lambda name, listed, places, most, key: original(name, listed, places, 999, key)
    )
    right, multiplier = attacked(5, LISTED)
    chance = (1 + erf(float(1 / (2 * multiplier)) / sqrt(2))) / 2
    assert binom.sf(right - 1, PLAYERS, chance) < 1e-10


@pytest.mark.claim("S0-24")
@pytest.mark.alpha(2e-9)
def test_the_noise_of_a_hop_has_the_law_that_was_charged() -> None:
    """Nobody sends anything: what is told is noise alone."""
    names = range(3000)
    nodes = GraphNodes(
        np.ones((1, 1), dtype=np.float32),
        np.array([-1]),
        names=[0],
        lists=[[]],
        roster=names,
        classes=2,
        n_units=1,
        name="x",
    )
    told = vault().graph_network(data=nodes).fit(**RUN)
    steps = told.release.statement.query.message_steps(told.release.statement.mechanism, ADDED)
    drawn = (told.model.gathered.double() * steps).round().long().flatten().tolist()
    played = Played(cells=numbers(RoundedGaussian(sigma=Fraction(WIDTH))), draws=drawn)
    assert doubt(played) > 1e-9
    assert doubt(shrunk(played)) < 1e-9
