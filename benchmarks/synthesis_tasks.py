"""Train on synthetic rows, test on real ones: the area under the curve of models without privacy.

Income above $50,000 (Adult-14, the published rows to train on and to test with) and readmission within 30 days
(diabetes-130, one stay of each patient, one patient in five held out). Every maker sees the training rows alone, at ε =
1 and δ = 10⁻⁶. Models are scikit-learn's as they come, in an environment of its own: logistic regression of cells,
gradient-boosted trees of their numbers. Test rows are public here; with private ones each area would be charged.
``SFUMATO_PEERS=added`` counts kept rows of other makers beside the areas of ours that the result file has.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.harness import RESULTS
from benchmarks.synthesis_data import Cells, Source, adult, stays
from benchmarks.synthesis_peers import MAKERS, kept_runs, made_by
from benchmarks.table_peers import Peer, built

__all__ = ["income", "readmission"]

RUNS = 3
EPSILON, DELTA = 1, "1/1000000"
BESIDE = ("AIM, two-way (private-pgm)", "MST (private-pgm)", "CTGAN, not private")
SCIKIT_LEARN = Peer(
    package="scikit-learn==1.9.1",
    program="""
import json, sys, warnings
warnings.filterwarnings("ignore")
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

with np.load(sys.argv[1]) as file:
    data = dict(file)
target, sizes = int(data["target"]), data["sizes"]

def split(codes):
    x, y = np.delete(codes, target, axis=1), codes[:, target]
    rest = np.delete(sizes, target)
    single = np.concatenate([x[:, [place]] == np.arange(size) for place, size in enumerate(rest)], axis=1)
    return single.astype(np.float32), x, y

single, plain, y = split(data["seen"])
held_single, held_plain, held = split(data["held"])
found = {}
if len(np.unique(y)) == 2:
    linear = LogisticRegression(max_iter=300).fit(single, y)
    found["logistic regression"] = roc_auc_score(held, linear.predict_proba(held_single)[:, 1])
    trees = HistGradientBoostingClassifier(random_state=0).fit(plain, y)
    found["gradient-boosted trees"] = roc_auc_score(held, trees.predict_proba(held_plain)[:, 1])
print(json.dumps({name: round(float(area), 4) for name, area in found.items()}))
""",
)


def income() -> dict[str, object]:
    """Income above $50,000 in 1994."""
    return areas(adult(14, "train"), adult(14, "test"), "income")


def readmission() -> dict[str, object]:
    """Readmission within 30 days."""
    return areas(stays(held_out=False), stays(held_out=True), "readmitted")


def areas(source: Source, held: Source, target: str) -> dict[str, object]:
    """Areas of both models trained on the real rows and on those of every maker."""
    python = built(SCIKIT_LEARN)
    if isinstance(python, str):
        return {"why": python}
    truth, test, place = source.cells(), held.cells(), source.columns.index(target)
    found = _before(target)
    if not found:
        found["real"] = {"runs": [_area(python, truth, test, place)]}
        made = [source.synthesized(epsilon=EPSILON, delta=DELTA) for _ in range(RUNS)]
        found["ours"] = {
            "measured": sorted({reason for _, _, reason in made}),
            "runs": [_area(python, each, test, place) for each, _, _ in made],
            "cpu_seconds": round(float(np.median([spent for _, spent, _ in made])), 2),
        }
    for name in BESIDE:
        maker, runs, seconds, why = MAKERS[name], [], [], "not measured: no kept run"
        asked = {"epsilon": float(EPSILON), "delta": 1e-6}
        for number in kept_runs(maker, truth.codes, truth.sizes, 1, **asked):
            rows = made_by(maker, truth.codes, truth.sizes, run=number, **asked)
            if isinstance(rows, str):
                why = rows
            else:
                runs.append(_area(python, Cells(rows[0], truth.sizes), test, place))
                seconds.append(rows[1]["cpu_seconds"])
        found[name] = {"runs": runs, "cpu_seconds": seconds[0]} if runs else {"runs": [], "why": why}
    return {
        "target": target,
        "rows": len(source.rows),
        "held_out": len(held.rows),
        "columns": len(source.columns),
        "epsilon": EPSILON,
        "delta": DELTA,
        "areas": found,
    }


def _before(target: str) -> dict[str, object]:
    """With ``SFUMATO_PEERS=added`` the areas of real rows and of ours that the result file has; else none."""
    path = RESULTS / "synthesis.json"
    if os.environ.get("SFUMATO_PEERS") != "added" or not path.exists():
        return {}
    parts = json.loads(path.read_text(encoding="utf-8"))["measured"]
    held: dict[str, object] = next((part["areas"] for part in parts.values() if part.get("target") == target), {})
    return {name: held[name] for name in ("real", "ours") if name in held}


def _area(python: Path, seen: Cells, held: Cells, target: int) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, seen=seen.codes, held=held.codes, sizes=np.array(seen.sizes), target=target)
        answer = subprocess.run(
            [python, "-c", SCIKIT_LEARN.program, path],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    if answer.returncode != 0:
        raise SystemExit(f"scikit-learn failed:\n{answer.stderr[-2000:]}")
    told: Mapping[str, float] = json.loads(answer.stdout.strip().splitlines()[-1])
    return told
