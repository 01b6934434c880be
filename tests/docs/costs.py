"""The tables of what a private step costs, from the result files; ``python -m tests.docs.costs`` writes the page."""

import json
import re
from typing import Any

from tests.docs.training import DOCS, REPOSITORY

PAGE = DOCS / "explanation" / "cost-of-training.md"
RESULTS = REPOSITORY / "benchmarks" / "results"


def measured(name: str) -> dict[str, Any]:
    """What a benchmark found."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["measured"]
    return found


def on_processors() -> str:
    """Times and memory as multiples of the plain step, on processors."""
    lines = [
        "| | plain | ours | Opacus, ghost | Opacus, hooks | memory: ours | ghost |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, figures in measured("training").items():
        ours, memory = figures["ours_to_plain"], figures["ours_peak_mb"]
        ghost, hooks = (figures["peers"][f"Opacus 1.6, {mode}"] for mode in ("ghost", "hooks"))
        lines.append(
            f"| {name} | {figures['plain_seconds'] * 1e3:.1f} ms | {ours['median']:.2f} ({ours['low']:.2f} to "
            f"{ours['high']:.2f}) | {ghost['to_plain']['median']:.2f} | {hooks['to_plain']['median']:.2f} | "
            f"{memory['private'] / memory['plain']:.2f} | "
            f"{ghost['peak_mb']['private'] / ghost['peak_mb']['plain']:.2f} |"
        )
    return "\n".join(lines)


def fit_on_a_device() -> str:
    """The whole of ``fit`` as multiples of a plain loop that reads the same rows, and its first call."""
    head = ("", "batch", "plain loop", "`fit`", "Opacus, ghost", "Opacus, hooks", "rows in host memory")
    head += ("first call: `fit`, plain",)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, figures in measured("fit_device").items():
        peers, first = figures["peers"], figures["first_call_seconds"]
        plain, host = peers["plain"]["ratio"], peers["ours, rows in host memory"]["ratio"]["median"]
        modes = (peers[f"Opacus, {mode}"]["ratio"]["median"] / plain["median"] for mode in ("ghost", "hooks"))
        lines.append(
            f"| {name} | {figures['batch']:,} | {peers['plain']['seconds'] * 1e3:.2f} ms | {1 / plain['median']:.2f} "
            f"({1 / plain['high']:.2f} to {1 / plain['low']:.2f}) | {' | '.join(f'{mode:.1f}' for mode in modes)} | "
            f"{host:.2f} of rows on the device | {first['ours']:.1f} s, {first['plain']:.1f} s |"
        )
    return "\n".join(lines)


def fit_on_processors() -> str:
    """The whole of ``fit`` as multiples of a plain loop that reads the same rows, on two cores."""
    head = ("", "batch", "plain loop", "`fit`", "first call: `fit`, plain")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, figures in measured("fit").items():
        plain, first = figures["peers"]["plain"], figures["first_call_seconds"]
        lines.append(
            f"| {name} | {figures['batch']:,} | {plain['seconds'] * 1e3:.1f} ms | {1 / plain['ratio']['median']:.2f} "
            f"({1 / plain['ratio']['high']:.2f} to {1 / plain['ratio']['low']:.2f}) | {first['ours']:.1f} s, "
            f"{first['plain']:.2f} s |"
        )
    return "\n".join(lines)


def on_a_device() -> str:
    """Times as multiples of the plain step, and memory, on a GPU."""
    head = ("", "plain", "ours", "Opacus, ghost", "Opacus, hooks", "ours to a recorded plain step")
    head += ("memory: plain, ours, hooks",)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, figures in measured("training_device").items():
        peers, steps, memory = figures["peers"], figures["steps"], figures["peak_mb"]
        plain, own = peers["plain"]["ratio"]["median"], figures["ours_seconds"]
        modes = (peers[f"Opacus, {mode}"]["ratio"]["median"] / plain for mode in ("ghost", "hooks"))
        alone = peers["plain"]["seconds"]
        lines.append(
            f"| {name} | {alone / steps * 1e3:.2f} ms | {1 / plain:.2f} ({own / steps * 1e3:.2f} ms) | "
            f"{' | '.join(f'{mode:.1f}' for mode in modes)} | {1 / peers['plain, recorded']['ratio']['median']:.2f} | "
            f"{memory['plain'] / 1024:.1f}, {memory['ours'] / 1024:.1f}, {memory['Opacus, hooks'] / 1024:.1f} GB |"
        )
    return "\n".join(lines)


TABLES = {
    "fit on a device": fit_on_a_device,
    "fit on processors": fit_on_processors,
    "processors": on_processors,
    "a device": on_a_device,
}


def written(page: str) -> str:
    """The page with its tables as the result files have them."""
    for name, table in TABLES.items():
        page = re.sub(
            rf"(<!-- table: {name} -->\n\n).*?(\n\n<!-- end -->)",
            lambda found, table=table: found[1] + table() + found[2],  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
