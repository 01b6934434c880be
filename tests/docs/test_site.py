"""The site: its menus, what it makes of pages, what the search finds, and that it asks for nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import parts
from tests.docs.test_docs import DOCS, REPOSITORY

CONFIG = REPOSITORY / "mkdocs.yml"
NAV = re.compile(r"^ +- (?:.+: )?(\S+\.md)$", re.MULTILINE)
BESIDE = ("proofs/", "decisions/", "claims.md")
PEOPLE = ("analyst", "statistician", "steward", "engineer", "auditor", "researcher")
OUTSIDE = re.compile(r"""<(?:link|script|img|iframe)\b[^>]*\b(?:src|href)=["'](?:https?:)?//(?!keepachangelog)""")
TALLEST = 6000


def nav() -> list[str]:
    return NAV.findall(CONFIG.read_text("utf-8").partition("\nnav:\n")[2])


def hooks() -> Any:
    """The module that mkdocs calls while it builds."""
    pytest.importorskip("mkdocs", reason="the site needs the docs extra")
    import importlib.util

    found = importlib.util.spec_from_file_location("site_pages", DOCS / "_build" / "pages.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_page_is_in_the_menus_once_but_proofs_decisions_and_claims() -> None:
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert sorted(nav()) == sorted(page for page in pages if not page.startswith(BESIDE))


def test_everyone_has_a_page_with_a_first_hour_and_the_start_names_all() -> None:
    start = (DOCS / "index.md").read_text("utf-8")
    for who in PEOPLE:
        text = (DOCS / "people" / f"{who}.md").read_text("utf-8")
        assert f"(people/{who}.md)" in start
        first = text.partition("**The first hour**")[2].partition("**Then")[0]
        assert len(re.findall(r"^\d\. ", first, re.MULTILINE)) == 3
        assert re.search(r"differential privacy", text, re.IGNORECASE)


def test_what_is_not_in_the_menus_is_linked_from_the_report() -> None:
    linked = set(re.findall(r"\]\((proofs/[\w-]+\.md)\)", (DOCS / "validation.md").read_text("utf-8")))
    assert linked == {str(path.relative_to(DOCS)) for path in (DOCS / "proofs").glob("*.md")}
    listed = (DOCS / "decisions" / "index.md").read_text("utf-8")
    assert [path.name for path in (DOCS / "decisions").glob("0*.md") if f"({path.name})" not in listed] == []


def test_claims_are_shown_by_area_and_none_is_lost() -> None:
    pages = hooks().split((DOCS / "claims.md").read_text("utf-8"))
    number = re.compile(r"^\| (\w\d?-\d\d) \|", re.MULTILINE)
    whole = number.findall((DOCS / "claims.md").read_text("utf-8"))
    assert [each for text in pages.values() for each in number.findall(text)] == whole
    assert all(f"({name})" in pages["claims.md"] for name in pages if name != "claims.md")
    assert sum(text.count("<details>") for text in pages.values()) == len(whole)


def test_sections_are_folded_whole_and_pages_that_are_folded_exist() -> None:
    module = hooks()
    page = '<article><h2 id="a">A</h2><p>1</p><h2 id="b">B</h2><p>2</p></article>'
    assert module.folded(page, 2) == page
    once = module.folded(page, 1)
    assert '<details class="fold"><summary><h2 id="b">B</h2></summary><p>2</p></details></article>' in once
    assert once.startswith('<article><h2 id="a">A</h2><p>1</p>')
    for name, stay_open in module.FOLDED.items():
        assert (DOCS / name).read_text("utf-8").count("\n## ") >= stay_open, name


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocstrings", reason="the site needs the docs extra")
    place = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)],
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stdout + built.stderr == "", "a warning"
    return place


@pytest.mark.long  # make docs builds it as strictly
def test_the_site_builds_and_no_page_loads_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) >= len(list(DOCS.rglob("*.md")))
    assert [page.name for page in pages if OUTSIDE.search(page.read_text("utf-8"))] == [], "a page loads from outside"
    styles = "\n".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", styles)


@pytest.mark.long
def test_chinese_pages_say_that_they_are(site: Path) -> None:
    for name in ("zh/index.html", "course/zh/health.html", "validation.zh-CN.html"):
        assert '<html lang="zh-Hans"' in (site / name).read_text("utf-8"), name
    assert '<html lang="en"' in (site / "index.html").read_text("utf-8")


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("excel", "people/analyst.html"),
        ("jupyter", "people/analyst.html"),
        ("confidence interval", "people/statistician.html"),
        ("DataLoader", "how-to/from-opacus.html"),
    ],
)
def test_the_search_finds_what_people_look_for(site: Path, words: str, page: str) -> None:
    """In the index that the search of the site reads; what is ranked lower is neither proof nor decision nor claim."""
    entries = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    said = [entry for entry in entries if words.lower() in f"{entry['title']} {entry['text']}".lower()]
    assert page in {entry["location"].partition("#")[0] for entry in said}
    beside = [entry for entry in entries if entry["location"].startswith(("proofs/", "decisions/", "claims"))]
    assert beside
    assert all(entry.get("boost", 1) < 1 for entry in beside)


@pytest.mark.long
def test_no_page_but_the_reference_is_taller_than_a_reader_scrolls(site: Path) -> None:
    parts.package("playwright")
    program, tall = parts.browser(), {}
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(program), chromium_sandbox=False)
        shown = chromium.new_page(viewport={"width": 1440, "height": 900}, java_script_enabled=False)
        for path in sorted(site.rglob("*.html")):
            name = str(path.relative_to(site))
            if not name.startswith(("reference/", "404")):
                shown.goto(path.as_uri())
                if (found := int(shown.evaluate("document.documentElement.scrollHeight"))) > TALLEST:
                    tall[name] = found
        chromium.close()
    assert tall == {}
