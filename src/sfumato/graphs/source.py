"""Where a graph comes from: an edge list in a file, a frame or a database, pairs, a matrix, another library.

Which rows count is decided row by row: one without both its ends, with a node that is not of the graph, or with a
weight that is not a number above 0, does not. Sensitive: every row. No error shows a name or an edge.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol  # graphs of libraries that may not be installed

from sfumato.engines.edge_lists import columns_in_memory
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source
from sfumato.engines.text_lists import check_text, columns_of_text, is_text_list
from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.nodes import Names, Nodes, column_of, nodes_in

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["WEIGHT_STEPS", "EdgeTable", "Edges", "Ends", "edges_of", "graph_of"]

WEIGHT_STEPS = 2**20
"""A weight is held as a whole number of steps; the bound has this many."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Ends:
    """Rows of an edge list, with all nodes where the data itself lists them. Sensitive."""

    head: Names
    tail: Names
    weight: "NDArray[np.float64] | None" = None
    nodes: "Names | None" = None


class Edges(Protocol):
    """Edges of one graph, wherever they are kept."""

    @property
    def lists_nodes(self) -> bool:
        """Whether the data lists its nodes besides the edges, so that those without an edge are known."""
        ...

    def check(self, kind: Type | None) -> None:
        """Refuse columns that are not there or not of the type of the nodes' names; reads no row."""
        ...

    def read(self) -> Ends:
        """All rows, after the charge."""
        ...


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class EdgeTable:
    """Two columns of a table, and perhaps a third one for the weight."""

    rows: Source
    source: str
    target: str
    weight: str | None

    @property
    def lists_nodes(self) -> bool:
        """An edge list names the ends of its edges alone."""
        return False

    def check(self, kind: Type | None) -> None:
        """Names and types of the columns."""
        held = self.rows.columns()
        wanted = [self.source, self.target, *([] if self.weight is None else [self.weight])]
        for name in wanted:
            if name not in held:
                raise InvalidInput(
                    f"the edge list has no column {name!r}; nothing was read and nothing was spent. Its columns are "
                    f"{', '.join(sorted(held))}: say source=…, target=…, weight=…."
                )
        ends = {held[self.source], held[self.target]}
        if len(ends) > 1 or not ends <= {Type.WHOLE, Type.TEXT} or kind not in (None, *ends):
            named = "whole numbers or text" if kind is None else f"{kind.value}s, as the nodes are called"
            raise InvalidInput(
                f"the columns {self.source!r} and {self.target!r} must both hold {named}; nothing was read and nothing "
                "was spent."
            )
        if self.weight is not None and held[self.weight] not in (Type.WHOLE, Type.NUMBER):
            raise InvalidInput(f"the column {self.weight!r} must hold numbers; nothing was read and nothing was spent.")

    def read(self) -> Ends:
        """The rows that have both ends."""
        import numpy as np
        import pyarrow.compute as pc

        rows = columns_in_memory(self.rows, [self.source, self.target, *([self.weight] if self.weight else [])])
        rows = rows.filter(pc.and_(pc.is_valid(rows[self.source]), pc.is_valid(rows[self.target])))
        weight = None
        if self.weight is not None:
            numbers = rows[self.weight].cast("float64", safe=False)  # a whole number above 2^53 is rounded, not refused
            weight = np.asarray(pc.fill_null(numbers, float("nan")), dtype=np.float64)
        return Ends(head=_plain(rows[self.source]), tail=_plain(rows[self.target]), weight=weight)


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class InMemory:
    """Rows that were taken over when the graph was declared."""

    ends: Ends

    @property
    def lists_nodes(self) -> bool:
        """A matrix, and a graph of another library, has its nodes."""
        return self.ends.nodes is not None

    def check(self, kind: Type | None) -> None:
        """The names are of one type, and of that of the declared ones; a list without a name is of any."""
        found = {_kind(column) for column in (self.ends.head, self.ends.tail) if len(column)}
        if len(found) > 1 or (found and kind is not None and found != {kind}):
            raise InvalidInput(
                "the nodes in the edge list are not called as those that were declared, by whole numbers or by text; "
                "nothing was read and nothing was spent."
            )

    def read(self) -> Ends:
        """The rows."""
        return self.ends


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class TextFile:
    """Lines of a plain text: two names, and perhaps a weight."""

    path: Path
    kind: Type
    weighted: bool

    @property
    def lists_nodes(self) -> bool:
        """An edge list names the ends of its edges alone."""
        return False

    def check(self, kind: Type | None) -> None:
        """The file is there; a text has no columns to look at."""
        check_text(self.path)

    def read(self) -> Ends:
        """The lines that have both ends."""
        head, tail, weight = columns_of_text(self.path, self.kind, weighted=self.weighted)
        return Ends(head=head, tail=tail, weight=weight)


def edges_of(
    data: object,
    *,
    source: str,
    target: str,
    weight: str | None,
    directed: bool,
    kind: Type | None,
    derived: bool = False,
) -> Edges:
    """Where the edges are; a file or a database is not opened, what is in memory is taken over as it is now.

    ``kind`` is how the nodes are called, where that was declared: a CSV file does not say what its columns hold.
    ``derived`` is the steward's word that each row depends on one protected unit only.
    """
    module = type(data).__module__.partition(".")[0]
    bases = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    if module == "numpy":
        return InMemory(ends=_array(data, weight))
    if hasattr(data, "tocoo"):
        return InMemory(ends=_matrix(data, weight))
    if "networkx" in bases:
        return InMemory(ends=_networkx(data, weight, directed=directed))
    if "igraph" in bases:
        return InMemory(ends=_igraph(data, weight, kind, directed=directed))
    if isinstance(data, list | tuple) and not any(isinstance(each, str | Path) for each in data):
        return InMemory(ends=_pairs(data, weight))
    if is_text_list(data):
        if (source, target) != ("source", "target"):
            raise InvalidInput(
                "a plain text of edges names no columns: the first two entries of a line are the ends, a third is the "
                "weight. Nothing was done. Leave source and target out."
            )
        held = Type.TEXT if kind is None else kind
        return TextFile(path=Path(str(data)), kind=held, weighted=weight is not None)
    types = None
    if isinstance(data, str | Path) and Path(data).suffix.lower() in (".csv", ".tsv"):
        held = Type.TEXT if kind is None else kind
        types = {source: held, target: held, **({} if weight is None else {weight: Type.NUMBER})}
    return EdgeTable(
        rows=Source(data, types, derived=derived, unit=(source, target)), source=source, target=target, weight=weight
    )


def graph_of(edges: Edges, *, nodes: Nodes | None, directed: bool, bound: Fraction | None) -> tuple[Adjacency, Nodes]:
    """Read the edges into rows; without ``nodes`` they are those that the data lists or, if it lists none, the ends.

    Sensitive: both results.
    """
    import numpy as np

    ends = edges.read()
    if nodes is None:
        nodes = nodes_in(ends.head, ends.tail) if ends.nodes is None else nodes_in(ends.nodes)
    if nodes.count == 0:
        return Adjacency.of_pairs(0, [], [], directed=directed, weights=None if ends.weight is None else []), nodes
    head, tail = (_placed(column, nodes) for column in (ends.head, ends.tail))
    counts, levels = (head >= 0) & (tail >= 0), None
    if ends.weight is not None and bound is not None:
        with np.errstate(all="ignore"):  # a warning would reveal what a weight is
            counts &= ends.weight > 0
            part = np.clip(ends.weight[counts] / float(bound), 0.0, 1.0)
        levels = np.rint(part * WEIGHT_STEPS).astype(np.int64)
    return Adjacency.of_pairs(nodes.count, head[counts], tail[counts], directed=directed, weights=levels), nodes


def _placed(column: Names, nodes: Nodes) -> "NDArray[np.int64]":
    import numpy as np

    return nodes.places(column) if len(column) else np.zeros(0, dtype=np.int64)


def _kind(column: Names) -> Type:
    import numpy as np

    return Type.WHOLE if isinstance(column, np.ndarray) else Type.TEXT


def _plain(column: "pa.Array | pa.ChunkedArray") -> Names:
    """An Arrow column without missing values as names."""
    import numpy as np
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_integer(column.type):
        return np.asarray(column.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.int64)
    return column.cast(pa.large_string())


def _array(data: Any, weight: str | None) -> Ends:
    import numpy as np

    if data.ndim != 2 or data.shape[1] != 2 or data.dtype.kind not in "iuU":
        raise InvalidInput("an array of edges has two columns of whole numbers or text; nothing was done.")
    if weight is not None:
        raise InvalidInput("an array of pairs has no weights; nothing was done. Give a table with a column of them.")
    if data.dtype.kind == "U":
        return Ends(head=column_of(data[:, 0].tolist()), tail=column_of(data[:, 1].tolist()))
    if data.dtype == np.uint64 and data.size and data.max() > np.uint64(2**63 - 1):
        raise InvalidInput("a node is called by a whole number of more than 64 bits; nothing was done. Use texts.")
    head, tail = (np.array(data[:, place], dtype=np.int64) for place in (0, 1))
    return Ends(head=head, tail=tail)


def _pairs(data: Collection[object], weight: str | None) -> Ends:
    rows, width = [tuple(row) for row in data if isinstance(row, list | tuple)], 2 if weight is None else 3
    if len(rows) != len(data) or any(len(row) != width for row in rows):
        raise InvalidInput(f"a list of edges holds tuples of {width}; nothing was done.")
    return Ends(
        head=column_of(row[0] for row in rows),
        tail=column_of(row[1] for row in rows),
        weight=None if weight is None else _numbers(row[2] for row in rows),
    )


def _matrix(data: Any, weight: str | None) -> Ends:
    import numpy as np

    rows = data.tocoo(copy=True)
    if len(rows.shape) != 2 or rows.shape[0] != rows.shape[1]:
        raise InvalidInput("an adjacency matrix has as many rows as columns; nothing was done.")
    rows.sum_duplicates()
    there = rows.data != 0
    head, tail = (np.asarray(ends, dtype=np.int64)[there] for ends in (rows.row, rows.col))
    held = None if weight is None else np.asarray(rows.data[there], dtype=np.float64)
    return Ends(head=head, tail=tail, weight=held, nodes=np.arange(rows.shape[0]))


def _networkx(data: Any, weight: str | None, *, directed: bool) -> Ends:
    _check_pointed(data.is_directed(), directed=directed)
    rows = [*data.edges(data=weight, default=None)] if weight is not None else [*data.edges()]
    nodes = column_of(data.nodes())
    held = None if weight is None else _numbers(row[2] for row in rows)
    return Ends(
        head=_as(nodes, (row[0] for row in rows)), tail=_as(nodes, (row[1] for row in rows)), weight=held, nodes=nodes
    )


def _igraph(data: Any, weight: str | None, kind: Type | None, *, directed: bool) -> Ends:
    _check_pointed(data.is_directed(), directed=directed)
    rows = data.get_edgelist()
    called = list(range(data.vcount()))
    if kind is Type.TEXT or (kind is None and "name" in data.vs.attributes()):
        called = data.vs["name"] if "name" in data.vs.attributes() else called
    nodes = column_of(called)
    held = None
    if weight is not None:
        if weight not in data.es.attributes():
            raise InvalidInput(f"the edges have no attribute {weight!r}; nothing was done. Say weight=….")
        held = _numbers(data.es[weight])
    head, tail = (_as(nodes, (called[row[place]] for row in rows)) for place in (0, 1))
    return Ends(head=head, tail=tail, weight=held, nodes=nodes)


def _as(nodes: Names, names: Iterable[object]) -> Names:
    """A column of the nodes' own type, also where it is empty."""
    column = column_of(names)
    return column if len(column) else nodes[:0]


def _numbers(values: Iterable[object]) -> "NDArray[np.float64]":
    """Weights from Python; a value that is not a number becomes missing, and its row will not count."""
    import numpy as np

    def number(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            return np.nan
        try:
            return float(value)
        except OverflowError:  # a whole number beyond every double
            return np.inf if value > 0 else -np.inf

    return np.array([number(value) for value in values], dtype=np.float64)


def _check_pointed(given: bool, *, directed: bool) -> None:  # noqa: FBT001 - reads as one sentence
    if directed and not given:
        raise InvalidInput(
            "the graph that was given is undirected, and each of its edges would be two that point; nothing was done. "
            "Say directed=False."
        )
