"""The pictures of the page on plots and reports, drawn by the code: ``python -m tests.docs.gallery``.

The photographs of the report need a browser. The numbers are those of one run: noise is new each time.
"""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.core.release import Release
from sfumato.demo.network import REGIONS, generate
from sfumato.reports import browser, plots
from sfumato.reports.plots import saving
from tests.reports.pixels import Picture, compressed

IMAGES = Path(__file__).parents[2] / "docs" / "images"


@cache
def ill() -> Release:
    """Visits for an influenza-like illness by region of the generated network, at ε = 1/2."""
    vault = sf.Vault(unit=sf.user("patient_id", relation="add/remove"), budget=sf.Budget(epsilon=2), name="network")
    with tempfile.TemporaryDirectory() as folder:
        visits = vault.table(
            generate(folder),
            name="visits",
            version="2026-10",
            limit=sf.Limit(groups=2, rows_per_group=3),
            keys={"region": REGIONS},
        )
        return visits.where(sf.col("diagnosis") == "ILI").group_by("region").count().release(epsilon=0.5)


def districts(count: int, name: str, word: str) -> Release:
    """So many districts of a made-up country, each with some cases."""
    places = [f"{word} {number:03}" for number in range(1, count + 1)]
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name=name)
    cases = [place for number, place in enumerate(places) for _ in range(40 + number * number * 37 % 211)]
    table = vault.table(pa.table({"district": cases}), name=name, version="2026", keys={"district": places})
    return table.group_by("district").count().release(epsilon="1/8")


@cache
def pressures() -> Release:
    """Four measures of made-up blood pressures by sex, from one charge."""
    rows = range(4_000)
    data = pa.table(
        {
            "sex": [("F", "M")[row % 2] for row in rows],
            "pressure": [112.0 + 6 * (row % 2) + row * 29 % 41 for row in rows],
            "age": [20 + row * 17 % 70 for row in rows],
        }
    )
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=2), name="pressures")
    table = vault.table(data, name="visits", version="2026", bounds={"pressure": (80, 220)}, keys={"sex": ["F", "M"]})
    old = sf.proportion(sf.col("age") >= 65)
    asked = table.group_by("sex").agg(n=sf.count(), mean=sf.mean("pressure"), total=sf.sum("pressure"), old=old)
    return asked.release(epsilon=1)


def charges() -> Any:
    """Three charges out of ε = 2."""
    asked = (("ILI by region", "1/2"), ("by sex and diagnosis", "1"), ("by month", "1/4"))
    return plots.burn_down([(name, sf.Budget(epsilon=cost)) for name, cost in asked], sf.Budget(epsilon=2))


DRAWN: dict[str, Callable[[], Any]] = {
    "plot-columns.svg": lambda: pressures().plot(),
    "plot-noise.svg": lambda: ill().plot("noise"),
    "plot-belief.svg": lambda: ill().plot("belief"),
    "plot-people.svg": lambda: ill().plot("people"),
    "plot-frontier.svg": lambda: ill().plot("frontier"),
    "plot-burn-down.svg": charges,
    "plot-three-groups-zh-dark.png": lambda: plots.intervals(districts(3, "病例", "地区"), "zh", "dark"),
    "plot-300-groups.png": lambda: plots.intervals(districts(300, "cases", "District"), sort="value"),
}


def photographs() -> dict[str, bytes]:
    """The report as readers see it: on a screen, and in Chinese in the dark on a phone."""
    from playwright.sync_api import sync_playwright

    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        report = ill().report(Path(folder) / "report.html")
        chromium = driver.chromium.launch(executable_path=str(browser.find()), chromium_sandbox=False)
        for name, size, scheme, part in (
            ("report-screen.png", (1000, 1000), "light", "#en"),
            ("report-phone-zh-dark.png", (390, 844), "dark", "#zh-Hans"),
        ):
            page = chromium.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(f"{report.as_uri()}{part}")
            found[name] = page.screenshot()
        chromium.close()
    return found


def main() -> None:
    """Draw everything anew."""
    IMAGES.mkdir(exist_ok=True)
    for name, draw in DRAWN.items():
        chart = draw()
        if name.endswith(".png"):
            (IMAGES / name).write_bytes(compressed(Picture.read(saving.png(chart, scale=1))))
        else:
            plots.save(chart, IMAGES / name)
    for name, data in photographs().items():
        (IMAGES / name).write_bytes(compressed(Picture.read(data)))


if __name__ == "__main__":
    main()
