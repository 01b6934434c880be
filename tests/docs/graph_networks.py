"""The table of graph networks, from the result file; ``python -m tests.docs.graph_networks`` writes the page."""

import json
import re
from typing import Any

from tests.docs.training import DOCS, RESULT

PAGE = DOCS / "explanation" / "graph_networks.md"
FILE = RESULT.with_name("graph_networks.json")
EPSILONS = (1, 3, 8)
NETWORKS = {"cora": "Cora", "citeseer": "Citeseer"}
PRIVATE = {
    "features alone": "private, features alone",
    "passing predictions on": "private, predictions passed on (D = 3, one hop)",
    "rooted subgraphs": "private, rooted subgraphs (D = 2, one hop)",
    "links alone": "**links alone** (features and labels not protected)",
}
OPEN = ("features alone", "graph convolution", "mean of neighbours")
PLACE = re.compile(r"(?<=<!-- table -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)


def measured() -> dict[str, Any]:
    """What the benchmark found."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["measured"]
    return found


def percent(figures: dict[str, float]) -> str:
    """The mean of the runs, and their least and most."""
    return f"{100 * figures['mean']:.1f} ({100 * figures['least']:.1f} to {100 * figures['most']:.1f})"


def table(found: dict[str, Any]) -> str:
    """Accuracy in percent: a line for each network and way."""
    lines = [f"| | | {' | '.join(f'ε = {epsilon}' for epsilon in EPSILONS)} | without privacy |", "|---" * 6 + "|"]
    for key, name in NETWORKS.items():
        for way, called in PRIVATE.items():
            cells = [percent(found[key][way][f"epsilon {epsilon}"]) for epsilon in EPSILONS]
            lines.append(f"| {name} | {called} | {' | '.join(cells)} | |")
        lines.extend(
            f"| {name} | {way}, two layers | | | | {percent(found[key][f'{way}, without privacy'])} |" for way in OPEN
        )
    return "\n".join(lines)


def written(page: str) -> str:
    """The page with its table as it was measured."""
    return PLACE.sub(lambda _: table(measured()), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
