"""Accounting: ε, a calibrated σ and a thousand different releases, beside dp-accounting and Opacus.

The peers run in environments of their own, which this script builds on first use, each in one process that stays warm.
A smoke run measures ours alone.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path

from benchmarks.harness import PAIRS, compare, write
from sfumato import accounting
from sfumato.accounting import pld
from sfumato.core.events import DiscreteLaplace, Gaussian, PoissonSampled, PrivacyEvent

DP_ACCOUNTING = ("dp-accounting==0.6.0",)
OPACUS = ("torch==2.13.0", "opacus==1.6.0")  # torch first and exactly: a newer one brings gigabytes along
RATE, STEPS, DELTA = 0.01, 10_000, 1e-5
LATTICE = 2**20  # a Laplace scale of b·2^20 units is continuous for all practical purposes

WORKER = """
import json, sys
import dp_accounting as dp
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

def made(kind):
    return RdpAccountant() if kind == "rdp" else PLDAccountant(value_discretization_interval=float(kind))

def plan(rate, sigma, steps):
    return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), steps)

def mixed(gaussians, laplaces, sampled, rate):
    return dp.ComposedDpEvent(
        [dp.GaussianDpEvent(s) for s in gaussians]
        + [dp.LaplaceDpEvent(b) for b in laplaces]
        + [dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(s)) for s in sampled])

def epsilon(kind, delta, event):
    return made(kind).compose(event).get_epsilon(delta)

def answer(job):
    kind, delta = job["kind"], job["delta"]
    if job["what"] == "epsilon":
        return epsilon(kind, delta, plan(job["rate"], 1.0, job["steps"]))
    if job["what"] == "sigma":
        return dp.calibrate_dp_mechanism(
            lambda: made(kind), lambda sigma: plan(job["rate"], sigma, job["steps"]), 1.0, delta,
            dp.LowerEndpointAndGuess(0.5, 4.0), tol=1e-4)
    return epsilon(kind, delta, mixed(job["gaussians"], job["laplaces"], job["sampled"], job["rate"]))

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
"""

OPACUS_WORKER = """
import json, sys
from opacus.accountants import RDPAccountant
from opacus.accountants.utils import get_noise_multiplier

for line in sys.stdin:
    job = json.loads(line)
    if job["what"] == "sigma":
        value = get_noise_multiplier(
            target_epsilon=1.0, target_delta=job["delta"], sample_rate=job["rate"], steps=job["steps"],
            accountant="rdp")
    else:
        accountant = RDPAccountant()
        accountant.history = [(1.0, job["rate"], job["steps"])]
        value = accountant.get_epsilon(job["delta"])
    print(json.dumps(value), flush=True)
"""

Ask = Callable[..., float]


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    pairs = 2 if smoke else PAIRS
    gaussians, laplaces, sampled = _sizes(1000 if not smoke else 40)
    releases = _releases(gaussians, laplaces, sampled)
    plan = accounting.plan(sigma=1, steps=STEPS, sampling=RATE)
    measured: dict[str, object] = {}
    with ExitStack() as running:
        dp = opacus = None
        if not smoke:
            dp = running.enter_context(_worker(DP_ACCOUNTING, WORKER))
            opacus = running.enter_context(_worker(OPACUS, OPACUS_WORKER))

        def row(name: str, ours: Callable[[], Fraction], kinds: tuple[str, ...], **job: object) -> None:
            peers: dict[str, Callable[[], float]] = {}
            if dp is not None:
                peers |= {f"dp-accounting {kind}": lambda kind=kind: dp(kind=kind, **job) for kind in kinds}
            if opacus is not None and job["what"] != "mixed":
                peers["Opacus rdp"] = lambda: opacus(**job)
            measured[name] = compare(ours, peers, pairs=pairs) | {
                "ours_value": float(ours()),
                "peer_values": {peer: ask() for peer, ask in peers.items()},
            }

        both = {"delta": DELTA, "rate": RATE, "steps": STEPS}
        row(
            f"epsilon at q = {RATE}, sigma = 1, T = {STEPS}, delta = {DELTA}",
            lambda: pld.epsilon(plan, delta=DELTA),
            ("1e-4", "1e-3", "rdp"),
            what="epsilon",
            **both,
        )
        row(
            f"sigma for epsilon = 1 at q = {RATE}, T = {STEPS}, delta = {DELTA}",
            lambda: accounting.calibrate_sigma(epsilon=1, delta=DELTA, steps=STEPS, sampling=RATE),
            ("1e-4", "rdp"),
            what="sigma",
            **both,
        )
        row(
            f"{len(releases)} different releases, delta = 1e-06",
            lambda: pld.epsilon(releases, delta=1e-6),
            ("1e-4", "1e-3", "rdp"),
            what="mixed",
            delta=1e-6,
            rate=RATE,
            gaussians=gaussians,
            laplaces=laplaces,
            sampled=sampled,
        )
    return write("accounting", measured, smoke=smoke)


def _sizes(count: int) -> tuple[list[float], list[float], list[float]]:
    """Half Gaussians, four tenths Laplace, a tenth sampled Gaussians; no two alike."""
    half, tenth = count // 2, count // 10
    gaussians = [80 + 0.25 * place for place in range(half)]
    laplaces = [60 + 0.25 * place for place in range(count - half - tenth)]
    return gaussians, laplaces, [1 + 0.01 * place for place in range(tenth)]


def _releases(gaussians: list[float], laplaces: list[float], sampled: list[float]) -> list[PrivacyEvent]:
    one = Fraction(1)
    found: list[PrivacyEvent] = [Gaussian(l2_squared=one, sigma_squared=Fraction(s) ** 2) for s in gaussians]
    found += [DiscreteLaplace(l1=Fraction(LATTICE), scale=Fraction(b) * LATTICE) for b in laplaces]
    found += [
        PoissonSampled(rate=Fraction("0.01"), event=Gaussian(l2_squared=one, sigma_squared=Fraction(str(s)) ** 2))
        for s in sampled
    ]
    return found


@contextmanager
def _worker(packages: tuple[str, ...], code: str) -> Iterator[Ask]:
    """A peer in a process and an environment of its own, asked by lines of JSON."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sfumato-benchmarks" / packages[-1]
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for package in packages:
            subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
    with subprocess.Popen([python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        if worker.stdin is None or worker.stdout is None:
            raise SystemExit(f"the process of {packages[-1]} has no pipes")

        def ask(**job: object) -> float:
            print(json.dumps(job), file=worker.stdin, flush=True)
            return float(json.loads(worker.stdout.readline()))  # type: ignore[union-attr]

        yield ask
        worker.stdin.close()
