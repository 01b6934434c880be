"""Graph networks that protect links and nothing else: how far one link moves a hop, what is said, and attacks."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.units import Relation, Unit, edge, record, user
from sfumato.errors import EngineFailed, InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.learning import EdgeTraining, GraphNodes, NoisySums
from sfumato.learning.graph_networks import recipients as choice
from sfumato.learning.graph_networks.hops import gathered
from sfumato.learning.graph_networks.recipients import sent_by
from sfumato.learning.rounding_error import WIDTH
from sfumato.reports.verify import parsed, verify
from sfumato.reports.words import AUDIENCES
from tests import parts
from tests.learning.graph_networks.graphs import Invented, graph, random_graph, star

parts.package("torch")
import torch  # noqa: E402
from torch import nn  # noqa: E402

from sfumato.learning.graph_networks import graph_run  # noqa: E402

ADDED, SWAPPED = edge(relation="add/remove"), edge(relation="replace")
RUN: dict[str, Any] = {"epsilon": 8, "delta": 1e-7, "steps": 2}
Pair = tuple[int, int]


def told_of(held: sf.Vault, nodes: Any, model: Any = None, hops: int = 1, **run: Any) -> Any:
    return held.graph_network(model, data=nodes, hops=hops).fit(**{**RUN, **run})


def vault(unit: Unit = ADDED, epsilon: float = 100) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="trial")


def query(names: int = 4) -> EdgeTraining:
    return EdgeTraining(
        dataset=Dataset(name="papers", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=names,
        rate=Fraction(1),
        steps=1,
        parameters=2 * names,
        names_listed=names,
        classes=2,
        roster="0" * 64,
    )


def of_links(links: frozenset[Pair], names: int = 4) -> Invented:
    """A graph in which each link stands in both lists."""
    listed = {one: tuple(a + b - one for a, b in links if one in (a, b)) for one in range(names)}
    return graph(listed)


@cache
def summed(links: frozenset[Pair], signs: int) -> Any:
    """The sums of a hop where each of four nodes sends ten steps one way or the other."""
    return sums(of_links(links), [(10, 0) if signs >> place & 1 else (-10, 0) for place in range(4)])


def sums(of: Invented, rows: Any) -> Any:
    places: dict[Any, int] = {name: place for place, name in enumerate(of.roster)}
    sent = sent_by(of.names, of.lists, places, most=2**20, key=b"")
    return gathered(np.asarray(rows, dtype=np.int64), sent, len(places))


def worlds() -> Iterator[tuple[frozenset[Pair], frozenset[Pair], Relation]]:
    """All graphs of four nodes with up to three links, and their neighbours: one link less, or one for another."""
    pairs = list(combinations(range(4), 2))
    for many in range(1, 4):
        for chosen in combinations(pairs, many):
            for gone in chosen:
                rest = frozenset(chosen) - {gone}
                yield frozenset(chosen), rest, Relation.ADD_REMOVE
                for other in set(pairs) - set(chosen):
                    yield frozenset(chosen), rest | {other}, Relation.REPLACE


@pytest.mark.claim("S0-24")
def test_a_link_moves_the_sums_of_a_hop_as_far_as_was_charged_and_no_further() -> None:
    """Brute force over graphs of four nodes and messages that point one way or the other."""
    most = {Relation.ADD_REMOVE: 0, Relation.REPLACE: 0}
    for here, there, relation in worlds():
        for signs in (15, 5, 3, 1, 2, 4):
            moved = int(np.square(summed(here, signs) - summed(there, signs)).sum())
            most[relation] = max(most[relation], moved)
    for unit in (ADDED, SWAPPED):
        bound = query().sensitivity(unit, None).l2
        assert bound is not None
        assert most[unit.relation] == bound.squared * 10**2


def test_a_cap_on_lists_would_move_more_than_a_link() -> None:
    """A list of which only some names count takes another one in where a link goes: so nothing is cut here."""
    places: dict[Any, int] = {name: name for name in range(4)}
    rows, moved = np.array([[10, 0]] * 4), []
    for gone in range(1, 4):
        others = [[] if place == gone else [0] for place in range(1, 4)]
        whole = sent_by(range(4), [[1, 2, 3], [0], [0], [0]], places, most=1, key=b"1")
        less = sent_by(range(4), [[each for each in (1, 2, 3) if each != gone], *others], places, most=1, key=b"1")
        moved.append(int(np.square(gathered(rows, whole, 4) - gathered(rows, less, 4)).sum()))
    assert max(moved) > 200


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("unit", [ADDED, SWAPPED])
@pytest.mark.parametrize("multiplier", [Fraction(1, 3), Fraction(2), Fraction(177, 10)])
def test_the_noise_of_a_hop_is_as_many_times_as_far_as_was_charged(unit: Unit, multiplier: Fraction) -> None:
    noise = NoisySums(multiplier=multiplier, steps=1, rate=Fraction(1), parameters=8)
    steps = query().message_steps(noise, unit)
    squared = 2 if unit.relation is Relation.ADD_REMOVE else 6
    assert multiplier**2 * squared * steps**2 <= WIDTH**2 < multiplier**2 * squared * (steps + 1) ** 2


@pytest.mark.parametrize("unit", [ADDED, SWAPPED])
def test_a_run_is_charged_once_and_says_to_every_reader_what_is_not_protected(unit: Unit) -> None:
    held, of = vault(unit), random_graph(12, 0.4, 3)
    told = told_of(held, of.nodes(), hops=2)
    assert held.spent == sf.Budget(epsilon=8, delta=1e-7)
    assert told.release.statement.unit == unit
    assert told.release.statement.query.weights == sf.learning.weights_digest(told.model)
    assert verify(parsed(told.release.certificate.text), key=held.public_key).authenticated
    for language, word in (("en", "labels and the names of nodes are not protected"), ("zh", "标签和名字都不受保护")):
        for audience in AUDIENCES:
            words = told.release.explain(language, audience)
            assert word in words
            assert "{" not in words
    chances = told.predict(of.features, of.names)
    assert np.allclose(chances.sum(1), 1)


def test_links_help_where_neighbours_are_alike() -> None:
    made = np.random.default_rng(4)
    groups = np.arange(120) % 2
    lists = [[int(name) for name in made.choice(np.flatnonzero(groups == own), 8)] for own in groups]
    nodes = GraphNodes(
        made.normal(size=(120, 3)).astype("f4"),
        np.where(np.arange(120) < 60, groups, -1),
        names=range(120),
        lists=lists,
        roster=range(120),
        classes=2,
        n_units=60,
        name="papers",
    )
    found = told_of(vault(), nodes, epsilon=50, steps=5)
    told = found.classes(np.zeros((60, 3), dtype="f4"), range(60, 120))
    assert (told == groups[60:]).mean() > 0.8


def test_features_lead_to_the_same_model_whoever_is_linked() -> None:
    """What is learned without noise does not depend on the lists: the encoder is the same to the last bit."""
    one, other = random_graph(12, 0.4, 3), random_graph(12, 0.1, 9)
    other = replace(one, lists=other.lists)
    found = [told_of(vault(), each.nodes()).model.encoder.state_dict() for each in (one, other)]
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_no_list_is_read_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    held, nodes = vault(epsilon=8), random_graph(6, 0.4, 3).nodes()
    seen: list[sf.Budget] = []
    original = GraphNodes.read

    def read(self: GraphNodes, key: bytes, *, recipients: int) -> Any:
        seen.append(held.spent)
        return original(self, key, recipients=recipients)

    monkeypatch.setattr(GraphNodes, "read", read)
    held.graph_network(data=nodes).fit(**RUN)
    assert [one.epsilon for one in seen] == [8]


def test_a_run_that_fails_while_it_reads_keeps_its_charge_and_closes_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    held, nodes = vault(), random_graph(6, 0.4, 3).nodes()

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("what is in it")

    with monkeypatch.context() as patch:
        patch.setattr(GraphNodes, "read", broken)
        with pytest.raises(EngineFailed) as told:
            held.graph_network(data=nodes).fit(**RUN)
    assert "what is in it" not in str(told.value)
    assert held.spent.epsilon == 8
    with pytest.raises(Refused, match="closed"):
        held.graph_network(data=nodes).fit(**RUN)


def test_what_is_not_protected_so_is_refused() -> None:
    of = random_graph(5, 0.4, 3)
    held = vault()
    for wrong in ({"recipients": 3}, {"share": "1/2"}, {"clip": 2}, {"method": "subgraphs"}, {"hops": 99}):
        with pytest.raises(InvalidInput):
            held.graph_network(data=of.nodes(), **wrong)
    with pytest.raises(InvalidInput, match="one row"):
        held.graph_network(data=replace(of, names=(0, 0, 1, 2, 3)).nodes())
    with pytest.raises(InvalidInput):
        held.graph_network(nn.Linear(2, 3), data=of.nodes())
    with pytest.raises((InvalidInput, NotDeclared)):
        held.graph_network(data=of.nodes()).fit(epsilon=1, delta=0)
    for unit in (record(relation="add/remove"), user("name", relation="add/remove")):
        with pytest.raises(Unsupported):
            query().sensitivity(unit, None)
    assert held.spent == sf.Budget.none()


def test_a_model_that_raises_does_so_before_the_charge() -> None:
    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            if len(rows) > 2:
                raise ValueError("too many")
            return self.layer(rows)  # type: ignore[no-any-return]  # a module of torch

    held = vault()
    with pytest.raises(ValueError, match="too many"):
        held.graph_network(Picky(), data=random_graph(5, 0.4, 3).nodes()).fit(**RUN)
    assert held.spent == sf.Budget.none()


PLAYERS = 200


def attacked(seed: int, times: int = 1) -> tuple[int, Fraction]:
    """A coin decides for each pair whether it is linked; whoever knows all but the coins guesses them."""
    coins = np.random.default_rng(seed).integers(0, 2, PLAYERS)
    lists = [[one ^ 1] if coins[one // 2] else [] for one in range(2 * PLAYERS)]
    nodes = GraphNodes(
        np.ones((2 * PLAYERS, 1), dtype=np.float32),
        np.zeros(2 * PLAYERS, dtype=int),
        names=range(2 * PLAYERS),
        lists=lists,
        roster=range(2 * PLAYERS),
        classes=2,
        n_units=2 * PLAYERS,
        name="players",
    )
    told = told_of(vault(), nodes, epsilon=1, steps=1)
    along = torch.tensor([1.0, -1.0], dtype=torch.float64) / sqrt(2)
    heard = (told.model.gathered[0].double() @ along).reshape(PLAYERS, 2).sum(1).numpy()
    return int(((heard > times) == coins).sum()), told.release.statement.mechanism.multiplier


@pytest.mark.claim("S0-24")
@pytest.mark.alpha(1e-10)
def test_a_link_is_guessed_no_better_than_was_charged() -> None:
    right, multiplier = attacked(5)
    chance = (1 + erf(float(1 / (2 * multiplier)) / sqrt(2))) / 2
    assert binom.sf(right - 1, PLAYERS, chance) > 1e-10


@pytest.mark.alpha(1e-10)
def test_the_guess_sees_messages_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken copy: messages that are twelve times as long as the noise was made for."""
    original = graph_run.sent_rows
    name = "sfumato.learning.graph_networks.edge_trainer.sent_rows"
    monkeypatch.setattr(name, lambda own, heard, most: 12 * original(own, heard, most))
    right, multiplier = attacked(5, 12)
    chance = (1 + erf(float(1 / (2 * multiplier)) / sqrt(2))) / 2
    assert binom.sf(right - 1, PLAYERS, chance) < 1e-10


def test_odd_links_are_none() -> None:
    """Loops, names that are listed twice or that nobody has, and lists of one side alone."""
    of = graph({0: (0, 0, 1, 1, 9), 1: (), 2: (2,), 3: (1,)})
    found = sums(of, [[10, 0]] * 4)
    assert found[:, 0].tolist() == [0, 20, 0, 0]


def test_features_in_a_mapped_file_and_a_star_go_through(tmp_path: Path) -> None:
    of = star(500)
    np.save(tmp_path / "features.npy", of.features)
    mapped = replace(of, features=np.load(tmp_path / "features.npy", mmap_mode="r")).nodes()
    told = told_of(vault(), mapped)
    assert told.model.gathered.shape == (1, 501, 2)
    again = choice.recipients_of(0, of.lists[0], {name: name for name in of.roster}, 2**20, b"")
    assert again == [1]
