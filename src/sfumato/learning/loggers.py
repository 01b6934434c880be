"""Logs of what is public in a run: step, ε and learning rate. Losses on private rows are in none."""

import csv
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from sfumato.core.extras import need
from sfumato.learning.given import Thing
from sfumato.learning.step_view import StepView

__all__ = ["CSVLogger", "TensorBoardLogger"]


class CSVLogger:
    """Writes a line a step to a file: ``fit(callbacks=[CSVLogger("run.csv")])``. The file is written anew.

    The columns are ``step`` (how many were made), ``epsilon`` (at least the ε of these) and ``lr`` (of the next one).
    Public: all of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     CSVLogger(Path(folder) / "run.csv").path.read_text().strip()
    'step,epsilon,lr'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._write(("step", "epsilon", "lr"), mode="w")

    def __call__(self, step: StepView) -> None:
        """Write down a step that was made."""
        self._write((step.index + 1, float(step.epsilon), step.lr), mode="a")

    def _write(self, cells: tuple[object, ...], *, mode: str) -> None:
        with self.path.open(mode, encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(cells)


class TensorBoardLogger:
    """Writes ε and the learning rate of each step for TensorBoard: ``fit(callbacks=[TensorBoardLogger("logs")])``.

    It needs the package ``tensorboard``. Public: all of it.
    """

    def __init__(self, folder: str | Path) -> None:
        need("tensorboard", "pip install tensorboard")
        board: Thing = need("torch.utils.tensorboard", "pip install tensorboard")
        self._writer = board.SummaryWriter(str(folder))
        weakref.finalize(self, self._writer.close)

    def __call__(self, step: StepView) -> None:
        """Write down a step that was made."""
        self._writer.add_scalar("epsilon", float(step.epsilon), step.index + 1)
        self._writer.add_scalar("lr", step.lr, step.index + 1)

    def close(self) -> None:
        """Write out what is still kept back."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: object, where: TracebackType | None) -> None:
        self.close()
