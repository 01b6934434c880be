"""Rows that a generator made: the rows, the releases behind them, and what is known and not known of their quality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from sfumato.core.budget import Budget
from sfumato.core.description import Listed, OneLine, Phrase, Word
from sfumato.core.exact import decimal_up, natural
from sfumato.core.release import Release, presenter_of
from sfumato.core.spreadsheet import write_csv
from sfumato.core.terminal import harmless_text
from sfumato.errors import InvalidInput
from sfumato.learning.generative.course import GeneratorCourse
from sfumato.studies.draws import generator_of
from sfumato.synthesis.columns import BinnedColumn, ListedColumn, SyntheticColumn
from sfumato.synthesis.row_file import write_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.learning.given import Thing

__all__ = ["GeneratedTable", "GeneratorQuality", "RowMaker"]

MOST_ROWS = 10**8
PART = 2**16  # rows that are made at once


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorQuality:
    """What is known of the rows without the data. Public; nothing here was compared with the data."""

    steps: int
    """How many steps the critic made."""
    batch: int
    """How many units a step of the critic expects."""
    noise_multiplier: float
    """The standard deviation of the noise, in clips."""
    parameters: int
    """How many weights the critic has, each with noise on its gradient."""
    generator_steps: int
    distance_to_shares: float | None
    """Mean total variation between the columns of the rows, one by one, and their noisy shares; None without those."""
    estimated_rows: float | None
    """The noisy number of rows in the data; None without noisy shares."""
    declared_rows: bool
    """Whether the number of rows was declared; else it is the noisy one, rounded."""


class RowMaker:
    """A trained generator: makes rows, as many as are asked for. Public; whatever it makes costs nothing."""

    def __init__(self, columns: Sequence[SyntheticColumn], course: GeneratorCourse) -> None:
        self._columns, self._course = tuple(columns), course

    @property
    def state(self) -> Mapping[str, torch.Tensor]:
        """Copies of the generator's weights, by name."""
        return {name: one.clone() for name, one in self._course.averaged.state_dict().items()}

    def rows(self, number: int, *, seed: int, given: "Mapping[str, Thing] | None" = None) -> "pa.Table":
        """This many rows, the same for the same seed; with ``given={"income": ">50K"}`` all have that value.

        A value can be given of one column with keys, and where the generator learned with noisy shares.
        """
        return self.made(number, seed=seed, given=given)[0]

    def made(
        self, number: int, *, seed: int, given: "Mapping[str, Thing] | None" = None
    ) -> "tuple[pa.Table, NDArray[np.int32]]":
        """As :meth:`rows`, with the numbers of their cells."""
        import pyarrow as pa

        natural(number, "number", most=MOST_ROWS)
        condition = None if given is None else self._condition(given)
        draw, inside = torch.Generator().manual_seed(seed), generator_of(f"values in bins {seed}")
        parts = [
            self._course.cells(min(PART, number - first), draw, condition).numpy() for first in range(0, number, PART)
        ]
        codes = np.concatenate(parts).astype(np.int32)
        arrays = [
            column.arrow(
                codes[:, place], column.drawn(codes[:, place], inside) if isinstance(column, BinnedColumn) else None
            )
            for place, column in enumerate(self._columns)
        ]
        return pa.table(arrays, names=[column.name for column in self._columns]), codes

    def _condition(self, given: "Mapping[str, Thing]") -> torch.Tensor:
        if self._course.shares is None:
            raise InvalidInput(
                "this generator learned without noisy shares, and so without conditions; no rows were made. Say "
                "marginals='1/10' when it is trained."
            )
        columns = {column.name: column for column in self._columns}
        if len(given) != 1 or not isinstance(columns.get(next(iter(given))), ListedColumn):
            raise InvalidInput("given names one column that has keys, and its value; no rows were made.")
        ((name, value),) = given.items()
        column = columns[name]
        assert isinstance(column, ListedColumn)  # noqa: S101 - as was just asked
        known = [*column.values, *([None] if column.missing else [])]
        if value not in known:
            raise InvalidInput(f"{name!r} does not have the value {value!r}; no rows were made.")
        before = sum(each.size for each in self._columns[: self._columns.index(column)])
        found = torch.zeros(1, sum(each.size for each in self._columns))
        found[0, before + known.index(value)] = 1
        return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GeneratedTable:
    """Rows of a generator that learned from a private critic; made by ``vault.generator(…).fit(…)``.

    Guarantee: ``release`` (the critic) and ``marginals`` (noisy shares of values), where there are some, have their
    (ε, δ) and were charged before a row was read; the generator, the rows and all that is asked of them are functions
    of what these released, and cost nothing. Assumes: what was declared is public. Nothing else is claimed: a
    synthetic row may be equal to a row of the data.
    """

    release: Release
    marginals: Release | None
    rows: "pa.Table"
    quality: GeneratorQuality
    generator: RowMaker

    @property
    def charged(self) -> Budget:
        """What both releases cost together; a stored answer that was told again costs nothing."""
        return self.release.charged if self.marginals is None else self.release.charged + self.marginals.charged

    def to_parquet(self, path: str | Path) -> Path:
        """Write the rows as Parquet, in place of an earlier file of that name, and return the path.

        The identifier of the critic's certificate stands in the metadata of the file.
        """
        return write_parquet(self.rows, self.release, path)

    def to_csv(self, path: str | Path) -> Path:
        """Write the rows as CSV; texts that a spreadsheet would take for a formula are made harmless."""
        return write_csv(self.rows, path)

    def explain(self, language: str = "en") -> str:
        """Say in words what the rows are, what is known of them and what is not, who is protected and what it cost."""
        presenter = presenter_of(self.release)
        parts = [[presenter.words(word, language) for word in some] for some in self._words()]
        parts += [
            list(presenter.protection(each, language)) for each in (self.release, self.marginals) if each is not None
        ]
        parts.append([presenter.words(word, language) for word in self._costs()])
        return "\n\n".join("\n".join(map(harmless_text, part)) for part in parts)

    def _costs(self) -> list[Word]:
        free: list[Word] = [Phrase("generated.free")]
        if self.marginals is None:
            return free
        spends = [each.statement.spend for each in (self.release, self.marginals)]
        epsilon = sum((one.epsilon for one in spends), Fraction(0))
        delta = sum((one.delta for one in spends), Fraction(0))
        return [
            Phrase("generated.together", {"epsilon": decimal_up(epsilon, 6), "delta": f"{float(delta):.3g}"}),
            *free,
        ]

    def _words(self) -> list[list[Word]]:
        quality = self.quality
        first: dict[str, Word] = {
            "rows": f"{self.rows.num_rows:,}",
            "columns": Listed(tuple(OneLine(name) for name in self.rows.column_names)),
            "data": OneLine(self.release.statement.query.dataset.name),
        }
        critic: dict[str, Word] = {
            "steps": f"{quality.steps:,}",
            "batch": f"{quality.batch:,}",
            "parameters": f"{quality.parameters:,}",
            "noise": f"{quality.noise_multiplier:.3g}",
        }
        learned: list[Word] = [Phrase("generated.critic", critic), Phrase("generated.generator")]
        if quality.distance_to_shares is not None:
            learned.append(Phrase("generated.shares", {"distance": f"{quality.distance_to_shares:.4f}"}))
        number = "declared" if quality.declared_rows else "noisy"
        return [
            [Phrase("generated.what", first), Phrase(f"generated.rows_{number}")],
            learned,
            [Phrase("generated.unknown"), Phrase("generated.compared"), Phrase("generated.claim")],
        ]

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"GeneratedTable of {self.rows.num_rows:,} rows × {self.rows.num_columns} columns"
