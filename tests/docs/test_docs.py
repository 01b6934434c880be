"""Documentation as tests: its code runs, its paths exist, nothing public is left out, and the site builds."""

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import sfumato
from sfumato import errors
from sfumato.cli.app import app
from sfumato.core.statement import Account, Statement
from sfumato.demo.network import REGIONS
from sfumato.tables import QUERIES
from tests.docs.pictures import COUNTS_BY_REGION, counts_by_region
from tests.parts import boxes

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
TOP = tuple(
    REPOSITORY / name for name in ("README.md", "README.zh-CN.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
)
PAGES = (*TOP, *sorted(DOCS.rglob("*.md")))
FENCE = re.compile(r"^```(?P<language>\w+)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SOURCE_PATH = re.compile(r"`((?:src|tests|docs|claims|benchmarks|scripts|examples)/[\w./-]+\.\w+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block, and the line that it starts on."""

    line: int
    language: str
    body: str


def named(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path, language: str | None = None) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(line=text.count("\n", 0, found.start("body")) + 1, language=found["language"], body=found["body"])
        for found in FENCE.finditer(text)
        if language in (None, found["language"])
    ]


def commands() -> Iterator[str]:
    """The lines of all console blocks that start with a prompt, without it."""
    for page in PAGES:
        for block in blocks(page, "console"):
            for line in block.body.splitlines():
                if line.startswith("$ "):
                    yield line.removeprefix("$ ").partition("  #")[0].strip()


PROGRAM = get_command(app)


def leaves(command: typer.core.TyperCommand | typer.core.TyperGroup, path: str) -> Iterator[tuple[str, set[str]]]:
    """Every command with its words, and the long names of the options that it shows."""
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from leaves(child, f"{path} {name}")
    if getattr(command, "invoke_without_command", not children):  # a group may be a command itself
        shown = [each for each in command.params if not getattr(each, "hidden", False)]  # old names are hidden
        yield path, {option for each in shown for option in each.opts if option.startswith("--")} - {"--help"}


COMMANDS = dict(leaves(PROGRAM, "sfumato"))


SLOW = {  # chains of draws, models that are trained, many pictures, and tutorials that tests of their own run too
    *("docs/how-to/ergm.md", "docs/how-to/paradigms.md", "docs/how-to/train-a-model.md"),
    *("docs/how-to/plots-and-reports.md", "docs/how-to/streams.md", "docs/explanation/streams.md"),
    "docs/how-to/act-on-a-stream.md",
    *("docs/tutorial/training.md", "docs/tutorial/protein-network.md", "docs/tutorial/ward-contacts.md"),
    *("docs/tutorial/meters-and-messages.md", "docs/tutorial/office-and-city.md", "docs/tutorial/readmissions.md"),
    *("docs/how-to/several-tables.md", "docs/how-to/plans.md", "docs/how-to/compute-with-releases.md"),
    *("docs/how-to/engines.md", "docs/how-to/private-key-discovery.md", "docs/how-to/synthetic-graph.md"),
    "docs/explanation/anonymisation.md",
    *("README.zh-CN.md", "docs/zh/analyst.md"),  # their code is that of the English pages, by a test
    "docs/gallery.md",
    *("docs/explanation/semantics-of-predicates.md", "docs/reference/learning.md", "docs/reference/streams.md"),
    *(
        "docs/how-to/from-opacus.md",
        "docs/how-to/quantiles.md",
        "docs/how-to/local-model.md",
        "docs/how-to/across-hospitals.md",
        "docs/how-to/train-across-hospitals.md",
        "docs/tutorial/biostatistics.md",
        "docs/how-to/run-code-on-blocks.md",
    ),
}
COURSE = DOCS / "course"  # its notebooks, with the same code, run in test_course.py
BOXED = {"docs/how-to/run-code-on-blocks.md"}
WITH_CODE = [
    pytest.param(page, marks=[pytest.mark.long] if named(page) in SLOW or page.parent.parent == COURSE else [])
    for page in PAGES
    if blocks(page, "python")
]


@pytest.mark.parametrize("page", WITH_CODE, ids=named)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of one page share a namespace and an empty folder; a hidden one may stand in an HTML comment.

    A text block right after a Python block is what that block prints, unless it is cut short with a line "...".
    """
    if named(page) in BOXED:
        boxes()
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    printed = None
    for block in blocks(page):
        if block.language == "text" and printed is not None and "\n...\n" not in block.body:
            assert block.body == printed, f"{page.name}, line {block.line}"
        printed = None
        if block.language == "python":
            # Empty lines in front make a traceback show the line of the page.
            code = compile("\n" * (block.line - 1) + block.body, str(page), "exec", dont_inherit=True)
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, names)  # noqa: S102 - the documentation is ours
            printed = output.getvalue()


def test_enough_pages_have_code() -> None:
    assert sum(bool(blocks(page, "python")) for page in PAGES) >= 8


def test_the_readme_shows_both_commands() -> None:
    assert {"make run", "make test"} <= set(commands())


def test_every_command_shown_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    shown = list(commands())
    assert shown
    for line in shown:
        words = line.split()
        match words[0]:
            case "make":
                assert set(words[1:]) <= targets, line
            case "sfumato":
                known = [name for name in COMMANDS if f"{line} ".startswith(f"{name} ")]
                assert known, f"{line}: there is no such command"
                options = {word for word in words if word.startswith("--")}
                assert options <= COMMANDS[max(known, key=len)], line
            case "pip":
                assert words[1] == "install", line  # the extras that are named: test_readmes.py
            case "mkdir":
                assert len(words) > 1, line
            case "cd":
                assert len(words) == 2, line
            case "cp":
                assert len(words) == 3, line
                assert not words[1].endswith(".key"), f"{line}: keys are never carried"
            case ".venv/bin/python":
                module = words[words.index("-m") + 1]
                place = REPOSITORY / module.replace(".", "/")
                assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), line
            case _:
                pytest.fail(f"{line}: nothing checks such a command")


def test_every_target_of_the_contributors_table_exists() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    shown = re.findall(r"^\| `make ([\w-]+)` \|", (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    assert {"run", "test", "test-all", "lint", "docs", "claims", "bench", "bench-smoke"} <= set(shown)
    for target in shown:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_described(command: str) -> None:
    text = (DOCS / "reference" / "commands.md").read_text("utf-8")
    assert f"## {command.removeprefix('sfumato ')}\n" in text
    assert not [option for option in COMMANDS[command] if f"`{option}" not in text]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    wrong = [path for path in SOURCE_PATH.findall(page.read_text("utf-8")) if not (REPOSITORY / path).exists()]
    assert wrong == []


def test_the_spine_names_its_files() -> None:
    assert len(set(SOURCE_PATH.findall((DOCS / "explanation" / "spine.md").read_text("utf-8")))) >= 20


@pytest.mark.parametrize("page", TOP, ids=named)
def test_every_link_of_a_top_page_leads_to_a_file(page: Path) -> None:
    # mkdocs checks the links inside docs/; these pages lie outside.
    links = [link.partition("#")[0] for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in links if link and not (REPOSITORY / link).exists()] == []


def test_every_public_name_stands_in_the_reference() -> None:
    text = "\n".join(page.read_text("utf-8") for page in sorted((DOCS / "reference").glob("*.md")))
    assert [name for name in dir(sfumato) if not re.search(rf"`sf\.{name}\b", text)] == []


def test_every_field_of_a_certificate_and_of_a_query_of_tables_is_described() -> None:
    text = (DOCS / "reference" / "certificates.md").read_text("utf-8")
    asked = [query for query in QUERIES if query.KIND.startswith("query.") or query.KIND in ("keys", "join")]
    named = {field.name for said in (Statement, Account, *asked) for field in fields(said)}
    named |= {query.KIND for query in asked if query.KIND.startswith("query.")}
    assert len(asked) > 6
    assert [name for name in sorted(named) if f"`{name}`" not in text] == []


def test_every_error_stands_in_the_reference() -> None:
    text = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert [name for name in errors.__all__ if f"`{name}`" not in text] == []


def test_every_module_that_a_docstring_sends_to_a_proof_has_one() -> None:
    named_proofs = {
        proof
        for path in (REPOSITORY / "src").rglob("*.py")
        for proof in re.findall(r"docs/proofs/\w+\.md", path.read_text("utf-8"))
    }
    assert named_proofs
    assert [proof for proof in sorted(named_proofs) if not (REPOSITORY / proof).is_file()] == []


def test_nothing_promises_too_much() -> None:
    """Words that a privacy text must not use of itself."""
    forbidden = re.compile(
        r"\b(compliant|perfectly safe|completely anonymous|anonymi[sz]ed|zero risk)\b", re.IGNORECASE
    )
    found = [f"{named(page)}: {word}" for page in PAGES for word in forbidden.findall(page.read_text("utf-8"))]
    assert found == []


@pytest.mark.long
def test_the_picture_shows_what_the_code_draws() -> None:
    pytest.importorskip("altair", reason="plots need their extra")
    kept = COUNTS_BY_REGION.read_text("utf-8")
    assert [region for region in REGIONS if f">{region}<" not in kept] == []
    drawn = counts_by_region().to_dict()
    rows = drawn["data"]["values"] if "values" in drawn.get("data", {}) else drawn["layer"][0]["data"]["values"]
    assert [row["group"] for row in rows] == list(REGIONS)
