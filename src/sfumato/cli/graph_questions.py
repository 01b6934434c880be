"""Questions about a graph by name, each with the options that it takes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.graph_facts import NOTHING, as_called, blocks_of
from sfumato.core.units import Node
from sfumato.errors import InvalidInput, NotDeclared, Unsupported

if TYPE_CHECKING:
    from sfumato.core.question import Question
    from sfumato.graphs.graph import Graph

__all__ = ["TAKES", "check_options", "question_of"]

Options = dict[str, Any]  # options of a command by name, each of the type that the command declares

CAP = ("choose_cap", "least_cap")
TAKES: dict[str, tuple[str, ...]] = {
    "edges": CAP,
    "degrees": ("direction",),
    "degree-sequence": ("length", "direction"),
    "degree-histogram": ("most", "direction", *CAP),
    "edges-and-degrees": (),
    "triangles": ("way", "share", *CAP),
    "stars": ("leaves", "hold_to", "direction", "way", "share"),
    "clustering": ("share",),
    "top": ("choices", "direction", "way"),
    "pagerank": ("damping", "restart", "loops", "edge_flow"),
    "communities": ("most", "partition", "eta"),
    "blocks": ("blocks", "part"),
    "weights": (),
    "statistics": (),
    "synthetic": (),
}
"""The options of each question, besides those that all have."""


def check_options(question: str, given: Mapping[str, object]) -> Options:
    """The options that were said; one that does not go with the question is refused.

    >>> check_options("stars", {"leaves": 3, "damping": None})
    {'leaves': 3}
    """
    said = {name: value for name, value in given.items() if value not in (None, False, [])}
    for name in said:
        if name not in TAKES[question]:
            others = ", ".join(each for each, taken in TAKES.items() if name in taken)
            raise InvalidInput(
                f"{_option(name)} does not go with {question} but with {others}. {NOTHING} Leave it out."
            )
    if "least_cap" in said and "choose_cap" not in said:
        raise InvalidInput(f"--least-cap is the smallest cap to choose from. {NOTHING} Say --choose-cap too.")
    return said


def question_of(graph: "Graph", question: str, said: Options, *, delta: bool) -> "Question":
    """Build the question; nothing is read. ``delta`` says that a δ may be spent."""
    match question:
        case "edges":
            return graph.edges(**said)
        case "degrees":
            return graph.degrees(**said)
        case "degree-sequence":
            if graph.shape.nodes is None and "length" not in said:
                raise NotDeclared(
                    f"how many nodes there are is secret, so the answer needs a declared length. {NOTHING} Say "
                    "--length 1000: the largest 1000 degrees, with zeros where there are fewer."
                )
            return graph.degree_sequence(**said)
        case "degree-histogram":
            return graph.degree_histogram(**said)
        case "edges-and-degrees":
            return graph.edges_and_degrees()
        case "triangles":
            return _triangles(graph, said)
        case "stars":
            return _stars(graph, said)
        case "clustering":
            return graph.clustering(**said)
        case "top":
            _need(said, "choices", "how many nodes to name", "--choices 10")
            return graph.top_degrees(**said)
        case "pagerank":
            if "restart" in said:
                texts = bool(graph.called) and isinstance(graph.called[0], str)
                said["restart"] = as_called(said["restart"], "text" if texts else None)
            return graph.pagerank(**said)
        case "communities":
            return _communities(graph, said)
        case "blocks":
            return _blocks(graph, said, delta=delta)
        case "weights":
            return graph.weights()
        case "statistics":
            return graph.ergm_statistics()
        case "synthetic":
            return graph.synthetic()
    raise Unsupported(f"{question!r} is not a question to a graph. {NOTHING} Ask for {', '.join(TAKES)}.")


def _triangles(graph: "Graph", said: Options) -> "Question":
    if isinstance(graph.unit, Node):
        _refuse(said, "way", "share", reason="where nodes are protected there is one way to count triangles")
    return graph.triangles(**_spelt(said))


def _stars(graph: "Graph", said: Options) -> "Question":
    """With noise that fits the graph where that goes: no node is protected, no cap is set, and no edge points."""
    held, leaves = said.pop("hold_to", None), said.pop("leaves", 2)
    if isinstance(graph.unit, Node) or held is not None or "direction" in said or graph.shape.directed:
        _refuse(said, "way", "share", reason="stars of nodes, of edges that point or under a cap have one way")
        return graph.stars(leaves, max_degree=held, **said)
    return graph.local_stars(leaves, **_spelt(said))


def _spelt(said: Options) -> Options:
    """The same options with the way as the library calls it."""
    return said | ({"way": said["way"].replace("-", " ")} if "way" in said else {})


def _communities(graph: "Graph", said: Options) -> "Question":
    """Candidates are called as their files are; without any, communities are found."""
    files: list[Path] = said.pop("partition", [])
    named = {file.stem: blocks_of(file, graph, "--partition") for file in files}
    if len(named) != len(files):
        raise InvalidInput(f"two files of --partition have one name, which is to name the candidate. {NOTHING}")
    return graph.communities(partitions=named, **said)


def _blocks(graph: "Graph", said: Options, *, delta: bool) -> "Question":
    _need(said, "blocks", "the public block of each node", "--blocks FILE, a CSV file with the columns node and block")
    blocks = blocks_of(said["blocks"], graph, "--blocks")
    known, parts = set(blocks.values()), {}
    for text in said.get("part", []):
        name, sign, listed = text.partition("=")
        inside = listed.split("+")
        if not (name and sign and set(inside) <= known):
            raise InvalidInput(f"--part {text} is not NAME=BLOCK+BLOCK of the blocks in the file. {NOTHING}")
        parts[name] = inside
    return graph.block_edges(blocks, parts or None, gaussian=delta)


def _need(said: Mapping[str, object], name: str, what: str, advice: str) -> None:
    if name not in said:
        raise NotDeclared(f"the question needs {what}. {NOTHING} Say {advice}.")


def _refuse(said: Mapping[str, object], *names: str, reason: str) -> None:
    for name in names:
        if name in said:
            raise InvalidInput(f"{_option(name)} is not used here: {reason}. {NOTHING} Leave it out.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
