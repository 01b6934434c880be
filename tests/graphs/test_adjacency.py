"""The adjacency: sorted rows, no loops, no duplicates, both directions of an undirected edge."""

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency


def matrix(graph: Adjacency) -> np.ndarray:
    out = np.zeros((graph.n, graph.n), dtype=np.int64)
    for row in range(graph.n):
        span = slice(graph.indptr[row], graph.indptr[row + 1])
        neighbours = graph.indices[span]
        assert (np.diff(neighbours) > 0).all()
        out[row, neighbours] = 1 if graph.weights is None else graph.weights[span]
    return out


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_say_what_a_dense_matrix_says(directed: bool, weighted: bool) -> None:
    bits = np.array([(37 * i * i + 11 * i) % 101 for i in range(400)])
    for n in (1, 2, 5, 9):
        source, target, weights = bits[:100] % n, bits[100:200] // 3 % n, bits[200:300] + 1
        count = 3 * n
        expected = np.zeros((n, n), dtype=np.int64)
        for i, j, w in zip(source[:count], target[:count], weights[:count], strict=True):
            if i != j:
                expected[i, j] = max(expected[i, j], w if weighted else 1)
                if not directed:
                    expected[j, i] = max(expected[j, i], expected[i, j])
        if not directed:
            expected = np.maximum(expected, expected.T)
        graph = Adjacency.of_pairs(
            n, source[:count], target[:count], directed=directed, weights=weights[:count] if weighted else None
        )
        assert (matrix(graph) == expected).all()
        assert graph.edges == (expected > 0).sum() // (1 if directed else 2)
        assert graph.degrees.tolist() == (expected > 0).sum(axis=1).tolist()
        assert graph.in_degrees.tolist() == (expected > 0).sum(axis=0).tolist()
        again = Adjacency.of_pairs(n, *graph.pairs(), directed=directed)
        assert (matrix(again) == (expected > 0)).all()
        assert graph.indptr.dtype == np.int64
        assert graph.indices.dtype == np.int32


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_edges(n: int) -> None:
    graph = Adjacency.of_pairs(n, [], [], weights=[])
    assert graph.edges == 0
    assert graph.degrees.tolist() == [0] * n
    assert len(graph.indptr) == n + 1


def test_the_order_of_the_list_means_nothing() -> None:
    one = Adjacency.of_pairs(4, [0, 1, 3], [1, 0, 2], weights=[7, 3, 1])
    two = Adjacency.of_pairs(4, [2, 1, 0], [3, 0, 1], weights=[1, 3, 7])
    assert (matrix(one) == matrix(two)).all()


@pytest.mark.parametrize(("n", "source", "target"), [(3, [1234567], [0]), (3, [-1234567], [0]), (2, [0], [0, 1])])
def test_what_does_not_fit_is_refused_and_no_edge_is_shown(n: int, source: list[int], target: list[int]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Adjacency.of_pairs(n, source, target)
    assert "1234567" not in str(refusal.value)


def test_its_text_shows_no_edge() -> None:
    assert repr(Adjacency.of_pairs(3, [0], [1])) == "Adjacency(…)"
