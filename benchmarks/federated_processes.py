"""Ten hospital-like groups of diabetes-130 as ten processes and a coordinator, by commands over HTTP.

``python -m benchmarks.federated_processes FOLDER [--rounds N] [--runs N]`` makes eleven folders by ``sfumato site new``
and ``sfumato consortium new``, starts ``sfumato site answer`` in ten processes, trains logistic regression by ``sfumato
consortium train``, and writes what it found to ``benchmarks/results/federated_training.json``: the area under the curve
on held-out patients, beside central private training with the very noise that the sites left in the sums (up to
``--colluding`` shares more than is charged for), and with the noise that is charged for.
"""

import argparse
import math
import multiprocessing
import os
import socket
import time
from multiprocessing.context import ForkProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import readmissions
from benchmarks.federated_training import PERSON, SITES, Stays, area, central, stays
from benchmarks.harness import write
from sfumato.core.limits import Limit
from sfumato.engines.expressions import Type
from sfumato.tables.schema import ColumnFacts, Schema

TARGET, DELTA = "readmitted_soon", "1e-6"
FORK = multiprocessing.get_context("fork")
NAMES = tuple(f"site{place}" for place in range(SITES))


def schema() -> Schema:
    """The public facts: bounds and lists of the code book."""
    numbers = [
        ColumnFacts(name=name, type=Type.WHOLE, bounds=pair)  # type: ignore[arg-type]  # whole numbers are exact
        for name, pair in readmissions.BOUNDS.items()
    ]
    lists = [
        ColumnFacts(name=name, type=Type.WHOLE if isinstance(words[0], int) else Type.TEXT, keys=tuple(words))
        for name, words in readmissions.WORDS.items()
    ]
    return Schema(
        name="stays",
        edition="1",
        unit=PERSON,
        limit=Limit(groups=1, rows_per_group=1),
        population=readmissions.PATIENTS,
        columns=(
            ColumnFacts(name=PERSON, type=Type.WHOLE),
            *numbers,
            *lists,
            ColumnFacts(name=TARGET, type=Type.TRUTH),
        ),
    )


def write_rows(folder: Path, rows: Stays) -> None:
    """One file for each group, with the rows of patients that are not held out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns, targets, patients, held = readmissions.read(folder / "diabetic_data.parquet")
    whole = pa.table({PERSON: patients, **columns, TARGET: targets == 1})
    seen = whole.filter(pa.array(~held))
    for place, name in enumerate(NAMES):
        pq.write_table(seen.filter(pa.array(rows.sites == place)), f"{name}.parquet")


def ran(*words: object) -> None:
    """A command that ends by itself."""
    from typer.testing import CliRunner

    from sfumato.cli.app import app

    told = CliRunner().invoke(app, [str(word) for word in words])
    if told.exit_code:
        raise SystemExit(f"{words}: {told.stdout} {told.stderr} {told.exception}")


def started(words: list[str], log: str) -> ForkProcess:
    """A command in a process of its own."""
    process = FORK.Process(target=_command, args=(words, log), daemon=True)
    process.start()
    return process


def _command(words: list[str], log: str) -> None:
    from sfumato.cli.app import app

    with Path(log).open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        app(words)


def make_homes(colluding: int) -> None:
    """Eleven folders and one agreement, by commands."""
    schema().save("stays.toml")
    cap = ("--schema", "stays.toml", "--epsilon", "100", "--delta", "1e-5", "--reason", "benchmark")
    for name in NAMES:
        ran("site", "new", name, *cap)
    ran("consortium", "new", "network", "--name", "ten groups", *cap)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    keys = [word for name in NAMES for word in ("--site", f"{name}={name}/ledger.key.pub")]
    many = ("--sites-per-person", 1, "--missing", 1, "--colluding", colluding)
    ran("consortium", "agree", "network", *keys, *many, "--address", address, "-o", "agreement.toml")
    for name in NAMES:
        ran("site", "join", name, "agreement.toml")


def across(number: int, settings: dict[str, Any], lr: float, rows: Stays, colluding: int) -> dict[str, float]:
    """One run by ``sfumato consortium train``."""
    from sfumato.federated import read_network
    from sfumato.reports.stored import stored_release

    out = Path(f"run{number}.safetensors")
    said = {"persons": settings["number"], "rounds": settings["rounds"], "batch": settings["batch"], "lr": lr}
    said |= {"epsilon": settings["epsilon"], "delta": DELTA, "target": TARGET, "out": out, "patience": 300}
    names = [*readmissions.BOUNDS, *readmissions.WORDS]
    more = [word for name in names for word in ("--input", name)]
    more += [word for name, value in said.items() for word in (f"--{name}", str(value))]
    begin = time.perf_counter()
    process = started(["consortium", "train", "network", *more, *(["--fresh"] if number else [])], "network.log")
    process.join()
    if not out.exists():
        raise SystemExit(Path("network.log").read_text()[-2000:])
    seconds = time.perf_counter() - begin
    network, model = read_network(out)
    statement = stored_release(out.with_suffix(".json").read_text("utf-8")).statement
    step = float(statement.query.step)  # type: ignore[attr-defined]  # a training run has one
    charged = math.sqrt(statement.mechanism.variance) * step  # type: ignore[attr-defined]  # as above
    return {
        "auc": area(model, rows),
        "parameters": network.parameters,
        "charged multiplier": charged,
        "realised multiplier": charged * math.sqrt(SITES / (SITES - colluding)),
        "seconds": seconds,
    }


def main() -> None:
    """Measure and write."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    for name, usual in (("rounds", 30), ("batch", 2000), ("runs", 3), ("colluding", 1)):
        asked.add_argument(f"--{name}", type=int, default=usual)
    for name, many in (("epsilon", 3.0), ("lr", 1.0)):
        asked.add_argument(f"--{name}", type=float, default=many)
    said = asked.parse_args()
    here, folder, rows = Path.cwd(), said.folder.absolute(), stays(said.folder)
    settings = {"rounds": said.rounds, "batch": said.batch, "epsilon": said.epsilon}
    settings["number"] = readmissions.PATIENTS * 4 // 5
    found: dict[str, list[dict[str, float]]] = {"across": [], "realised": [], "charged": []}
    with TemporaryDirectory() as place:
        os.chdir(place)
        write_rows(folder, rows)
        make_homes(said.colluding)
        sites = [started(["site", "answer", name, f"{name}.parquet"], f"{name}.log") for name in NAMES]
        try:
            for number in range(said.runs):
                found["across"].append(across(number, settings, said.lr, rows, said.colluding))
                for which in ("realised", "charged"):
                    noise = found["across"][-1][f"{which} multiplier"]
                    found[which].append(central(rows, settings, said.lr, noise))
                print({which: runs[-1] for which, runs in found.items()}, flush=True)
        finally:
            for process in sites:
                process.terminate()
        os.chdir(here)
    areas = {which: [run["auc"] for run in runs] for which, runs in found.items()}
    summary = {which: {"mean": float(np.mean(each)), "runs": each} for which, each in areas.items()}
    measured = {
        "ten hospitals": {
            "peers": {},
            "pairs": said.runs,
            "settings": {**settings, "lr": said.lr, "colluding": said.colluding, "missing": 1, "sites": SITES},
            "auc": summary,
            "runs": found,
        }
    }
    print(write("federated_training", measured, smoke=False))


if __name__ == "__main__":
    main()
