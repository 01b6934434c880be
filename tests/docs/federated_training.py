"""The table of ten hospitals, from the result file; ``python -m tests.docs.federated_training`` writes the page."""

import json
import re
from typing import Any

from tests.docs.training import DOCS, RESULT

PAGE = DOCS / "how-to" / "train-across-hospitals.md"
FILE = RESULT.with_name("federated_training.json")
WAYS = {
    "across": "ten hospitals, by commands",
    "realised": "one place, with the noise that was in the sums",
    "charged": "one place, with the noise that is charged for",
}
PLACE = re.compile(r"(?<=<!-- ten hospitals -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)


def measured() -> dict[str, Any]:
    """What the benchmark found."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["measured"]["ten hospitals"]
    return found


def table(found: dict[str, Any]) -> str:
    """The area under the curve: a line for each way, with every run."""
    lines = ["| | noise multiplier | area under the curve, mean | each run |", "|---|---|---|---|"]
    for which, called in WAYS.items():
        noise = found["runs"]["across"][0][f"{'charged' if which == 'charged' else 'realised'} multiplier"]
        each = ", ".join(f"{area:.3f}" for area in found["auc"][which]["runs"])
        lines.append(f"| {called} | {noise:.2f} | {found['auc'][which]['mean']:.3f} | {each} |")
    return "\n".join(lines)


def written(page: str) -> str:
    """The page with its table as it was measured."""
    return PLACE.sub(lambda _: table(measured()), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
