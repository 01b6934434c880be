"""Running totals: events a second beside other packages, the memory of long streams, and the error of each strategy.

Each run is a process of its own. Peers get as many events as they can tell in seconds, ours 10^7: what is compared is
events per second (CPU seconds stand beside, since the machine is shared). Ours tells a total and its margin for each
event, with exact noise; what jax_privacy does with floats is measured in three ways of using it: one event at a time,
as its documentation does and as a stream comes; compiled, all events at once; and compiled with all noise drawn ahead,
which is no stream any more.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import PAIRS, ratio, write
from benchmarks.stream_peers import STREAM_PEERS, built, told

CHUNK = 2**18
Figures = Mapping[str, float]


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    events, single, pairs = (20_000, 200, 2) if smoke else (10**7, 3_000, PAIRS)
    peers: dict[str, Callable[[], Figures]] = {}
    absent: dict[str, str] = {}
    for name, (peer, size) in () if smoke else STREAM_PEERS.items():
        python = built(peer)
        if isinstance(python, Path):
            peers[name] = partial(told, peer, python, size)
        else:
            absent[name] = python
    whole = _interleaved(partial(_child, "many", events), peers, pairs) | {"absent": absent}
    alone = {name: job for name, job in peers.items() if "step by step" in name}
    lengths = (1_000, 10_000) if smoke else (10**5, 10**6, 10**7)
    return write(
        "streams",
        {
            f"{events} events": whole,
            "one event at a time": _interleaved(partial(_child, "one", single), alone, pairs),
            "memory": {"pairs": pairs, "peers": {}}
            | {f"{size} steps": {"peak_mb": _child("many", size)["peak_mb"]} for size in lengths},
            "error per unit noise at unit sensitivity": accuracy((64, 256) if smoke else (64, 256, 1024, 65_536)),
        },
        smoke=smoke,
    )


def accuracy(horizons: tuple[int, ...]) -> dict[str, object]:
    """The root mean squared error of each strategy, and its ratio to what no strategy can be below."""
    from sfumato.mechanisms.matrix.steps.rows import MOST
    from sfumato.streams.strategy_error import lower_bound, root_mean_squared

    found: dict[str, object] = {"pairs": PAIRS, "peers": {}}
    for horizon in horizons:
        bound = lower_bound(horizon)
        names = ("buffers", "square root", "tree") + (("optimal",) if horizon <= MOST else ())
        errors = {name: root_mean_squared(_strategy(name, horizon)) for name in names}
        found[f"{horizon} steps"] = {"SVD bound": bound} | {
            name: {"error": error, "to the SVD bound": error / bound} for name, error in errors.items()
        }
    return found


def _strategy(name: str, horizon: int) -> Any:
    from sfumato.streams.choice import strategy_for
    from sfumato.streams.strategy_error import ONE

    return strategy_for(name, horizon=horizon, pattern=ONE, largest=1000, pure=False)


def _interleaved(
    ours: Callable[[], Figures], peers: Mapping[str, Callable[[], Figures]], pairs: int
) -> dict[str, object]:
    """Run ours and each peer alternately; a ratio is seconds an event of the peer over ours."""
    load, own = os.getloadavg()[0], []
    others: dict[str, list[Figures]] = {name: [] for name in peers}
    for _ in range(pairs):
        own.append(ours())
        for name, peer in peers.items():
            others[name].append(peer())

    def each(run: Figures, figure: str) -> float:
        return run[figure] / run["events"]

    def ratios(runs: list[Figures], figure: str) -> dict[str, float]:
        return ratio([each(theirs, figure) / each(mine, figure) for mine, theirs in zip(own, runs, strict=True)])

    def rate(runs: list[Figures]) -> float:
        return 1 / statistics.median(each(run, "seconds") for run in runs)

    return {
        "pairs": pairs,
        "load_before": load,
        "ours_events_per_second": rate(own),
        "ours_peak_mb": statistics.median(run["peak_mb"] for run in own),
        "peers": {
            name: {
                "events_per_second": rate(runs),
                "events": runs[0]["events"],
                "ratio": ratios(runs, "seconds"),
                "ratio_of_cpu_seconds": ratios(runs, "cpu_seconds"),
            }
            for name, runs in others.items()
        },
    }


def _child(job: str, events: int) -> dict[str, Any]:
    """Run one job of this file in a process of its own."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.streams", job, str(events)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if answer.returncode != 0:
        raise SystemExit(f"the job {job!r} failed:\n{answer.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return figures


def _opened(events: int) -> Any:
    import sfumato as sf

    vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="door")
    stream = vault.stream(name="door", version="1", horizon=events, bounds=(0, 1))
    return stream.running_total(keep=False).open(epsilon=1, delta=1e-7)


def _many(events: int) -> int:
    import numpy as np

    total = _opened(events)
    for start in range(0, events, CHUNK):
        told = total.add_many(np.arange(start, min(start + CHUNK, events)) % 2)
    return int(told.first + len(told) - 1)


def _one(events: int) -> int:
    total = _opened(events)
    return [total.add(place % 2).step for place in range(events)][-1]


def main(job: str, events: int) -> Figures:
    """Time one job; all is imported and every table made on a short stream first. Opening the stream is included."""
    jobs = {"many": _many, "one": _one}
    jobs[job](600)
    start, spent = time.perf_counter(), time.process_time()
    count = jobs[job](events)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - spent,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "events": count,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
