"""Counts by the engine: the same whole numbers as of the graph in memory, on edge lists with every kind of bad row."""

from collections.abc import Callable
from itertools import combinations
from math import comb, isqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import edge_counts, sources
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput
from sfumato.graphs import pushdown, pushdown_sensitivity
from sfumato.graphs.queries.local_stars import LocalStars
from sfumato.graphs.queries.triangles import Triangles
from tests.engines.loading import in_postgres, in_spark

EDGE = sf.edge(relation="add/remove")
TEXTS = ["A", "a", "é", "e\u0301", "", "it's", "区", "a ", "\U0001f600", "Z"]
NUMBERS = [7, -3, 0, 2**63 - 1, -(2**63), 11, 2**53, 2**53 + 1, 5, 4]
WEIGHTS = [1.0, 0.5, 5e-324, float("inf"), 0.0, -0.0, -1.0, float("-inf"), float("nan"), None]


def messy(seed: int, names: list[Any], strangers: list[Any], kind: pa.DataType = None) -> pa.Table:
    """Rows with missing ends, strangers, loops, pairs that are listed again and the other way round, odd weights."""
    chance = np.random.default_rng(seed)
    known = [names[place] for place in chance.integers(0, len(names) - 1, size=80)]  # the last has no edge
    head, tail = known[:40], known[40:]
    again = chance.integers(0, 40, size=25).tolist()
    rows = [*zip(head, tail, strict=True), *((tail[place], head[place]) for place in again[:15])]
    rows += [(head[place], tail[place]) for place in again[15:]]
    rows += [(name, name) for name in names[:3]]
    rows += [pair for odd in (None, *strangers) for pair in ((names[0], odd), (odd, names[1]), (odd, odd))]
    weight = [WEIGHTS[place] for place in chance.integers(0, len(WEIGHTS), size=len(rows))]
    source, target = (pa.array([row[side] for row in rows], kind) for side in (0, 1))
    return pa.table({"source": source, "target": target, "weight": pa.array(weight, pa.float64())})


def graph(data: object, **said: Any) -> Any:
    vault = sf.Vault(unit=said.pop("unit", EDGE), budget=sf.Budget(epsilon=10**6), name="contacts")
    return vault.graph(data, name="wards", version="1", **said)


def holding(given: Any) -> Any:
    return given._gate._stores["graphs"]._holdings[given.dataset]


def undirected(given: Any) -> list[Any]:
    return [
        given.edges(),
        given.degrees(),
        given.degree_sequence(),
        given.degree_sequence(4),
        given.degree_histogram(),
        given.degree_histogram(most=2),
        given.edges_and_degrees(),
        given.stars(),
        given.stars(3),
        given.local_stars(4, way="worst graph"),
        given.triangles(way="worst graph"),
        given.ergm_statistics(),
        given.top_degrees(2),
    ]


def directed(given: Any) -> list[Any]:
    ways = ["total", "out", "in"]
    return [
        given.edges(),
        given.edges_and_degrees(),
        *(given.degrees(way) for way in ways),
        *(given.degree_sequence(5, way) for way in ways),
        *(given.degree_histogram(None, way) for way in ways),
        *(given.stars(direction=way) for way in ways),
    ]


def just_degrees(given: Any) -> list[Any]:
    return [given.degrees()]


def few(given: Any) -> list[Any]:
    return [given.degrees(), given.triangles(way="worst graph")]


def none_or_one(given: Any) -> list[Any]:
    return [given.edges(), given.degrees(), given.degree_sequence(), given.ergm_statistics()]


def both_ways(given: Any, questions: Callable[[Any], list[Any]]) -> tuple[list[list[int]], list[list[int]]]:
    """What the engine counts, and what is counted of the graph in memory; the engine's comes without reading edges."""
    area, held = given._gate._stores["graphs"], holding(given)
    asked = [question.query for question in questions(given)]
    assert held.counts is not None
    by_engine = [area.read(query) for query in asked]
    assert not held.read
    return by_engine, [query.exact(held.graph(None, area._secret)) for query in asked]


# ------------------------------------------------------------------------------------------------ the same numbers


@pytest.mark.few(1)
@pytest.mark.parametrize("questions", [undirected, directed])
def test_the_engine_answers_every_question_that_it_counts_for(questions: Any) -> None:
    rows = messy(4, TEXTS, ["b", "É"])
    given = graph(rows, nodes=TEXTS, directed=questions is directed, counts="engine")
    by_engine, in_memory = both_ways(given, questions)
    assert by_engine == in_memory
    assert {type(number) for numbers in by_engine for number in numbers} == {int}
    assert {type(question.query) for question in undirected(graph(rows, nodes=TEXTS))} == {
        *pushdown.COUNTED,
        Triangles,
        LocalStars,
    }


@pytest.mark.few(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("names", "strangers"), [(10, [-1, 10, 2**62]), (TEXTS, ["b", "É"]), (NUMBERS, [1, -7])])
def test_the_engine_sees_the_same_graph(names: Any, strangers: list[Any], weighted: bool) -> None:
    listed = list(range(names)) if isinstance(names, int) else names
    rows = messy(5 + weighted, listed, strangers)
    said = {"nodes": names, "counts": "engine", **({"weight": "weight", "bound": 1} if weighted else {})}
    by_engine, in_memory = both_ways(graph(rows, **said), few)
    assert by_engine == in_memory
    assert 0 < sum(in_memory[0]) < 80
    by_engine, in_memory = both_ways(
        graph(rows, directed=True, **said), lambda it: [it.degrees("out"), it.degrees("in")]
    )
    assert by_engine == in_memory


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16()])
def test_narrow_columns_and_files(tmp_path: Path, kind: pa.DataType) -> None:
    rows = messy(8, list(range(100, 110)), [99, 110], kind).select(["source", "target"])
    if kind == pa.int8():
        pq.write_table(rows, tmp_path / "edges.parquet")
        given = graph(tmp_path / "edges.parquet", nodes=range(100, 110), counts="engine")
    else:
        csv.write_csv(rows, tmp_path / "edges.csv")
        given = graph(tmp_path / "edges.csv", nodes=120, counts="engine")
    by_engine, in_memory = both_ways(given, few)
    assert by_engine == in_memory


@pytest.mark.few(1)
@pytest.mark.parametrize("rows", [[], [(0, 0), (None, 1), (1, None)], [(0, 1)], [(3, 4), (4, 3)]])
def test_graphs_without_an_edge_or_with_one(rows: list[tuple[int | None, int | None]]) -> None:
    table = pa.table(
        {name: pa.array([row[side] for row in rows], pa.int64()) for side, name in enumerate(("source", "target"))}
    )
    by_engine, in_memory = both_ways(graph(table, nodes=6, counts="engine"), none_or_one)
    assert by_engine == in_memory


def test_triangles_of_larger_graphs() -> None:
    chance = np.random.default_rng(3)
    for nodes, hub in ((40, 0), (400, 12)):
        ends = np.minimum(chance.integers(0, nodes, (2, 1500)), chance.integers(hub, nodes, (2, 1500)))
        table = pa.table({"source": ends[0], "target": ends[1]})
        by_engine, in_memory = both_ways(graph(table, nodes=nodes, counts="engine"), few)
        assert by_engine == in_memory
        assert in_memory[1][0] > 100


def hubs(apart: int) -> list[tuple[int, int]]:
    """Two hubs with as many leaves."""
    return [(hub, leaf) for hub in (0, 1) for leaf in range(2 + apart * hub, 6 + apart * hub)]


SHAPES: dict[str, list[tuple[int, int]]] = {
    "no edge": [],
    "two hubs": hubs(4),
    "two hubs side by side": [(0, 1), *hubs(4)],
    "two hubs that share": [(0, 1), *hubs(2)],
    "a leaf further off": [(0, 1), (0, 2), (0, 3), (1, 4)],
    "complete but one": [*combinations(range(6), 2)][:-1],
    "random": np.random.default_rng(9).integers(0, 12, (40, 2)).tolist(),
}


@pytest.mark.few(2)
@pytest.mark.parametrize(("shape", "first"), [*((shape, 1) for shape in SHAPES), ("random", 256)])
def test_what_shapes_the_noise_of_triangles_is_the_same(
    shape: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs whose largest two nodes are adjacent or not; ``first`` = 1 looks at nodes of one degree after another."""
    monkeypatch.setattr(pushdown_sensitivity, "FIRST", first)
    ends = np.array(SHAPES[shape], dtype=np.int64).reshape(-1, 2)
    given = graph(pa.table({"source": ends[:, 0], "target": ends[:, 1]}), nodes=12, counts="engine")
    by_engine, in_memory = both_ways(given, lambda asked: [asked.triangles()])
    assert by_engine == in_memory


def test_a_wrong_front_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of the two largest degrees, whether they are adjacent or not, is not the same."""
    monkeypatch.setattr(pushdown_sensitivity, "_largest_sum", lambda edges, counts, top: top)
    ends = np.array(SHAPES["two hubs side by side"])
    given = graph(pa.table({"source": ends[:, 0], "target": ends[:, 1]}), nodes=12, counts="engine")
    by_engine, in_memory = both_ways(given, lambda asked: [asked.triangles()])
    assert by_engine != in_memory


def test_few_edges_leave_a_node_even_a_hub() -> None:
    """At most √(2m): what bounds the joins by m^1.5. The hub alone has 3,000 edges."""
    chance = np.random.default_rng(4)
    ends = np.concatenate((chance.integers(0, 3001, (2, 4000)), [[0] * 3000, range(1, 3001)]), axis=1)
    with Source(pa.table({"source": ends[0], "target": ends[1]})).opened() as rows:
        edges = edge_counts.ListedEdges(
            rows=rows, source="source", target="target", weight=None, nodes=3001, names=None, directed=False
        )
        pointed = edge_counts._pointed(edges).to_pandas()
    assert len(pointed) == len({frozenset(pair) for pair in ends.T.tolist() if pair[0] != pair[1]})
    assert pointed.groupby("low").size().max() <= isqrt(2 * len(pointed))
    assert (pointed.both == pointed.low * 3001 + pointed.high).all()


def test_an_answer_through_the_gate_and_stars_beyond_64_bits() -> None:
    hub = pa.table({"source": [0] * 72, "target": range(72)})
    given = graph(hub, nodes=72, counts="engine")
    assert given.edges().release(epsilon=50_000).values == (71,)  # with so much ε the noise is 0: P < e^−1000
    assert not holding(given).read
    assert given.stars(max_degree=3).release(epsilon=50_000).values == (3,)  # a projection is made in memory
    assert holding(given).read
    [[stars]], [[same]] = both_ways(graph(hub, nodes=72, counts="engine"), lambda asked: [asked.stars(9)])
    assert stars == same == comb(71, 9)
    assert pushdown._stars({1: 71, 71: 1}, 35) == comb(71, 35) > 2**64


def test_edges_under_a_weight_unit_are_those_above_zero() -> None:
    rows = pa.table({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0], "days": [2, 0, -4, None]})
    unit = sf.weight(bound=7, relation="replace")
    given = graph(rows, unit=unit, nodes=4, weight="days", counts="engine")
    by_engine, in_memory = both_ways(given, none_or_one)
    assert by_engine == in_memory
    assert by_engine[0] == [1]


# ------------------------------------------------------------------------------------------------ servers


@pytest.mark.long
def test_postgresql_counts_the_same_unasked(postgres_url: str) -> None:
    in_postgres(postgres_url, messy(21, TEXTS, ["b", "É"]), "contact_list")
    table = sources.postgres(postgres_url, table="contact_list")
    given = graph(table, nodes=[*TEXTS, "nul\0"], weight="weight", bound=1)
    by_engine, in_memory = both_ways(given, lambda asked: [*few(asked), *none_or_one(asked), asked.triangles()])
    assert by_engine == in_memory
    assert in_memory[1][0] > 0
    assert holding(graph(table, nodes=TEXTS, counts="memory")).counts is None


@pytest.mark.long
@pytest.mark.parametrize("asked", [just_degrees, pytest.param(few, marks=pytest.mark.long)])
def test_spark_counts_the_same_unasked(spark: Any, asked: Callable[[Any], list[Any]]) -> None:
    in_spark(spark, messy(22, TEXTS, ["b", "É"]), "contact_list")
    table = ibis.pyspark.connect(spark).table("contact_list")
    given = graph(table, nodes=TEXTS, weight="weight", bound=1)
    by_engine, in_memory = both_ways(given, asked)
    assert by_engine == in_memory
    assert all(any(numbers) for numbers in in_memory)


# ------------------------------------------------------------------------------------------------ broken twins


def twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_counts, "_each_once", lambda pairs: pairs)


def any_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight that is no number is above every other one in the engine's own order."""

    def wrong(edges: Any) -> Any:
        rows = edges.rows.filter(edges.rows[edges.weight] > 0)
        return rows.select(start=rows[edges.source], end=rows[edges.target])

    monkeypatch.setattr(edge_counts.ListedEdges, "_weighty", wrong)


@pytest.mark.parametrize("broken", [twice, any_weight])
def test_a_broken_twin_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    rows = messy(5, TEXTS, ["b"])
    by_engine, in_memory = both_ways(graph(rows, nodes=TEXTS, weight="weight", bound=1, counts="engine"), few)
    assert by_engine[0] != in_memory[0]
    assert by_engine[1] != in_memory[1]


# ------------------------------------------------------------------------------------------------ which way is taken


def test_files_and_frames_are_read_unless_the_engine_is_asked() -> None:
    rows = messy(1, list(range(9)), [-1])
    assert holding(graph(rows, nodes=9)).counts is None
    assert holding(graph(rows, nodes=9, counts="memory")).counts is None
    assert holding(graph(rows, nodes=9, counts="engine")).counts is not None


def test_noise_that_fits_and_caps_need_the_edges() -> None:
    rows = messy(1, list(range(9)), [-1])
    given = graph(rows, nodes=9, counts="engine")
    held = holding(given).counts
    for question in (given.local_stars(), given.stars(max_degree=3), given.clustering()):
        assert not pushdown.is_counted(question.query, EDGE, held)
    assert pushdown.is_counted(given.triangles().query, EDGE, held)
    held.rows._origin = SimpleNamespace(engine="Spark")  # which knows no state that several queries would see
    assert not pushdown.is_counted(given.triangles().query, EDGE, held)
    assert pushdown.is_counted(given.triangles(way="worst graph").query, EDGE, held)
    unit = sf.node(max_degree=4, relation="replace")
    assert not pushdown.is_counted(graph(rows, unit=unit, nodes=9).edges().query, unit, held)


def test_what_cannot_be_asked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="counts = 'server' is unknown; nothing was done"):
        graph(messy(1, TEXTS, []), nodes=TEXTS, counts="server")
    with pytest.raises(InvalidInput, match="no engine holds these edges; nothing was done"):
        graph([(0, 1)], nodes=2, counts="engine")
    server = sources.postgres("postgresql://nobody@localhost/none", table="contacts")
    assert holding(graph(server, nodes=TEXTS)).counts is not None
    monkeypatch.setattr(pushdown, "MOST_NAMES", 3)
    assert holding(graph(server, nodes=TEXTS)).counts is None
    assert holding(graph(server, nodes=10)).counts is not None
    with pytest.raises(InvalidInput, match="names of nodes are too many"):
        graph(server, nodes=TEXTS, counts="engine")
