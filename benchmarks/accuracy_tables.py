"""Tables of people and papers: private models beside scikit-learn's without privacy, on the same features.

Who earns more than $50,000 (Adult; the ACS excerpts of NIST), who is readmitted within 30 days (diabetes-130, by
patient), what a paper of Cora is about from its words alone, without the citations. Columns, words and bounds come from
the published descriptions, or are judgements; none was read off the rows. scikit-learn runs in an environment of its
own, which is built on first use.
"""

import csv
import gzip
import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import readmissions
from benchmarks.accuracy_rules import tabular
from benchmarks.accuracy_runs import EPSILONS, RUNS, Figures, figures, measured_on, told_settings, trained
from benchmarks.table_peers import Peer, built

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["acs", "adult", "papers", "smoke", "stays"]

MODELS: dict[str, tuple[int, ...]] = {"logistic regression": (), "network, 32": (32,)}
HELD_OUT = 5  # one row in five of a table that has no test rows of its own

ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)
ADULT_BOUNDS = {
    "age": (17, 90), "education-num": (1, 16), "hours-per-week": (0, 80),
    "capital-gain": (0, 5), "capital-loss": (0, 5),
}  # fmt: skip
ADULT_ROWS = 32_561  # published

ACS_FILES = ("national2019.csv.gz", "tx2019.csv.gz", "ma2019.csv.gz")
ACS_BOUNDS = {"AGEP": (18, 90), "NOC": (0, 5), "NPF": (0, 8), "DENSITY": (1, 5)}
ACS_CODES = {
    "SEX": "12", "MSP": "123456", "HISP": "01234", "RAC1P": "123456789", "HOUSING_TYPE": "123", "OWN_RENT": "012",
    "DVET": "123456", "DREM": "12", "DPHY": "12", "DEYE": "12", "DEAR": "12",
}  # fmt: skip
ACS_ADULTS = 35_000  # declared: four in five of the 44,163 rows that are published
ACS_ADULT, ACS_INCOME = 18, 50_000

CORA_ROWS = 1_708  # published: 2,708 papers, 1,000 of them to test with


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Rows to train on and rows to test with; ``number`` is how many units are declared."""

    seen: "tuple[Tensor, Tensor]"
    held: "tuple[Tensor, Tensor]"
    number: int
    classes: int = 2
    ids: Any = None
    records: int | None = None


def adult(folder: Path) -> dict[str, object]:
    """Income above $50,000 in 1994: 32,561 persons to train on, 16,281 to test with, as published."""
    import torch

    from sfumato.learning import Features

    features = Features(bounds=ADULT_BOUNDS, categories=_adult_words(folder / "adult.names"))

    def read(name: str) -> "tuple[Tensor, Tensor]":
        with gzip.open(folder / name, "rt") as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(ADULT)]
        columns: dict[str, Any] = dict(zip(ADULT, zip(*rows, strict=True), strict=True))
        for name in ("capital-gain", "capital-loss"):
            columns[name] = np.log10(1 + np.array(columns[name], float))
        targets = [income.startswith(">") for income in columns["income"]]
        return features(columns), torch.tensor(targets, dtype=torch.int64)

    return measured(Split(seen=read("adult.data.gz"), held=read("adult.test.gz"), number=ADULT_ROWS), name="adult")


def _adult_words(path: Path) -> dict[str, list[str]]:
    """The lists of words of the published description."""
    lines = (line.rstrip(".").split(": ") for line in path.read_text("latin-1").splitlines())
    told = {line[0]: line[1].split(", ") for line in lines if line[0] in ADULT}
    return {name: words for name, words in told.items() if words != ["continuous"]}


def acs(folder: Path) -> dict[str, object]:
    """Income above $50,000 in 2019 among adults, without the columns that are made from income."""
    import torch

    from sfumato.learning import Features

    told = json.loads((folder / "data_dictionary.json").read_text())
    codes = {name: list(listed) for name, listed in ACS_CODES.items()}
    codes |= {name: [key for key in told[name]["values"] if key != "N"] for name in ("INDP_CAT", "EDU", "PUMA")}
    rows: list[dict[str, str]] = []
    for name in ACS_FILES:
        with gzip.open(folder / name, "rt") as file:
            rows += [row for row in csv.DictReader(file) if float(row["AGEP"]) >= ACS_ADULT]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in (*ACS_BOUNDS, *codes)}
    columns["DENSITY"] = np.log10(np.array(columns["DENSITY"], float))
    inputs = Features(bounds=ACS_BOUNDS, categories=codes)(columns)
    targets = torch.tensor([row["PINCP"] != "N" and float(row["PINCP"]) > ACS_INCOME for row in rows]).long()
    held = torch.tensor([readmissions.held_out(place) for place in range(len(rows))])
    number = ACS_ADULTS * (HELD_OUT - 1) // HELD_OUT
    return measured(
        Split(seen=(inputs[~held], targets[~held]), held=(inputs[held], targets[held]), number=number), name="acs"
    )


def stays(folder: Path) -> dict[str, object]:
    """Readmission within 30 days, by patient: a patient is protected with all of their stays."""
    import torch

    from sfumato.learning import Features

    columns, targets, patients, test = readmissions.read(folder / "diabetic_data.parquet")
    inputs = Features(bounds=readmissions.BOUNDS, categories=readmissions.WORDS)(columns)
    wanted, held = torch.from_numpy(targets), torch.from_numpy(test)
    number = 1000 * round(readmissions.PATIENTS * (1 - 1 / HELD_OUT) / 1000)
    return measured(
        Split(
            seen=(inputs[~held], wanted[~held]), held=(inputs[held], wanted[held]), number=number,
            ids=patients[~test], records=4,
        ),
        name="stays",
    )  # fmt: skip


def papers(path: Path) -> dict[str, object]:
    """The subject of a paper of Cora from its words alone; the published test nodes are held out.

    Each row is scaled to length √1,433, so that a feature is 1 in the mean square, as normalised features are.
    """
    import torch

    with np.load(path) as file:
        found = {name: file[name] for name in file.files}
    inputs = torch.zeros(len(found["y"]), int(found["x_shape"][1]))
    rows = np.repeat(np.arange(len(found["y"])), np.diff(found["x_indptr"]))
    inputs[rows, found["x_indices"]] = torch.from_numpy(found["x_data"]).float()
    inputs *= inputs.shape[1] ** 0.5 / inputs.norm(dim=1, keepdim=True).clamp(min=1)
    targets, held = torch.from_numpy(found["y"]).long(), torch.from_numpy(found["test_mask"])
    return measured(
        Split(
            seen=(inputs[~held], targets[~held]), held=(inputs[held], targets[held]), number=CORA_ROWS, classes=7,
        ),
        name="cora",
    )  # fmt: skip


def measured(split: Split, *, name: str, few: bool = False) -> dict[str, object]:
    """Private models at each ε, and scikit-learn's without privacy, on the held-out rows; ``few`` is for smoke runs."""
    import torch

    facts: dict[str, Any] = {"n_units": split.number, "name": name, "version": "1"}
    if split.ids is not None:
        facts |= {"ids": split.ids, "max_records_per_unit": split.records}
    width = split.seen[0].shape[1]

    def measure(model: Any) -> Figures:
        with torch.no_grad():
            outputs = model(split.held[0])
        right = (outputs.argmax(1) == split.held[1]).double().mean()
        found = {"accuracy": round(float(right), 5)}
        if split.classes == 2:
            scores = (outputs[:, 1] - outputs[:, 0]).numpy()
            found["area"] = round(readmissions.area_under_curve(scores, split.held[1].numpy()), 5)
        return found

    models: dict[str, object] = {}
    settings: dict[str, object] = {}
    for called, hidden in MODELS.items():
        setting = tabular(split.number, "network" if hidden else "linear")
        setting = replace(setting, steps=3) if few else setting
        settings[called] = told_settings(setting)
        by_epsilon: dict[str, object] = {}
        for epsilon in EPSILONS[:1] if few else EPSILONS:
            told: list[dict[str, Any]] = []
            for _ in range(1 if few else RUNS):
                torch.manual_seed(len(told))  # the weights to begin with: public, and others in each run
                model = network(width, hidden, split.classes)
                told.append(trained(model, split.seen, setting, epsilon=epsilon, facts=facts, measure=measure))
            by_epsilon[f"epsilon {epsilon}"] = figures(told)
            print(f"{name}, {called}, ε = {epsilon}: {[run['averaged'] for run in told]}", flush=True)
        models[called] = by_epsilon
    counts = np.bincount(split.held[1].numpy(), minlength=split.classes)
    return {
        "pairs": 0,
        "peers": {},
        "settings": {
            "unit": "record, add/remove" if split.ids is None else "user, add/remove",
            "declared units": split.number,
            "records": split.records,
            "features": width,
            "models": settings,
        },
        "test rows": len(split.held[1]),
        "largest class": round(float(counts.max() / counts.sum()), 5),
        "private": models,
        "not private": {} if few else _peers(split),
        "measured on": measured_on(),
    }


def network(width: int, hidden: tuple[int, ...], classes: int) -> Any:
    """Layers with tanh between them, the last at zero."""
    import torch

    layers: list[Any] = []
    for size in hidden:
        layers += [torch.nn.Linear(width, size), torch.nn.Tanh()]
        width = size
    last = torch.nn.Linear(width, classes)
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.zeros_(last.bias)
    return torch.nn.Sequential(*layers, last)


SCIKIT_LEARN = Peer(
    package="scikit-learn==1.9.1",
    program="""
import json, sys, warnings
warnings.filterwarnings("ignore")
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

data = np.load(sys.argv[1])
ways = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "gradient-boosted trees": HistGradientBoostingClassifier(random_state=0),
}
found = {}
for name, model in ways.items():
    model.fit(data["x"], data["y"])
    found[name] = {"accuracy": round(float(model.score(data["x_held"], data["y_held"])), 5)}
    if data["y"].max() == 1:
        scores = model.predict_proba(data["x_held"])[:, 1]
        found[name]["area"] = round(float(roc_auc_score(data["y_held"], scores)), 5)
print(json.dumps(found))
""",
)


def _peers(split: Split) -> Mapping[str, object]:
    """Logistic regression and gradient-boosted trees of scikit-learn as they come, or in words why not."""
    python = built(SCIKIT_LEARN)
    if isinstance(python, str):
        return {"scikit-learn": python}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        (x, y), (x_held, y_held) = ([part.numpy() for part in some] for some in (split.seen, split.held))
        np.savez(path, x=x, y=y, x_held=x_held, y_held=y_held)
        answer = subprocess.run([python, "-c", SCIKIT_LEARN.program, path], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"scikit-learn failed:\n{answer.stderr[-2000:]}")
    told: Mapping[str, object] = json.loads(answer.stdout.strip().splitlines()[-1])
    return told


def smoke() -> dict[str, object]:
    """A table of two invented columns, by row and by person."""
    import torch

    chance = np.random.default_rng(0)  # invented rows, nothing private
    inputs = torch.from_numpy(chance.uniform(-1, 1, (300, 2)).astype(np.float32))
    rows = (inputs, (inputs[:, 0] > 0).long())
    by_row, by_person = (
        Split(seen=rows, held=rows, number=300),
        Split(seen=rows, held=rows, number=100, ids=np.arange(300) // 3, records=3),
    )
    return {
        "table, by row": measured(by_row, name="rows", few=True),
        "table, by person": measured(by_person, name="persons", few=True),
    }
