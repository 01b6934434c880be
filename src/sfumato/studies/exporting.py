"""A result for other programs: HTML for notebooks, LaTeX for papers, Word, and Excel.

Texts come from data declarations of others (names of groups, columns): each writer escapes for its own format.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from sfumato.core.extras import need
from sfumato.core.rounding import OPEN
from sfumato.core.terminal import harmless_text
from sfumato.core.workbook import WorkbookSheet, write_workbook
from sfumato.errors import InvalidInput
from sfumato.studies.printing import ResultPage, TextTable, fact_line
from sfumato.studies.result_table import Cell, ResultTable

__all__ = ["html_page", "latex_page", "latex_text", "word_page", "workbook_page", "written_text"]

MOST_ROWS = 50
TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # these order the text around them
LONGEST_NAME = 31
FORBIDDEN = re.compile(r"[\[\]:*?/\\']")
WORD_FONT = "SimSun"
EXTRA = "pip install 'sfumato[studies]'"

LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "∞": r"$\infty$",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "±": r"$\pm$",
    "√": r"$\surd$",
    "²": "$^2$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "χ": r"$\chi$",
    "τ": r"$\tau$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
}


def html_page(page: ResultPage) -> str:
    """A small table for notebooks, the first 50 rows of each table; escaped, with no style of its own."""
    parts = [Markup("<p><strong>{}</strong></p>").format(_line(page.title))]
    if page.facts:
        rows = Markup("").join(
            Markup('<tr><th scope="row">{}</th><td>{}</td></tr>').format(_line(name), _line(value))
            for name, value in page.facts
        )
        parts.append(Markup("<table>{}</table>").format(rows))
    parts += [_html_table(table, page.more) for table in page.tables]
    parts += [Markup("<p>{}</p>").format(_line(line)) for line in (*page.notes, *page.protection)]
    return str(Markup("<div>{}</div>").format(Markup("").join(parts)))


def _html_table(table: TextTable, more: str) -> Markup:
    heads = Markup("").join(Markup('<th scope="col">{}</th>').format(_line(each.name)) for each in table.columns)
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup('<td style="text-align: right">{}</td>').format(_line(text))
                if column.number
                else Markup("<td>{}</td>").format(_line(text))
                for column, text in zip(table.columns, across, strict=True)
            )
        )
        for across in _rows(table)[:MOST_ROWS]
    )
    left = table.rows - MOST_ROWS
    note = Markup("<p>{}</p>").format(more.format(rows=f"{left:,}")) if left > 0 else Markup("")
    return Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(
        _line(table.name), heads, rows, note
    )


def latex_page(page: ResultPage) -> str:
    """A table of LaTeX for each table, with the rules of the package booktabs; notes stand under the last.

    Guarantee: no text starts a command, ends a group or comments out what follows.
    """
    lines = [r"% \usepackage{booktabs}"]
    for place, table in enumerate(page.tables):
        name = page.title if place == 0 else f"{page.title}: {table.name}"
        numbers = [column.number for column in table.columns]
        heads = " & ".join(latex_text(column.name) for column in table.columns)
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(name)}}}",
            rf"\begin{{tabular}}{{{''.join('r' if column.number else 'l' for column in table.columns)}}}",
            r"\toprule",
            rf"{heads} \\",
            r"\midrule",
            *(rf"{' & '.join(map(_latex_cell, across, numbers))} \\" for across in _rows(table)),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        if table is page.tables[-1]:
            words = [fact_line(page), *page.notes, *page.protection]
            lines += [
                rf"\par\smallskip\parbox{{0.9\linewidth}}{{\footnotesize {latex_text(each)}}}" for each in words if each
            ]
        lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def _latex_cell(text: str, number: bool) -> str:  # noqa: FBT001 - mapped over a row
    """A cell; the sign of a negative number is a minus."""
    return f"$-${latex_text(text[1:])}" if number and text.startswith("-") else latex_text(text)


def latex_text(text: str) -> str:
    """A text for LaTeX on one line.

    >>> latex_text("50% of A_1 & B"), latex_text("\\\\input{x}")
    ('50\\\\% of A\\\\_1 \\\\& B', '\\\\textbackslash{}input\\\\{x\\\\}')
    """
    escaped = "".join(LATEX.get(sign, sign) for sign in _line(text))
    return f"{{{escaped}}}" if escaped.startswith("[") else escaped  # after \\ a bracket would be read as a length


def written_text(text: str, path: str | Path) -> Path:
    """Write a text in UTF-8, in place of an earlier file of that name, and return the path."""
    target = Path(path)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise InvalidInput(_unwritable(target, wrong)) from None
    return target


def word_page(page: ResultPage, path: str | Path) -> Path:
    """Write the page as a document for Word (.docx): each table with a caption, facts and notes under the last."""
    target = Path(path)
    if target.suffix.lower() != ".docx":
        raise InvalidInput(f"{target.name} is no name of a document; nothing was written. Give one that ends in .docx.")
    document = need("docx", EXTRA).Document()
    small = need("docx.shared", EXTRA).Pt(9)
    right = need("docx.enum.text", EXTRA).WD_ALIGN_PARAGRAPH.RIGHT
    document.core_properties.title, document.core_properties.author = _line(page.title), ""
    normal = document.styles["Normal"]
    normal.element.get_or_add_rPr().get_or_add_rFonts().set(_qualified("w:eastAsia"), WORD_FONT)
    document.add_heading(_line(page.title), level=2)
    for number, table in enumerate(page.tables, start=1):
        name = page.title if len(page.tables) == 1 else table.name
        caption = document.add_paragraph(f"{number}. {_line(name)}", style="Caption")
        caption.paragraph_format.keep_with_next = True
        rows = [tuple(column.name for column in table.columns), *_rows(table)]
        drawn = document.add_table(rows=len(rows), cols=len(table.columns))
        for place, (line, across) in enumerate(zip(drawn.rows, rows, strict=True)):
            sides = [*(["top"] if place == 0 else []), *(["bottom"] if place in (0, len(rows) - 1) else [])]
            for cell, text, column in zip(line.cells, across, table.columns, strict=True):
                (paragraph,) = cell.paragraphs
                paragraph.paragraph_format.space_after = 0
                paragraph.add_run(_line(text)).bold = place == 0
                if column.number:
                    paragraph.alignment = right
                if sides:
                    cell._tc.get_or_add_tcPr().append(_borders(sides))
    for words in (fact_line(page), *page.notes, *page.protection):
        if words:
            document.add_paragraph().add_run(_line(words)).font.size = small
    try:
        document.save(str(target))
    except OSError as wrong:
        raise InvalidInput(_unwritable(target, wrong)) from None
    return target


def _borders(sides: Sequence[str]) -> object:
    """Lines of a cell: a table of a paper has them above, under its head and below."""
    element = need("docx.oxml", EXTRA).OxmlElement
    borders = element("w:tcBorders")
    for side in sides:
        line = element(f"w:{side}")
        for name, value in (("val", "single"), ("sz", "8"), ("space", "0"), ("color", "auto")):
            line.set(_qualified(f"w:{name}"), value)
        borders.append(line)
    return borders


def _qualified(name: str) -> str:
    found: str = need("docx.oxml.ns", EXTRA).qn(name)
    return found


def workbook_page(tables: Sequence[ResultTable], about: Mapping[str, Sequence[tuple[str, str]]], path: Path) -> Path:
    """Write every table as a sheet, its numbers unrounded, and for each name of ``about`` a sheet of words."""
    names = _distinct([*(table.name for table in tables), *about])
    sheets = [
        WorkbookSheet(
            name=name,
            head=list(table.columns),
            columns=[[_cell(cell) for cell in column] for column in table.columns.values()],
        )
        for name, table in zip(names, tables, strict=False)
    ]
    for name, rows in zip(names[len(tables) :], about.values(), strict=True):
        left, right = zip(*rows, strict=True)
        sheets.append(WorkbookSheet(name=name, columns=[left, right], wide=True))
    return write_workbook(sheets, path)


def _cell(cell: Cell) -> Cell:
    """An open end as its sign; a number that does not exist is left empty by the writer."""
    if isinstance(cell, float) and math.isinf(cell):
        return OPEN if cell > 0 else f"-{OPEN}"
    return cell


def _distinct(names: Sequence[str]) -> list[str]:
    """Names that a sheet can have, each once."""
    found: list[str] = []
    for name in names:
        short = FORBIDDEN.sub(" ", _line(name)).strip()[:LONGEST_NAME] or "table"
        shown, number = short, 1
        while shown.casefold() in {each.casefold() for each in found}:
            number += 1
            shown = f"{short[: LONGEST_NAME - len(str(number)) - 1]} {number}"
        found.append(shown)
    return found


def _rows(table: TextTable) -> list[tuple[str, ...]]:
    return list(zip(*(column.texts for column in table.columns), strict=True))


def _line(text: str) -> str:
    """A text as one line, without signs that turn the text around them."""
    return " ".join(harmless_text(" ".join(str(text).split())).translate(dict.fromkeys(TURNING, " ")).split())


def _unwritable(target: Path, wrong: OSError) -> str:
    return (
        f"{target} cannot be written: {wrong.strerror or type(wrong).__name__}. The result was not written. Choose "
        "another path."
    )
