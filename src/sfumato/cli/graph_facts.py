"""The public facts about a graph, from the options of a command: its nodes, their blocks, and what is protected."""

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput, NotDeclared, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sfumato.core.units import Unit
    from sfumato.graphs.graph import Graph

__all__ = ["PROTECTED", "as_called", "blocks_of", "check_edges", "check_weights", "name_of", "nodes_of", "unit_of"]

NOTHING = "Nothing was read of the graph and nothing was spent."
NAMES = "Say --nodes 400 (called 0 to 399), --nodes 1..400, or --nodes FILE with a name on each line."
PROTECTED = {
    "edge": "one edge and nothing larger: whoever has several edges is protected less",
    "node": "one node with all its edges; edges beyond the cap are left out before anything is counted",
    "weight": "the weight of one pair and nothing larger: whoever is in several pairs is protected less",
}
"""What is shown beside the unit of an answer."""
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
READ = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".txt.gz", ".edges", ".edges.gz", ".edgelist", ".edgelist.gz")
ENDINGS = (".gz", ".csv", ".tsv", ".txt", ".edges", ".edgelist", ".parquet", ".pq", ".duckdb", ".db")


def check_edges(data: str, table: str | None) -> None:
    """Refuse a file of a kind that is not read, by its name."""
    if table is None and "://" not in data and not Path(data).is_dir() and not data.lower().endswith(READ):
        raise InvalidInput(
            f"{Path(data).name!r} has none of the endings of files that are read: {', '.join(READ)}. {NOTHING} A "
            "database needs --table; another packed file must be unpacked first."
        )


def check_weights(kind: str, question: str, weight: str | None, bound: str | None) -> None:
    """Refuse a column of weights without its bound, a bound without weights, and weights that are nowhere."""
    if weight is None and (kind == "weight" or question == "weights"):
        raise NotDeclared(f"which column holds the weights is not said. {NOTHING} Say --weight COLUMN --bound 1.")
    if weight is not None and bound is None:
        raise NotDeclared(f"weights need a public bound, which they are held to. {NOTHING} Say --bound 1.")
    if weight is None and bound is not None:
        raise InvalidInput(f"--bound is for weights, and none are named. {NOTHING} Say --weight COLUMN too.")


def unit_of(kind: str, relation: str, *, max_degree: int | None, bound: str | None) -> "Unit":
    """The unit that options name.

    >>> from sfumato.core.units import describe
    >>> describe(unit_of("node", "add/remove", max_degree=20, bound=None))
    'node (degree at most 20), add/remove'
    """
    from sfumato.core import units

    if kind != "node" and max_degree is not None:
        raise InvalidInput(f"--max-degree is the cap of --unit node, and here it is {kind}. {NOTHING} Leave one out.")
    match kind:
        case "node":
            if max_degree is None:
                raise NotDeclared(
                    "a node is protected with all its edges, and how many of them count must be public and chosen "
                    f"without looking at the graph. {NOTHING} Say --max-degree 20."
                )
            return units.node(max_degree=max_degree, relation=relation)
        case "weight":
            if bound is None:
                raise NotDeclared(
                    f"a weight is protected up to a public bound, which weights are held to. {NOTHING} Say --bound 1."
                )
            return units.weight(bound=bound, relation=relation)
        case _:
            return units.edge(relation=relation)


def nodes_of(text: str | None, unit: "Unit", names: str | None) -> "int | Sequence[int] | Sequence[str] | None":
    """The public nodes: their number, a range, or those that a file lists; ``names`` says whether they are texts.

    >>> from sfumato.core.units import edge
    >>> nodes_of("400", edge(relation="replace"), None), nodes_of("1..3", edge(relation="replace"), "text")
    (400, ('1', '2', '3'))
    """
    from sfumato.core.units import Node, Relation

    if isinstance(unit, Node) and unit.relation is Relation.ADD_REMOVE and text is not None:
        raise Refused(
            f"which nodes there are is secret where a node may come or go. {NOTHING} Leave --nodes out, or say "
            "--unit-relation replace, under which the nodes are public."
        )
    if text is None:
        if isinstance(unit, Node):
            return None
        raise NotDeclared(
            "where edges or weights are protected, the nodes are public and must be declared: a number that was read "
            f"off the edges would reveal something about them. {NOTHING} {NAMES}"
        )
    listed = _range(text)
    if listed is not None:
        if names == "text":
            return tuple(map(str, listed))
        return listed if ".." in text else len(listed)
    file = Path(text)
    if not file.is_file():
        raise InvalidInput(f"{text!r} is not a number of nodes, a range or a file. {NOTHING} {NAMES}")
    return as_called(_column(file, "node"), names)


def _range(text: str) -> range | None:
    """The numbers that ``400`` or ``1..400`` stand for; None for what is neither."""
    from sfumato.graphs.adjacency import MOST_NODES

    first, dots, last = text.partition("..")
    if dots and WHOLE.fullmatch(first) and WHOLE.fullmatch(last):
        if int(first) > int(last):
            raise InvalidInput(f"--nodes {text} has its end before its beginning. {NOTHING} {NAMES}")
        low, high = int(first), int(last) + 1
    elif WHOLE.fullmatch(text):
        low, high = 0, int(text)
    else:
        return None
    if not 1 <= high - low <= MOST_NODES:
        raise InvalidInput(f"--nodes {text}: a graph has 1 to {MOST_NODES:,} nodes. {NOTHING}")
    return range(low, high)


def as_called(names: "Sequence[str]", kind: str | None = None) -> "tuple[int, ...] | tuple[str, ...]":
    """Names as numbers where all of them are written like one, else as texts; or as ``kind`` says.

    >>> as_called(["1", "20"]), as_called(["1", "020"]), as_called(["1", "20"], "text")
    ((1, 20), ('1', '020'), ('1', '20'))
    """
    whole = all(WHOLE.fullmatch(name) for name in names)
    if kind == "whole" and not whole:
        raise InvalidInput(f"--names whole, and a name in the list is not a whole number. {NOTHING} Say --names text.")
    return tuple(map(int, names)) if whole and kind != "text" else tuple(names)


def blocks_of(file: Path, graph: "Graph", option: str) -> dict[str | int, str]:
    """The public block of each node, from a CSV file with the columns node and block."""
    pairs = list(zip(_column(file, "node"), _column(file, "block"), strict=True))
    if len(dict(pairs)) != len(pairs):
        raise InvalidInput(f"{option}: {file.name} has a node twice. {NOTHING} Give each node one block.")
    texts = bool(graph.called) and isinstance(graph.called[0], str)
    names = as_called([node for node, _ in pairs], "text" if texts else "whole")
    return dict(zip(names, (block for _, block in pairs), strict=True))


def name_of(data: str, table: str | None) -> str:
    """What a dataset is called if nobody says: the table, or the file without its ending.

    >>> name_of("data/contacts.txt.gz", None), name_of("clinic.duckdb", "contacts")
    ('contacts', 'contacts')
    """
    if table is not None:
        return table
    name = Path(data).name
    while name.lower().endswith(ENDINGS):
        name = name.rpartition(".")[0]
    return name


def _column(file: Path, column: str) -> list[str]:
    """A column of a public file: of a CSV file by its name, of another its lines, without empty ones and comments."""
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file.name} is not text in UTF-8. {NOTHING}") from None
    if file.suffix.lower() != ".csv":
        if column != "node":
            raise InvalidInput(f"{file.name} is not a CSV file with the columns node and block. {NOTHING}")
        lines = (line.strip() for line in text.splitlines())
        return [line for line in lines if line and not line.startswith("#")]
    rows = list(csv.DictReader(text.splitlines()))
    if not rows or any(not row.get(column) for row in rows):
        raise InvalidInput(f"{file.name} has no column {column!r}, or a row without a value in it. {NOTHING}")
    return [str(row[column]).strip() for row in rows]
