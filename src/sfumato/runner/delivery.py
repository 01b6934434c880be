"""What a run leaves in its folder: the certificate and a short result of each release, and derived figures.

Files are written whole or not at all. They follow from the ledger: one that is lost is written again by the next run.
"""

import json
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from sfumato.core.columns import Value
from sfumato.core.exact import decimal_down
from sfumato.core.release import Release, population_intervals, shown_columns
from sfumato.governance.periods import Period
from sfumato.governance.plans import FigureSource
from sfumato.inference.figure import Figure
from sfumato.reports.publication import Grounds, standing
from sfumato.runner.figures import Weighted
from sfumato.runner.steps import Ingredient

__all__ = ["Folder", "write_whole"]

LEVEL = Fraction(19, 20)


class Folder:
    """A folder of results: one folder inside for each release, one set of files for each period."""

    def __init__(self, place: Path, *, plan: str, digest: str, grounds: Grounds) -> None:
        self._place, self._plan, self._digest, self._grounds = place, plan, digest, grounds

    def has_release(self, name: str, version: str) -> bool:
        """Whether both files of a release are there, and say of its publication what the plan says now."""
        certificate, result = self._files(name, version)
        return certificate.is_file() and self._says(result)

    def has_figure(self, name: str, period: Period, source: FigureSource, versions: Mapping[Ingredient, str]) -> bool:
        """Whether the file of a figure is there, made of these ``versions``, and says what the plan says now."""
        place = self._figure(name, period, source)
        wanted = {(of.release, of.period.label, version) for of, version in versions.items()}
        return self._says(place) and _made_of(place) == wanted

    def keep_release(self, name: str, period: Period, release: Release) -> tuple[Path, ...]:
        """Write the certificate and the result of a release."""
        certificate, result = self._files(name, release.statement.dataset.edition)
        standing(release, self._grounds)  # on record for publication it has its text for every reader
        said = release.statement
        sampled = population_intervals(release, LEVEL)
        columns = {
            column: {
                "values": [_number(value) for value in values],
                **_ends(ends),
                **_ends(sampled.get(column), of="population"),
            }
            for column, values, ends in shown_columns(release, LEVEL)
        }
        body = {
            **self._about(name, period, FigureSource.OWN),
            "dataset": {"name": said.dataset.name, "version": said.dataset.edition},
            "labels": {label: list(column) for label, column in release.labels.items()},
            "columns": columns,
            "limit": release.limit_words() or None,
            "cost": {"epsilon": str(said.spend.epsilon), "delta": str(said.spend.delta)},
            "identifier": said.identifier,
        }
        write_whole(certificate, f"{release.certificate.text}\n")
        write_whole(result, _json(body))
        return certificate, result

    def keep_figure(
        self,
        name: str,
        period: Period,
        source: FigureSource,
        columns: Mapping[str, Figure],
        parts: Sequence[Weighted],
        identifiers: Mapping[Ingredient, str],
        versions: Mapping[Ingredient, str],
    ) -> Path:
        """Write a figure that was computed from releases, with the identifiers of these."""
        place = self._figure(name, period, source)
        shown = {
            column: {"values": [_number(value) for value in figure.values], **_ends(figure.interval(LEVEL, of="data"))}
            for column, figure in columns.items()
        }
        labels = next(iter(columns.values())).labels
        body = {
            **self._about(name, period, source),
            "labels": {label: list(column) for label, column in labels.items()},
            "columns": shown,
            "limit": next(iter(columns.values())).limit_words() or None,
            "cost": {"epsilon": "0", "delta": "0"},
            "made_of": [
                {
                    "release": part.of.release,
                    "period": part.of.period.label,
                    "version": versions[part.of],
                    "weight": str(part.weight),
                    "identifier": identifiers[part.of],
                }
                for part in parts
            ],
        }
        write_whole(place, _json(body))
        return place

    def _says(self, place: Path) -> bool:
        """Whether a result is there whole, and is the draft or the publication that it would be now."""
        try:
            body = json.loads(place.read_text("utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(body, dict) and body.get("publication") == self._grounds.document()

    def _about(self, name: str, period: Period, source: FigureSource) -> dict[str, object]:
        return {
            "publication": self._grounds.document(),
            "plan": self._plan,
            "digest": self._digest,
            "release": name,
            "period": {"label": period.label, "first": str(period.first), "last": str(period.last)},
            "source": source.value,
            "interval": f"each number with {decimal_down(100 * LEVEL)}% confidence",
        }

    def _files(self, name: str, version: str) -> tuple[Path, Path]:
        folder = self._place / name
        return folder / f"{version}.certificate.json", folder / f"{version}.json"

    def _figure(self, name: str, period: Period, source: FigureSource) -> Path:
        return self._place / name / f"{period.label}.{source.value}.json"


def _made_of(place: Path) -> set[tuple[str, str, str]]:
    """The releases, periods and versions that a figure is made of; before there were corrections none was named."""
    parts = json.loads(place.read_text("utf-8"))["made_of"]
    return {(part["release"], part["period"], part.get("version", part["period"])) for part in parts}


def write_whole(place: Path, text: str) -> None:
    """Put a file in its place whole: written beside it, brought to the disk, then renamed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _json(body: Mapping[str, object]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _ends(ends: Sequence[tuple[Value, Value]] | None, of: str = "data") -> dict[str, list[str | float | None] | None]:
    """Both ends by their names; what estimates no population has none of it."""
    if ends is None:
        return {"data_low": None, "data_high": None} if of == "data" else {}
    return {
        f"{of}_low": [_number(low, toward=-math.inf) for low, _ in ends],
        f"{of}_high": [_number(high, toward=math.inf) for _, high in ends],
    }


def _number(value: Value, *, toward: float | None = None) -> str | float | None:
    """A number for JSON; ends of intervals are rounded outward, and what the noise leaves open is null."""
    if isinstance(value, str | int):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    return number if toward is None else math.nextafter(number, toward)
