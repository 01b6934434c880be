"""Studies on public data beside lifelines, SciPy and statsmodels: no difference is more than the noise explains."""

import dataclasses
import statistics

import pytest

from scripts import compare_studies
from scripts.compare_studies import COMPARED, PAGE, START, Line
from tests.parts import dataset, package

FILES = {name: f"survival/{name}.csv.gz" for name in ("rossi", "gbsg2", "flchain", "nafld1")}
FILES["diabetes-130"] = "diabetes-130-us-hospitals/diabetic_data.parquet"
QUICK = "flchain"


def found(name: str) -> list[Line]:
    for each in ("pandas", "lifelines", "statsmodels", "formulaic"):
        package(each)
    dataset(FILES[name])
    return list(compare_studies.lines([name]))


@pytest.mark.alpha(5e-8)  # each of fewer than fifty figures fails once in 10^9 runs
@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.long) for name in COMPARED]
)
def test_no_figure_is_further_from_its_peer_than_its_noise_explains(name: str) -> None:
    lines = found(name)
    assert lines
    assert [(each.figure, each.ours, each.theirs, each.sure) for each in lines if not each.holds] == []
    assert [(each.figure, each.widths) for each in lines if not each.widths > 0.5] == []
    assert statistics.median(each.widths for each in lines) > 0.98, "noise makes intervals wider, never narrower"


def test_a_wrong_figure_is_noticed() -> None:
    line = Line(data="d", rows=9, figure="f", peer="p", ours=(1.0, 0.5, 1.5), theirs=(1.1, 0.7, 1.5), sure=(-0.5, 2.5))
    assert line.holds
    assert not dataclasses.replace(line, theirs=(2.6, 2.2, 3.0)).holds
    assert line.widths == pytest.approx(1.25)
    doubled = dataclasses.replace(line, ours=(1.0, 0.25, 4.0), theirs=(1.0, 0.5, 2.0), ratio=True)
    assert doubled.widths == pytest.approx(2)
    assert "| 1.00 (0.50, 1.50) | 1.10 (0.70, 1.50) | p | -0.1 | 1.25 |" in compare_studies.page([line])


def test_the_page_has_figures_of_all_data() -> None:
    figures = PAGE.read_text("utf-8").partition(START)[2]
    assert [name for name in COMPARED if f"| {name} |" not in figures] == []
