"""Exact noise, as releases draw it: a million draws beside NumPy's unsafe samplers and OpenDP 0.16, in CPU seconds.

The rounded Gaussian and the discrete Laplace law are what releases draw, the discrete Gaussian what strategies of
matrices do. NumPy's draws are compared twice: rounded to 64-bit whole numbers, as ours are, and as real numbers, which
is less work. OpenDP runs in an environment of its own, which this script builds on first use; it draws fewer samples,
and its time is scaled to a million. A smoke run compares with NumPy alone. The noise of training is beside torch's too.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from benchmarks.harness import PAIRS, ratio, write
from sfumato import noise
from sfumato.noise.fine_loops import MANY

OPENDP = "opendp==0.16.0"
SCALES = {
    "1/2": Fraction(1, 2),
    "12": Fraction(12),
    "25": Fraction(25),
    "10^4": Fraction(10**4),
    "2^40": Fraction(2**40),
}
TINY = Fraction(1, 10**9)  # makes a parameter new without changing the work

WORKER = """
import sys, time
import opendp.prelude as dp
dp.enable_features("contrib")

def made(law, scale, size):
    domain = dp.vector_domain(dp.atom_domain(T=int), size=size)
    if law == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale), [0] * size
    return dp.m.make_gaussian(domain, dp.l2_distance(T=int), scale=scale), [0] * size

for line in sys.stdin:
    size, law, scale = line.split()
    draw, zeros = made(law, float(scale), int(size))
    start = time.process_time()
    draw(zeros)
    print((time.process_time() - start) / int(size), flush=True)
"""

Draw = Callable[[int], "np.ndarray[tuple[int], np.dtype[np.int64]] | np.ndarray[tuple[int], np.dtype[np.float64]]"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A law at a scale: our draws, NumPy's, the first draw of a parameter never seen, and OpenDP's words for it."""

    ours: Draw
    real: Draw
    first: Callable[[int], object]
    opendp: str

    def whole(self, size: int) -> object:
        """NumPy's draws as whole numbers."""
        return np.rint(self.real(size)).astype(np.int64)


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    size, pairs = (20_000, 2) if smoke else (1_000_000, PAIRS)
    measured: dict[str, object] = {}
    with _opendp(smoke=smoke) as opendp:
        for name, case in _cases().items():
            peers: dict[str, Callable[[], float]] = {
                "NumPy, unsafe": lambda case=case: _cpu(lambda: case.whole(size)) / size,
                "NumPy, unsafe, real numbers": lambda case=case: _cpu(lambda: case.real(size)) / size,
            }
            if opendp is not None:
                peers["OpenDP 0.16"] = lambda case=case: opendp(case.opendp, 5_000)
            measured[name] = _compared(lambda case=case: _cpu(lambda: case.ours(size)) / size, peers, size, pairs) | {
                "first_call_seconds": _first_call(case.first, 3 if smoke else 15),
                "one_draw_seconds": statistics.median(_one_draw(case.ours) for _ in range(pairs)),
                "time_against_size": _correlation(case.ours, 500 if smoke else 40_000),
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
    noise.fine_gaussian(MANY)  # from so many on, loops are compiled
    return _compared(lambda: _cpu(lambda: noise.fine_gaussian(size)) / size, peers, size, pairs)


def _cases() -> Mapping[str, Case]:
    """What releases draw at every scale, and the law of matrices at two."""
    chance = np.random.default_rng()

    def laplace(scale: Fraction) -> Case:
        return Case(
            ours=lambda size: noise.discrete_laplace(scale=scale, size=size),
            real=lambda size: chance.laplace(0, float(scale), size),
            first=lambda i: noise.discrete_laplace(scale=scale * (1 + i * TINY), size=1),
            opendp=f"laplace {float(scale)!r}",
        )

    def rounded(sigma: Fraction) -> Case:
        return Case(
            ours=lambda size: noise.rounded_gaussian(sigma=sigma, size=size),
            real=lambda size: chance.normal(0, float(sigma), size),
            first=lambda i: noise.rounded_gaussian(sigma=sigma * (1 + i * TINY), size=1),
            opendp=f"gaussian {float(sigma)!r}",
        )

    def discrete(sigma: Fraction) -> Case:
        return Case(
            ours=lambda size: noise.discrete_gaussian(sigma_squared=sigma**2, size=size),
            real=lambda size: chance.normal(0, float(sigma), size),
            first=lambda i: noise.discrete_gaussian(sigma_squared=(sigma * (1 + i * TINY)) ** 2, size=1),
            opendp=f"gaussian {float(sigma)!r}",
        )

    return {
        **{f"rounded Gaussian, sigma {name}": rounded(scale) for name, scale in SCALES.items()},
        **{f"discrete Laplace, scale {name}": laplace(scale) for name, scale in SCALES.items()},
        **{f"discrete Gaussian, sigma {name}": discrete(SCALES[name]) for name in ("12", "2^40")},
    }


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
    return statistics.median(_cpu(lambda i=i: call(i + 1)) for i in range(times))


def _one_draw(draw: Draw) -> float:
    return _cpu(lambda: [draw(1) for _ in range(500)]) / 500


def _correlation(draw: Draw, times: int) -> dict[str, float]:
    """The rank correlation of the time of single draws with the size of what was drawn; noise alone gives ±2/√n."""
    spent, sizes = np.empty(times), np.empty(times)
    for i in range(times):
        start = time.perf_counter_ns()
        drawn = draw(1)
        spent[i] = time.perf_counter_ns() - start
        sizes[i] = abs(int(drawn[0]))
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

        def seconds(law: str, size: int) -> float:
            print(size, law, file=worker.stdin, flush=True)
            return float(worker.stdout.readline())  # type: ignore[union-attr]

        yield seconds
        worker.stdin.close()
