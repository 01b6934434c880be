"""The table of all ways out, from a result file; ``python -m tests.docs.audited`` writes the page.

``python -m tests.docs.audited --attack`` attacks all of them first, with a million draws where they are cheap, which
takes some minutes, and keeps what it found.
"""

import json
import re
import sys
from typing import Any

from sfumato.audit import ways_out
from tests.docs.training import DOCS, REPOSITORY

PAGE = DOCS / "explanation" / "audited.md"
RESULTS = REPOSITORY / "benchmarks" / "results" / "ways_out.json"
DRAWS = 1_000_000
HEADS = {
    "release": "Tables",
    "stream": "Streams",
    "graph": "Graphs",
    "local": "The local model",
    "synthetic": "Synthetic rows",
    "training": "Training",
}


def attacked() -> list[dict[str, Any]]:
    """Attack everything, anew."""
    found = []
    for row in ways_out(samples=DRAWS):
        print(row.way.name, row.twin, row.point, row.by_curve, row.refuted, flush=True)
        found.append(
            {
                "name": row.way.name,
                "kind": row.way.kind,
                "how": row.way.how,
                "flaw": row.way.flaw if row.twin else None,
                "epsilon": str(row.epsilon),
                "delta": float(row.delta),
                "point": row.point,
                "by_curve": row.by_curve,
                "draws": row.draws,
                "releases": row.releases,
                "confidence": row.confidence,
                "refuted": row.refuted,
            }
        )
    return found


def measured() -> list[dict[str, Any]]:
    """What was found."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))["measured"]
    return found


def _share(row: dict[str, Any]) -> str:
    best = max(bound for bound in (row["point"], row["by_curve"]) if bound is not None)
    return f"{best / float(row['epsilon']):.2f}"


def ways() -> str:
    """Claimed, proven, and how."""
    head = ("way out", "ε claimed", "δ", "ε proven", "by the curve", "ratio", "confidence", "draws", "releases", "how")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for kind, name in HEADS.items():
        lines.append(f"| **{name}** |" + " |" * (len(head) - 1))
        for row in measured():
            if row["kind"] == kind and row["flaw"] is None:
                curve = "" if row["by_curve"] is None else f"{row['by_curve']:.3f}"
                draws = f"{row['draws']:,}" if row["draws"] else "exact"
                lines.append(
                    f"| {row['name']} | {row['epsilon']} | {row['delta']:.2g} | {row['point']:.3f} | {curve} | "
                    f"{_share(row)} | {row['confidence']:.5f} | {draws} | {row['releases']:,} | {row['how']} |"
                )
    return "\n".join(lines)


def twins() -> str:
    """The copies that were broken on purpose."""
    lines = ["| way out | broken on purpose | ε claimed | ε proven | by the curve | verdict |", "|---" * 6 + "|"]
    for row in measured():
        if row["flaw"] is not None:
            curve = "" if row["by_curve"] is None else f"{row['by_curve']:.3f}"
            verdict = "refuted" if row["refuted"] else "**missed**"
            lines.append(
                f"| {row['name']} | {row['flaw']} | {row['epsilon']} | {row['point']:.3f} | {curve} | {verdict} |"
            )
    return "\n".join(lines)


TABLES = {"ways out": ways, "broken copies": twins}


def written(page: str) -> str:
    """The page with its tables as the result file has them."""
    for name, table in TABLES.items():
        page = re.sub(
            rf"(<!-- table: {name} -->\n\n).*?(\n\n<!-- end -->)",
            lambda found, table=table: found[1] + table() + found[2],  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    if "--attack" in sys.argv:
        RESULTS.write_text(json.dumps({"measured": attacked()}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
