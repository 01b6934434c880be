"""S0-24 where several rows have one name: who sends to that name reaches all of them."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.units import Unit, record, user
from sfumato.errors import InvalidInput, Refused
from sfumato.learning import GraphTraining, SubgraphTraining
from sfumato.learning.graph_networks.hops import gathered
from tests import parts
from tests.learning.graph_networks.graphs import Invented, twin, with_many_rows_a_name

parts.package("torch")
from torch import from_numpy  # noqa: E402

from sfumato.learning.graph_networks import nodes as nodes_of  # noqa: E402
from sfumato.learning.graph_networks.graph_run import sent_rows  # noqa: E402
from sfumato.learning.graph_networks.subgraphs import Subgraphs  # noqa: E402

ADDED, PERSON = record(relation="add/remove"), user("name", relation="add/remove")
KEY, MOST = b"0" * 32, 1000


def run(recipients: int, hops: int, **other: Any) -> SubgraphTraining:
    given: dict[str, Any] = {
        "dataset": Dataset(name="papers", edition="1"),
        "units": "record",
        "clip": Fraction(1),
        "times": 1,
        "records": 1,
        "number": 100,
        "rate": Fraction(1),
        "steps": 10,
        "parameters": 7,
        **other,
    }
    return SubgraphTraining(**given, recipients=recipients, hops=hops)


def laid(of: Invented, recipients: int, hops: int) -> Counter[bytes]:
    """What the roots of a vault of users learn from, each to the last bit with its label."""
    found = Subgraphs(of.nodes(), PERSON, recipients=recipients, hops=hops).laid(KEY)
    rows = zip(found.inputs[0].numpy(), found.targets.tolist(), strict=True)
    return Counter(row.tobytes() + bytes([label]) for row, label in rows)


def moved(of: Invented, name: int, recipients: int, hops: int) -> int:
    """How far clipped gradients move a sum when a name goes, if they are as far apart as their inputs let them be."""
    before, after = laid(of, recipients, hops), laid(of.without(name), recipients, hops)
    return (before - after).total() + (after - before).total()


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("unit", [ADDED, record(relation="replace")])
def test_subgraphs_in_a_vault_of_records_are_refused_before_anything_is_charged(unit: Unit) -> None:
    held = sf.Vault(unit=unit, budget=sf.Budget(epsilon=9, delta=1e-7), name="trial")
    with pytest.raises(Refused, match=r"one row for each name.*sf\.user"):
        held.graph_network(data=twin(500).nodes(), method="subgraphs", recipients=1)
    with pytest.raises(Refused, match=r"sf\.user"):
        Subgraphs(twin(500).nodes(), unit, recipients=1, hops=1)
    with pytest.raises(Refused, match=r"sf\.user"):
        run(1, 1).sensitivity(unit, None)
    assert held.spent == sf.Budget.none()


@pytest.mark.claim("S0-24")
def test_of_five_hundred_rows_of_one_name_one_changes_with_the_node_that_sends_to_it() -> None:
    of = twin(500)
    assert moved(of, 0, 1, 1) == run(1, 1).reach == 3
    assert laid(of, 1, 1).total() == 2


def test_the_sum_moves_far_beyond_its_bound_where_all_rows_of_a_name_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_of, "kept_rows", lambda names, most, key: np.arange(len(names))[:, None])
    assert moved(twin(500), 0, 1, 1) == 1 + 2 * 500 > run(1, 1).reach


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("seed", range(8))
def test_no_user_with_any_number_of_rows_moves_the_sum_further(seed: int) -> None:
    recipients, hops = 1 + seed % 2, 1 + seed % 3
    of = with_many_rows_a_name(24, 8, 0.3, seed)
    assert max(moved(of, name, recipients, hops) for name in of.roster) <= run(recipients, hops).reach


def test_a_name_that_would_count_more_than_once_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one for each name"):
        run(1, 1, times=2)
    given = {name: getattr(run(1, 1), name) for name in ("dataset", "clip", "number", "rate", "steps", "parameters")}
    with pytest.raises(InvalidInput, match="counted once"):
        GraphTraining(
            **given,
            units="record",
            times=2,
            records=1,
            recipients=1,
            hops=1,
            names_listed=2,
            classes=2,
            roster="0" * 64,
        )


def hop(of: Invented, recipients: int, own: dict[bytes, Any], heard: Any) -> np.ndarray[Any, Any]:
    """The sums of one hop in a vault of records, where what each name was told before is fixed."""
    nodes = of.nodes()
    rows = nodes.within(ADDED).read(KEY, recipients=recipients)
    places = [nodes.places[name] for name in rows.names if name is not None]
    pointed = [from_numpy(own[row.tobytes()]) for row in rows.features.numpy()]
    return gathered(sent_rows(pointed, heard[places], MOST), rows.sent, len(of.roster))


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("seed", range(8))
def test_a_row_moves_the_sums_of_a_hop_no_further_where_others_have_its_name(seed: int) -> None:
    """Each row sends by itself, and what it heard is a noisy sum of its name that was told: fixed, whoever is there."""
    recipients, made = 1 + seed % 3, np.random.default_rng(seed)
    of = with_many_rows_a_name(20, 5, 0.7, seed)
    for width in (0.0, 1.0):
        own = {row.tobytes(): width * made.normal(size=2) + [1, 0] for row in of.features}
        heard = width * made.normal(size=(5, 2))
        everyone = hop(of, recipients, own, heard)
        away = [int(np.square(everyone - hop(of.without_row(row), recipients, own, heard)).sum()) for row in range(20)]
        assert max(away) <= recipients * MOST**2
        if not width:
            assert max(away) == recipients * MOST**2


def test_rows_of_a_name_that_hear_sums_without_noise_move_the_next_hop_without_bound() -> None:
    """The broken copy: what 500 rows of one name heard is the sum itself, and changes with the node that sent it."""
    of = twin(500)
    many = Invented(
        names=of.names, features=of.features, labels=of.labels, lists=((1,), *[(0,)] * 500), roster=of.roster
    )
    own = {many.features[0].tobytes(): np.array([-9.0, 0.0]), many.features[1].tobytes(): np.array([1.0, 0.0])}
    fixed = np.zeros((2, 2))

    def second(one: Invented, *, told: bool) -> np.ndarray[Any, Any]:
        exact = hop(one, 1, own, fixed)[[0, 1]] / MOST * np.array([[0.0], [2.0]])
        return hop(one, 1, own, fixed if told else exact)

    gone = many.without(0)
    assert np.square(second(many, told=True) - second(gone, told=True)).sum() <= MOST**2
    assert np.square(second(many, told=False) - second(gone, told=False)).sum() > (500 * MOST) ** 2
