"""S0-24: how far one node moves what hops and training steps tell, by brute force over small graphs."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.core.query import Dataset
from sfumato.core.units import Relation, Unit, record, user
from sfumato.learning import GraphTraining, NoisyGraphSums, SubgraphTraining, influenced
from sfumato.learning.graph_networks.hops import gathered, held_message
from tests import parts
from tests.learning.graph_networks.graphs import Invented, random_graph, star, tree

parts.package("torch")
from sfumato.learning.graph_networks.nodes import NodeRows  # noqa: E402
from sfumato.learning.graph_networks.subgraphs import reached  # noqa: E402

ADDED, SWAPPED = record(relation="add/remove"), record(relation="replace")
PERSON, EXCHANGED = user("name", relation="add/remove"), user("name", relation="replace")
KEY = b"0" * 32


def read(of: Invented, recipients: int, unit: Unit = ADDED) -> NodeRows:
    return of.nodes().within(unit).read(KEY, recipients=recipients)


def sums(
    of: Invented, recipients: int, messages: dict[int, list[int]]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    rows = read(of, recipients)
    sent = np.array([messages[int(name)] for name in of.names], dtype=np.int64).reshape(len(of.names), -1)
    return gathered(sent, rows.sent, len(of.roster))


def roots(of: Invented, recipients: int, hops: int) -> dict[int, bytes]:
    """What each root's gradient is computed from, to the last bit."""
    rows = read(of, recipients, PERSON)
    names = [int(name) for name in rows.names if name is not None]
    found = reached(rows.features.numpy(), np.array(names), rows.sent, len(of.roster), hops)
    return {name: row.tobytes() for name, row in zip(names, found, strict=True)}


def moved_roots(of: Invented, name: int, recipients: int, hops: int) -> int:
    """How many roots change when a record goes, its own among them."""
    before, after = roots(of, recipients, hops), roots(of.without(name), recipients, hops)
    return 1 + sum(after[each] != before[each] for each in after)


def query(**other: int) -> GraphTraining:
    return GraphTraining(
        dataset=Dataset(name="papers", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=100,
        rate=Fraction(1),
        steps=10,
        parameters=7,
        names_listed=100,
        classes=2,
        roster="0" * 64,
        **{"recipients": 3, "hops": 2, **other},
    )


def subgraphs(recipients: int, hops: int) -> SubgraphTraining:
    return SubgraphTraining(
        dataset=Dataset(name="papers", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=100,
        rate=Fraction(1),
        steps=10,
        parameters=7,
        recipients=recipients,
        hops=hops,
    )


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize(
    ("recipients", "hops", "most"), [(10, 2, 111), (10, 3, 1111), (3, 1, 4), (3, 2, 13), (2, 4, 31)]
)
def test_one_node_is_in_as_many_rooted_subgraphs_as_a_tree_attains(recipients: int, hops: int, most: int) -> None:
    assert influenced(recipients, hops) == most
    assert moved_roots(tree(recipients, hops), 0, recipients, hops) == most


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("seed", range(12))
def test_no_record_of_a_random_graph_changes_more_roots(seed: int) -> None:
    recipients, hops = 1 + seed % 3, 1 + seed % 2
    of = random_graph(12, 0.1 + 0.05 * (seed % 8), seed)
    for name in of.names:
        assert moved_roots(of, name, recipients, hops) <= influenced(recipients, hops)


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_hub_of_a_star_changes_few_roots_because_nobody_chooses_again(hops: int) -> None:
    """Of 500 leaves that name it none sends to somebody else when it goes. A choice among those who exist would."""
    assert moved_roots(star(500), 0, 1, hops) <= influenced(1, hops)


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize(("recipients", "hops"), [(10, 2), (3, 1), (2, 3)])
def test_a_clip_for_each_root_alone_is_exceeded_up_to_the_bound(recipients: int, hops: int) -> None:
    """Gradients at will within the clip: each root that changes swings from −C to C, and the node's own is gone."""
    run = subgraphs(recipients, hops)
    allowed = run.sensitivity(PERSON, run.limit(PERSON)).l2
    assert allowed is not None
    of = tree(recipients, hops)
    before, after = roots(of, recipients, hops), roots(of.without(0), recipients, hops)
    unchanged = {row for name, row in after.items() if before[name] == row}
    gradient = {row: 0 if row in unchanged else 1 for row in before.values()}
    total = sum(gradient.values())
    there = sum(gradient.get(row, -1) for row in after.values())
    assert (total - there) ** 2 == allowed.squared == (2 * influenced(recipients, hops) - 1) ** 2
    swapped = run.sensitivity(EXCHANGED, run.limit(EXCHANGED)).l2
    assert swapped is not None
    assert swapped.squared == 4 * allowed.squared


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("seed", range(12))
def test_no_record_moves_the_sums_of_a_hop_further_than_its_recipients_allow(seed: int) -> None:
    """Adversarial messages: all along one axis and as long as can be, or at random; each record of each graph."""
    recipients, most = 1 + seed % 3, 1000
    of = random_graph(10, 0.5, seed)
    made = np.random.default_rng(seed)
    for aligned in (True, False):
        rows = {name: [1.0, 0.0] if aligned else made.normal(size=2).tolist() for name in of.names}
        messages = {name: held_message(row, most) for name, row in rows.items()}
        everyone = sums(of, recipients, messages)
        squared = [int(np.square(everyone - sums(of.without(name), recipients, messages)).sum()) for name in of.names]
        assert max(squared) <= query(recipients=recipients).reach_squared(ADDED) * most**2
        if aligned:
            assert max(squared) == recipients * most**2


@pytest.mark.claim("S0-24")
def test_a_record_that_is_replaced_moves_the_sums_of_a_hop_twice_as_far() -> None:
    of = tree(3, 1)
    there, back = ({name: [length if name == 0 else 0] for name in of.names} for length in (10, -10))
    away = np.square(sums(of, 3, there) - sums(of, 3, back)).sum()
    assert away == query(recipients=3).reach_squared(SWAPPED) * 10**2


@pytest.mark.claim("S0-24")
@pytest.mark.parametrize("unit", [ADDED, SWAPPED])
@pytest.mark.parametrize("multiplier", [Fraction(1, 3), Fraction(2), Fraction(177, 10)])
def test_the_noise_of_a_hop_is_as_many_times_as_far_as_was_charged(unit: Unit, multiplier: Fraction) -> None:
    noise = NoisyGraphSums(
        multiplier=Fraction(1), steps=10, rate=Fraction(1), parameters=7, hops=2, hop_multiplier=multiplier
    )
    for recipients in (1, 3, 10):
        run = query(recipients=recipients)
        steps = run.message_steps(noise, unit)
        swap = 1 if unit.relation is Relation.ADD_REMOVE else 4
        assert multiplier**2 * swap * recipients * steps**2 <= (2**20) ** 2
        assert multiplier**2 * swap * recipients * (steps + 1) ** 2 > (2**20) ** 2


@pytest.mark.parametrize("row", [[1e300, 1e300], [1e-320, 0.0], [float("nan"), 3.0], [float("inf"), 1.0], [0.1] * 50])
def test_a_message_is_never_longer_than_it_may_be(row: list[float]) -> None:
    for most in (1, 64, 999, 2**20):
        assert sum(each**2 for each in held_message(row, most)) <= most**2
