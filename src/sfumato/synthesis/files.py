"""Several files of one release, and what is estimated from all of them together, with an interval that covers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.description import Listed, OneLine, Phrase, Word
from sfumato.core.exact import Exact, confidence_level
from sfumato.core.release import Release, presenter_of
from sfumato.core.suggestion import did_you_mean
from sfumato.core.terminal import harmless_text
from sfumato.errors import InvalidInput
from sfumato.synthesis.row_file import write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FilesEstimate", "SyntheticFiles"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FilesEstimate:
    """One number from several files: its mean, and an interval from how far the files are apart.

    With m files and the variance B between their estimates, the variance is (1 + 1/m)·B and the interval that of
    Student's t distribution with m − 1 degrees of freedom. Every file was drawn with noise and people of its own, so
    that B is the variance of a single estimate; the rules for multiple imputation, which take something off B or add a
    variance inside the files, hold for other files than these.

    Guarantee: a function of the release alone, at no cost. Assumes: the number follows from tables that were measured;
    where ``measured_together`` is False it rests on the model, and what the model has wrong is in no interval.
    """

    estimates: tuple[float, ...]
    confidence: Fraction
    of: str
    """``population``: noise and sampling; ``data``: the noise alone."""
    columns: tuple[str, ...]
    measured_together: bool
    """Whether one measured table has all the columns that the number is about."""
    release: Release

    @property
    def value(self) -> float:
        """The mean of the files."""
        return math.fsum(self.estimates) / len(self.estimates)

    @property
    def degrees_of_freedom(self) -> int:
        """One less than there are files."""
        return len(self.estimates) - 1

    @property
    def standard_error(self) -> float:
        """The root of (1 + 1/m)·B."""
        number, mean = len(self.estimates), self.value
        between = math.fsum((each - mean) ** 2 for each in self.estimates) / (number - 1)
        return math.sqrt((1 + 1 / number) * between)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval."""
        from scipy.stats import t

        reach = float(t.ppf((1 + float(self.confidence)) / 2, self.degrees_of_freedom)) * self.standard_error
        return self.value - reach, self.value + reach

    def explain(self, language: str = "en") -> str:
        """The number, its interval, what the interval covers and what it does not."""
        presenter, (low, high) = presenter_of(self.release), self.interval
        said: dict[str, Word] = {
            "value": f"{self.value:,.4g}",
            "low": f"{low:,.4g}",
            "high": f"{high:,.4g}",
            "level": f"{float(self.confidence) * 100:g}",
            "error": f"{self.standard_error:,.3g}",
            "files": f"{len(self.estimates)}",
            "columns": Listed(tuple(OneLine(name) for name in self.columns)),
        }
        keys = ["estimate", f"estimate_{self.of}"]
        keys.append("estimate_measured" if self.measured_together else "estimate_not_measured")
        words = [presenter.words(Phrase(f"synthesis.{key}", said), language) for key in keys]
        return "\n".join(map(harmless_text, words))

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        low, high = self.interval
        warning = "" if self.measured_together else ", columns not measured together"
        return f"FilesEstimate {self.value:.4g} ({low:.4g} to {high:.4g}), {len(self.estimates)} files{warning}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SyntheticFiles:
    """Several files of rows, all made of one release.

    Guarantee: they cost nothing, whatever their number: the release was charged once. Assumes: as for the rows.
    """

    rows: tuple["pa.Table", ...]
    release: Release
    of: str
    measured: tuple[tuple[str, ...], ...]
    """The columns of each measured table."""

    def estimate(
        self,
        function: "Callable[[pa.Table], float]",
        *,
        columns: Sequence[str] | None = None,
        confidence: Exact = Fraction(19, 20),
    ) -> FilesEstimate:
        """A number of the rows, with an interval; ``function`` is handed the ``columns`` of each file in turn.

        Name the columns that the number is about: whether they were measured together is said beside the interval.
        """
        named = self._named(columns)
        if not callable(function):
            raise InvalidInput("estimate(...) takes a function of the rows of one file; nothing was done.")
        return self.combined([function(each.select(list(named))) for each in self.rows], columns, confidence=confidence)

    def combined(
        self,
        estimates: Sequence[float],
        columns: Sequence[str] | None = None,
        *,
        confidence: Exact = Fraction(19, 20),
    ) -> FilesEstimate:
        """The same from estimates that were computed elsewhere, one for each file in their order."""
        named, level = self._named(columns), confidence_level(confidence)
        try:
            numbers = tuple(float(each) for each in estimates)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput("each file must give one number; nothing was computed.") from None
        if len(numbers) != len(self.rows) or not all(map(math.isfinite, numbers)):
            raise InvalidInput(
                f"{len(self.rows)} files must give one finite number each; nothing was computed. Where a file has no "
                "row that the number is about, ask about more rows."
            )
        together = any(set(named) <= set(table) for table in self.measured)
        return FilesEstimate(
            estimates=numbers,
            confidence=level,
            of=self.of,
            columns=named,
            measured_together=together,
            release=self.release,
        )

    def to_parquet(self, folder: str | Path) -> list[Path]:
        """Write ``file-1.parquet`` and so on into a folder, and return their paths."""
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise InvalidInput(
                f"{place} cannot be written: {wrong.strerror or type(wrong).__name__}. Choose another folder."
            ) from None
        return [
            write_parquet(rows, self.release, place / f"file-{number}.parquet")
            for number, rows in enumerate(self.rows, start=1)
        ]

    def _named(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        known = self.rows[0].column_names
        if columns is None:
            return tuple(known)
        listed = isinstance(columns, Sequence) and not isinstance(columns, (str, bytes))
        unknown = [name for name in columns if name not in known] if listed else []
        if not listed or not columns or unknown:
            raise InvalidInput(
                f"columns is a list of columns of the files, {', '.join(known)}; nothing was done."
                f"{did_you_mean(str(unknown[0]), known) if unknown else ''}"
            )
        return tuple(dict.fromkeys(columns))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"SyntheticFiles: {len(self.rows)} files of one release"
