"""A temporal graph is a stream: events (u, v, t), counted step by step. All small ones, with the query that runs."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.core import events
from sfumato.core.units import Unit
from sfumato.streams.people import People
from sfumato.streams.people import listed as listed_people
from sfumato.streams.strategy_encoder import encoder_of
from sfumato.streams.stream import Stream

pytestmark = pytest.mark.kills

NODES = 3
PAIRS = [(u, v) for u in range(NODES) for v in range(u)]
BOTH = [(u, v) for u in range(NODES) for v in range(NODES) if u != v]


def stream(unit: Unit, horizon: int, **declared: object) -> Stream:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=1, delta=1e-6), name="meetings")
    return vault.stream(name="meetings", version="1", horizon=horizon, **declared)  # type: ignore[arg-type]


def graphs(horizon: int) -> np.ndarray:
    """Every temporal graph on three nodes, one a row: whether u and v met at t."""
    size = len(PAIRS) * horizon
    return (np.arange(2**size)[:, None] >> np.arange(size)) & 1


def interactions(found: np.ndarray, horizon: int) -> np.ndarray:
    """How many events each step has."""
    return found.reshape(len(found), len(PAIRS), horizon).sum(axis=1)


def moved(horizon: int, *, replaced: bool) -> np.ndarray:
    """How far an event that goes, or goes to another place, moves the steps: every graph, every event, every place."""
    every = graphs(horizon)
    places = range(every.shape[1])
    found = []
    for gone, come in product(places, places if replaced else [None]):
        some = every[every[:, gone] == 1]
        if come is not None:
            some = some[some[:, come] == 0]
        other = some.copy()
        other[:, gone] = 0
        if come is not None:
            other[:, come] = 1
        found.append(interactions(some, horizon) - interactions(other, horizon))
    return np.unique(np.concatenate(found), axis=0)


def farthest(differences: np.ndarray) -> tuple[int, int]:
    """The largest l1, and the largest square of l2."""
    return int(np.abs(differences).sum(axis=1).max()), int((differences**2).sum(axis=1).max())


@pytest.mark.claim("S0-22")
@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_an_event_moves_the_interactions_by_one_and_a_moved_event_by_two(horizon: int) -> None:
    for relation, replaced in (("add/remove", False), ("replace", True)):
        far = farthest(moved(horizon, replaced=replaced))
        within = replaced and horizon == 1  # an event that is moved within the only step changes nothing
        assert far == ((0, 0) if within else (2, 2) if replaced else (1, 1))
        for unit in (sf.event(relation=relation), sf.edge(relation=relation)):
            said = stream(unit, horizon).running_total().query.sensitivity(unit, None)
            assert (said.l1.value, said.l2.squared) == ((2, 2) if within else far)  # type: ignore[union-attr]


@pytest.mark.few(4)
@pytest.mark.claim("S0-22")
@pytest.mark.parametrize("strategy", ["increments", "square root", "tree"])
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_what_the_stream_measures_moves_no_further_than_it_is_charged_for(strategy: str, relation: str) -> None:
    unit = sf.event(relation=relation)
    question = stream(unit, 4).running_total(strategy=strategy)
    noise = question.mechanism(epsilon=1, delta=1e-7)
    ways = moved(4, replaced=relation == "replace")
    measured = np.array([encoder_of(noise.strategy).measure(way) for way in ways])
    charged = noise.loss(question.query.sensitivity(unit, None))
    assert isinstance(charged, events.Gaussian)
    assert farthest(measured)[1] <= charged.l2_squared
    if relation == "add/remove":
        assert farthest(measured)[1] == charged.l2_squared
    else:  # the twin: half of it, which an added event is charged, would not do for a moved one
        assert farthest(measured)[1] > charged.l2_squared / 2


def listed(horizon: int) -> Iterator[list[list[tuple[int, int]]]]:
    """Every directed temporal graph on three nodes: the messages of each step."""
    for cells in product((False, True), repeat=len(BOTH) * horizon):
        yield [[pair for place, pair in enumerate(BOTH) if cells[place * horizon + step]] for step in range(horizon)]


def counted(messages: list[list[tuple[int, int]]], limit: sf.Limit, separation: int) -> np.ndarray:
    people = People(times=limit.groups, separation=separation, each=limit.rows_per_group)
    senders = [listed_people([u for u, _ in each]) for each in messages]
    return np.array([people.counted(step, [each])[0] for step, each in enumerate(senders)])


@pytest.mark.few(3)
@pytest.mark.claim("S0-22")
@pytest.mark.parametrize(("groups", "rows", "separation"), [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 1, 2)])
def test_a_sender_moves_what_counts_by_no_more_than_the_limit(groups: int, rows: int, separation: int) -> None:
    limit, unit = sf.Limit(groups=groups, rows_per_group=rows), sf.user("sender", relation="add/remove")
    said = stream(unit, 2, limit=limit, separation=separation).running_total().query.sensitivity(unit, limit)
    sent, met = [], []
    for messages in listed(2):
        here = counted(messages, limit, separation)
        without = [[pair for pair in each if pair[0] != 0] for each in messages]
        gone = [[pair for pair in each if 0 not in pair] for each in messages]
        sent.append(here - counted(without, limit, separation))
        met.append(here - counted(gone, limit, separation))
    far = farthest(np.array(sent))
    assert far[0] <= said.l1.value  # type: ignore[union-attr]
    assert far[1] <= said.l2.squared  # type: ignore[union-attr]
    if separation == 1:
        assert far == (said.l1.value, said.l2.squared)  # type: ignore[union-attr]
        # the twin: a limit on senders does not bound what goes with a person who was written to
        assert farthest(np.array(met))[0] > said.l1.value  # type: ignore[union-attr]
