"""The page of attacks, with counts from the results of the audits; ``python -m tests.docs.attacks`` writes it."""

import json
import re
from collections import Counter
from typing import Any

from tests.docs.training import DOCS, REPOSITORY

PAGE = DOCS / "explanation" / "attacks.md"
WAYS = REPOSITORY / "benchmarks" / "results" / "ways_out.json"
KINDS = {
    "release": "Tables",
    "stream": "Streams",
    "graph": "Graphs",
    "local": "The local model",
    "synthetic": "Synthetic rows",
    "training": "Training",
}
MADE = re.compile(r"(?<=<!-- made from benchmarks/results -->\n\n).*?(?=\n<!-- until here -->)", re.DOTALL)


def measured() -> list[dict[str, Any]]:
    """Every way out that was attacked, and every broken copy."""
    found: list[dict[str, Any]] = json.loads(WAYS.read_text("utf-8"))["measured"]
    return found


def page() -> str:
    """The whole page: what is written by hand stays, and the part from the results is made anew."""
    text = PAGE.read_text("utf-8")
    if len(MADE.findall(text)) != 1:
        raise ValueError(f"{PAGE.name} has no one place for what is made from the results; nothing was written.")
    return MADE.sub(lambda _: _shipped(), text)


def _shipped() -> str:
    found = measured()
    honest, broken = [row for row in found if row["flaw"] is None], [row for row in found if row["flaw"] is not None]
    lines = [
        f"{len(honest)} ways in which something leaves are attacked on neighbours: {sum(map(_refuted, honest))} are "
        "refuted. "
        f"Of {len(broken)} deliberately broken copies {sum(map(_refuted, broken))} are refuted.\n",
        "| kind | ways out | refuted | broken copies | refuted | largest share of ε proven |",
        "|---|---|---|---|---|---|",
    ]
    ways, flaws = Counter(row["kind"] for row in honest), Counter(row["kind"] for row in broken)
    for kind in dict.fromkeys(row["kind"] for row in found):
        mine = [row for row in honest if row["kind"] == kind]
        share = max(max(row["point"], row["by_curve"] or 0) / _epsilon(row) for row in mine)
        caught = sum(_refuted(row) for row in broken if row["kind"] == kind)
        counts = (ways[kind], sum(map(_refuted, mine)), flaws[kind], caught)
        lines.append(f"| {KINDS.get(kind, kind)} | {' | '.join(map(str, counts))} | {share:.2f} |")
    return "\n".join(lines) + "\n"


def _refuted(row: dict[str, Any]) -> bool:
    return bool(row["refuted"])


def _epsilon(row: dict[str, Any]) -> float:
    top, _, bottom = str(row["epsilon"]).partition("/")
    return float(top) / float(bottom or 1)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
