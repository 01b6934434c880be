"""The graphs that a vault holds, and how questions about them are answered."""

import dataclasses
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from types import NoneType
from typing import TYPE_CHECKING, TypeGuard, cast

from sfumato.core.exact import Exact, positive
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Query, ReleasedQuery
from sfumato.core.stored import Stored
from sfumato.core.units import Node, Relation, Unit, Weight
from sfumato.engines.sources import check_derived
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.gate.setting import Setting
from sfumato.graphs import GRAPH_QUERIES, QUERIES
from sfumato.graphs.graph import Graph
from sfumato.graphs.moves import check_unit
from sfumato.graphs.node_level.by_chosen_cap import ByChosenCap
from sfumato.graphs.nodes import Nodes, nodes_of
from sfumato.graphs.projection import projected
from sfumato.graphs.pushdown import counted, engine_counts, is_counted
from sfumato.graphs.queries.by_ladder import CountWay
from sfumato.graphs.queries.top import Way
from sfumato.graphs.query import GraphQuery
from sfumato.graphs.shape import Direction, Shape
from sfumato.graphs.source import Edges, EdgeTable, edges_of, graph_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.graphs.adjacency import Adjacency

__all__ = ["GraphStore"]

PLAIN = frozenset((str, int, bool, Fraction, NoneType, Direction, CountWay, Way))


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class _Holding:
    """What is kept of a declared graph; once it was read, its rows, by cap.

    ``counts`` is the table whose engine counts what it can; without one, everything is counted in memory.
    """

    edges: Edges
    shape: Shape
    nodes: Nodes | None
    bound: Fraction | None
    counts: EdgeTable | None = None
    derived: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)
    read: "dict[int | None, Adjacency]" = field(default_factory=dict)
    keys: "NDArray[np.uint64] | None" = None

    @property
    def called(self) -> tuple[str, ...] | tuple[int, ...]:
        """The public names of the nodes."""
        return () if self.nodes is None or self.shape.nodes is None else self.nodes.names or ()

    def graph(self, cap: int | None, secret: bytes) -> "Adjacency":
        """The graph, projected to a cap; read once, so that every answer is about the same edges. Sensitive."""
        with self.turn:
            if None not in self.read:
                whole, nodes = graph_of(self.edges, nodes=self.nodes, directed=self.shape.directed, bound=self.bound)
                self.read[None], self.keys = whole, nodes.keys(secret)
            if cap is not None and cap not in self.read:
                self.read[cap] = projected(self.read[None], cast("NDArray[np.uint64]", self.keys), cap)
            return self.read[cap]


class GraphStore:
    """Declared graphs, and the secret that orders their edges for the projection."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._unit, self._name = setting, setting.unit, setting.name
        self._holdings: dict[Dataset, _Holding] = {}
        self._secret = secrets.token_bytes(16)

    def declare(
        self,
        data: object,
        *,
        name: str | None = None,
        version: str | None = None,
        nodes: object = None,
        directed: bool = False,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        bound: Exact | None = None,
        counts: str | None = None,
        derived: bool = False,
    ) -> Graph:
        """Declare a graph: an edge list (Parquet, CSV, plain text, Arrow, a data frame, an Ibis table, a database), an
        array or a list of pairs, a SciPy matrix, a NetworkX or igraph graph.

        A file is not opened; what is in memory is taken over as it is now. Nothing is counted and nothing is spent.

        ``nodes`` says how many nodes there are, called 0, 1, …, or lists their names: a public fact under edge and
        weight units and under replace, where pairs outside it do not count. Where nodes come and go it is secret:
        leave it out, or list the names of all nodes, which then stay private. ``source``, ``target`` and ``weight``
        name columns; weights are held to 0 … ``bound``. A loop is no edge, a pair that is listed twice is one, and a
        row without both ends or with a weight that is no number above 0 does not count.

        Edges are read into memory after the charge, except where ``counts`` is ``engine``: then the engine counts what
        it can (edges, degrees, stars, triangles), and the edges stay where they are. So it is for tables on PostgreSQL
        and Spark, unless ``counts`` is ``memory``. The numbers are the same.

        ``derived`` is as for a table: the steward's word that each row depends on one protected unit only.

        >>> import sfumato as sf
        >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=1), name="contacts")
        >>> wards = vault.graph([("A", "B"), ("B", "C")], name="wards", version="1", nodes=["A", "B", "C"])
        >>> wards.degrees().query.labels()
        {'node': ('A', 'B', 'C')}
        """
        if name is None:
            raise NotDeclared("a graph needs a public name, which its releases state. Say name='contacts'.")
        dataset = Dataset(name=name, edition=secrets.token_hex(8) if version is None else version)
        if dataset in self._holdings:
            raise Refused(
                f"{name!r} version {version!r} is declared already, and stored answers would be mixed with those of "
                "other edges. Nothing was done. Give the new state of the data a new version."
            )
        if not isinstance(directed, bool):
            raise InvalidInput("directed is True or False; nothing was done.")
        check_derived(derived)
        largest = self._bound(weight, bound)
        known, secret = _nodes(nodes, self._unit)
        shape = Shape(nodes=None if secret or known is None else known.count, directed=directed, listed=secret)
        kind = None if known is None else known.kind
        edges = edges_of(
            data, source=source, target=target, weight=weight, directed=directed, kind=kind, derived=derived
        )
        if known is None and isinstance(self._unit, Node) and edges.lists_nodes:
            shape = dataclasses.replace(shape, listed=True)
        check_unit(self._unit, shape)
        table = engine_counts(edges, known, counts)
        holding = _Holding(edges=edges, shape=shape, nodes=known, bound=largest, counts=table, derived=derived)
        self._holdings[dataset] = holding
        return Graph(
            gate=self._setting.gate, dataset=dataset, unit=self._unit, shape=shape, called=holding.called, bound=largest
        )

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        """Whether this is a question about graphs; a subclass could state a sensitivity of its own."""
        return type(query) in GRAPH_QUERIES

    def check(self, query: GraphQuery) -> None:
        """Refuse a query with foreign parts, about a graph that is not declared, or with facts that were not."""
        _check_parts(query)
        if query.dataset not in self._holdings:
            raise InvalidInput(
                f"vault {self._name!r} holds no graph {query.dataset.name!r} version {query.dataset.edition!r}; "
                "nothing was read and nothing was spent. Declare it with vault.graph(...)."
            )
        held = self._holdings[query.dataset]
        declared = {"called": held.called, "bound": held.bound}
        if query.shape != held.shape or any(getattr(query, name, fact) != fact for name, fact in declared.items()):
            raise Refused(
                f"the public facts that this asks with are not those declared for {query.dataset.name!r}; nothing was "
                "read and nothing was spent. Make questions with the methods of the graph."
            )

    def limit(self, query: GraphQuery) -> Limit | None:
        """None: the degree cap is part of the unit."""
        return None

    def private(self, query: GraphQuery) -> list[Dataset]:
        """The one graph that is asked."""
        return [query.dataset]

    def says_nothing(self, query: GraphQuery, law: Law) -> None:
        """Nothing is known beforehand of what a figure can be."""

    def derived(self, query: GraphQuery) -> list[Dataset]:
        """The graph, where it was declared as derived."""
        return [query.dataset] if self._holdings[query.dataset].derived else []

    def check_fit(self, query: GraphQuery) -> None:
        """Refuse an edge list whose columns are not there or not of the right type; no row is read."""
        held = self._holdings[query.dataset]
        held.edges.check(None if held.nodes is None else held.nodes.kind)

    def stored(self, query: GraphQuery) -> dict[Dataset, Stored]:
        """What an edge list is known by, once its columns were looked at; nothing of what is in memory."""
        edges = self._holdings[query.dataset].edges
        return {query.dataset: edges.rows.stored} if isinstance(edges, EdgeTable) else {}

    def read(self, query: GraphQuery) -> object:
        """Read the graph, project it where the unit has a cap, and compute. Sensitive: the result is exact.

        Where the engine counts and the question allows it, no edge is read here.
        """
        held = self._holdings[query.dataset]
        if held.counts is not None and held.nodes is not None and is_counted(query, self._unit, held.counts):
            return counted(query, held.counts, held.nodes)
        if isinstance(query, ByChosenCap):
            return query.in_the_way(held.graph(None, self._secret)), self._at_caps(query, held)
        return query.exact(held.graph(query.cap(self._unit), self._secret))

    def _at_caps(self, query: ByChosenCap, held: _Holding) -> Callable[[int], list[int]]:
        """What is asked under a cap that is not chosen yet. Sensitive."""
        return lambda cap: query.exact_at(held.graph(cap if query.projects else None, self._secret), cap)

    def _bound(self, weight: str | None, bound: Exact | None) -> Fraction | None:
        """The largest weight: that of the unit, where it is one of weights."""
        said = None if bound is None else positive(bound, "bound")
        if isinstance(self._unit, Weight):
            if weight is None:
                raise NotDeclared("a weight is protected, and the graph has none; nothing was done. Say weight='days'.")
            if said not in (None, self._unit.bound):
                raise Refused(f"the unit's weights go up to {self._unit.bound}; nothing was done. Leave bound out.")
            return self._unit.bound
        if weight is not None and said is None:
            raise NotDeclared("weights need a public bound, which they are held to; nothing was done. Say bound=1.")
        if weight is None and said is not None:
            raise InvalidInput("a bound is for weights, and none are named; nothing was done. Say weight='days'.")
        return said


def _nodes(given: object, unit: Unit) -> tuple[Nodes | None, bool]:
    """The nodes that were declared, and whether they are secret: a list of them, where a node may come or go."""
    if given is None:
        return None, False
    nodes = nodes_of(given)
    secret = isinstance(unit, Node) and unit.relation is Relation.ADD_REMOVE and nodes.names is not None
    return nodes, secret


def _check_parts(part: object) -> None:
    """Refuse a query with a part that is not of exactly the class it seems to be."""
    if type(part) is tuple:
        if not set(map(type, part)) <= PLAIN:
            for inner in part:
                _check_parts(inner)
    elif type(part) in (*QUERIES, Dataset):
        for each in dataclasses.fields(part):  # type: ignore[arg-type]  # queries are dataclasses
            _check_parts(getattr(part, each.name))
    elif type(part) not in PLAIN:
        raise Unsupported(
            f"this vault cannot answer a question with a {type(part).__name__} in it; nothing was read and nothing was "
            "spent. Make questions with the methods of a graph."
        )
