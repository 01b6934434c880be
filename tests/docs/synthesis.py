"""Tables of how good synthetic rows are, from the result file; ``python -m tests.docs.synthesis`` writes the pages."""

import json
import re
from pathlib import Path
from typing import Any

from tests.docs.test_docs import DOCS, REPOSITORY

RESULT = REPOSITORY / "benchmarks" / "results" / "synthesis.json"
PAGE = DOCS / "explanation" / "synthesis-quality.md"
HOW_TO = DOCS / "how-to" / "synthesize.md"
ADULT = ("adult-8-1", "adult-8-1-nine", "adult-8-3", "adult-14-1")
ACS = "acs"
REASONS = {"pairs": "pairs", "triples": "pairs and threes", "singles": "columns alone"}
COVERED = {
    "share": "a share",
    "cell": "a cell of two columns",
    "difference": "a difference of shares",
    "three": "three columns",
}
PICTURE = DOCS / "images" / "synthesis-curve.svg"
MODELS = ("logistic regression", "gradient-boosted trees")


def measured() -> dict[str, Any]:
    """What the benchmark found."""
    found: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))["measured"]
    return found


def _table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)])


def _delta(words: str) -> str:
    return f"1e-{len(words.split('/')[1]) - 1}"


def _reasons(part: dict[str, Any]) -> str:
    return ", ".join(REASONS[reason] for reason in part["measured"])


def _seconds(part: dict[str, Any]) -> str:
    return f"{part['cpu_seconds']:,.1f}" if part["cpu_seconds"] < 10 else f"{part['cpu_seconds']:,.0f}"


def score(error: float) -> str:
    """The k-marginal score: 1000 times what the mean total variation leaves of 1."""
    return f"{1000 * (1 - error):.0f}"


def of_settings(found: dict[str, Any]) -> str:
    """The figures of the how-to: ours on Adult."""
    head = ("columns", "ε, δ", "measured", "two-way", "three-way", "CPU s", "independent columns, two-way")
    rows = []
    for part in (found[name] for name in ADULT if name in found):
        two, three = part["mean"]
        asked = f"{part['epsilon']}, {_delta(part['delta'])}"
        cells = [f"{two:.4f}", f"{three:.4f}", _seconds(part), f"{part['independent'][0]:.3f}"]
        rows.append([str(part["columns"]), asked, _reasons(part), *cells])
    return _table(head, rows)


def _makers(found: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    """Who made rows in a setting: ours, independent columns, the peers that were run, resampled rows."""
    part = found[name]
    alone = {"mean": part["independent"], "runs": part.get("independent_runs", "")}
    resampled = {"mean": part["resampled"], "runs": 1}
    others = found.get(f"peers-{name}", {}).get("makers", {})
    return [
        ("**`table.synthesize`**", part),
        *sorted((maker, figures) for maker, figures in others.items() if figures["runs"]),
        ("independent columns", alone),
        ("resampled, not private", resampled),
    ]


def of_makers(found: dict[str, Any]) -> str:
    """Errors and cost on Adult, ours beside others."""
    head = ("", "made by", "runs", "two-way", "three-way", "CPU s")
    rows = []
    for name in (name for name in ADULT if name in found):
        part = found[name]
        label = f"{part['title']}, ε = {part['epsilon']}, δ = {_delta(part['delta'])}"
        for maker, figures in _makers(found, name):
            two, three = figures["mean"]
            spent = _seconds(figures) if "cpu_seconds" in figures else ""
            rows.append([label, maker, str(figures["runs"]), f"{two:.4f}", f"{three:.4f}", spent])
            label = ""
    return _table(head, rows)


def of_scores(found: dict[str, Any]) -> str:
    """k-marginal scores on the ACS excerpt."""
    head = ("made by", "runs", "k = 2", "k = 3", "two-way", "three-way", "CPU s")
    rows = []
    for maker, figures in _makers(found, ACS):
        two, three = figures["mean"]
        spent = _seconds(figures) if "cpu_seconds" in figures else ""
        rows.append([maker, str(figures["runs"]), score(two), score(three), f"{two:.4f}", f"{three:.4f}", spent])
    return _table(head, rows)


def curves(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of the curve that were measured, by their number of rows."""
    parts = [part for name, part in found.items() if name.startswith("curve-")]
    return sorted(parts, key=lambda part: int(part["rows"]))


def of_curve(found: dict[str, Any]) -> str:
    """Two-way errors by rows and ε: ours / independent columns, and what was measured."""
    parts = curves(found)
    head = ("rows", "runs", *(f"ε = {point['epsilon']}" for point in parts[0]["points"]), "CPU s")
    rows = []
    for part in parts:
        seconds = [point["cpu_seconds"] for point in part["points"]]
        spent = f"{min(seconds):,.1f} to {max(seconds):,.1f}"
        rows.append([f"{part['rows']:,}", str(part["runs"]), *map(_point, part["points"]), spent])
    return _table(head, rows)


def _point(point: dict[str, Any]) -> str:
    return f"{point['mean'][0]:.4f}{_mark(point)} / {point['independent'][0]:.4f}"


def _mark(point: dict[str, Any]) -> str:
    return "".join({"singles": "¹", "pairs": "²", "triples": "³"}[reason] for reason in point["measured"])


def of_large(found: dict[str, Any]) -> str:
    """A million rows: cost and error."""
    part = found["large"]
    head = ("rows", "columns", "CPU s", "peak memory, MB", "two-way", "resampled, two-way")
    cells = [f"{part['rows']:,}", str(part["columns"]), _seconds(part), f"{part['peak_mb']:,}"]
    return _table(head, [[*cells, f"{part['two_way']:.4f}", f"{part['resampled']:.4f}"]])


def of_tasks(found: dict[str, Any]) -> str:
    """Areas under the curve of models trained on real and on synthetic rows."""
    names = {"income": "Adult: income above $50,000", "readmission": "diabetes-130: readmission within 30 days"}
    rows = []
    for key, name in names.items():
        label = name
        areas_of = found.get(key, {}).get("areas", {})
        for maker in sorted(areas_of, key=lambda maker: (maker not in ("ours", "real"), maker)):
            figures = areas_of[maker]
            if not figures["runs"] or not all(figures["runs"]):
                continue
            areas = [[run[model] for run in figures["runs"]] for model in MODELS]
            called = {"real": "real rows, not private", "ours": "**`table.synthesize`**"}.get(maker, maker)
            rows.append([label, called, str(len(figures["runs"])), *(f"{sum(each) / len(each):.3f}" for each in areas)])
            label = ""
    return _table(("", "trained on", "runs", *MODELS), rows)


def of_coverage(found: dict[str, Any]) -> str:
    """How often intervals from five files have the truth, each with the interval of that share."""
    parts = sorted(
        (part for name, part in found.items() if name.startswith("coverage-")),
        key=lambda part: (part["columns"], part["epsilon"]),
    )
    rows = []
    for part in parts:
        cells = [_covered(part["numbers"].get(name)) for name in COVERED]
        rows.append([str(part["columns"]), str(part["epsilon"]), str(part["runs"]), *cells])
    return _table(("columns", "ε", "runs", *COVERED.values()), rows)


def _covered(number: dict[str, Any] | None) -> str:
    if number is None:
        return ""
    low, high = number["between"]
    return f"{number['covered']:.3f} ({low:.3f} to {high:.3f}){'' if number['measured_together'] else '¹'}"


def of_persons(found: dict[str, Any]) -> str:
    """Errors of persons with stays by their number and ε, and CPU seconds of a call."""
    parts = sorted(
        (part for name, part in found.items() if name.startswith("persons-")), key=lambda part: int(part["persons"])
    )
    head = ("persons", "runs", *(f"ε = {point['epsilon']}" for point in parts[0]["points"]), "CPU s")
    rows = []
    for part in parts:
        cells = [f"{point['error']:.4f}{_mark(point)} / {point['independent']:.4f}" for point in part["points"]]
        spent = max(point["cpu_seconds"] for point in part["points"])
        rows.append([f"{part['persons']:,}", str(part["runs"]), *cells, f"{spent:.1f}"])
    return _table(head, rows)


TABLES = {
    "makers": ("adult-8-1", of_makers),
    "scores": (ACS, of_scores),
    "curve": ("curve-1000", of_curve),
    "large": ("large", of_large),
    "tasks": ("income", of_tasks),
    "coverage": ("coverage-4-1", of_coverage),
    "persons": ("persons-1000", of_persons),
    "settings": ("adult-8-1", of_settings),
}


def written(page: str) -> str:
    """The page with its tables as the result file has them."""
    found = measured()
    for name, (part, table) in TABLES.items():
        if part in found:
            page = re.sub(
                rf"(<!-- table: {name} -->\n\n).*?(\n\n<!-- end -->)",
                lambda place, table=table: place[1] + table(found) + place[2],  # type: ignore[misc]
                page,
                flags=re.DOTALL,
            )
    return page


def write(path: Path) -> None:
    """Write the tables of one page."""
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")


def picture(found: dict[str, Any]) -> Any:
    """The curve drawn: errors beside those of independent columns (dashed), and CPU seconds, by ε and rows."""
    import altair as alt

    points = [
        {
            "rows": f"{part['rows']:,}",
            "epsilon": point["epsilon"],
            "seconds": point["cpu_seconds"],
            "rows are": name,
            "error": error,
        }
        for part in curves(found)
        for point in part["points"]
        for name, error in (("synthetic", point["mean"][0]), ("of independent columns", point["independent"][0]))
    ]
    sizes = [f"{part['rows']:,}" for part in curves(found)]
    scale = alt.Scale(type="log")
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("epsilon:Q", title="ε", scale=scale, axis=alt.Axis(values=[0.1, 0.3, 1, 3, 10])),
        color=alt.Color("rows:N", title="rows", sort=sizes),
    )
    errors = base.mark_line(point=True).encode(
        y=alt.Y(
            "error:Q", title="two-way error", scale=scale, axis=alt.Axis(values=[0.001, 0.003, 0.01, 0.03, 0.1, 0.3])
        ),
        strokeDash=alt.StrokeDash(
            "rows are:N",
            title="rows are",
            sort=["synthetic", "of independent columns"],
            legend=None,
        ),
    )
    cost = (
        base.transform_filter("datum['rows are'] == 'synthetic'")
        .mark_line(point=True)
        .encode(
            y=alt.Y(
                "seconds:Q", title="CPU seconds of a call", scale=scale, axis=alt.Axis(values=[0.3, 1, 3, 10, 30, 100])
            )
        )
    )
    return alt.hconcat(errors.properties(width=300, height=240), cost.properties(width=220, height=240))


if __name__ == "__main__":
    from sfumato.reports.plots import save

    write(PAGE)
    write(HOW_TO)
    save(picture(measured()), PICTURE)
