"""The course: its files are those that its chapters make, its notebooks run, and its checks accept nothing wrong."""

import json
import re
from pathlib import Path

import pytest

from examples.course.chapter import CHAPTERS, LANGUAGES, Chapter, read
from examples.course.notebooks import made
from examples.course.running import cells, run
from sfumato.errors import InvalidInput
from tests.house.test_chinese import banned, misset

COURSE = Path(__file__).parents[2] / "docs" / "course"


def solved(name: str, language: str = "en") -> Path:
    return COURSE / language / f"{name}-solved.ipynb"


def needs(name: str) -> None:
    if name == "learning":
        pytest.importorskip("torch", reason="this chapter needs the learning extra")


@pytest.mark.claim("S4-20")
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_solved_notebook_runs_from_its_first_cell_to_its_last(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its checks hold what is released beside the truth: noise that is 30% too small fails (α: the bands are 6.5 wide).

    The bands are for 2,400 Laplace errors, 960 and 2,000 Gaussian ones, and the spread of 2,000 weights.
    """
    needs(name)
    run(solved(name))
    assert len(capsys.readouterr().out.splitlines()) >= len(read(name).tasks)


WRONG = [
    pytest.param(name, task.name, answer, id=f"{name}, {task.name}: {why}", marks=marks)
    for name in CHAPTERS
    for task in read(name).tasks
    for why, answer in (("not begun", task.start), *task.wrong)
    # All that comes before a task runs too: the first tasks of the chapters cost little, the others are long.
    for marks in ([] if task in read(name).tasks[:2] and name != "learning" else [pytest.mark.long],)
]


@pytest.mark.few(5)
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize(("name", "task", "answer"), WRONG)
def test_a_wrong_answer_does_not_pass_the_check(name: str, task: str, answer: str) -> None:
    """The smallest fault is the answer itself; all that is drawn before it passes as in the solved notebook."""
    needs(name)
    given = next(each for each in read(name).tasks if each.name == task)
    with pytest.raises(AssertionError) as refused:
        run(solved(name), instead={given.solution: answer}, until=given.check)
    assert str(refused.value), "a check says what is missing"


def test_the_files_are_those_that_the_chapters_make() -> None:
    kept = {str(path.relative_to(COURSE)): path.read_text("utf-8") for path in COURSE.glob("*/*") if path.is_file()}
    assert kept == dict(made()), "run .venv/bin/python -m examples.course"


@pytest.mark.parametrize("name", CHAPTERS)
def test_notebooks_are_of_the_format_and_both_languages_have_the_same_code(name: str) -> None:
    for kind in ("", "-solved"):
        code = [cells(COURSE / language / f"{name}{kind}.ipynb") for language in LANGUAGES]
        assert code[0] == code[1]
        whole = json.loads((COURSE / "zh" / f"{name}{kind}.ipynb").read_text("utf-8"))
        assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
        assert len({cell["id"] for cell in whole["cells"]}) == len(whole["cells"])
        assert not [cell for cell in whole["cells"] if cell.get("outputs")]


def test_solutions_and_mistakes_stand_in_no_notebook_with_tasks() -> None:
    for name in CHAPTERS:
        given = "\n".join(code for _, code in cells(COURSE / "en" / f"{name}.ipynb"))
        shown = (COURSE / "en" / f"{name}.md").read_text("utf-8") + solved(name).read_text("utf-8")
        for task in read(name).tasks:
            assert task.solution not in given
            assert not [why for why, wrong in task.wrong if f"\n{wrong}\n" in f"\n{shown}\n{given}\n"]


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_chinese_is_that_of_the_house(name: str) -> None:
    for words in passages(read(name)):
        assert not list(banned(words))
        prose = [line for line in words.splitlines() if line]
        assert not [line for line in prose if list(misset(plain(line)))], words


def passages(chapter: Chapter) -> list[str]:
    return [part.zh for part in chapter.parts if hasattr(part, "zh")]


def plain(line: str) -> str:
    """A line without the marks of Markdown, addresses, code and formulas."""
    line = re.sub(r"\]\([^)]*\)", "", line).replace("[", "").replace("。** ", "。").replace("*", "")
    line = re.sub(r"^(#+ \d*\.? ?|- )", "", line).replace("δ(ε)", "δ")
    return re.sub(r"`[^`]*`", "n", line) if "Φ" not in line and "√" not in line else "n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("%% en\nWords\n%% code\n1\n", "needs '%% zh'"),
        ("%% task a\n...\n%% solution\n1\n%% check\n1\n", "no wrong answer"),
        ("%% task a\n...\n%% solution\n1\n%% wrong b\n2\n", "needs '%% check'"),
        ("%% words\n", "none can stand"),
    ],
)
def test_a_chapter_with_a_part_missing_is_refused(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "new.chapter").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=word):
        read("new", tmp_path)
