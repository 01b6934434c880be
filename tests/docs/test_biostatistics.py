"""The tutorial for biostatisticians against the exact figures, which can be had because the table is public."""

import re
from typing import Any

import pytest

from tests.docs.biostatistics import PAGE, PICTURES, run
from tests.parts import dataset, package

SURE = "99999999/100000000"  # a figure fails once in 10^8 runs
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    dataset("diabetes-130-us-hospitals/diabetic_data.parquet")
    return run(PAGE)


@pytest.fixture(scope="module")
def first_stays() -> Any:
    package("pandas")
    import pandas as pd

    stays = pd.read_parquet(dataset("diabetes-130-us-hospitals/diabetic_data.parquet"))
    return stays.sort_values("encounter_id").groupby("patient_nbr", as_index=False).first()


@pytest.mark.alpha(4e-8)
def test_the_rates_are_those_of_first_stays(page: dict[str, Any], first_stays: Any) -> None:
    column = page["rates"]["readmitted"]
    exact = (first_stays["readmitted"] == "<30").groupby(first_stays["insulin"]).mean()
    ends = zip(page["table"]["insulin"], column.interval(SURE, of="data"), strict=True)
    assert [(group, ends) for group, ends in ends if not ends[0] <= exact[group] <= ends[1]] == []


def test_the_interval_of_a_population_is_the_wider_one(page: dict[str, Any]) -> None:
    table = page["table"]
    wide = table["readmitted_population_high"] - table["readmitted_population_low"]
    narrow = table["readmitted_data_high"] - table["readmitted_data_low"]
    assert (wide > 3 * narrow).all(), "the page says many times"


@pytest.mark.alpha(1e-7)
def test_the_studies_hold_the_exact_figures(page: dict[str, Any], first_stays: Any) -> None:
    back = (first_stays["readmitted"] == "<30").groupby(first_stays["diabetesMed"]).mean()
    low, high = page["compared"].interval(SURE)
    assert low <= back["No"] - back["Yes"] <= high


def test_the_pictures_are_what_the_page_draws(page: dict[str, Any]) -> None:
    for name in ("altair", "vl_convert"):
        package(name)
    from sfumato.reports.plots.saving import svg

    def words(drawing: str) -> set[str]:
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
        return {text for text in texts if not re.fullmatch(r"[\d.,∞() −-]+", text)}

    for name, path in PICTURES.items():
        assert words(path.read_text("utf-8")) == words(svg(page[name].plot())), name
