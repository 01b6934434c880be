"""The options of ``sfumato graph`` that are its own: the graph, what is protected, what is asked."""

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "AsTable",
    "Asked",
    "Blocks",
    "Bound",
    "Called",
    "Choices",
    "ChooseCap",
    "Counts",
    "Damping",
    "Directed",
    "Direction",
    "EdgeFlow",
    "Edges",
    "Eta",
    "Foresee",
    "From",
    "HoldTo",
    "Kind",
    "LeastCap",
    "Leaves",
    "Length",
    "Loops",
    "MaxDegree",
    "Most",
    "Name",
    "Nodes",
    "Part",
    "Partition",
    "Population",
    "Relation",
    "Restart",
    "Share",
    "To",
    "Version",
    "Way",
    "Weight",
]

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
Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="NODES",
        help="The public nodes: so many (400, called 0 to 399), a range (1..400), or a file with a name on each line "
        "or with a column node (.csv).",
        rich_help_panel=DATA,
    ),
]
Called = Annotated[
    Literal["whole", "text"] | None,
    typer.Option(help="How nodes are called, where the list does not tell.", rich_help_panel=DATA),
]
Kind = Annotated[Literal["edge", "node", "weight"], typer.Option(help="What is protected.", rich_help_panel=DATA)]
Relation = Annotated[
    Literal["add/remove", "replace"],
    typer.Option(help="What makes neighbours: a unit more, or one replaced.", rich_help_panel=DATA),
]
MaxDegree = Annotated[
    int | None, typer.Option(min=1, help="The public degree cap of --unit node.", rich_help_panel=DATA)
]
Directed = Annotated[bool, typer.Option("--directed", help="Edges point.", rich_help_panel=DATA)]
From = Annotated[str, typer.Option(metavar="COLUMN", help="Where an edge begins.", rich_help_panel=DATA)]
To = Annotated[str, typer.Option(metavar="COLUMN", help="Where it ends.", rich_help_panel=DATA)]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Its weight; in a plain text, the third entry of a line.", rich_help_panel=DATA
    ),
]
Bound = Annotated[str | None, typer.Option(help="The public largest weight.", rich_help_panel=DATA)]
Counts = Annotated[
    Literal["memory", "engine"] | None,
    typer.Option(
        help="Where edges are counted: in memory, or by the engine that holds them, where the question allows it.",
        rich_help_panel=DATA,
    ),
]
Population = Annotated[
    int | None, typer.Option(min=1, help="A public bound on how many are protected, to judge a δ by.")
]
Name = Annotated[str | None, typer.Option(help="The public name of the graph; that of the file if not given.")]
Version = Annotated[str | None, typer.Option(help="Your label of this state of the graph; needed with --account.")]
Leaves = Annotated[int | None, typer.Option(help="stars: how many leaves. 2 if not given.", rich_help_panel=ABOUT)]
HoldTo = Annotated[
    int | None, typer.Option(help="stars: count them among so many edges of each node.", rich_help_panel=ABOUT)
]
Direction = Annotated[
    Literal["total", "out", "in"] | None,
    typer.Option(help="degrees, stars, top: which edges count, where edges point.", rich_help_panel=ABOUT),
]
Length = Annotated[int | None, typer.Option(help="degree-sequence: how many of the largest.", rich_help_panel=ABOUT)]
Most = Annotated[
    int | None,
    typer.Option(help="degree-histogram: the last degree; communities: how many at most.", rich_help_panel=ABOUT),
]
Choices = Annotated[int | None, typer.Option(help="top: how many nodes.", rich_help_panel=ABOUT)]
Way = Annotated[
    Literal["joint", "peeling", "ladder", "noisy-scale", "worst-graph"] | None,
    typer.Option(
        help="top: joint (as one set) or peeling (one by one); triangles, stars: how noise is fitted to the graph.",
        rich_help_panel=ABOUT,
    ),
]
ChooseCap = Annotated[
    bool,
    typer.Option(
        "--choose-cap",
        help="--unit node, for edges, triangles, degree-histogram: choose the cap privately, for a part of ε.",
        rich_help_panel=ABOUT,
    ),
]
LeastCap = Annotated[int | None, typer.Option(help="The smallest cap to choose from.", rich_help_panel=ABOUT)]
Share = Annotated[
    str | None,
    typer.Option(
        help="triangles, stars, clustering: the part of ε that goes to a bound of the error.",
        rich_help_panel=ABOUT,
    ),
]
Damping = Annotated[
    str | None,
    typer.Option(help="pagerank: how likely the walk goes on. 17/20 if not given.", rich_help_panel=ABOUT),
]
Restart = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE", help="pagerank: where the walk begins again; repeat it.", rich_help_panel=ABOUT),
]
Loops = Annotated[
    int | None, typer.Option(help="pagerank: the weight of a public loop at each node.", rich_help_panel=ABOUT)
]
EdgeFlow = Annotated[
    str | None, typer.Option(help="pagerank: the most that one edge passes on.", rich_help_panel=ABOUT)
]
Blocks = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="blocks: a CSV file with the columns node and block.", rich_help_panel=ABOUT),
]
Part = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=A+B", help="blocks: a part made of blocks, counted too; repeat it.", rich_help_panel=ABOUT
    ),
]
Partition = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="communities: a public candidate, in a file like --blocks.", rich_help_panel=ABOUT
    ),
]
Eta = Annotated[
    str | None,
    typer.Option(help="communities: the least chance of an edge. 1/100 if not given.", rich_help_panel=ABOUT),
]
Foresee = Annotated[bool, typer.Option("--preview", help="Tell the error to expect; reads nothing and spends nothing.")]
AsTable = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="The whole answer as a table to write: .csv.")
]
