"""The local model: 10^6 reports with 1,024 values, drawn and counted, beside pure-ldp and multi-freq-ldpy.

Two figures for each oracle: reports drawn and counted, and counted alone; on both sides the reports exist one by one.
A peer runs in an environment of its own, which is built on first use; it draws and counts fewer reports, and its time
is taken by the report, without the start of Python and what it compiles first. A peer that cannot be installed,
imported or run is named with the reason. All times are CPU seconds of one process. A smoke run compares with our own
client, one report at a time.
"""

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
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
    SymmetricUnary,
    counts,
    reports,
)
from sfumato.local.oracle import Oracle
from sfumato.noise.bits import SystemBits

VALUES, EPSILON = 1024, 1
BATCH = 1 << 16

CLOCK = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
name, n, d, epsilon = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])

def timed(draw, count):
    count([draw(i % d) for i in range(10)])  # what is compiled on the first call
    start = time.process_time()
    reports = [draw(i % d) for i in range(n)]
    drawn = time.process_time()
    found = count(reports)
    done = time.process_time()
    print(json.dumps({"both": (done - start) / n, "count": (done - drawn) / n, "values": len(found)}))
"""

PURE_LDP = """
from pure_ldp.frequency_oracles import *

one, other, more = {
    "randomised response": (DEClient, DEServer, {}),
    "symmetric unary": (UEClient, UEServer, {"use_oue": False}),
    "optimised unary": (UEClient, UEServer, {"use_oue": True}),
    "local hash": (LHClient, LHServer, {"use_olh": True}),
    "Hadamard response": (HadamardResponseClient, HadamardResponseServer, {}),
}[name]
server = other(epsilon=epsilon, d=d, **more)
known = {"hash_funcs": server.get_hash_funcs()} if name == "Hadamard response" else {}
client = one(epsilon=epsilon, d=d, **more, **known)

def count(reports):
    for report in reports:
        server.aggregate(report)
    return server.estimate_all(range(1, d + 1))

timed(lambda i: client.privatise(i + 1), count)
"""

MULTI_FREQ = """
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

timed(*{
    "randomised response": (lambda i: GRR_Client(i, d, epsilon), lambda r: GRR_Aggregator_MI(r, d, epsilon)),
    "symmetric unary": (lambda i: UE_Client(i, d, epsilon, False), lambda r: UE_Aggregator_MI(r, epsilon, False)),
    "optimised unary": (lambda i: UE_Client(i, d, epsilon, True), lambda r: UE_Aggregator_MI(r, epsilon, True)),
    "local hash": (lambda i: LH_Client(i, d, epsilon, True), lambda r: LH_Aggregator_MI(r, d, epsilon, True)),
    "subset selection": (lambda i: SS_Client(i, d, epsilon), lambda r: SS_Aggregator_MI(r, d, epsilon)),
}[name])
"""

PEERS = {
    "pure-ldp 1.2.0": Peer(
        package="pure-ldp==1.2.0", also=("setuptools<81", "scikit-learn", "statsmodels", "xxhash<4"), program=PURE_LDP
    ),
    "multi-freq-ldpy 0.2.5": Peer(package="multi-freq-ldpy==0.2.5", also=("xxhash<4",), program=MULTI_FREQ),
}

ORACLES: dict[str, Oracle] = {
    "randomised response": KaryResponse(epsilon=EPSILON, values=VALUES),
    "symmetric unary": SymmetricUnary(epsilon=EPSILON, values=VALUES),
    "optimised unary": OptimisedUnary(epsilon=EPSILON, values=VALUES),
    "local hash": LocalHash.calibrated(epsilon=EPSILON, values=VALUES),
    "subset selection": SubsetSelection.calibrated(epsilon=EPSILON, values=VALUES),
    "Hadamard response": HadamardResponse(epsilon=EPSILON, values=VALUES),
    "projective response": ProjectiveResponse.calibrated(epsilon=EPSILON, values=VALUES),
}


# How many reports a peer draws and counts: about a second's, so that what it does once for all values hardly shows.
ENOUGH = {
    "randomised response": 200_000,
    "symmetric unary": 20_000,
    "optimised unary": 20_000,
    "local hash": 1_000,
    "subset selection": 10_000,
    "Hadamard response": 50_000,
    "projective response": 1_000,
}

Times = dict[str, float]
"""CPU seconds a report: of drawing and counting (both), and of counting."""


def run(*, smoke: bool) -> Path:
    """Measure and write the result, after each oracle anew: a run that is cut off leaves what it has measured."""
    size, pairs = (20_000, 2) if smoke else (1_000_000, PAIRS)
    pythons = {} if smoke else {name: built(peer) for name, peer in PEERS.items()}
    measured: dict[str, object] = {}
    for name, oracle in ORACLES.items():
        theirs = ENOUGH[name]
        peers: dict[str, Callable[[], Times]] = {"our own client": partial(_client, oracle, 20 if smoke else 500)}
        absent: dict[str, str] = {}
        for peer, python in pythons.items():
            if isinstance(python, str):
                absent[peer] = python
            elif f'"{name}"' not in PEERS[peer].program:
                absent[peer] = "does not have this oracle"
            elif isinstance(tried := _peer(PEERS[peer], python, name, theirs), str):
                absent[peer] = tried
            else:
                peers[peer] = partial(_again, PEERS[peer], python, name, theirs)
        measured |= _compared(name, oracle, peers, size, pairs, absent)
        written = write("local", measured, smoke=smoke)
    return written


def _compared(
    name: str, oracle: Oracle, peers: dict[str, Callable[[], Times]], size: int, pairs: int, absent: dict[str, str]
) -> dict[str, object]:
    """Ours and each peer alternately, after one warm-up of ours."""
    _ours(oracle, size // 10)
    own: list[Times] = []
    others: dict[str, list[Times]] = {peer: [] for peer in peers}
    for _ in range(pairs):
        own.append(_ours(oracle, size))
        for peer, timed in peers.items():
            others[peer].append(timed())
    return {
        f"{name}, {words}": {
            "pairs": pairs,
            "clock": "CPU seconds",
            "reports": size,
            "values": VALUES,
            "ours_seconds": statistics.median(times[part] for times in own) * size,
            "peers": {
                peer: {
                    "seconds_scaled": statistics.median(times[part] for times in theirs) * size,
                    "ratio": ratio([b[part] / a[part] for a, b in zip(own, theirs, strict=True)]),
                }
                for peer, theirs in others.items()
            },
            "not_measured": absent,
        }
        for part, words in (("both", "drawn and counted"), ("count", "counted"))
    }


def _ours(oracle: Oracle, size: int) -> Times:
    """In batches, as a server gets them: memory is then used again, as it is by a peer."""
    spent, counting, total = 0.0, 0.0, np.zeros(VALUES, dtype=np.int64)
    for first in range(0, size, BATCH):
        truths = np.arange(first, min(first + BATCH, size)) % VALUES
        start = time.process_time()
        drawn = reports(oracle, truths)
        between = time.process_time()
        total += counts(oracle, drawn)
        done = time.process_time()
        spent, counting = spent + done - start, counting + done - between
    if not total.any():
        raise SystemExit("nothing was counted")
    return {"both": spent / size, "count": counting / size}


def _client(oracle: Oracle, size: int) -> Times:
    bits = SystemBits()
    start = time.process_time()
    drawn = [oracle.report(i % VALUES, bits) for i in range(size)]
    between = time.process_time()
    counts(oracle, drawn)
    done = time.process_time()
    return {"both": (done - start) / size, "count": (done - between) / size}


def _again(peer: Peer, python: Path, name: str, size: int) -> Times:
    times = _peer(peer, python, name, size)
    if isinstance(times, str):
        raise SystemExit(f"{peer.package} ran once and then did not: {times}")
    return times


def _peer(peer: Peer, python: Path, name: str, size: int) -> Times | str:
    """Its times, or in words why there are none."""
    answer = subprocess.run(
        [python, "-c", CLOCK + peer.program, name, str(size), str(VALUES), str(EPSILON)],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        return f"fails: {lines[-1] if lines else 'no reason given'}"
    figures: Times = json.loads(answer.stdout.strip().splitlines()[-1])
    if figures.pop("values") != VALUES:
        return "fails: not all values were estimated"
    return figures
