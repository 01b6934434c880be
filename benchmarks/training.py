"""A whole step of private training beside the plain step, and beside Opacus: time and peak memory of tensors, on CPU.

A step is forward and backward pass, clipping, noise and the optimiser's step; ours draws exact noise from the system's
randomness, for the next step while this one runs if a core is free. Each way runs in a process of its own, in turn
with the plain step, with one thread and with two; what is told is how many times longer it takes than the plain step of
the same process. A ratio to a peer is the quotient of both.
"""

import os
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import PAIRS, ratio, write
from benchmarks.training_peers import COMMON, TRAINING_PEERS, built, stepped

UNITS = {"perceptron": 256, "convolutions": 256, "convolutions, group norm": 256, "users": 32}

OURS = """
import os
from fractions import Fraction
from sfumato.learning.engine import Engine
from sfumato.learning.lattice import NoisyLattice
from sfumato.noise.fine import fine_gaussian
from sfumato.noise.fine_loops import MANY

fine_gaussian(MANY)  # from so many on, loops are compiled

def make_private(model, inputs, targets, kind):
    optimiser, trained = torch.optim.SGD(model.parameters(), lr=0.05), list(model.parameters())
    engine = Engine(model, F.cross_entropy, clip=1.0, unit=kind)
    ahead = torch.get_num_threads() < (os.cpu_count() or 1)
    lattice = NoisyLattice(pitch=Fraction(1, 2**20), size=sum(one.numel() for one in trained), ahead=ahead)
    sizes, units = [one.numel() for one in trained], len(inputs)
    def step():
        found = engine.sum(inputs, targets).flat
        noisy = lattice.release(found, out=found).div_(units)
        for one, part in zip(trained, noisy.split(sizes)):
            one.grad = part.view_as(one)
        optimiser.step()
    return step

told(make_private, sys.argv[1], *map(int, sys.argv[2:5]))
"""


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    pairs = 2 if smoke else PAIRS
    pythons = {} if smoke else {name: built(peer) for name, peer in TRAINING_PEERS.items()}
    absent = {name: python for name, python in pythons.items() if isinstance(python, str)}
    measured = {}
    for name, threads in ((name, threads) for threads in ((1,) if smoke else (1, 2)) for name in UNITS):
        units, load = 8 if smoke else UNITS[name], os.getloadavg()[0]
        ours = stepped(COMMON + OURS, sys.executable, name, pairs, units, threads)
        peers = {
            peer: stepped(TRAINING_PEERS[peer].program, python, name, pairs, units, threads)
            for peer, python in pythons.items()
            if isinstance(python, Path)
        }
        figures = _figures(ours, peers, pairs) | {"absent": absent, "load_before": load, "threads": threads}
        measured[name if threads == 1 else f"{name}, {threads} threads"] = figures
    return write("training", measured, smoke=smoke)


def _figures(ours: Mapping[str, Any], peers: Mapping[str, Mapping[str, Any]], pairs: int) -> dict[str, Any]:
    own = _to_plain(ours)
    return {
        "pairs": pairs,
        "plain_seconds": statistics.median(ours["plain"]),
        "ours_seconds": statistics.median(ours["private"]),
        "ours_to_plain": ratio(own),
        "ours_peak_mb": ours["peak_mb"],
        "peers": {
            name: {
                "seconds": statistics.median(figures["private"]),
                "to_plain": ratio(_to_plain(figures)),
                "peak_mb": figures["peak_mb"],
                "ratio": ratio([b / a for a, b in zip(own, _to_plain(figures), strict=True)]),
            }
            for name, figures in peers.items()
        },
    }


def _to_plain(figures: Mapping[str, Any]) -> list[float]:
    return [private / plain for private, plain in zip(figures["private"], figures["plain"], strict=True)]
