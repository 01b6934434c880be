"""The options of ``sfumato graph`` that are its own: the graph, what is protected, what is asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from sfumato.cli.asked import RELATION, Population

__all__ = ["Asked", "Edges", "GraphOptions", "QuestionOptions", "Questions"]

Questions = Literal[
    "edges",
    "degrees",
    "degree-sequence",
    "degree-histogram",
    "edges-and-degrees",
    "triangles",
    "stars",
    "clustering",
    "top",
    "pagerank",
    "communities",
    "blocks",
    "weights",
    "statistics",
    "synthetic",
]
ABOUT, DATA = "What is asked", "The graph and what is protected"

Edges = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The edges: Parquet, CSV, plain text (.txt, .txt.gz), a DuckDB file or postgresql://… with --table.",
    ),
]
Asked = Annotated[Questions, typer.Argument(metavar="QUESTION", help="What to ask; the list is above.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """The graph, its public facts, and what is protected."""

    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="NODES",
            help="The public nodes: a number (400, called 0 to 399), a range (1..400), or a file with a name on each "
            "line or with a column node (.csv).",
            rich_help_panel=DATA,
        ),
    ] = None
    names: Annotated[
        Literal["whole", "text"] | None,
        typer.Option(help="How nodes are called, where the list does not say.", rich_help_panel=DATA),
    ] = None
    unit: Annotated[
        Literal["edge", "node", "weight"], typer.Option(help="What is protected.", rich_help_panel=DATA)
    ] = "edge"
    unit_relation: Annotated[Literal["add/remove", "replace"], typer.Option(help=RELATION, rich_help_panel=DATA)] = (
        "add/remove"
    )
    max_degree: Annotated[
        int | None, typer.Option(min=1, help="The public degree cap of --unit node.", rich_help_panel=DATA)
    ] = None
    directed: Annotated[bool, typer.Option("--directed", help="Edges point.", rich_help_panel=DATA)] = False
    source: Annotated[str, typer.Option(metavar="COLUMN", help="Where an edge begins.", rich_help_panel=DATA)] = (
        "source"
    )
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Where it ends.", rich_help_panel=DATA)] = "target"
    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Its weight; in a plain text, the third entry of a line.", rich_help_panel=DATA
        ),
    ] = None
    bound: Annotated[str | None, typer.Option(help="The public largest weight.", rich_help_panel=DATA)] = None
    counts: Annotated[
        Literal["memory", "engine"] | None,
        typer.Option(
            help="Where edges are counted: in memory, or by the engine that holds them, where the question allows it.",
            rich_help_panel=DATA,
        ),
    ] = None
    population: Population = None
    name: Annotated[str | None, typer.Option(help="The public name of the graph; that of the file if not given.")] = (
        None
    )
    version: Annotated[
        str | None, typer.Option(help="Your label of this state of the graph; needed with --account.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What single questions take; which ones is in :data:`sfumato.cli.graph_questions.TAKES`."""

    leaves: Annotated[
        int | None, typer.Option(help="stars: how many leaves. 2 if not given.", rich_help_panel=ABOUT)
    ] = None
    hold_to: Annotated[
        int | None, typer.Option(help="stars: count at most this many edges of each node.", rich_help_panel=ABOUT)
    ] = None
    direction: Annotated[
        Literal["total", "out", "in"] | None,
        typer.Option(help="degrees, stars, top: which edges count, where edges point.", rich_help_panel=ABOUT),
    ] = None
    length: Annotated[
        int | None, typer.Option(help="degree-sequence: how many of the largest.", rich_help_panel=ABOUT)
    ] = None
    most: Annotated[
        int | None,
        typer.Option(help="degree-histogram: the last degree; communities: how many at most.", rich_help_panel=ABOUT),
    ] = None
    choices: Annotated[int | None, typer.Option(help="top: how many nodes.", rich_help_panel=ABOUT)] = None
    way: Annotated[
        Literal["joint", "peeling", "ladder", "noisy-scale", "worst-graph"] | None,
        typer.Option(
            help="top: joint (as one set) or peeling (one by one); triangles, stars: how noise is fitted to the graph.",
            rich_help_panel=ABOUT,
        ),
    ] = None
    choose_cap: Annotated[
        bool,
        typer.Option(
            "--choose-cap",
            help="--unit node, for edges, triangles, degree-histogram: choose the cap privately, for a part of ε.",
            rich_help_panel=ABOUT,
        ),
    ] = False
    least_cap: Annotated[int | None, typer.Option(help="The smallest cap to choose from.", rich_help_panel=ABOUT)] = (
        None
    )
    share: Annotated[
        str | None,
        typer.Option(
            help="triangles, stars, clustering: the part of ε that goes to a bound of the error.",
            rich_help_panel=ABOUT,
        ),
    ] = None
    damping: Annotated[
        str | None,
        typer.Option(help="pagerank: how likely the walk goes on. 17/20 if not given.", rich_help_panel=ABOUT),
    ] = None
    restart: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="pagerank: where the walk begins again; repeat it.", rich_help_panel=ABOUT),
    ] = None
    loops: Annotated[
        int | None, typer.Option(help="pagerank: the weight of a public loop at each node.", rich_help_panel=ABOUT)
    ] = None
    edge_flow: Annotated[
        str | None, typer.Option(help="pagerank: the most that one edge passes on.", rich_help_panel=ABOUT)
    ] = None
    blocks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="blocks: a CSV file with the columns node and block.", rich_help_panel=ABOUT),
    ] = None
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A+B", help="blocks: a part made of blocks, counted too; repeat it.", rich_help_panel=ABOUT
        ),
    ] = None
    partition: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="communities: a public candidate, in a file like --blocks.", rich_help_panel=ABOUT
        ),
    ] = None
    eta: Annotated[
        str | None,
        typer.Option(help="communities: the least chance of an edge. 1/100 if not given.", rich_help_panel=ABOUT),
    ] = None
