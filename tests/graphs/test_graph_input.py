"""What a graph may be given as, what counts of it, and what is refused; no message shows a node or an edge."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sparse

import sfumato as sf
from sfumato.errors import EngineFailed, InvalidInput, NotDeclared, Refused, SfumatoError, Unsupported
from sfumato.graphs.source import WEIGHT_STEPS

EDGE = sf.edge(relation="add/remove")
NODE = sf.node(max_degree=50, relation="add/remove")
SECRET = 7654321  # a node that no message may show


def vault(unit: Any = EDGE) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6), name="contacts")


def graph(data: object, unit: Any = EDGE, **said: Any) -> Any:
    return vault(unit).graph(data, name="wards", version="1", **said)


def read(given: Any, cap: int | None = None) -> Any:
    """The adjacency that a graph is read as."""
    area = given._gate._stores["graphs"]
    return area._holdings[given.dataset].graph(cap, area._secret)


def pairs(given: Any) -> set[tuple[int, int]]:
    head, tail = read(given).pairs()
    return set(zip(head.tolist(), tail.tolist(), strict=True))


def clear(question: Any) -> tuple[int, ...]:
    """The answer with so much ε that the noise is 0: P(noise) < e^−1000."""
    return question.release(epsilon=50_000).values


# ------------------------------------------------------------------------------------------------ the same graph anyhow

ROWS = [(0, 1), (1, 2), (2, 0), (3, 1), (1, 3), (2, 2)]
EXPECTED = {(0, 1), (1, 2), (0, 2), (1, 3)}
TABLE = pa.table({"source": [i for i, _ in ROWS], "target": [j for _, j in ROWS]})


def test_lists_arrays_frames_and_files_are_one_graph(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "edges.parquet")
    csv.write_csv(TABLE, tmp_path / "edges.csv")
    matrix = np.zeros((5, 5), dtype=np.int8)
    for i, j in ROWS:
        matrix[i, j] = 1
    given: list[object] = [
        ROWS,
        np.array(ROWS),
        np.array(ROWS, dtype=np.uint8),
        TABLE,
        TABLE.to_pandas(),
        tmp_path / "edges.parquet",
        str(tmp_path / "edges.csv"),
        sparse.coo_array(matrix),
        sparse.csr_matrix(matrix),
    ]
    for data in given:
        found = graph(data, nodes=5)
        assert pairs(found) == EXPECTED
        assert clear(found.edges()) == (4,)
        assert clear(found.degrees()) == (2, 3, 2, 1, 0)
        assert clear(found.degree_sequence()) == (0, 1, 2, 2, 3)
        assert clear(found.degree_histogram()) == (1, 1, 2, 1, 0)
        assert clear(found.edges_and_degrees()) == (4, 1, 1, 2, 1, 0)
        assert clear(found.stars()) == (1 + 3 + 1,)


def test_an_ibis_table() -> None:
    ibis = pytest.importorskip("ibis")
    assert pairs(graph(ibis.memtable(TABLE.to_pandas()), nodes=5)) == EXPECTED


@pytest.mark.long
def test_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    made = networkx.Graph(ROWS)
    made.add_node(4)
    assert pairs(graph(made, nodes=5)) == EXPECTED
    assert pairs(graph(networkx.DiGraph(ROWS), nodes=5)) == EXPECTED
    assert pairs(graph(networkx.MultiGraph([*ROWS, *ROWS]), nodes=5)) == EXPECTED
    assert read(graph(networkx.DiGraph(ROWS), nodes=5, directed=True)).edges == 5
    assert graph(made, NODE).shape.listed
    assert clear(graph(made, NODE).degree_histogram())[:4] == (1, 1, 2, 1)
    with pytest.raises(InvalidInput, match="undirected"):
        graph(made, nodes=5, directed=True)
    made.add_edge(0, 4, closeness=0.5)
    weighted = read(graph(made, nodes=5, weight="closeness", bound=1))
    assert (weighted.edges, weighted.weights.tolist()) == (1, [WEIGHT_STEPS // 2] * 2)
    with pytest.raises(InvalidInput, match="all whole numbers or all texts") as refusal:
        graph(networkx.Graph([(SECRET, (1, 2))]), nodes=5)
    assert str(SECRET) not in str(refusal.value)


def test_igraph() -> None:
    igraph = pytest.importorskip("igraph")
    made = igraph.Graph(n=5, edges=ROWS)
    assert pairs(graph(made, nodes=5)) == EXPECTED
    assert graph(made, NODE).shape.listed
    made.vs["name"] = list("abcde")
    assert pairs(graph(made, nodes=list("edcba"))) == {(3, 4), (2, 3), (2, 4), (1, 3)}
    made.es["closeness"] = [1.0, float("nan"), 0, -1, None, 2]
    assert pairs(graph(made, nodes=5, weight="closeness", bound=1)) == {(0, 1)}
    with pytest.raises(InvalidInput, match="no attribute"):
        graph(made, nodes=5, weight="distance", bound=1)


def test_text_names_are_nodes_in_the_public_order(tmp_path: Path) -> None:
    rows = [("ward B", "ward A"), ("ward A", "ward A"), ("ward C", "street"), ("ward C", "ward B")]
    table = pa.table({"from": [i for i, _ in rows], "to": [j for _, j in rows]})
    csv.write_csv(table, tmp_path / "edges.csv")
    wards = ["ward C", "ward A", "ward B"]
    for data in (rows, np.array(rows), table, tmp_path / "edges.csv"):
        found = graph(data, nodes=wards, source="from", target="to")
        assert pairs(found) == {(1, 2), (0, 2)}
        assert found.degrees().query.labels() == {"node": tuple(wards)}
        assert clear(found.degrees()) == (1, 1, 2)


# ----------------------------------------------------------------------------------------------------- which rows count


def test_what_does_not_count_does_not_matter() -> None:
    """Loops, repetitions, unknown nodes, huge ids, missing ends: the graph is the same without them."""
    source = [0, 1, 0, 2, SECRET, -1, 2**63 - 1, None, 3, None]
    target = [1, 0, 1, 2, 0, 0, 0, 0, None, None]
    found = graph(pa.table({"source": source, "target": target}), nodes=4)
    assert pairs(found) == {(0, 1)}


def test_directed_graphs_count_each_direction() -> None:
    found = graph([(0, 1), (1, 0), (0, 2), (0, 2), (1, 1)], nodes=3, directed=True)
    assert clear(found.edges()) == (3,)
    assert clear(found.degrees("out")) == (2, 1, 0)
    assert clear(found.degrees("in")) == (1, 1, 1)
    assert clear(found.degrees()) == (3, 2, 1)
    assert clear(found.degree_histogram()) == (0, 1, 1, 1, 0)
    assert clear(found.stars(direction="out")) == (1,)
    with pytest.raises(InvalidInput, match="no direction"):
        graph([(0, 1)], nodes=3).degrees("out")
    with pytest.raises(InvalidInput, match="'sideways' is unknown"):
        found.degrees("sideways")


def test_weights_are_held_to_the_bound_and_what_is_no_number_above_0_is_no_edge() -> None:
    heavy = [0.25, float("nan"), 0.0, -3.0, float("inf"), None, 0.5, 1e-30]
    table = pa.table({"source": [0] * 8, "target": [*range(1, 8), 1], "days": heavy})
    found = read(graph(table, nodes=9, weight="days", bound=0.5))
    assert found.indices[: found.indptr[1]].tolist() == [1, 5, 7]
    assert found.weights[: found.indptr[1]].tolist() == [WEIGHT_STEPS // 2, WEIGHT_STEPS, WEIGHT_STEPS]
    listed = read(graph([(0, 1, 2), (0, 2, "x"), (0, 3, 10**400), (0, 4, True)], nodes=9, weight="days", bound=4))
    assert listed.indices[: listed.indptr[1]].tolist() == [1, 3]
    matrix = sparse.coo_array(([1.0, -1.0, 0.0], ([0, 1, 2], [1, 2, 3])), shape=(4, 4))
    assert read(graph(matrix, nodes=4, weight="any", bound=1)).edges == 1


@pytest.mark.parametrize("data", [[], np.empty((0, 2), dtype=np.int64), pa.table({"source": [0], "target": [0]})])
def test_graphs_without_an_edge(data: object) -> None:
    found = graph(data, nodes=3)
    assert clear(found.edges()) == (0,)
    assert clear(found.degree_histogram()) == (3, 0, 0)
    assert clear(graph(data, NODE).edges()) == (0,)
    assert clear(graph(data, NODE).degree_sequence(length=2)) == (0, 0)


def test_one_node() -> None:
    found = graph([(0, 0), (0, 5)], nodes=1)
    assert clear(found.edges()) == (0,)
    assert clear(found.degrees()) == (0,)
    assert clear(found.degree_sequence()) == (0,)
    assert clear(found.degree_histogram()) == (1,)
    assert clear(found.edges_and_degrees()) == (0, 1)
    assert clear(found.stars()) == (0,)


def test_what_was_handed_over_is_taken_as_it_is() -> None:
    rows = np.array([(0, 1), (1, 2)])
    found = graph(rows, nodes=4)
    rows[:] = 3
    assert pairs(found) == {(0, 1), (1, 2)}


# ------------------------------------------------------------------------------------------------------------ node unit


def test_under_a_node_unit_the_nodes_are_secret() -> None:
    found = graph(ROWS, NODE)
    assert found.shape.nodes is None
    assert not found.called
    assert clear(found.edges()) == (4,)
    assert clear(found.degree_sequence(length=6)) == (0, 0, 1, 2, 2, 3)
    assert clear(found.degree_sequence(length=2)) == (2, 3)
    assert clear(found.degree_histogram())[:4] == (1, 2, 1, 0)  # from degree 1 on
    with pytest.raises(NotDeclared, match="length"):
        found.degree_sequence()
    with pytest.raises(Refused, match="secret"):
        found.degrees()
    with pytest.raises(Refused, match="secret"):
        graph(ROWS, NODE, nodes=5)


def test_a_private_list_of_nodes_stays_private() -> None:
    found = graph([*ROWS, (0, SECRET)], NODE, nodes=[4, 3, 2, 1, 0])
    assert found.shape.nodes is None
    assert found.shape.listed
    assert found.called == ()
    assert clear(found.edges()) == (4,)
    assert clear(found.degree_histogram())[:4] == (1, 1, 2, 1)  # node 4 has no edge
    assert str(SECRET) not in repr(found)


def test_under_replace_the_nodes_may_be_public() -> None:
    unit = sf.node(max_degree=2, relation="replace")
    found = graph(ROWS, unit, nodes=5)
    assert len(clear(found.degree_histogram())) == 3
    assert len(clear(found.degree_sequence())) == 5
    with pytest.raises(Refused, match="name the node"):
        found.degrees()


@pytest.mark.parametrize("names", ["whole", "text"])
def test_the_projection_is_one_for_neighbours(names: str) -> None:
    """With a node gone, the edges that stay are gone through in the same order, whatever places the nodes have."""
    star = [(0, leaf) for leaf in range(1, 9)] + [(9, leaf) for leaf in range(1, 9)] + [(3, 4), (5, 6)]

    def named(node: int) -> Any:
        return node if names == "whole" else f"n{node}"

    trust = vault(sf.node(max_degree=2, relation="add/remove"))
    area = trust._stores["graphs"]

    def order(rows: list[tuple[int, int]], version: str) -> list[tuple[str, str]]:
        from sfumato.graphs.projection import order_of
        from sfumato.graphs.source import graph_of

        found = trust.graph([(named(i), named(j)) for i, j in rows], name="g", version=version)
        whole, nodes = graph_of(area._holdings[found.dataset].edges, nodes=None, directed=False, bound=None)
        head, tail = whole.pairs()
        listed = order_of(head, tail, nodes.keys(area._secret), directed=False)
        assert nodes.names is not None
        return [(str(nodes.names[head[e]]), str(nodes.names[tail[e]])) for e in listed]

    everything = order(star, "with")
    without = order([row for row in star if 4 not in row], "without")
    gone = str(named(4))
    assert without == [row for row in everything if gone not in row]
    assert everything != sorted(everything)


# ------------------------------------------------------------------------------------------------------------- refusals


def test_units_and_facts_that_do_not_fit_are_refused_before_anything_is_read() -> None:
    with pytest.raises(NotDeclared, match="nodes"):
        graph(ROWS)
    with pytest.raises(NotDeclared, match="needs its unit"):
        sf.Vault(budget=sf.Budget(epsilon=1), name="contacts")
    with pytest.raises(Refused, match="user"):
        graph(ROWS, sf.user("id", relation="add/remove"), nodes=5)
    with pytest.raises(NotDeclared, match="public name"):
        vault().graph(ROWS, nodes=5)
    with pytest.raises(NotDeclared, match="bound"):
        graph(TABLE, nodes=5, weight="days")
    with pytest.raises(InvalidInput, match="none are named"):
        graph(TABLE, nodes=5, bound=3)
    with pytest.raises(NotDeclared, match="weight"):
        graph(TABLE, sf.weight(bound=2, relation="replace"), nodes=5)
    with pytest.raises(Refused, match="go up to 2"):
        graph(TABLE, sf.weight(bound=2, relation="replace"), nodes=5, weight="days", bound=3)
    with pytest.raises(InvalidInput, match="directed"):
        graph(ROWS, nodes=5, directed="yes")
    trust = vault()
    trust.graph(ROWS, name="wards", version="1", nodes=5)
    with pytest.raises(Refused, match="declared already"):
        trust.graph(ROWS, name="wards", version="1", nodes=5)


@pytest.mark.parametrize(
    "nodes", [0, -3, 2.5, True, "abc", [], [1, 1], [1, "a"], [True], [2**70], [None], 2**31, {"a": None}.values]
)
def test_nodes_that_are_none_are_refused(nodes: object) -> None:
    with pytest.raises(InvalidInput):
        graph(ROWS, nodes=nodes)


@pytest.mark.parametrize(
    "data",
    [
        np.array([[0.5, 1.0]]),
        np.array([0, 1]),
        np.array([[0, 1, 2]]),
        np.array([[2**64 - 1, SECRET]], dtype=np.uint64),
        [(0, SECRET, 2)],
        [(0, "a"), (SECRET, 1)],
        [(0, 2.5 * SECRET)],
        [(SECRET, None)],
        [(2**70, SECRET)],
        [0, SECRET],
        [("a", "b")],
        sparse.coo_array(np.ones((2, 3))),
        {"source": [SECRET]},
        3,
    ],
    ids=str,
)
def test_data_that_is_no_edge_list_is_refused_and_not_shown(data: object) -> None:
    with pytest.raises(SfumatoError) as refusal:
        graph(data, nodes=5).edges().release(epsilon=1)
    assert str(SECRET) not in str(refusal.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"a": [1], "b": [2]}), {}),
        (pa.table({"source": ["x"], "target": ["y"]}), {}),
        (pa.table({"source": [1], "target": ["y"]}), {}),
        (pa.table({"source": [0.5], "target": [1.5]}), {}),
        (pa.table({"source": [1], "target": [2], "w": ["heavy"]}), {"weight": "w", "bound": 1}),
        (pa.table({"source": [1], "target": [2]}), {"nodes": ["a", "b"]}),
    ],
)
def test_columns_that_do_not_fit_cost_nothing(table: pa.Table, said: dict[str, Any]) -> None:
    found = graph(table, **{"nodes": 5, **said})
    with pytest.raises(InvalidInput, match="nothing was spent"):
        found.edges().release(epsilon=1)
    assert found._gate.spent.epsilon == 0


def test_a_file_that_is_no_csv_ends_the_release_and_is_not_shown(tmp_path: Path) -> None:
    """The charge is kept, the data is closed, and the message tells nothing of the row: a failure is an output."""
    place = tmp_path / "edges.csv"
    place.write_text(f"source,target\n0,1\n{SECRET},2,3\n")
    found = graph(place, nodes=5)
    with pytest.raises(EngineFailed) as failure:
        found.edges().release(epsilon=1)
    assert str(SECRET) not in str(failure.value)
    assert found._gate.spent.epsilon == 1
    with pytest.raises(Refused, match="closed"):
        found.stars().release(epsilon=1)


def test_hand_made_queries_with_other_facts_are_refused() -> None:
    from dataclasses import dataclass, replace

    from sfumato.core.sensitivity import Sensitivity
    from sfumato.graphs import EdgeCount, Shape

    found = graph(ROWS, nodes=5)
    spend = sf.Budget(epsilon=1)
    for query in (
        replace(found.stars().query, shape=Shape(nodes=2)),
        replace(found.edges().query, shape=Shape(nodes=5, directed=True)),
        replace(found.degrees().query, called=tuple("abcde")),
    ):
        with pytest.raises(Refused, match="not those declared"):
            found._gate.release(query, spend)

    @dataclass(frozen=True, kw_only=True)
    class Free(EdgeCount):
        def sensitivity(self, unit: Any, limit: Any) -> Sensitivity:
            return Sensitivity.of(l1=Fraction(1, 10**9))

    class Smaller(Shape):
        pass

    with pytest.raises(Unsupported):
        found._gate.release(Free(dataset=found.dataset, shape=found.shape), spend)
    with pytest.raises(Unsupported):
        found._gate.release(replace(found.edges().query, shape=Smaller(nodes=5)), spend)
    other = replace(found.dataset, name="elsewhere")
    with pytest.raises(InvalidInput, match="holds no graph"):
        found._gate.release(replace(found.edges().query, dataset=other), spend)
    assert found._gate.spent.epsilon == 0


def test_questions_that_make_no_sense_are_refused() -> None:
    found = graph(ROWS, nodes=5)
    for ask in (
        lambda: found.degree_sequence(0),
        lambda: found.degree_sequence(6),
        lambda: found.degree_histogram(-1),
        lambda: found.degree_histogram(1.5),
        lambda: found.stars(1),
        lambda: found.stars(2, max_degree=0),
        lambda: graph(ROWS, nodes=2**31 - 1).degree_histogram(),
    ):
        with pytest.raises(InvalidInput):
            ask()
    with pytest.raises(Refused, match="own max_degree"):
        graph(ROWS, NODE).stars(2, max_degree=3)
    directed = graph(ROWS, NODE, directed=True)
    assert clear(directed.edges()) == (5,)
    with pytest.raises(Unsupported, match="nothing is proven"):
        directed.degree_histogram(direction="out")


def test_texts_of_a_graph_show_no_edge() -> None:
    found = graph([(1, SECRET)], NODE)
    assert str(SECRET) not in repr(found) + repr(read(found)) + str(found.edges().preview(epsilon=1))
