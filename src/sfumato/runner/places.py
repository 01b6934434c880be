"""Where the data of each period lies: a path with the name of the period in it."""

import string
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sfumato.errors import InvalidInput, Refused
from sfumato.governance.periods import Cadence, Period, periods

__all__ = ["DataPath"]

ENDINGS = (".parquet", ".pq", ".csv", ".tsv")
WORDS = {
    Cadence.DAILY: ("period", "year", "month", "day"),
    Cadence.WEEKLY: ("period", "year", "month", "day"),
    Cadence.MONTHLY: ("period", "year", "month"),
    Cadence.QUARTERLY: ("period", "year"),
    Cadence.YEARLY: ("period", "year"),
}
PATTERNS = "*?[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """The path of each period's data, such as ``visits/{year}/{period}.parquet``.

    Guarantee: what stands for a period is made of digits and ``-``, ``Q`` and ``W`` alone, no path has ``..`` in it,
    and no two periods of the year have one path. ``{year}``, ``{month}`` and ``{day}`` are those of the last day.

    >>> path = DataPath(text="visits/{period}.parquet", every=Cadence.WEEKLY, year=2026)
    >>> path.of(periods(Cadence.WEEKLY, 2026)[0])
    'visits/2026-W01.parquet'
    """

    text: str
    every: Cadence
    year: int

    def __post_init__(self) -> None:
        self._check_words()
        plain = self.text.isprintable() and not any(sign in self.text for sign in (*PATTERNS, "\\", "://", "~"))
        path = PurePosixPath(self.text)
        if not plain or ".." in path.parts:
            raise Refused(
                f"data = {self.text!r} is not the path of one file below a folder that it names: '..', '~', patterns, "
                "addresses and control characters are refused. Nothing was opened."
            )
        if path.suffix.lower() not in ENDINGS or "{" in path.suffix:
            raise InvalidInput(f"data = {self.text!r} must end in one of {', '.join(ENDINGS)}; nothing was opened.")
        due = periods(self.every, self.year)
        if len({self.of(period) for period in due}) != len(due):
            raise Refused(
                f"data = {self.text!r} gives one file to several {self.every.value} periods, and their rows would be "
                "released more than once. Nothing was opened. Put {period} into the path."
            )

    def _check_words(self) -> None:
        try:
            parts = list(string.Formatter().parse(self.text))
        except ValueError:
            parts = [("{", None, None, None)]
        for literal, word, detail, change in parts:
            known = word is None or (word in WORDS[self.every] and not detail and change is None)
            if not known or "{" in literal or "}" in literal:
                names = ", ".join(f"{{{name}}}" for name in WORDS[self.every])
                raise InvalidInput(
                    f"data = {self.text!r} holds braces that mean nothing here; nothing was opened. What is "
                    f"{self.every.value} may use {names}."
                )

    def of(self, period: Period) -> str:
        """The path of one period's data, as it is written."""
        last = period.last
        return self.text.format(
            period=period.label, year=f"{last.year:04}", month=f"{last.month:02}", day=f"{last.day:02}"
        )

    def inside(self, folder: Path, period: Period) -> Path:
        """The same as a path, taken from a folder where it is not absolute."""
        return folder / self.of(period)
