"""The process that makes synthetic rows of a release and writes their files: it is given no data and no key.

What it reads on its standard input is a stored certificate and public declarations; the files follow from them alone.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any  # what JSON holds

from sfumato.core.budget import Budget
from sfumato.core.description import Word
from sfumato.core.document_page import DocumentPage
from sfumato.reports.document import DrawnFigure, WrittenGrid, WrittenSection, written_section
from sfumato.reports.stored import stored_release
from sfumato.reports.words.rendering import render as say
from sfumato.server.asking.offers import schema_table
from sfumato.server.works.answers import check_same
from sfumato.server.works.kinds import remembered
from sfumato.server.works.synthetic_form import SyntheticForm
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from sfumato.synthesis.result import SyntheticTable

__all__ = ["PAGE", "made_rows", "main", "write_files"]

PAGE = "page.json"
LANGUAGES = ("en", "zh")
MOST_SHOWN = 12


def made_rows(task: dict[str, Any]) -> "SyntheticTable":
    """The rows of a release; the same each time."""
    release, schema = stored_release(task["certificate"]), Schema.from_toml(task["schema"])
    form = remembered(task["form"])
    assert isinstance(form, SyntheticForm)  # noqa: S101 - no other is made here
    spend = Budget.asked(epsilon=task["epsilon"], delta=task["delta"])
    asked = form.synthesis(schema_table(schema, release.statement.unit), schema)
    check_same(asked.question(epsilon=spend.epsilon, delta=spend.delta).query, release)
    return asked.made(release, asked.plan(epsilon=spend.epsilon, delta=spend.delta).reason)


def write_files(made: "SyntheticTable", folder: Path) -> None:
    """Write all files of the rows into a new folder, and the quality page as a page of the service shows it."""
    from sfumato.synthesis.quality_page import quality_page

    made.write(folder)
    made.to_csv(folder / "rows.csv")
    page = quality_page(made)
    shown = {language: _written(page, made, language) for language in LANGUAGES}
    (folder / PAGE).write_text(json.dumps(shown, ensure_ascii=False), encoding="utf-8")


def main() -> None:
    """Make the rows of the task on the standard input."""
    task = json.loads(sys.stdin.read())
    write_files(made_rows(task), Path(task["folder"]))


def _written(page: DocumentPage, made: "SyntheticTable", language: str) -> dict[str, Any]:
    def text(word: Word) -> str:
        return say(word, language)

    head = made.rows.slice(0, MOST_SHOWN)
    return {
        "lead": [text(words) for words in page.lead],
        "cards": [[text(figure), text(words)] for figure, words in page.glance],
        "sections": [_section(written_section(each, language)) for each in page.sections],
        "explained": made.explain(language).split("\n\n"),
        "columns": made.rows.column_names,
        "rows": [["" if cell is None else str(cell) for cell in row.values()] for row in head.to_pylist()],
        "number": made.rows.num_rows,
    }


def _section(section: WrittenSection) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for _, block in section.blocks:
        match block:
            case WrittenGrid():
                rows = [[text for text, _ in row] for row in block.rows]
                blocks.append({"is": "grid", "heads": block.heads, "rows": rows, "folded": block.folded})
            case DrawnFigure():
                panels = [[title, str(svg)] for title, svg in block.panels]
                said = {"title": block.title, "label": block.label, "lines": block.lines, "shape": block.shape}
                blocks.append({"is": "figure", "panels": panels, **said})
            case _:
                blocks.append({"is": "text", "text": block})
    return {"name": section.name, "heading": section.heading, "blocks": blocks}


if __name__ == "__main__":
    main()
