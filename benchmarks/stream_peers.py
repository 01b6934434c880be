"""Packages that tell running totals, each in an environment of its own, which is built on first use.

Each program is told on its command line how many events there are, and tells one noisy total for each. The clock starts
when the events lie in memory and what is compiled has been compiled.
"""

import json
import subprocess
from pathlib import Path

from benchmarks.table_peers import CLOCK, Peer, built

__all__ = ["STREAM_PEERS", "built", "told"]

OPENDP = """
import numpy as np
import opendp.prelude as dp
dp.enable_features("contrib")

def prepared(events):
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=events), dp.l1_distance(T="i64")
    levels = (events - 1).bit_length() + 1
    tree = dp.t.make_b_ary_tree(*space, leaf_count=events, branching_factor=2)
    return tree >> dp.m.then_laplace(scale=float(levels)), dp.t.make_consistent_b_ary_tree(branching_factor=2)

def totals(events, x):
    noisy, leaves = prepared(events)
    return np.cumsum(leaves(noisy(x)))[:events]

events = int(path)
totals(64, [0, 1] * 32)
x = (np.arange(events) % 2).tolist()
timed(lambda: totals(events, x), "events")
"""

JAX = """
import jax, jax.numpy as jnp, numpy as np
from jax_privacy.matrix_factorization import buffered_toeplitz, streaming_matrix
jax.config.update("jax_enable_x64", True)

events = int(path)
strategy = buffered_toeplitz.BufferedToeplitz.from_rational_approx_to_sqrt_x(num_buffers=4)
far = float(jnp.sqrt(buffered_toeplitz.sensitivity_squared(strategy, events)))
back, sums = strategy.inverse_as_streaming_matrix(), streaming_matrix.prefix_sum()
start = back.init_multiply(jnp.zeros(())), sums.init_multiply(jnp.zeros(()))
x = jnp.asarray(np.arange(events) % 2, dtype=jnp.float64)

def step(state, given):
    value, noise = given
    error, first = back.multiply_next(noise, state[0])
    total, second = sums.multiply_next(value + error, state[1])
    return (first, second), total

def keyed(state, given):
    value, key = given
    return step(state, (value, 4 * far * jax.random.normal(key)))
"""

ONE_BY_ONE = """
once = jax.jit(keyed)
keys = jax.random.split(jax.random.key(0), events)
values = [x[place] for place in range(events)]

def totals():
    state, found = start, []
    for value, key in zip(values, keys):
        state, total = once(state, (value, key))
        found.append(float(total))
    return found

once(start, (values[0], keys[0]))
timed(totals, "events")
"""

SCANNED = """
@jax.jit
def totals(x, key):
    return jax.lax.scan(keyed, start, (x, jax.random.split(key, len(x))))[1]

totals(x, jax.random.key(0)).block_until_ready()
timed(lambda: totals(x, jax.random.key(1)).block_until_ready(), "events")
"""

AHEAD = """
@jax.jit
def totals(x, key):
    return jax.lax.scan(step, start, (x, 4 * far * jax.random.normal(key, x.shape)))[1]

totals(x, jax.random.key(0)).block_until_ready()
timed(lambda: totals(x, jax.random.key(1)).block_until_ready(), "events")
"""

PACKAGE = "jax-privacy==2.0.0"

STREAM_PEERS = {
    "OpenDP 0.16, tree": (Peer(package="opendp==0.16.0", also=("numpy",), program=OPENDP), 2**17),
    "jax_privacy 2.0, step by step": (Peer(package=PACKAGE, program=JAX + ONE_BY_ONE), 3_000),
    "jax_privacy 2.0, compiled scan": (Peer(package=PACKAGE, program=JAX + SCANNED), 10**6),
    "jax_privacy 2.0, compiled scan, all float noise drawn ahead": (Peer(package=PACKAGE, program=JAX + AHEAD), 10**7),
}


def told(peer: Peer, python: Path, events: int) -> dict[str, float]:
    """Run the program once in a process of its own."""
    answer = subprocess.run(
        [python, "-c", CLOCK + peer.program, str(events)], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise SystemExit(f"{peer.package} failed:\n{answer.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(answer.stdout.strip().splitlines()[-1])
    if figures["events"] != events:
        raise SystemExit(f"{peer.package} told {figures['events']} totals of {events} events")
    return figures
