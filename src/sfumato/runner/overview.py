"""What a run leaves for people: for each release of the plan one table of all its periods, and a page with pictures.

Both are made of the results in the folder, which follow from the ledger; they can be thrown away and written anew.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.extras import need
from sfumato.core.foreign import ChartSpec
from sfumato.core.spreadsheet import harmless_cell
from sfumato.errors import MissingExtra
from sfumato.governance.plans import FigureSource
from sfumato.reports.catalogue import message
from sfumato.reports.drawings import paint
from sfumato.reports.plots.saving import svg_of
from sfumato.reports.plots.theme import THEMES
from sfumato.reports.rendering import Markup, render
from sfumato.runner.delivery import write_whole
from sfumato.runner.tested import TestedPlan

__all__ = ["TESTS_FILE", "overview"]

Result = ChartSpec  # what a result of delivery holds, as JSON
LANGUAGES = {"en": "index.html", "zh-Hans": "index.zh.html"}
MOST_PANELS, MOST_ROWS = 6, 400
OWN = FigureSource.OWN.value
TESTS_FILE = "tests.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One number of one period: where it stands, its interval, and which version of the data it is of."""

    period: str
    first: str
    last: str
    version: str
    group: tuple[str, ...]
    column: str
    value: float | str | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSeries:
    """All periods of a release or of a figure, the newest version of each."""

    name: str
    source: str
    labels: tuple[str, ...]
    limit: str
    lines: tuple[PlanLine, ...]
    draft: bool

    @property
    def file(self) -> str:
        """The file of its table."""
        return f"{self.name}.csv" if self.source == OWN else f"{self.name}.{self.source}.csv"


def overview(folder: Path, names: Sequence[str], *, plan: str, tested: TestedPlan | None = None) -> tuple[Path, ...]:
    """Write the tables and the page of a folder of results, in place of earlier ones, and return their paths.

    ``tested`` are the tests of the plan, with adjusted p-values.

    Public: all of it, as the results are. Cells that a spreadsheet would take for a formula are made harmless.
    """
    found = [series for name in names for series in _series(folder / name, name)]
    written = []
    (folder / TESTS_FILE).unlink(missing_ok=True)
    for series in found:
        target = folder / series.file
        write_whole(target, _csv(series))
        written.append(target)
    if tested is not None:
        write_whole(folder / TESTS_FILE, _tests_csv(tested))
        written.append(folder / TESTS_FILE)
    pictures = {series.file: _picture(series) for series in found}
    for language, file in LANGUAGES.items():
        others = {other: name for other, name in LANGUAGES.items() if other != language}
        page = render(
            "plan.html",
            language=language,
            others=others,
            plan=plan,
            found=found,
            pictures=pictures,
            most=MOST_ROWS,
            style=Markup(f"{paint()}\n{_style()}"),
            say=lambda name, language=language, **facts: message(language, f"plan_page.{name}", **facts),
            shown=_shown,
            own=OWN,
            tested=tested,
            tests_file=TESTS_FILE,
            chance=_chance,
            facts=None if tested is None else _facts_of(tested, language),
        )
        write_whole(folder / file, page)
        written.append(folder / file)
    return tuple(written)


def _series(folder: Path, name: str) -> Iterator[PlanSeries]:
    """What was released, and what was computed, of each period; of several versions the newest."""
    held: dict[str, dict[str, Result]] = {source.value: {} for source in FigureSource}
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        if file.name.endswith(".certificate.json"):
            continue
        body = json.loads(file.read_text("utf-8"))
        if body.get("source") not in held:
            continue  # somebody else's file
        period, known = body["period"]["label"], held[body["source"]]
        if period not in known or _newer(body, known[period]):
            known[period] = body
    for source, results in held.items():
        bodies = sorted(results.values(), key=lambda body: str(body["period"]["first"]))
        if bodies:
            yield PlanSeries(
                name=name,
                source=source,
                labels=tuple(bodies[-1]["labels"]),
                limit=bodies[-1]["limit"] or "",
                lines=tuple(line for body in bodies for line in _lines(body)),
                draft=any(body["publication"]["status"] == "draft" for body in bodies),
            )


def _newer(body: Result, than: Result) -> bool:
    return _corrections(body) > _corrections(than)


def _corrections(body: Result) -> int:
    version = _version(body)
    return int(version.removeprefix(body["period"]["label"]).removeprefix(".") or 1)


def _version(body: Result) -> str:
    return str(body["dataset"]["version"] if "dataset" in body else body["period"]["label"])


def _lines(body: Result) -> Iterator[PlanLine]:
    period, columns = body["period"], body["columns"]
    groups = list(zip(*body["labels"].values(), strict=True)) or [()]
    for column, held in columns.items():
        for place, value in enumerate(held["values"]):
            lows, highs = held["data_low"], held["data_high"]
            yield PlanLine(
                period=period["label"],
                first=period["first"],
                last=period["last"],
                version=_version(body),
                group=tuple(str(part) for part in groups[place % len(groups)]),
                column=column,
                value=value,
                low=None if lows is None else lows[place],
                high=None if highs is None else highs[place],
            )


def _csv(series: PlanSeries) -> str:
    """One row for each number."""
    heads = ("period", "first", "last", "version", *series.labels, "column", "value", "data_low", "data_high", "limit")
    rows: list[tuple[object, ...]] = [heads]
    for line in series.lines:
        where = (line.period, line.first, line.last, line.version, *line.group)
        rows.append((*where, line.column, line.value, line.low, line.high, series.limit))
    return "".join(",".join(map(_cell, row)) + "\r\n" for row in rows)


def _tests_csv(tested: TestedPlan) -> str:
    """One row for each test of a period that was released."""
    heads = ("test", "period", "version", "difference", "low", "high", "p_value", "adjusted_p_value", "rejected")
    ends = ("adjusted_by", "tests_in_family", "alpha", "declared_before")
    rows: list[tuple[object, ...]] = [(*heads, *ends)]
    tests = tested.tests
    for line in tested.lines:
        found = (line.estimate, line.low, line.high, line.p_value, line.adjusted)
        verdict = "" if line.p_value is None else "yes" if line.rejected else "no"
        how = (tests.method, tests.number, float(tests.alpha), "yes" if line.declared else "no")
        rows.append((line.test, line.period, line.version, *found, verdict, *how))
    return "".join(",".join(map(_cell, row)) + "\r\n" for row in rows)


def _facts_of(tested: TestedPlan, language: str) -> dict[str, str]:
    """What the page says of all tests together."""
    tests = tested.tests
    return {
        "method": message(language, f"design.{tests.method.replace('-', '_')}"),
        "number": f"{tests.number:,}",
        "alpha": f"{100 * float(tests.alpha):.4g}",
        "waiting": f"{tested.waiting:,}",
    }


def _chance(p: float | None) -> str:
    """A p-value on the page."""
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _cell(value: object) -> str:
    """A cell: numbers as they are, texts in quotes, nothing where a number is missing."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    return '"' + harmless_cell(str(value)).replace('"', '""') + '"'


def _shown(value: object) -> str:
    """A number on the page, rounded to what can be read."""
    if not isinstance(value, int | float):
        return "" if value is None else str(value)
    digits = 0 if abs(value) >= 100 or float(value).is_integer() else 2 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, min(6, digits))}f}"


# ---------------------------------------------------------------------------------------------------------- pictures


def _picture(series: PlanSeries) -> Markup | None:
    """The first column of each group over time, with its interval; none without the extra for plots, or for texts."""
    column = series.lines[0].column
    lines = [line for line in series.lines if line.column == column and isinstance(line.value, int | float)]
    groups = list(dict.fromkeys(line.group for line in lines))
    if len({line.period for line in lines}) < 2 or not 0 < len(groups) <= MOST_PANELS:
        return None
    try:
        need("vl_convert", "pip install 'sfumato[plots]'")
    except MissingExtra:
        return None
    colours = THEMES["light"]
    panels = [_panel([line for line in lines if line.group == group], " · ".join(group), column) for group in groups]
    spec: ChartSpec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": colours.paper,
        "config": {
            "axis": {"labelColor": colours.quiet, "titleColor": colours.quiet, "gridColor": colours.line},
            "title": {"color": colours.ink, "anchor": "start"},
            "view": {"stroke": None},
        },
        "vconcat": panels,
    }
    return Markup(svg_of(spec))  # a drawing, whose labels are XML text


def _panel(lines: Sequence[PlanLine], title: str, column: str) -> ChartSpec:
    colours = THEMES["light"]
    rows = [{"day": line.first, "value": line.value, "low": line.low, "high": line.high} for line in lines]
    over_time = {"field": "day", "type": "temporal", "title": None}
    return {
        "width": 620,
        "height": 120,
        "title": title,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rule", "color": colours.band, "strokeWidth": 3, "opacity": 0.55},
                "encoding": {
                    "x": over_time,
                    "y": {"field": "low", "type": "quantitative", "title": column},
                    "y2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "line", "color": colours.mark, "strokeWidth": 1.5, "point": {"color": colours.mark}},
                "encoding": {"x": over_time, "y": {"field": "value", "type": "quantitative", "title": column}},
            },
        ],
    }


def _style() -> str:
    from importlib import resources

    return resources.files("sfumato.reports").joinpath("style.css").read_text("utf-8")
