"""Graphs: the handle that an analyst builds questions with; it holds public facts and no edges."""

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn

from sfumato.core.deprecation import withdrawn
from sfumato.core.description import plain
from sfumato.core.exact import Exact, non_negative, rational
from sfumato.core.query import Dataset
from sfumato.core.question import Gate, Question
from sfumato.core.suggestion import no_attribute
from sfumato.core.units import Node, Unit, describe
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.graphs.block_models import canonical
from sfumato.graphs.ergm.statistics import NetworkStatistics, usual_weights
from sfumato.graphs.node_level.by_chosen_cap import LEAST, ChosenEdges, ChosenHistogram
from sfumato.graphs.node_level.triangles import ChosenTriangles, NodeTriangles
from sfumato.graphs.pagerank import textbook_bound
from sfumato.graphs.queries.blocks import BlockEdges, questions_of, strategy_for
from sfumato.graphs.queries.by_ladder import SHARE, CountWay
from sfumato.graphs.queries.clustering import Clustering
from sfumato.graphs.queries.communities import MOST_NODES_LISTED, CommunityCount
from sfumato.graphs.queries.degrees import Degrees, SortedDegrees
from sfumato.graphs.queries.edges import EdgeCount
from sfumato.graphs.queries.found_communities import FoundCommunities
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.graphs.queries.local_stars import LocalStars
from sfumato.graphs.queries.pagerank import PageRank
from sfumato.graphs.queries.partition_choice import PartitionChoice
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.queries.top import JOINT_WORK, TopNodes, Way
from sfumato.graphs.queries.triangles import Triangles
from sfumato.graphs.queries.weights import PairWeights
from sfumato.graphs.query import GraphQuery
from sfumato.graphs.shape import Direction, Shape
from sfumato.graphs.synthetic import SyntheticGraph

__all__ = ["Graph"]


Partition = Sequence[object] | Mapping[str | int, object]
"""The block of every node, in the order of the nodes or by name."""


@withdrawn(gate="the vault that declared the graph")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Graph:
    """A graph behind a gate.

    Public: the name, the version, the unit and, for edge and weight units, the nodes. Each method returns a question;
    nothing is read and nothing is spent until it is released.

    Guarantee: a graph by itself says nothing about its edges; what a question costs and how exact it is follows from
    the declaration. Assumes: what was declared is public and was not read off the edges.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=4), name="contacts")
    >>> wards = vault.graph([(0, 1), (1, 2)], name="wards", version="1", nodes=3)
    >>> wards.edges().preview(epsilon=1).margin
    3
    """

    gate: InitVar[Gate]
    _gate: Gate = field(init=False, repr=False)
    dataset: Dataset
    unit: Unit
    shape: Shape
    called: tuple[str, ...] | tuple[int, ...] = ()
    """The public names of the nodes, where they are not 0, 1, …."""
    bound: Fraction | None = None
    """The largest weight, where edges have weights."""

    def __post_init__(self, gate: Gate) -> None:
        object.__setattr__(self, "_gate", gate)

    def edges(self, *, choose_cap: bool = False, least_cap: int | None = None) -> Question:
        """Ask for the number of edges; under a node unit, of those that its degree cap leaves.

        With ``choose_cap`` the cap is chosen privately from ``least_cap`` (32), twice that, …, up to the unit's own,
        for a third of ε: far less noise where most degrees are far smaller than the unit allows.

        >>> import sfumato as sf
        >>> nodes = sf.node(max_degree=20, relation="add/remove")
        >>> vault = sf.Vault(unit=nodes, budget=sf.Budget(epsilon=4), name="contacts")
        >>> wards = vault.graph([(0, 1), (1, 2)], name="wards", version="1")
        >>> wards.edges().preview(epsilon=1).sensitivity.l1
        L1(value=Fraction(20, 1))
        """
        if choose_cap:
            most = self._cap()
            least = _least_cap(least_cap, most)
            return self.question(ChosenEdges(dataset=self.dataset, shape=self.shape, most=most, least=least))
        return self.question(EdgeCount(dataset=self.dataset, shape=self.shape))

    def degrees(self, direction: str = "total") -> Question:
        """Ask for the degree of each node by name, where names are public: under edge and weight units.

        ``direction`` is ``total``, or for directed graphs ``out`` or ``in``.
        """
        return self.question(
            Degrees(dataset=self.dataset, shape=self.shape, direction=_direction(direction), called=self.called)
        )

    def degree_sequence(self, length: int | None = None, direction: str = "total") -> Question:
        """Ask for the ``length`` largest degrees in rising order, without names; all of them where n is public.

        The noisy numbers are made to rise again, which costs nothing and takes most of the noise away.
        """
        if length is None:
            if self.shape.nodes is None:
                raise NotDeclared(
                    "how many nodes there are is secret, so the answer needs a declared length; nothing was done. "
                    "Say degree_sequence(length=1000): the largest 1000 degrees, with zeros where there are fewer."
                )
            length = self.shape.nodes
        return self.question(
            SortedDegrees(dataset=self.dataset, shape=self.shape, length=length, direction=_direction(direction))
        )

    def degree_histogram(
        self,
        most: int | None = None,
        direction: str = "total",
        *,
        choose_cap: bool = False,
        least_cap: int | None = None,
    ) -> Question:
        """Ask how many nodes have each degree, up to ``most``, whose count holds all larger ones too.

        Without ``most`` the counts go up to the largest degree that is possible: n − 1, or the cap of a node unit.
        ``choose_cap`` and ``least_cap`` (16) are as for :meth:`edges`: the counts go up to a cap chosen privately.
        """
        way = _direction(direction)
        if choose_cap:
            if most is not None or way is not Direction.TOTAL:
                raise InvalidInput("a chosen cap is for total degrees up to the unit's own cap; nothing was done.")
            cap = self._cap()
            return self.question(
                ChosenHistogram(
                    dataset=self.dataset, shape=self.shape, most=cap, least=_least_cap(least_cap, cap, LEAST // 2)
                )
            )
        largest = self._largest(way)
        most = largest if most is None else most
        if isinstance(most, int):
            most = min(most, largest)
        return self.question(
            DegreeHistogram(dataset=self.dataset, shape=self.shape, most=most, closed=most == largest, direction=way)
        )

    def edges_and_degrees(self) -> Question:
        """Ask for the number of edges and the degree histogram together: one charge, and numbers that agree."""
        return self.question(
            EdgesAndDegrees(dataset=self.dataset, shape=self.shape, most=self._largest(Direction.TOTAL))
        )

    def stars(self, leaves: int = 2, *, max_degree: int | None = None, direction: str = "total") -> Question:
        """Ask how many stars with ``leaves`` leaves there are; two leaves make a wedge.

        ``max_degree`` counts them in the graph projected to this public cap: fewer stars, and far less noise.
        """
        return self.question(
            Stars(
                dataset=self.dataset,
                shape=self.shape,
                leaves=leaves,
                max_degree=max_degree,
                direction=_direction(direction),
            )
        )

    def triangles(
        self,
        *,
        way: str | None = None,
        share: Exact | None = None,
        choose_cap: bool = False,
        least_cap: int | None = None,
    ) -> Question:
        """Ask for the number of triangles.

        Under a node unit with cap D no node counts in more than D(D − 1)/2 of them; ``choose_cap`` and ``least_cap``
        are as for :meth:`edges`, and ``way`` and ``share`` are not used. Under edge and weight units ``way`` is

        - ``ladder``: the noise fits the graph at hand, and ``share`` of ε (1/25, or what you say) goes to a private
          bound of the error, from which the interval follows; with ``share=0`` it is that of the worst graph;
        - ``noisy scale``, for a spend with a δ: ``share`` of ε (worked out from n, ε and δ, or what you say) goes to a
          noisy bound of how far one edge moves the count, and the rest to noise of that scale. The error has a known
          law, and a short interval. Where ε times the largest number of common neighbours is above about
          8·ln(1/(2δ)) it is smaller than that of a ladder, and larger below;
        - ``worst graph``: noise for n − 2 per edge, which is less only where ε·n is below about 10.

        Without ``way`` it is a ladder where the spend has no δ, and a noisy scale where it has one.

        >>> import sfumato as sf
        >>> budget = sf.Budget(epsilon=4, delta=1e-6)
        >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=budget, name="contacts")
        >>> wards = vault.graph([(0, 1), (1, 2), (0, 2)], name="wards", version="1", nodes=50)
        >>> wards.triangles().preview(epsilon=1).mechanism.KIND
        'mechanism.ladder'
        >>> wards.triangles().preview(epsilon=1, delta=1e-6).mechanism.KIND
        'mechanism.noisy_scale'
        """
        if choose_cap:
            most = self._cap()
            least = _least_cap(least_cap, most)
            return self.question(ChosenTriangles(dataset=self.dataset, shape=self.shape, most=most, least=least))
        if isinstance(self.unit, Node):
            return self.question(NodeTriangles(dataset=self.dataset, shape=self.shape, most=self.unit.max_degree))
        given = _share(share)
        return self.question(Triangles(dataset=self.dataset, shape=self.shape, way=_way(way, given), share=given))

    def local_stars(self, leaves: int = 2, *, way: str | None = None, share: Exact | None = None) -> Question:
        """Ask how many stars with ``leaves`` leaves there are, with noise that fits the graph: as :meth:`triangles`."""
        given = _share(share)
        return self.question(
            LocalStars(dataset=self.dataset, shape=self.shape, leaves=leaves, way=_way(way, given), share=given)
        )

    def clustering(self, *, share: Exact | None = None) -> Question:
        """Ask for the clustering coefficient, 3·triangles/wedges, and for both counts: one charge."""
        given = SHARE if share is None else non_negative(share, "share")
        return self.question(Clustering(dataset=self.dataset, shape=self.shape, share=given))

    def ergm_statistics(self, weights: tuple[int, int, int] | None = None) -> Question:
        """Ask for edges, 2-stars and triangles together, from which the parameters of a random graph are inferred.

        ``weights`` divide the noise between the three; see :func:`sfumato.graphs.ergm.fit.fit`. Under edge and weight
        units.

        >>> import sfumato as sf
        >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=4), name="contacts")
        >>> wards = vault.graph([(0, 1), (1, 2), (0, 2)], name="wards", version="1", nodes=50)
        >>> wards.ergm_statistics(weights=(1, 1, 1)).preview(epsilon=1).sensitivity.l1
        L1(value=Fraction(145, 1))
        """
        given = usual_weights(self.shape.nodes or 0) if weights is None else weights
        return self.question(NetworkStatistics(dataset=self.dataset, shape=self.shape, weights=given))

    def synthetic(self) -> Question:
        """Ask for a synthetic graph on the same nodes, to use like a public one; under edge and weight units.

        See :func:`sfumato.graphs.synthetic.graph_of`, and for small ε :func:`sfumato.graphs.synthetic.from_degrees`.
        """
        return self.question(SyntheticGraph(dataset=self.dataset, shape=self.shape, called=self.called))

    def top_degrees(self, choices: int, direction: str = "total", way: str | None = None) -> Question:
        """Ask which ``choices`` nodes have the largest degrees; their names, not their degrees.

        ``way`` is ``joint`` (the set is chosen as a whole, at a cost that does not grow with it) or ``peeling`` (one
        after the other, with an order); joint unless nodes times choices are more than 10 million.
        """
        if way is None:
            many = isinstance(choices, int) and choices * (self.shape.nodes or 0) > JOINT_WORK
            way = "peeling" if many else "joint"
        if way not in [each.value for each in Way]:
            raise InvalidInput(f"way = {way!r} is unknown; nothing was done. Say 'joint' or 'peeling'.")
        return self.question(
            TopNodes(
                dataset=self.dataset,
                shape=self.shape,
                choices=choices,
                way=Way(way),
                direction=_direction(direction),
                called=self.called,
            )
        )

    def pagerank(
        self,
        damping: Exact = "17/20",
        *,
        restart: Sequence[str | int] = (),
        loops: int = 0,
        edge_flow: Exact | None = None,
        textbook: bool = False,
    ) -> Question:
        """Ask for the PageRank of each node.

        ``restart`` names the nodes that the walk restarts at (all of them, if none is named). ``loops`` gives each node
        a public loop of this weight, which shrinks the bounds. ``edge_flow`` is the most that one edge passes on, as a
        share of all rank: the noise is in proportion to it, and ranks are exact wherever no edge carries more. About
        twice ``damping`` over the number of ends of edges is a good choice: spend a little on edges() first.
        ``textbook`` asks for α/(1 − α) as the bound, which says nothing from α = 1/2 on and is refused.
        """
        if textbook:
            textbook_bound(damping)
        return self.question(
            PageRank(
                dataset=self.dataset,
                shape=self.shape,
                damping=rational(damping, "damping"),
                restart=tuple(sorted(self._places(restart))),
                loops=loops,
                edge_flow=None if edge_flow is None else rational(edge_flow, "edge_flow"),
                called=self.called,
            )
        )

    def communities(
        self,
        most: int | None = None,
        *,
        partitions: Sequence[Partition] | Mapping[str, Partition] = (),
        eta: Exact = "1/100",
    ) -> Question:
        """Ask which communities explain the edges best: the blocks of a stochastic block model, at most ``most``.

        ``partitions`` are public candidates, each the block of every node, in the order of the nodes or by name; the
        answer names the one that was chosen, by its name in a mapping or its place in a list, and its number of blocks.
        ``eta`` is the least probability of an edge, and of no edge: smaller fits better and is noisier.

        Without candidates, up to nine nodes all partitions are tried and the answer is a number of blocks. For more,
        where edges are protected, number and members are found from pairs that are answered at random with all of ε;
        they may mean nothing where ε is small.
        """
        named = tuple(partitions) if isinstance(partitions, Mapping) else ()
        listed = list(partitions.values()) if isinstance(partitions, Mapping) else partitions
        given = tuple(canonical(self._by_node(partition, "partition")) for partition in listed)
        nodes = self.shape.nodes
        if not given and nodes is not None and nodes > MOST_NODES_LISTED:
            return self.question(
                FoundCommunities(dataset=self.dataset, shape=self.shape, most=most, called=self.called)
            )
        if most is None:
            most = max((max(partition) + 1 for partition in given), default=min(3, nodes or 1))
        score = rational(eta, "eta")
        if given:
            return self.question(
                PartitionChoice(
                    dataset=self.dataset, shape=self.shape, eta=score, most=most, partitions=given, titles=named
                )
            )
        return self.question(CommunityCount(dataset=self.dataset, shape=self.shape, eta=score, most=most))

    def weights(self) -> Question:
        """Ask for the weight of every pair of nodes, those without an edge too: each pair once, with noise."""
        if self.bound is None:
            raise NotDeclared("the edges have no weights; nothing was done. Say weight=…, bound=… in vault.graph(...).")
        return self.question(PairWeights(dataset=self.dataset, shape=self.shape, bound=self.bound, called=self.called))

    def block_edges(
        self,
        blocks: Sequence[str] | Mapping[str | int, str],
        subgraphs: Mapping[str, Sequence[str]] | None = None,
        *,
        gaussian: bool = False,
    ) -> Question:
        """Ask how many edges run inside and between public blocks of nodes, and in parts made of blocks, together.

        ``blocks`` is the block of each node, in the order of the nodes or by name. ``subgraphs`` names unions of blocks
        whose inner edges are counted too. All answers come from one set of noisy sums, chosen so that their errors are
        small (the matrix mechanism); ``gaussian`` chooses it for a release with a δ. Needs NumPy and SciPy.
        """
        labels = self._by_node(blocks, "blocks")
        called = tuple(dict.fromkeys(map(str, labels)))
        asked, rows = questions_of(called, subgraphs, directed=self.shape.directed)
        strategy, bits = strategy_for(rows, gaussian=gaussian)
        return self.question(
            BlockEdges(
                dataset=self.dataset,
                shape=self.shape,
                member=canonical([str(label) for label in labels]),
                questions=rows,
                asked=asked,
                strategy=strategy,
                bits=bits,
            )
        )

    def question(self, query: GraphQuery) -> Question:
        """A query at this graph's gate; one that does not go with the unit is refused here."""
        query.sensitivity(self.unit, None)
        return Question(query=query, gate=self._gate)

    def _places(self, names: Sequence[str | int]) -> list[int]:
        """Where some nodes stand."""
        known = {name: place for place, name in enumerate(self.called or range(self.shape.nodes or 0))}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InvalidInput(f"{unknown[0]!r} is not the name of a declared node; nothing was done.")
        return [known[name] for name in names]

    def _by_node(self, given: Sequence[object] | Mapping[str | int, object], what: str) -> list[object]:
        """What is said of each node, in the order of the nodes."""
        if self.shape.nodes is None:
            raise Refused(f"{what} are of public nodes, which are secret here; nothing was done.")
        called = self.called or range(self.shape.nodes)
        if isinstance(given, Mapping):
            missing = [name for name in called if name not in given]
            if missing:
                raise InvalidInput(f"{what} say nothing of node {missing[0]!r}; nothing was done.")
            return [given[name] for name in called]
        if isinstance(given, str) or len(given) != self.shape.nodes:
            raise InvalidInput(f"{what} need one entry for each of {self.shape.nodes} nodes; nothing was done.")
        return list(given)

    def _cap(self) -> int:
        """The largest cap to choose from."""
        if not isinstance(self.unit, Node):
            raise Refused("only a node unit has a degree cap to choose; nothing was done. Leave choose_cap out.")
        return self.unit.max_degree

    def _largest(self, direction: Direction) -> int:
        """The largest degree that is possible."""
        return self.unit.max_degree if isinstance(self.unit, Node) else self.shape.largest(direction)

    def __repr__(self) -> str:
        nodes = "a secret number of nodes" if self.shape.nodes is None else f"{self.shape.nodes:,} nodes"
        kind = "directed" if self.shape.directed else "undirected"
        weights = "" if self.bound is None else f", weights 0 to {plain(self.bound)}"
        return (
            f"Graph {self.dataset.name!r}, version {self.dataset.edition!r}; {kind}, {nodes}{weights}; protects "
            f"{describe(self.unit)}; no edge was read for this"
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)


def _least_cap(asked: int | None, most: int, usual: int = LEAST) -> int:
    """The smallest cap to choose from: the usual one, or the unit's own where that is smaller."""
    return min(usual, most) if asked is None else asked


def _share(asked: Exact | None) -> Fraction | None:
    return None if asked is None else non_negative(asked, "share")


def _way(asked: str | None, share: Fraction | None) -> CountWay:
    """How a count gets its noise; who gives no ε to a guide asks for a ladder."""
    if asked is None:
        return CountWay.LADDER if share == 0 else CountWay.BY_DELTA
    ways = {way.value: way for way in CountWay if way is not CountWay.BY_DELTA}
    if asked not in ways:
        raise InvalidInput(f"way = {asked!r} is unknown; nothing was done. Say {', '.join(map(repr, ways))}, or none.")
    return ways[asked]


def _direction(text: str) -> Direction:
    try:
        return Direction(text)
    except ValueError:
        raise InvalidInput(f"direction = {text!r} is unknown; nothing was done. Say 'total', 'out' or 'in'.") from None
