"""Other makers of synthetic rows, each in an environment of its own, which is built on first use.

Each program reads cells of columns as whole numbers and writes cells again; the clock has the measuring, the fit (with
what JAX compiles for it) and the rows, not the start of Python. AIM and MST count their cost in ρ: they get the largest
ρ whose zero-concentrated guarantee gives the same ε and δ (Canonne, Kamath, Steinke 2020).

Rows of mbi 1.1.0 are drawn with one repair, in the makers' favour: as it comes, the package deals out the values of a
column in the order of the rows, so that two columns which depend on the same third rise together and pairs that were
not measured come out worse than independent ones (MST on Adult-8: a two-way error of 0.121). Here rows of a group are
shuffled first.

The authors' own AIM is a script in the repository of private-pgm and in no package: ``SFUMATO_PRIVATE_PGM`` names a
folder with a checkout of it. CTGAN is not private at all. ``SYNTHESIS_LIMIT`` is the number of CPU seconds after which
a program is stopped.
"""

import hashlib
import json
import math
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.table_peers import CACHE, Peer, built

__all__ = ["MAKERS", "Maker", "kept_runs", "made_by", "rho_of"]

AROUND = """
import json, os, resource, sys, time, types, warnings
warnings.filterwarnings("ignore")
import numpy as np
given, target, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if limit := int(os.environ.get("SYNTHESIS_LIMIT", "0")):
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
with np.load(given) as file:
    codes, sizes = file["codes"], [int(size) for size in file["sizes"]]
names = [f"c{place}" for place in range(len(sizes))]

def timed(job):
    start, spent = time.perf_counter(), time.process_time()
    made = np.asarray(job(), dtype=np.int64)
    np.savez(target, codes=made)
    print(json.dumps({
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - spent, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }))
"""

SHUFFLED = """
import mbi.markov_random_field as drawing

class Shuffled:
    def __getattr__(self, name):
        return getattr(np, name)

    def argsort(self, values, kind=None):
        return np.lexsort((np.random.random(len(values)), values))

drawing.np = Shuffled()
"""

OPENDP = """
import opendp.prelude as dp
import polars as pl
dp.enable_features("contrib", "honest-but-curious")

def job():
    rows = pl.LazyFrame({name: codes[:, place].astype(np.int32) for place, name in enumerate(names)})
    context = dp.Context.compositor(
        data=rows, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=settings["rho"]))
    if settings["algorithm"] == "MST":
        algorithm = dp.mbi.MST()
    else:
        algorithm = dp.mbi.AIM(queries=settings["degree"], oneway_split=settings.get("oneway"))
    cuts = {name: list(range(size - 1)) for name, size in zip(names, sizes)}
    table = context.query(rho=settings["rho"]).contingency_table(cuts=cuts, algorithm=algorithm).release()
    made = table.model.synthetic_data(settings["rows"], "round").df
    return np.stack([np.asarray(made[name]) for name in names], axis=1)

timed(job)
"""

AUTHORS = """
from itertools import combinations
for module in ("matplotlib", "matplotlib.pyplot"):  # imported for a picture that is not drawn
    sys.modules[module] = types.ModuleType(module)
folder = os.environ["SFUMATO_PRIVATE_PGM"]
sys.path.insert(0, os.path.join(folder, "mechanisms"))
sys.stdout, kept = open(os.devnull, "w"), sys.stdout
import pandas as pd
from mbi import Dataset, Domain

def job():
    data = Dataset(pd.DataFrame(codes, columns=names), Domain(names, sizes))
    if settings["algorithm"] == "MST":
        import mst
        plain = mst.transform_data  # as it stands it puts arrays of JAX into a data frame, which mbi refuses
        mst.transform_data = lambda data, kept: plain(data, {name: np.asarray(each) for name, each in kept.items()})
        made = mst.MST(data, settings["epsilon"], settings["delta"])
    else:
        from aim import AIM
        workload = [(some, 1.0) for some in combinations(names, settings["degree"])]
        given = {name: settings[name] for name in ("rounds", "max_model_size") if name in settings}
        aim = AIM(settings["epsilon"], settings["delta"], **given)
        made = aim.run(data, workload, num_synth_rows=settings["rows"])[1]
    sys.stdout = kept
    return made.df[names].to_numpy()

timed(job)
"""

CTGAN = """
import pandas as pd
import torch
from ctgan import CTGAN
torch.set_num_threads(1)

def job():
    model = CTGAN(epochs=settings["epochs"], verbose=False)
    model.fit(pd.DataFrame(codes, columns=names), discrete_columns=names)
    return model.sample(settings["rows"])[names].to_numpy()

timed(job)
"""

PGM = "SFUMATO_PRIVATE_PGM"
MOST_RUNS = 20
EPOCHS = int(os.environ.get("SYNTHESIS_EPOCHS", "300"))  # 300 is the default of CTGAN
OPENDP_MBI = Peer(package="opendp[mbi]==0.16.0", also=("pandas",), program=SHUFFLED + OPENDP)
PRIVATE_PGM = Peer(package="mbi==1.1.0", also=("pandas<3", "scipy"), program=SHUFFLED + AUTHORS)
CTGAN_ALONE = Peer(package="ctgan==0.12.1", program=CTGAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """A package and the settings of its program; ``checkout`` names the folder that it needs beside the package."""

    peer: Peer
    settings: dict[str, object]
    private: bool = True
    checkout: str | None = None


QUICK: dict[str, object] = {"algorithm": "AIM", "rounds": 24, "max_model_size": 8}
"""AIM as it comes begins with 16 rounds a column and lets the model have 80 MB: not done after 765 CPU seconds."""
MAKERS = {
    "AIM, two-way (private-pgm)": Maker(peer=PRIVATE_PGM, settings=QUICK | {"degree": 2}, checkout=PGM),
    "AIM, three-way (private-pgm)": Maker(peer=PRIVATE_PGM, settings=QUICK | {"degree": 3}, checkout=PGM),
    "AIM, two-way (OpenDP)": Maker(peer=OPENDP_MBI, settings={"algorithm": "AIM", "degree": 2}),
    "AIM, three-way (OpenDP)": Maker(peer=OPENDP_MBI, settings={"algorithm": "AIM", "degree": 3}),
    "MST (private-pgm)": Maker(peer=PRIVATE_PGM, settings={"algorithm": "MST"}, checkout=PGM),
    "MST (OpenDP)": Maker(peer=OPENDP_MBI, settings={"algorithm": "MST"}),
    "CTGAN, not private": Maker(peer=CTGAN_ALONE, settings={"epochs": EPOCHS}, private=False),
}


def made_by(
    maker: Maker, codes: NDArray[np.int64], sizes: tuple[int, ...], *, epsilon: float, delta: float, run: int = 0
) -> tuple[NDArray[np.int64], dict[str, float]] | str:
    """Cells of as many rows and what they cost, or in words why there are none.

    A run takes minutes, so its rows are kept beside the environments under the number ``run``, and the next call finds
    them there.
    """
    settings = _settings(maker, len(codes), epsilon, delta)
    kept = _place(maker, codes, sizes, settings, run)
    if not kept.exists():
        if maker.checkout is not None and not os.environ.get(maker.checkout):
            return f"not measured: {maker.checkout} names no folder"
        python = built(maker.peer)
        if isinstance(python, str):
            return python
        kept.parent.mkdir(parents=True, exist_ok=True)
        if why := _asked(maker, python, codes, sizes, settings, kept):
            return why
    with np.load(kept) as file:
        return file["codes"], json.loads(str(file["figures"]))


def kept_runs(
    maker: Maker, codes: NDArray[np.int64], sizes: tuple[int, ...], times: int, *, epsilon: float, delta: float
) -> list[int]:
    """The numbers of so many runs; with ``SFUMATO_PEERS=kept`` or ``added`` of those alone whose rows are kept."""
    if os.environ.get("SFUMATO_PEERS") not in ("kept", "added"):
        return list(range(times))
    settings = _settings(maker, len(codes), epsilon, delta)
    return [run for run in range(MOST_RUNS) if _place(maker, codes, sizes, settings, run).exists()]


def _settings(maker: Maker, rows: int, epsilon: float, delta: float) -> dict[str, object]:
    if not maker.private:
        return maker.settings | {"rows": rows}
    return maker.settings | {"rows": rows, "epsilon": epsilon, "delta": delta, "rho": rho_of(epsilon, delta)}


def _place(
    maker: Maker, codes: NDArray[np.int64], sizes: tuple[int, ...], settings: dict[str, object], run: int
) -> Path:
    asked = json.dumps([maker.peer.package, settings, sizes, run], sort_keys=True).encode()
    name = hashlib.sha256(asked + np.ascontiguousarray(codes).tobytes()).hexdigest()[:32]
    return CACHE / "made" / f"{name}.npz"


def _asked(
    maker: Maker,
    python: Path,
    codes: NDArray[np.int64],
    sizes: tuple[int, ...],
    settings: dict[str, object],
    kept: Path,
) -> str | None:
    """Run the program in a process of its own on one thread; what it says where it fails."""
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    alone["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    with tempfile.TemporaryDirectory() as folder:
        given, target = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(given, codes=codes, sizes=np.array(sizes))
        answer = subprocess.run(
            [python, "-c", AROUND + maker.peer.program, given, target, json.dumps(settings)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | alone,
        )
        if answer.returncode != 0:
            if answer.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                return f"stopped: not done after {os.environ.get('SYNTHESIS_LIMIT')} CPU seconds"
            return f"failed: {' '.join(answer.stderr.split())[-300:] or f'status {answer.returncode}'}"
        with np.load(target) as file:
            np.savez(kept, codes=file["codes"], figures=answer.stdout.strip().splitlines()[-1])
    return None


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ for which ρ-zCDP gives (ε, δ), by the bound at the best order α.

    >>> round(rho_of(1, 1e-6), 4), round(rho_of(1, 1e-9), 4)
    (0.0244, 0.015)
    """
    orders = 1 + np.geomspace(1e-3, 1e6, 20_000)

    def log_delta(rho: float) -> float:
        bound = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(bound.min())

    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) <= math.log(delta) else (low, middle)
    return low
