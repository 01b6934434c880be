"""What is made of a chapter: a notebook with tasks, one with solutions, and a page, in each language."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from examples.course.chapter import CHAPTERS, LANGUAGES, Chapter, Code, Task, Words, read

__all__ = ["made", "notebook", "page", "write"]

NOTES = {
    "en": "*This notebook: [tasks]({name}.ipynb) · [solutions]({name}-solved.ipynb) · [as a page]({name}.html).*",
    "zh": "*本章：[练习]({name}.ipynb) · [解答]({name}-solved.ipynb) · [网页]({name}.html)。*",
}
HEADS = {
    "en": "[Notebook with tasks]({name}.ipynb) · [notebook with solutions]({name}-solved.ipynb) · "
    "[中文](../zh/{name}.md) · [all chapters](../index.md)",
    "zh": "[练习笔记本]({name}.ipynb) · [解答笔记本]({name}-solved.ipynb) · "
    "[English](../en/{name}.md) · [全部章节](../index.md)",
}
SOLUTION = {"en": "A solution", "zh": "参考解答"}
CHECK = {"en": "The check", "zh": "检验"}


def made() -> Iterator[tuple[str, str]]:
    """Every file that is made, by its path below ``docs/course``."""
    for name in CHAPTERS:
        chapter = read(name)
        for language in LANGUAGES:
            yield f"{language}/{name}.ipynb", notebook(chapter, language, solved=False)
            yield f"{language}/{name}-solved.ipynb", notebook(chapter, language, solved=True)
            yield f"{language}/{name}.md", page(chapter, language)


def notebook(chapter: Chapter, language: str, *, solved: bool) -> str:
    """A notebook as JSON of nbformat 4.5, without outputs; ``solved`` puts the solutions where the tasks stand.

    >>> json.loads(notebook(read("gaussian"), "en", solved=True))["nbformat"]
    4
    """
    cells: list[dict[str, Any]] = []
    for part in chapter.parts:
        match part:
            case Words():
                words = getattr(part, language)
                if not cells:
                    words += "\n\n" + NOTES[language].format(name=chapter.name)
                cells.append({"cell_type": "markdown", "metadata": {}, "source": _lines(words)})
            case Code(body=body):
                cells.append(_code(body))
            case Task():
                cells.append(_code(part.solution, "solution") if solved else _code(part.start, "task"))
                cells.append(_code(part.check, "check"))
    numbered = [{"id": f"{chapter.name}-{place}", **cell} for place, cell in enumerate(cells, 1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def page(chapter: Chapter, language: str) -> str:
    """The chapter as a page in Markdown, with each solution folded."""
    blocks = [f"<!-- Made by: .venv/bin/python -m examples.course, from examples/course/{chapter.name}.chapter -->"]
    for part in chapter.parts:
        match part:
            case Words():
                title, _, rest = getattr(part, language).partition("\n")
                head = HEADS[language].format(name=chapter.name)
                rest = re.sub(r"\((\w+)\.ipynb\)", r"(\1.md)", rest).replace(".html)", ".md)")
                blocks.append(f"{title}\n\n{head}\n{rest}" if len(blocks) == 1 else f"{title}\n{rest}".rstrip())
            case Code(body=body):
                blocks.append(_fenced(body))
            case Task():
                blocks += [
                    _fenced(part.start),
                    f'<details markdown="1">\n<summary>{SOLUTION[language]}</summary>',
                    _fenced(part.solution),
                    f"</details>\n\n{CHECK[language]}{'：' if language == 'zh' else ':'}",
                    _fenced(part.check),
                ]
    return "\n\n".join(blocks) + "\n"


def write(folder: Path) -> None:
    """Write all of them below a folder."""
    for name, text in made():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _code(body: str, tag: str | None = None) -> dict[str, Any]:
    metadata = {"tags": [tag]} if tag else {}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": [],
        "source": _lines(body),
    }


def _fenced(body: str) -> str:
    return f"```python\n{body}\n```"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
