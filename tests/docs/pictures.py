"""The pictures of the documentation, drawn by the code: ``python -m tests.docs.pictures``."""

import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

import sfumato as sf
from sfumato.demo.tour import tour
from sfumato.reports.comparison import Case, EdgeCount, compare
from sfumato.reports.comparison_plot import draw
from sfumato.reports.plots import save

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COUNTS_BY_REGION = IMAGES / "counts-by-region.svg"
UNITS = IMAGES / "units-side-by-side.svg"


def counts_by_region() -> Any:
    """The picture that ``make run`` makes: patients seen for an influenza-like illness by region, at ε = 1/2."""
    with tempfile.TemporaryDirectory() as folder:
        return tour(Path(folder) / "tour", console=Console(quiet=True)).releases[0].plot()


def units_side_by_side() -> Any:
    """An edge beside a node of degree up to 20, at ε = 1/2 for the edge."""
    relation = "add/remove"
    cases = [Case(unit=sf.edge(relation=relation)), Case(unit=sf.node(max_degree=20, relation=relation))]
    return draw(compare(EdgeCount(), cases, epsilon="1/2"))


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    save(counts_by_region(), COUNTS_BY_REGION)
    save(units_side_by_side(), UNITS)
