"""What a reviewer found, each shut: questions made by hand, rows that stop the engine, margins of another number."""

import json
import threading
import warnings
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.documents import check_types
from sfumato.core.units import Edge, Node, User
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.kernels import triangles
from sfumato.graphs.queries.blocks import BlockEdges
from sfumato.mechanisms.matrix import MatrixNoise
from sfumato.noise.sums import saturating_sum
from sfumato.reports.verify import verify
from tests.reports.forgeries import signed_anew

EDGE = sf.edge(relation="add/remove")
RING = [(v, (v + 1) % 20) for v in range(20)]


def vault(unit: Any = EDGE) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=1000), name="contacts")


def graph(unit: Any = EDGE, **said: Any) -> Any:
    return vault(unit).graph(RING, name="wards", version="1", **{"nodes": 20} | said)


# ------------------------------------------------------------------------------------------- questions made by hand


def test_a_fractional_strategy_is_refused_wherever_it_comes_in() -> None:
    """Charged by its small entries and cut off to whole numbers, it told one edge at nearly no ε."""
    held = graph()
    asked = BlockEdges(
        dataset=held.dataset,
        shape=held.shape,
        member=(0,) * 20,
        questions=((1,),),
        asked=("all",),
        strategy=((Fraction(1, 1000),),),
        bits=0,
    )
    with pytest.raises(InvalidInput):
        held._gate.release(asked, Budget(epsilon=Fraction(1, 200)))
    with pytest.raises(InvalidInput, match="whole numbers"):
        MatrixNoise(
            strategy=((Fraction(1, 2),),),  # type: ignore[arg-type]
            bits=0,
            norm="l1",
            noise=Fraction(1),
            workload="given",
            questions=((1,),),
        )
    with pytest.raises(TypeError):
        saturating_sum([Fraction(1, 2)], np.array([0]))  # type: ignore[list-item]


class Lookalike(Enum):
    TOTAL = "total"


@pytest.mark.parametrize("direction", ["total", Lookalike.TOTAL, None])
def test_a_direction_that_is_none_is_refused(direction: Any) -> None:
    """It was charged as one end of each edge and counted at both."""
    held = graph(directed=True)
    for question in (held.degrees(), held.degree_sequence(), held.degree_histogram(), held.stars(3)):
        with pytest.raises(InvalidInput, match="direction"):
            replace(question.query, direction=direction)
    made = held.stars(3).query
    object.__setattr__(made, "direction", direction)
    with pytest.raises(SfumatoError, match=r"must have|cannot answer"):
        held._gate.release(made, Budget(epsilon=1))


@pytest.mark.parametrize("make", [Edge, lambda relation: Node(max_degree=3, relation=relation)])
def test_a_unit_takes_no_text_for_its_relation(make: Any) -> None:
    with pytest.raises(InvalidInput, match=r"unit\.relation"):
        make(relation="replace")
    with pytest.raises(InvalidInput, match=r"unit\.column"):
        User(column=3, relation=EDGE.relation)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Inner:
    KIND, VERSION = "test.inner", 1
    way: Lookalike


@dataclass(frozen=True)
class Outer:
    KIND, VERSION = "test.outer", 1
    inner: Inner | None
    rows: tuple[tuple[int, ...], ...]
    named: tuple[str, int]
    share: Fraction


GOOD = Outer(inner=Inner(Lookalike.TOTAL), rows=((1, 2), ()), named=("a", 1), share=Fraction(1, 2))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"inner": Inner("total")}, "inner.way"),  # type: ignore[arg-type]
        ({"inner": "no"}, "inner"),
        ({"rows": ((1, True),)}, r"rows\[0\]\[1\]"),
        ({"rows": ((1, np.int64(2)),)}, r"rows\[0\]\[1\]"),
        ({"rows": [(1,)]}, "rows"),
        ({"named": ("a",)}, "named"),
        ({"named": ("a", "b")}, r"named\[1\]"),
        ({"share": 1}, "share"),
        ({"share": 0.5}, "share"),
    ],
)
def test_types_are_exact_however_deep(change: dict[str, Any], field: str) -> None:
    check_types(GOOD)
    check_types(replace(GOOD, inner=None))
    with pytest.raises(InvalidInput, match=rf"document\.{field} is not"):
        check_types(replace(GOOD, **change))


# ------------------------------------------------------------------------------------ rows that must not stop a release


@pytest.mark.parametrize("heavy", [2**53 + 1, 2**62])
def test_no_weight_stops_a_release(heavy: int) -> None:
    rows = pa.table({"source": [0, 1], "target": [1, 2], "days": [3, heavy]})
    held = vault(sf.weight(bound=5, relation="replace")).graph(rows, name="w", version="1", nodes=3, weight="days")
    assert len(held.weights().release(epsilon=1).values) == 3


def test_no_weight_is_told_by_a_warning() -> None:
    rows = pa.table({"source": [0, 1], "target": [1, 2], "days": [3.0, 1.7e308]})
    unit = sf.weight(bound="1/2", relation="replace")
    held = vault(unit).graph(rows, name="w", version="1", nodes=3, weight="days")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(held.weights().release(epsilon=1).values) == 3


@pytest.mark.parametrize("row", ["x,1,2", "1,99999999999999999999,2", "1.5,2,2", "1,2,n/a", "1,2,", ",,"])
@pytest.mark.alpha(1e-20)
def test_no_cell_of_a_csv_file_stops_a_release(tmp_path: Path, row: str) -> None:
    path = tmp_path / "contacts.csv"
    path.write_text(f"source,target,days\n0,1,2\n{row}\n1,2,3\n")
    unit = sf.weight(bound=5, relation="replace")
    held = vault(unit).graph(path, name="w", version="1", nodes=3, weight="days")
    values = held.weights().release(epsilon=500).values  # noise of 0.01: α below 1e-20
    assert [round(Fraction(value * 5, 2**20)) for value in values] == [2, 0, 3]


# ------------------------------------------------------------------------------------------------ honest margins


def test_stars_that_would_not_fit_are_refused_before_the_charge() -> None:
    held = vault().graph([(0, 1)], name="big", version="1", nodes=4039)
    for ask in (held.stars, held.local_stars):
        ask(4)
        with pytest.raises(Refused, match=r"2\^62 stars of 9 edges"):
            ask(9)
    held.stars(9, max_degree=20)
    nodes = vault(sf.node(max_degree=2000, relation="add/remove")).graph([(0, 1)], name="n", version="1")
    with pytest.raises(Refused, match=r"2\^62"):
        nodes.stars(9).preview(epsilon=1)


def test_a_walk_that_is_not_near_its_end_is_refused() -> None:
    held = graph()
    held.pagerank(damping="0.99")
    with pytest.raises(InvalidInput, match=r"2500 steps.*at most 0\.99"):
        held.pagerank(damping="0.999")


def test_a_ladder_for_another_graph_is_found(tmp_path: Path) -> None:
    for question in (graph().clustering(), graph().triangles()):
        release = question.release(epsilon=1)
        release.certificate.save(tmp_path / "release.json")
        document = json.loads((tmp_path / "release.json").read_text())
        assert verify(document).consistent
        parts = document["statement"]["mechanism"]
        for part in parts.get("parts", [parts]):
            part["guide"], part["epsilon"] = part["epsilon"], part["guide"]
        signed_anew(document)
        assert not verify(document).consistent


def test_threads_count_side_by_side() -> None:
    known = Adjacency.of_pairs(30, *np.triu_indices(30, 1))
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(triangles(known))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4060] * 4


def test_a_flow_that_is_held_to_a_bound_is_told() -> None:
    """The margin is of the ranks under the bound, which may be far from PageRank."""
    release = graph().pagerank(edge_flow="1/1000").release(epsilon=1)
    assert "A link passes on at most 0.001 of all rank in a step." in release.explain()
    assert "最多传递全部排名的 0.001" in release.explain("zh")
    assert "all rank" not in graph().pagerank().release(epsilon=1).explain()


def test_nodes_beyond_the_chosen_cap_are_found() -> None:
    nodes = vault(sf.node(max_degree=64, relation="add/remove")).graph(RING, name="n", version="1")
    query = nodes.degree_histogram(choose_cap=True).query
    mechanism = query.mechanism(query.sensitivity(nodes.unit, None), nodes.unit, Budget(epsilon=1))
    drawn = (16, *range(16), *([0] * 48))
    assert query.misfit(mechanism, nodes.unit, drawn) is None
    assert "beyond the cap" in query.misfit(mechanism, nodes.unit, (*drawn[:17], 1, *drawn[18:]))
