"""The stated moves of joint statistics and of noisy pairs, number by number: what their enumerations found."""

import pytest

from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, edge, node, weight
from sfumato.errors import Refused, WrongNorm
from sfumato.graphs.ergm.statistics import NetworkStatistics, usual_weights
from sfumato.graphs.shape import Shape
from sfumato.graphs.synthetic import SyntheticGraph
from sfumato.mechanisms.noisy_cells import NoisyCells

pytestmark = pytest.mark.kills

DATA = Dataset(name="tiny", edition="1")
ADD, SWAP, HEAVY = edge(relation="add/remove"), edge(relation="replace"), weight(bound=1, relation="replace")


def numbers(moved: Sensitivity) -> tuple[int | None, ...]:
    return (
        moved.l0 and moved.l0.count,
        moved.l1 and int(moved.l1.value),
        moved.l2 and int(moved.l2.squared),
        moved.linf and int(moved.linf.value),
    )


@pytest.mark.claim("S0-15")
@pytest.mark.parametrize("unit", [ADD, SWAP, HEAVY], ids=str)
@pytest.mark.parametrize(
    ("nodes", "weights", "stated"),
    [
        (2, (1, 1, 1), (1, 1, 1, 1)),
        (3, (1, 1, 1), (3, 4, 6, 2)),
        (6, (1, 1, 1), (3, 13, 81, 8)),
        (6, (20, 3, 7), (3, 72, 1760, 28)),
        (50, usual_weights(50), (3, 1056, 488448, 576)),
    ],
)
def test_statistics(nodes: int, weights: tuple[int, int, int], stated: tuple[int, ...], unit: Unit) -> None:
    query = NetworkStatistics(dataset=DATA, shape=Shape(nodes=nodes), weights=weights)
    assert numbers(query.sensitivity(unit, None)) == stated


@pytest.mark.parametrize(
    ("nodes", "unit", "stated"),
    [
        (5, ADD, (2, 1088, None, 1024)),
        (5, SWAP, (2, 2048, None, 1024)),
        (5, HEAVY, (2, 1088, None, 1024)),
        (3, SWAP, (2, 2048, None, 1024)),
        (2, SWAP, (2, 1088, None, 1024)),
    ],
)
def test_pairs(nodes: int, unit: Unit, stated: tuple[int | None, ...]) -> None:
    assert numbers(SyntheticGraph(dataset=DATA, shape=Shape(nodes=nodes)).sensitivity(unit, None)) == stated


def test_a_node_is_refused() -> None:
    for query in (
        NetworkStatistics(dataset=DATA, shape=Shape(nodes=5)),
        SyntheticGraph(dataset=DATA, shape=Shape(nodes=5)),
    ):
        with pytest.raises(Refused):
            query.sensitivity(node(max_degree=2, relation="replace"), None)


def test_the_loss_of_noisy_cells_is_that_of_their_noise() -> None:
    noise = NoisyCells.calibrated(cells=10, l1=6, epsilon=2)
    event = noise.loss(Sensitivity.of(l1=12))
    assert (event.l1, event.scale) == (12, 3)
    with pytest.raises(WrongNorm):
        noise.loss(Sensitivity.of(linf=1))
