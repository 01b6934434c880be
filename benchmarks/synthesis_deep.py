"""Rows of a private generator beside rows made of noisy tables, on Adult-8: errors and CPU seconds, at three budgets.

``pairs`` is ``vault.generator`` as it comes: a critic of pairs, and a part of ε for noisy shares of values; ``network``
has a critic with two hidden layers, as a classical DP-GAN, and ``plain`` the same without noisy shares. ``synthesize``
is ``table.synthesize`` at the same ε and δ. Errors are mean total variations over all tables of one, two and three
columns, cut as they were declared; every run draws fresh noise. The defaults of the generator were chosen on this very
file, at ε = 3, so that its figures here are, if anything, too good. Adult is public: with private rows this comparison
would have to be charged. Set ``OMP_NUM_THREADS=1`` and ``OPENBLAS_NUM_THREADS=1``.
"""

import os
import statistics
import time
from pathlib import Path

import numpy as np

import sfumato as sf
from benchmarks.harness import write
from benchmarks.synthesis_data import Source, adult, generated
from sfumato.learning import GeneratorSettings

RUNS = int(os.environ.get("SYNTHESIS_RUNS", "1"))
DELTA = "1/1000000"
SETTINGS = (
    *((epsilon, way) for epsilon in (1, 3, 8) for way in ("synthesize", "pairs", "network")),
    (3, "plain"),
)
WAYS: dict[str, dict[str, object]] = {
    "synthesize": {},
    "pairs": {},
    "network": {"settings": GeneratorSettings(critic="network")},
    "plain": {"settings": GeneratorSettings(critic="network"), "marginals": 0},
}


def run(*, smoke: bool) -> Path:
    """Each way at each budget; without noisy shares at one alone."""
    if smoke:
        few = generated(rows=300, columns=3)
        small = {way: setting(few, 3, way, runs=1, steps=3) for way in ("synthesize", "pairs")}
        return write("synthesis_deep", small, smoke=True)
    real = adult(8)
    measured: dict[str, object] = {}
    for epsilon, way in SETTINGS:
        name = f"Adult-8, ε = {epsilon}, δ = 1e-6: {way}"
        measured[name] = setting(real, epsilon, way, runs=RUNS, steps=None)
        print(name, measured[name], flush=True)
        write("synthesis_deep", measured, smoke=False)
    return write("synthesis_deep", measured, smoke=False)


def setting(source: Source, epsilon: float, way: str, *, runs: int, steps: int | None) -> dict[str, object]:
    """Errors and CPU seconds of one way at one budget."""
    truth, number, columns, bins = source.cells(), len(source.rows), source.columns, dict(source.edges)
    errors, seconds = [], []
    for _ in range(runs):
        budget = sf.Budget(epsilon=epsilon, delta=DELTA)
        vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="benchmark")
        table = vault.table(source.rows, name="adult", version="1", keys=source.keys, bounds=source.bounds)  # type: ignore[arg-type]  # lists of words are keys
        start = time.process_time()
        if way == "synthesize":
            made = table.synthesize(columns, epsilon=epsilon, delta=DELTA, rows=number, expected_rows=number, bins=bins)
            rows = made.rows
        else:
            trained = vault.generator(table, columns, bins=bins, n_units=number, **WAYS[way])  # type: ignore[arg-type]  # settings by name
            rows = trained.fit(epsilon=epsilon, delta=DELTA, rows=number, steps=steps, progress=False).rows
        seconds.append(time.process_time() - start)
        errors.append([truth.away(source.cells(rows), columns_of) for columns_of in (1, 2, 3)])
    return {
        "runs": runs,
        "one_way": [round(float(each), 5) for each in np.array(errors)[:, 0]],
        "two_way": [round(float(each), 5) for each in np.array(errors)[:, 1]],
        "three_way": [round(float(each), 5) for each in np.array(errors)[:, 2]],
        "mean": [round(float(each), 5) for each in np.mean(errors, axis=0)],
        "cpu_seconds": round(statistics.median(seconds), 2),
        "pairs": 0,
        "peers": {},
    }


if __name__ == "__main__":
    print(run(smoke=False))
