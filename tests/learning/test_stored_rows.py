"""Rows in files: read some at a time, ahead of their step, and given back to the system."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402

from sfumato.learning import Units  # noqa: E402
from sfumato.learning.laid import Laid  # noqa: E402
from sfumato.learning.rows_ahead import RowsAhead, parts_of  # noqa: E402
from sfumato.learning.stored_rows import AROUND, HELD, StoredRows, _cuts, mapped_file  # noqa: E402

FACTS: dict[str, Any] = {"n_units": 200, "name": "visits", "version": "1"}


def saved(folder: Path, number: int = 200, width: int = 3) -> tuple[Any, Any]:
    inputs = np.sin(np.arange(number * width) * 1.7).reshape(number, width)
    np.save(folder / "x.npy", inputs)
    np.save(folder / "y.npy", (inputs.sum(1) > 0).astype(np.int8))
    return np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")


def test_rows_come_in_the_order_asked_for_and_in_the_types_of_models(tmp_path: Path) -> None:
    x, y = saved(tmp_path)
    laid = Units(x, y, **FACTS).laid(b"k")
    rows = torch.tensor([7, 3, 199, 3, 0])
    inputs, targets, here = laid.gathered(rows, torch.ones(5, dtype=torch.bool))
    assert torch.equal(inputs[0], torch.from_numpy(np.array(x)).float()[rows])
    assert torch.equal(targets, torch.from_numpy(np.array(y)).long()[rows])
    assert here.all()
    inputs[0].zero_()  # what is written to rows stays with them
    assert not np.array_equal(np.array(x)[7], np.zeros(3))


def test_nothing_of_a_file_is_read_when_units_are_made(tmp_path: Path) -> None:
    x, y = saved(tmp_path)
    units = Units(x, y, **FACTS)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:128] + bytes(200 * 24))
    assert units.laid(b"k").gathered(torch.arange(4), torch.ones(4, dtype=torch.bool))[0][0].eq(0).all()


def test_pages_are_given_back_where_the_file_still_has_them(tmp_path: Path) -> None:
    x, _ = saved(tmp_path)
    assert mapped_file(x) is not None
    assert mapped_file(x[10:]) is not None
    assert mapped_file(np.asarray(x)) is not None
    own = np.load(tmp_path / "x.npy", mmap_mode="c")  # what is written to it is in no file
    assert mapped_file(own) is None
    own[0] = 5
    rows = StoredRows([own, np.zeros(200)], [torch.zeros(3), torch.tensor(0.0)])
    rows.read(torch.arange(200), 0)
    assert own[0, 0] == 5


def test_rows_are_cut_by_how_much_of_the_file_they_touch() -> None:
    rng, size = np.random.default_rng(1), 3000
    rows = np.sort(rng.choice(10**6, 400, replace=False))
    parts = np.split(rows, _cuts(rows, size))
    assert len(parts) > 5
    for part in parts:
        touched = {block for row in part for block in range(row * size // AROUND, ((row + 1) * size - 1) // AROUND + 1)}
        assert len(touched) * AROUND <= HELD + 2 * AROUND
    assert _cuts(rows[:0], size) == []


def test_all_rows_are_moved_to_a_device_that_has_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = saved(tmp_path)
    laid = Units(x, y, **FACTS).laid(b"k")
    assert laid.source is not None
    monkeypatch.setattr("sfumato.learning.stored_rows.CHUNK", 100)  # bytes: some ten rows at a time
    for fits in (True, False):
        monkeypatch.setattr("sfumato.learning.stored_rows.fits_on", lambda device, size, fits=fits: fits)
        moved = laid.source.near(torch.device("cpu"))
        assert (moved is None) is not fits
        if moved is not None:
            assert torch.equal(moved[0][0], torch.from_numpy(np.array(x)).float())
            assert torch.equal(moved[1], torch.from_numpy(np.array(y)).long())


@pytest.mark.parametrize("sizes", [[5, 3, 4], [0, 0, 9], [9, 0, 0], [4, 0, 4], [12, 1, 8]])
def test_what_is_read_ahead_is_what_is_asked_for(sizes: list[int], tmp_path: Path) -> None:
    x, y = saved(tmp_path)
    laid = Units(x, y, **FACTS).laid(b"k")
    samples = [np.random.default_rng(step).permutation(200)[:size] for step, size in enumerate(sizes)]
    drawn: list[int] = []

    def draw(step: int) -> Any:
        drawn.append(step)
        return samples[step]

    ahead = RowsAhead(laid, draw, physical=4)
    for step in range(3):
        expected = [part() for part in parts_of(laid, samples[step], 4, step)]
        for found, wanted in zip(ahead.parts(step, last=step == 2), expected, strict=True):
            inputs, targets, here = found()
            inputs[0].zero_()
            again = found()  # gathered anew, whatever was written to the first
            assert torch.equal(again[0][0], wanted[0][0])
            assert torch.equal(targets, wanted[1])
            assert torch.equal(here, wanted[2])
    assert drawn == [0, 1, 2]
    ahead.close()


def test_a_step_that_is_begun_anew_is_drawn_anew() -> None:
    laid = Laid((torch.arange(9.0),), torch.arange(9), 9)
    drawn: list[int] = []
    ahead = RowsAhead(laid, lambda step: drawn.append(step) or np.arange(3), physical=2)  # type: ignore[func-returns-value]
    list(ahead.parts(0, last=False))
    list(ahead.parts(5, last=True))
    assert drawn == [0, 1, 5]
    ahead.close()


def test_a_run_reads_ahead_and_ends_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[RowsAhead] = []
    init = RowsAhead.__init__
    monkeypatch.setattr(
        RowsAhead, "__init__", lambda self, *given, **said: (made.append(self), init(self, *given, **said))[0]
    )
    x, y = saved(tmp_path)
    home = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=400, delta=1e-6), name="clinic")
    model = nn.Linear(3, 2)
    data = Units(x, y, **FACTS)
    trainer = home.trainer(model, nn.functional.cross_entropy, data=data)
    trainer.fit(steps=25, batch=60, lr=2.0, max_physical_batch_size=16, epsilon=300, delta=1e-7)
    right = (model(torch.from_numpy(np.array(x)).float()).argmax(1).numpy() == y).mean()
    assert right > 0.8
    assert len(made) == 1
    assert made[0]._thread._shutdown


PROGRAM = """
import resource, sys
import numpy as np, torch, sfumato as sf
from sfumato.learning import Units
folder, megabytes = sys.argv[1], int(sys.argv[2])
width, rows = 256, megabytes * 1024
mapped = np.lib.format.open_memmap(f"{folder}/x.npy", mode="w+", dtype=np.float32, shape=(rows, width))
for start in range(0, rows, 4096):
    block = np.sin(np.arange(4096 * width, dtype=np.float32)).reshape(4096, width)
    mapped[start : start + 4096] = block[: rows - start]
    mapped.flush()
del mapped
home = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=8, delta=1e-6), name="clinic")
def trained(inputs, targets, name):
    data = Units(inputs, targets, n_units=len(targets), name=name, version="1")
    model = torch.nn.Linear(width, 2)
    trainer = home.trainer(model, torch.nn.functional.cross_entropy, data=data)
    trainer.fit(epochs=2, batch=len(targets) // 16, max_physical_batch_size=1024, epsilon=1, delta=1e-8, progress=False)
trained(torch.zeros(4096, width), torch.zeros(4096, dtype=torch.int64), "small")  # what all runs take of memory
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # the peak is counted from here
def held(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what)) // 1024
before = held("VmRSS:")
if sys.argv[3] == "mapped":
    inputs = np.load(f"{folder}/x.npy", mmap_mode="r")
else:
    inputs = np.load(f"{folder}/x.npy")
trained(inputs, np.zeros(rows, dtype=np.int8), "large")
print(held("VmHWM:") - before)
"""


def growth(folder: Path, megabytes: int, how: str) -> int:
    """How many megabytes of memory a process takes for a run on a file of so many."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not count the memory of a part of a process")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(megabytes), how],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.long
def test_a_file_of_400_megabytes_is_trained_on_in_less_than_150(tmp_path: Path) -> None:
    assert growth(tmp_path, 400, "mapped") < 150
    assert growth(tmp_path, 400, "whole") > 350  # the broken copy: the file as an array in memory
