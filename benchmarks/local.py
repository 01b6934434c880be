"""The local model: 10^6 reports with 1,024 values, drawn and counted, beside pure-ldp and multi-freq-ldpy.

A peer runs in an environment of its own, which is built on first use; it draws and counts fewer reports, and its time
is taken by the report. A peer that cannot be installed, imported or run is named with the reason. A smoke run
compares with our own client, one report at a time.
"""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import PAIRS, ratio, write
from benchmarks.table_peers import Peer, built
from sfumato.local import (
    HadamardResponse,
    KaryResponse,
    LocalHash,
    OptimisedUnary,
    ProjectiveResponse,
    SubsetSelection,
    counts,
    reports,
)
from sfumato.local.oracle import Oracle
from sfumato.noise.bits import SystemBits

VALUES, EPSILON = 1024, 1

CLOCK = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
name, n, d, epsilon = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])

def timed(job):
    start = time.process_time()
    found = job()
    print(json.dumps({"seconds": (time.process_time() - start) / n, "values": len(found)}))
"""

PURE_LDP = """
from pure_ldp.frequency_oracles import *

one, other, more = {
    "randomised response": (DEClient, DEServer, {}),
    "optimised unary": (UEClient, UEServer, {"use_oue": True}),
    "local hash": (LHClient, LHServer, {"use_olh": True}),
}[name]
client, server = one(epsilon=epsilon, d=d, **more), other(epsilon=epsilon, d=d, **more)

def job():
    for i in range(n):
        server.aggregate(client.privatise(i % d + 1))
    return server.estimate_all(range(1, d + 1))

timed(job)
"""

MULTI_FREQ = """
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

draw, count = {
    "randomised response": (lambda i: GRR_Client(i, d, epsilon), lambda r: GRR_Aggregator_MI(r, d, epsilon)),
    "optimised unary": (lambda i: UE_Client(i, d, epsilon, True), lambda r: UE_Aggregator_MI(r, epsilon, True)),
    "local hash": (lambda i: LH_Client(i, d, epsilon, True), lambda r: LH_Aggregator_MI(r, d, epsilon, True)),
    "subset selection": (lambda i: SS_Client(i, d, epsilon), lambda r: SS_Aggregator_MI(r, d, epsilon)),
}[name]

count([draw(i % d) for i in range(10)])  # compiled on the first call
timed(lambda: count([draw(i % d) for i in range(n)]))
"""

PEERS = {
    "pure-ldp 1.2.0": Peer(
        package="pure-ldp==1.2.0", also=("setuptools<81", "scikit-learn", "statsmodels"), program=PURE_LDP
    ),
    "multi-freq-ldpy 0.2.5": Peer(package="multi-freq-ldpy==0.2.5", program=MULTI_FREQ),
}

ORACLES: dict[str, Oracle] = {
    "randomised response": KaryResponse(epsilon=EPSILON, values=VALUES),
    "optimised unary": OptimisedUnary(epsilon=EPSILON, values=VALUES),
    "local hash": LocalHash.calibrated(epsilon=EPSILON, values=VALUES),
    "subset selection": SubsetSelection.calibrated(epsilon=EPSILON, values=VALUES),
    "Hadamard response": HadamardResponse(epsilon=EPSILON, values=VALUES),
    "projective response": ProjectiveResponse.calibrated(epsilon=EPSILON, values=VALUES),
}


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    size, theirs, pairs = (20_000, 20, 2) if smoke else (1_000_000, 2_000, PAIRS)
    pythons = {} if smoke else {name: built(peer) for name, peer in PEERS.items()}
    measured: dict[str, object] = {}
    for name, oracle in ORACLES.items():
        peers: dict[str, Callable[[], float]] = {"our own client": lambda oracle=oracle: _client(oracle, theirs)}
        absent: dict[str, str] = {}
        for peer, python in pythons.items():
            if isinstance(python, str):
                absent[peer] = python
            elif f'"{name}"' not in PEERS[peer].program:
                absent[peer] = "does not have this oracle"
            elif isinstance(tried := _peer(PEERS[peer], python, name, theirs), str):
                absent[peer] = tried
            else:
                peers[peer] = lambda peer=peer, python=python, name=name: float(
                    _peer(PEERS[peer], python, name, theirs)
                )
        measured[name] = _compared(oracle, peers, size, pairs) | {"not_measured": absent}
    return write("local", measured, smoke=smoke)


def _compared(oracle: Oracle, peers: dict[str, Callable[[], float]], size: int, pairs: int) -> dict[str, object]:
    """CPU seconds a report of ours and of each peer, alternately, after one warm-up of ours."""
    _ours(oracle, size // 10)
    own: list[float] = []
    others: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(pairs):
        own.append(_ours(oracle, size))
        for name, peer in peers.items():
            others[name].append(peer())
    return {
        "pairs": pairs,
        "clock": "CPU seconds",
        "reports": size,
        "values": VALUES,
        "ours_seconds": float(np.median(own)) * size,
        "peers": {
            name: {
                "seconds_scaled": float(np.median(times)) * size,
                "ratio": ratio([b / a for a, b in zip(own, times, strict=True)]),
            }
            for name, times in others.items()
        },
    }


def _ours(oracle: Oracle, size: int) -> float:
    truths = np.arange(size) % VALUES
    start = time.process_time()
    found = counts(oracle, reports(oracle, truths))
    spent = time.process_time() - start
    if len(found) != VALUES:
        raise SystemExit("not all values were counted")
    return spent / size


def _client(oracle: Oracle, size: int) -> float:
    bits = SystemBits()
    start = time.process_time()
    counts(oracle, [oracle.report(i % VALUES, bits) for i in range(size)])
    return (time.process_time() - start) / size


def _peer(peer: Peer, python: Path, name: str, size: int) -> float | str:
    """CPU seconds a report, or in words why there are none."""
    answer = subprocess.run(
        [python, "-c", CLOCK + peer.program, name, str(size), str(VALUES), str(EPSILON)],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        return f"fails: {lines[-1] if lines else 'no reason given'}"
    figures = json.loads(answer.stdout.strip().splitlines()[-1])
    return float(figures["seconds"])
