"""An analyst in a real browser, with JavaScript and without: a survival study, and a synthetic file with its page."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests import parts

parts.package("fastapi")
parts.package("uvicorn")

from tests.browser.test_asking_in_a_browser import PHONE, WIDE, listening, visiting  # noqa: E402 - after what may be missing
from tests.server.asked_services import CANARY  # noqa: E402
from tests.server.trial_services import declare  # noqa: E402


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    with listening(tmp_path_factory.mktemp("browsed") / "service") as found:
        declare(SimpleNamespace(service=found[0]))  # type: ignore[arg-type]  # all that it takes
        yield found


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.long)], ids=["script", "no script"])
def test_a_survival_study_from_its_form_to_its_picture(chromium: Any, served: tuple[Any, str], script: bool) -> None:
    with visiting(chromium, served, script=script, width=WIDE if script else PHONE) as (page, complaints):
        page.goto(f"{served[1]}/ask/trial")
        page.get_by_role("link", name="Survival").click()
        page.get_by_label("Column with the time").select_option("week")
        page.get_by_role("group", name="The event happened where").get_by_label("Column").select_option("relapsed")
        page.get_by_label("Compare the groups of").select_option("arm")
        page.get_by_label("for as little as makes noise small").check()
        page.get_by_label("Rows that you expect in each group").fill("600" if script else "700")
        if not script:
            page.get_by_role("button", name="Show error and price").click()
        offer = page.locator("#offer")
        offer.get_by_text("You can ask this").wait_for()
        assert "number at risk has a noise" in offer.inner_text()
        offer.get_by_role("button", name="Ask for ε").click()
        page.get_by_text("Ready at").wait_for()
        page.get_by_role("heading", name="Log-rank test").wait_for()  # the page comes back by itself at the deadline
        assert page.get_by_role("heading", name="Hazard ratio").count() == 1
        picture = page.locator("figure.answer img")
        picture.scroll_into_view_if_needed()
        if script:
            assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
        assert page.get_by_text("table.survival('week', 'relapsed', by='arm')").count() == 1
        with page.expect_download() as file:
            page.get_by_role("link", name="CSV").click()
        assert file.value.path().read_text("utf-8-sig").startswith('"arm"')
        assert CANARY not in page.content()
        assert complaints == []


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.long)], ids=["script", "no script"])
def test_a_synthetic_file_from_its_form_to_its_quality_page(
    chromium: Any, served: tuple[Any, str], script: bool
) -> None:
    with visiting(chromium, served, script=script) as (page, complaints):
        page.goto(f"{served[1]}/ask/trial/as/synthetic")
        for column in ("arm", "relapsed"):
            page.get_by_role("checkbox", name=column).check()
        page.get_by_label("Rows in the file").fill("200" if script else "100")
        page.get_by_role("textbox", name="Price ε").fill("0.3")
        if not script:
            page.get_by_role("button", name="Show error and price").click()
        offer = page.locator("#offer")
        offer.get_by_text("You can ask this" if script else "Price", exact=True).first.wait_for()
        assert "tables of two columns" in offer.inner_text()
        offer.locator("button[type=submit]").first.click()
        page.get_by_text("Ready at").wait_for()
        page.get_by_role("heading", name="Quality").wait_for()  # it comes back by itself until the rows are made
        assert page.get_by_text(f"of {200 if script else 100} rows").count() == 1
        assert page.locator("figure.quality svg").count() >= 1
        with page.expect_download() as file:
            page.get_by_role("link", name="CSV").click()
        assert len(file.value.path().read_text("utf-8").splitlines()) == (201 if script else 101)
        assert complaints == []
