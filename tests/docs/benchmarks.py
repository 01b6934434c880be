"""The page of all benchmarks, from their result files; ``python -m tests.docs.benchmarks`` writes it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.docs.training import DOCS, REPOSITORY

PAGE = DOCS / "explanation" / "benchmarks.md"
RESULTS = REPOSITORY / "benchmarks" / "results"
TITLES = {
    "accounting": "Accounting",
    "counts": "Counts by group",
    "federated": "Secure sums",
    "fit": "Training on processors, the whole of `fit`",
    "fit_device": "Training on a device, the whole of `fit`",
    "graphs": "Graphs",
    "inference": "Studies",
    "ledger": "Ledger",
    "local": "Local model",
    "matrix": "Matrix mechanism",
    "noise": "Noise",
    "streams": "Streams",
    "tables": "Tables",
    "training": "A private step of training on processors",
    "training_device": "A private step of training on a device",
}
ELSEWHERE = {
    "accuracy": "[How good private models are](accuracy.md)",
    "blocks": "[Run your own code on blocks](../how-to/run-code-on-blocks.md)",
    "federated_training": "[Train across hospitals](../how-to/train-across-hospitals.md)",
    "graph_networks": "[What a graph is worth](graph_networks.md)",
    "node_level": "[Protect nodes of a network](../how-to/node-level.md)",
    "synthesis": "[How good synthetic rows are](synthesis-quality.md)",
    "synthesis_deep": "[How good synthetic rows are](synthesis-quality.md)",
    "ways_out": "[Every way out, attacked](audited.md)",
}
"""Results without times of peers: quality, and where it is told."""
OWN = (
    "our own",
    "ours,",
    "plain",
    "the same",
    "alone",
    "by hand",
    "bare",
    "unsafe",
    "square root",
    "rounded_gaussian",
    "private release",
)
"""Words of what is no other package: our own parts, and the same work without privacy."""
HEAD = """\
# Benchmarks

<!-- Written from benchmarks/results by: .venv/bin/python -m tests.docs.benchmarks (a test compares the two) -->

Every comparison of time that the project keeps, with what wins and what loses. Differential privacy has a price in
time too, which is why some rows compare with the same work done without it.

**How to read a row.** *Times as long* is the time of the other divided by ours, as the median of interleaved pairs
with a 95% bootstrap interval: above 1 we are faster, below 1 slower, and where the interval holds 1 the two are not
told apart. A ratio is of one machine and of the versions named; no verdict of a test depends on one. *Another
package* does comparable private work, or the statistics of a study; the other rows are lower bounds: plain
computation, SQL by hand, noise that is not safe, or a part of our own.

```console
$ make bench
$ .venv/bin/python -m benchmarks.__main__ noise
```

The first repeats all of them, the second one by its name. Each writes its file in `benchmarks/results`; what it
compares and how is in the module of that name in `benchmarks`. Packages that are not installed are left out, so those
named below have to be installed beside Sfumato.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison: of which file, what was timed, beside what, and the ratio with its interval."""

    of: str
    what: str
    beside: str
    low: float
    median: float
    high: float

    @property
    def package(self) -> bool:
        """Whether the other is another package."""
        return not any(word in self.beside for word in OWN)

    @property
    def verdict(self) -> str:
        """What the interval says."""
        return "faster" if self.low > 1 else "slower" if self.high < 1 else "not told apart"


def results() -> dict[str, dict[str, Any]]:
    """Every result file by its name."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.json"))}


def rows() -> Iterator[Row]:
    """All comparisons, file by file."""
    for name in TITLES:
        for what, figures in results()[name]["measured"].items():
            for beside, peer in figures.get("peers", {}).items():
                yield Row(of=name, what=what, beside=beside, **peer["ratio"])


def page() -> str:
    """The whole page."""
    every, files = list(rows()), results()
    packages = [row for row in every if row.package]
    counted = {each: sum(row.verdict == each for row in packages) for each in ("faster", "slower", "not told apart")}
    parts = [
        HEAD,
        "## In short\n",
        f"{len(every)} comparisons, {len(packages)} of them with another package: faster in {counted['faster']}, "
        f"slower in {counted['slower']}, not told apart in {counted['not told apart']}.\n",
        "## Where we lose\n",
        "Every row in which another package is faster:\n",
        _table([row for row in packages if row.verdict == "slower"], of=True),
        "Where an interval holds 1, nobody can say who is faster:\n",
        _table([row for row in packages if row.verdict == "not told apart"], of=True),
    ]
    for name, title in TITLES.items():
        parts += [f"## {title}\n", _source(files[name]), _table([row for row in every if row.of == name])]
        parts += _absent(files[name])
    parts += ["## What is measured in other units\n", _elsewhere(files)]
    return "\n".join(parts)


def _table(found: list[Row], *, of: bool = False) -> str:
    lines = [f"| {'part | ' if of else ''}what | beside | times as long | we are |", "|---" * (4 + of) + "|"]
    for row in found:
        where = f"{TITLES[row.of]} | " if of else ""
        ratio = f"{_short(row.median)} ({_short(row.low)} to {_short(row.high)})"
        lines.append(f"| {where}{row.what} | {row.beside} | {ratio} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def _source(result: dict[str, Any]) -> str:
    machine = ", ".join(f"{name} {said}" for name, said in result["machine"].items())
    versions = ", ".join(f"{name} {said}" for name, said in result["versions"].items() if said != "absent")
    pairs = {figures["pairs"] for figures in result["measured"].values() if figures.get("peers")}
    return (
        f"Machine: {machine}. Versions: {versions}. Pairs: {_ranged(pairs)}. Commit `{result['commit'][:8]}`. "
        f"Repeat: `python -m benchmarks.__main__ {result['name']}`.\n"
    )


def _absent(result: dict[str, Any]) -> list[str]:
    said = {
        f"- {name} ({what}): {why}."
        for what, figures in result["measured"].items()
        for kind in ("absent", "not_measured")
        for name, why in figures.get(kind, {}).items()
    }
    return ["Not measured:\n", "\n".join(sorted(said)) + "\n"] if said else []


def _elsewhere(files: dict[str, dict[str, Any]]) -> str:
    lines = ["Accuracy, error and attacks have pages of their own, made from the same kind of files:\n"]
    lines += [f"- `{name}`: {link}" for name, link in ELSEWHERE.items() if name in files]
    lines.append("- estimates and intervals: [Studies beside other packages](../reference/studies-beside-peers.md)")
    return "\n".join(lines) + "\n"


def _ranged(numbers: set[int]) -> str:
    return f"{min(numbers)}" if len(numbers) == 1 else f"{min(numbers)} to {max(numbers)}"


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def write(path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
