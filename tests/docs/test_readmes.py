"""Both READMEs: their length, their links, the table beside other packages, and the Chinese of the house."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.claims.catalogue import load
from tests.docs import peers
from tests.docs.test_course import plain
from tests.docs.test_docs import DOCS, REPOSITORY, blocks
from tests.house.test_chinese import banned, misset

HEADING = re.compile(r"^#+ (.+?)(?: \{ ?#([\w-]+) ?\})?$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HOSTS = ("https://docs.opendp.org/", "https://docs.tmlt.dev/", "https://opacus.ai/", "https://flower.ai/docs/")
CITED = (*HOSTS, "https://github.com/ryan112358/private-pgm")
CHINESE_PAGES = [REPOSITORY / "README.zh-CN.md", DOCS / "validation.zh-CN.md", *sorted((DOCS / "zh").glob("*.md"))]


def anchors(page: Path) -> set[str]:
    return {
        given or re.sub(r"[^\w-]+", "-", re.sub(r"[`,]", "", words).lower())
        for words, given in HEADING.findall(page.read_text("utf-8"))
    }


@pytest.mark.parametrize("language", peers.READMES)
def test_a_readme_is_short_and_says_what_it_is_about_first(language: str) -> None:
    lines = peers.READMES[language].read_text("utf-8").splitlines()
    assert len(lines) <= 250
    assert "differential privacy" in lines[2]


@pytest.mark.parametrize("language", peers.READMES)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(language: str) -> None:
    for link in LINK.findall(peers.READMES[language].read_text("utf-8")):
        if link.startswith("https://"):
            assert link.startswith(CITED), link
            continue
        name, _, anchor = link.partition("#")
        page = REPOSITORY / name
        assert page.is_file(), link
        assert not anchor or anchor in anchors(page), link


@pytest.mark.parametrize("language", peers.READMES)
def test_the_table_beside_other_packages_is_that_of_the_results(language: str) -> None:
    text = peers.READMES[language].read_text("utf-8")
    assert text == peers.page(language), "run .venv/bin/python -m tests.docs.peers"


@pytest.mark.parametrize("language", peers.READMES)
def test_every_cell_of_it_is_links_and_every_claim_that_it_names_is_tested(language: str) -> None:
    rows = [line.strip("| ").split(" | ") for line in peers.table(language).splitlines()[2:]]
    assert [row[0] for row in rows] == [f"**{name}**" for name in peers.ROWS]
    assert {"OpenDP", "Tumult Analytics", "Opacus", "Flower"} < set(peers.ROWS)
    for cell in (cell for row in rows for cell in row[1:]):
        assert re.fullmatch(r"(\[[^\]]+\]\([^)\s]+\)(; |；)?)+", cell), cell
    named = re.findall(r"[（(](\w\d?-\d\d)[)）]", peers.table(language))
    held = dict(re.findall(r"^\| (\w\d?-\d\d) \|.*\| (\w+) \|$", (DOCS / "claims.md").read_text("utf-8"), re.MULTILINE))
    assert len(named) >= 6
    assert [number for number in named if number not in load().claims or held[number] == "open"] == []


def test_both_have_the_same_code_but_for_comments() -> None:
    def code(language: str) -> list[list[str]]:
        found = [block for block in blocks(peers.READMES[language]) if block.language in ("python", "console")]
        return [[line.partition("  #")[0].rstrip() for line in block.body.splitlines()] for block in found]

    english, chinese = code("en"), code("zh")
    assert len(english) == len(chinese)
    for one, other in zip(english, chinese, strict=True):
        for line, said in zip(one, other, strict=True):
            assert re.sub(r" --lang zh|\.explain\(\"zh\"\)|\.explain\(\)", "", said).split("--reason")[0].partition(
                "     #"
            )[0].rstrip() == (re.sub(r"\.explain\(\)", "", line).split("--reason")[0].partition("     #")[0].rstrip())


def test_the_extras_that_they_name_are_declared() -> None:
    extras = set(tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])
    for page in peers.READMES.values():
        text = page.read_text("utf-8")
        named = set(re.findall(r"sfumato\[(\w+)\]", text)) | set(
            re.findall(r"`(graphs|studies|learning|server|postgres|spark|files)`", text)
        )
        assert len(named) >= 8
        assert named <= extras


@pytest.mark.parametrize("page", CHINESE_PAGES, ids=lambda page: page.name)
def test_chinese_pages_are_in_the_chinese_of_the_house(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|<!--.*?-->|<a id=.*?</a>", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert list(banned(text)) == []
    cells = [cell for line in text.splitlines() if "**" not in line for cell in line.strip("| ").split(" | ")]
    wrong = {cell: found for cell in cells if (found := list(misset(plain(cell.lstrip("!")))))}
    assert {cell for cell in wrong if re.search(r"[\u3400-\u9fff]", cell)} == set()


@pytest.mark.parametrize(
    ("name", "english"), [("analyst", "tutorial/first-release.md"), ("steward", "tutorial/steward.md")]
)
def test_chinese_tutorials_have_the_code_that_runs_in_english(name: str, english: str) -> None:
    pages = (DOCS / "zh" / f"{name}.md", DOCS / english)
    code = [[(block.language, block.body) for block in blocks(page)] for page in pages]
    assert code[0] == code[1]
