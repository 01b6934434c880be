"""Exact noise: a million draws beside OpenDP 0.16 and beside NumPy's unsafe samplers, in CPU seconds.

OpenDP runs in an environment of its own, which this script builds on first use; it draws fewer samples, and its time
is scaled to a million. A smoke run compares with NumPy alone. The noise of training is beside torch's, too.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from benchmarks.harness import PAIRS, ratio, write
from sfumato import noise
from sfumato.noise.sampler import sampler

OPENDP = "opendp==0.16.0"
LATTICE = 2**40
TINY = Fraction(1, 10**9)  # makes a parameter new without changing the work

WORKER = """
import sys, time
import opendp.prelude as dp
dp.enable_features("contrib")

def made(name, size):
    lattice = name.startswith("lattice")
    kind, k = (float, {"k": -40}) if lattice else (int, {})
    atoms = dp.atom_domain(T=float, nan=False) if lattice else dp.atom_domain(T=int)
    domain = dp.vector_domain(atoms, size=size)
    scale = 0.5 if name.endswith("1/2") else 10.0
    if "Laplace" in name:
        return dp.m.make_laplace(domain, dp.l1_distance(T=kind), scale=scale, **k), [kind(0)] * size
    return dp.m.make_gaussian(domain, dp.l2_distance(T=kind), scale=scale, **k), [kind(0)] * size

for line in sys.stdin:
    size, name = line.rstrip().split(" ", 1)
    draw, zeros = made(name, int(size))
    start = time.process_time()
    draw(zeros)
    print((time.process_time() - start) / int(size), flush=True)
"""

Draw = Callable[[int], object]


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    size, pairs = (20_000, 2) if smoke else (1_000_000, PAIRS)
    measured: dict[str, object] = {}
    with _opendp(smoke=smoke) as opendp:
        for name, (ours, unsafe, fresh_law) in _cases().items():
            peers: dict[str, Callable[[], float]] = {
                "NumPy, unsafe": lambda draw=unsafe: _cpu(lambda: draw(size)) / size
            }
            if opendp is not None:
                peers["OpenDP 0.16"] = lambda name=name: opendp(name, 20_000)
            measured[name] = _compared(lambda draw=ours: _cpu(lambda: draw(size)) / size, peers, size, pairs) | {
                "first_call_seconds": _first_call(fresh_law, 3 if smoke else 15),
                "one_draw_seconds": _cpu(lambda draw=ours: [draw(1) for _ in range(500)]) / 500,
                "time_against_size": _correlation(ours, 500 if smoke else 40_000),
            }
    measured["fine Gaussian, for training"] = _fine(size, pairs)
    return write("noise", measured, smoke=smoke)


def _fine(size: int, pairs: int) -> dict[str, object]:
    """The noise of a step of training, beside the exact sampler for any scale and beside torch where that is there."""
    peers: dict[str, Callable[[], float]] = {
        "rounded_gaussian": lambda: _cpu(lambda: noise.rounded_gaussian(sigma=2**20, size=size)) / size
    }
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
        peers["torch.randn, unsafe"] = lambda: _cpu(lambda: torch.randn(size)) / size
    return _compared(lambda: _cpu(lambda: noise.fine_gaussian(size)) / size, peers, size, pairs)


def _cases() -> Mapping[str, tuple[Draw, Draw, Callable[[int], object]]]:
    """For each row: our draw, NumPy's, and the first call of a parameter never seen before."""
    chance = np.random.default_rng()

    def laplace(scale: Fraction) -> tuple[Draw, Callable[[int], object]]:
        return (
            lambda size: noise.discrete_laplace(scale=scale, size=size),
            lambda i: noise.discrete_laplace(scale=scale * (1 + i * TINY), size=1),
        )

    def gaussian(variance: Fraction) -> tuple[Draw, Callable[[int], object]]:
        return (
            lambda size: noise.discrete_gaussian(sigma_squared=variance, size=size),
            lambda i: noise.discrete_gaussian(sigma_squared=variance * (1 + i * TINY), size=1),
        )

    def two_sided(scale: float) -> Draw:
        p = -np.expm1(-1 / scale)
        return lambda size: chance.geometric(p, size) - chance.geometric(p, size)

    def rounded(
        draw: Callable[[float, float, int], "np.ndarray[tuple[int], np.dtype[np.float64]]"], scale: float
    ) -> Draw:
        return lambda size: np.rint(draw(0, scale, size)).astype(np.int64)

    wide = 10 * LATTICE
    rows = {
        "discrete Laplace, scale 10": (laplace(Fraction(10)), two_sided(10)),
        "discrete Laplace, scale 1/2": (laplace(Fraction(1, 2)), two_sided(0.5)),
        "discrete Gaussian, sigma 10": (gaussian(Fraction(100)), rounded(chance.normal, 10)),
        "lattice 2^-40, Laplace, scale 10": (laplace(Fraction(wide)), rounded(chance.laplace, wide)),
        "lattice 2^-40, Gaussian, sigma 10": (gaussian(Fraction(wide**2)), rounded(chance.normal, wide)),
    }
    return {name: (ours, unsafe, first) for name, ((ours, first), unsafe) in rows.items()}


def _compared(
    ours: Callable[[], float], peers: Mapping[str, Callable[[], float]], size: int, pairs: int
) -> dict[str, object]:
    """Take CPU seconds a draw of ours and of each peer alternately, after one warm-up each."""
    for draw in (ours, *peers.values()):
        draw()
    own: list[float] = []
    others: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(pairs):
        own.append(ours())
        for name, peer in peers.items():
            others[name].append(peer())
    return {
        "pairs": pairs,
        "clock": "CPU seconds",
        "draws": size,
        "ours_seconds": statistics.median(own) * size,
        "ours_draws_per_second": round(1 / statistics.median(own)),
        "peers": {
            name: {
                "seconds": statistics.median(times) * size,
                "draws_per_second": round(1 / statistics.median(times)),
                "ratio": ratio([b / a for a, b in zip(own, times, strict=True)]),
            }
            for name, times in others.items()
        },
    }


def _first_call(call: Callable[[int], object], times: int) -> float:
    """The median cost of the first draw with a parameter whose table is not yet built."""
    sampler.cache_clear()
    return statistics.median(_cpu(lambda i=i: call(i + 1)) for i in range(times))


def _correlation(draw: Draw, times: int) -> dict[str, float]:
    """The rank correlation of the time of single draws with the size of what was drawn; noise alone gives ±2/√n."""
    spent, sizes = np.empty(times), np.empty(times)
    for i in range(times):
        start = time.perf_counter_ns()
        drawn = draw(1)
        spent[i] = time.perf_counter_ns() - start
        sizes[i] = abs(int(drawn[0]))  # type: ignore[index]
    return {"rank_correlation": float(spearmanr(spent, sizes).statistic), "noise_of_it": 2 / times**0.5, "draws": times}


def _cpu(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


@contextmanager
def _opendp(*, smoke: bool) -> Iterator[Callable[[str, int], float] | None]:
    """OpenDP in a process and an environment of its own: the CPU seconds a draw of a row."""
    if smoke:
        yield None
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sfumato-benchmarks" / OPENDP
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", OPENDP], check=True)
    with subprocess.Popen([python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        if worker.stdin is None or worker.stdout is None:
            raise SystemExit("the process of OpenDP has no pipes")

        def seconds(name: str, size: int) -> float:
            print(size, name, file=worker.stdin, flush=True)
            return float(worker.stdout.readline())  # type: ignore[union-attr]

        yield seconds
        worker.stdin.close()
