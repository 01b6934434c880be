"""Files of works: the tables and pictures of a study, the files of synthetic rows, and code that asks the same."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.foreign import ChartSpec
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.reports.drawings import laid_out
from sfumato.reports.page import file_name
from sfumato.server.asking.results import Download, Headline, connected, notebook_of, written_file
from sfumato.server.works.answers import WorkAnswer, study_result

if TYPE_CHECKING:
    from sfumato.studies.result import StudyResult

__all__ = ["ROW_FILES", "STUDY_FILES", "code_lines", "row_file", "study_file", "study_headline", "study_picture"]

MOST_PICTURES = 64
STUDY_FILES: Mapping[str, tuple[str, str]] = {
    "csv": ("csv", "text/csv; charset=utf-8"),
    "excel": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "latex": ("tex", "application/x-tex"),
    "svg": ("svg", "image/svg+xml"),
    "png": ("png", "image/png"),
    "certificate": ("json", "application/json"),
    "notebook": ("ipynb", "application/x-ipynb+json"),
    "code": ("py", "text/x-python; charset=utf-8"),
}
ROW_FILES: Mapping[str, tuple[str, str, str]] = {
    "csv": ("rows.csv", "csv", "text/csv; charset=utf-8"),
    "parquet": ("rows.parquet", "parquet", "application/vnd.apache.parquet"),
    "schema": ("schema.json", "schema.json", "application/json"),
    "certificate": ("", "json", "application/json"),
    "quality": ("quality.html", "quality.html", "text/html; charset=utf-8"),
    "notebook": ("", "ipynb", "application/x-ipynb+json"),
    "code": ("", "py", "text/x-python; charset=utf-8"),
}
"""Files of synthetic rows: the file in the folder where it is one, the ending that it is sent with, and what it is."""


def study_file(answer: WorkAnswer, kind: str, *, language: str, address: str) -> Download:
    """A file of a study, by the name of its kind."""
    if kind not in STUDY_FILES:
        raise InvalidInput(f"a study is downloaded as {', '.join(STUDY_FILES)}; nothing was made.")
    ending, media = STUDY_FILES[kind]
    if kind in ("certificate", "notebook", "code"):
        body = _common(answer, kind, address)
    else:
        result = study_result(answer)
        if kind in ("svg", "png"):
            from sfumato.reports.plots import save

            chart = result.plot(language=language)
            body = written_file(lambda path: save(chart, path), ending)
        else:
            body = written_file(_writer(result, kind, language), ending)
    return Download(name=f"{_stem(answer)}.{ending}", kind=media, body=body)


def row_file(answer: WorkAnswer, folder: Path, kind: str, *, address: str) -> Download:
    """A file of synthetic rows, by the name of its kind."""
    if kind not in ROW_FILES:
        raise InvalidInput(f"synthetic rows are downloaded as {', '.join(ROW_FILES)}; nothing was made.")
    file, ending, media = ROW_FILES[kind]
    body = (folder / file).read_bytes() if file else _common(answer, kind, address)
    return Download(name=f"{_stem(answer)}.{ending}", kind=media, body=body)


def code_lines(answer: WorkAnswer) -> tuple[str, ...]:
    """What asks the same in Python, after the connection is there."""
    spend = answer.job.spend
    given = f'epsilon="{spend.epsilon}"' + (f', delta="{spend.delta}"' if spend.delta else "")
    return answer.form.code(answer.schema, given)


def study_headline(answer: WorkAnswer, language: str) -> Headline | None:
    """The title of the picture of a study, and the lines under it; None where there is nothing to draw."""
    try:
        title = _chart(_Drawn(answer), language, "light")["title"]
    except SfumatoError:  # the extra is not installed, or there is nothing to draw
        return None
    return Headline(title=title["text"], lines=tuple(title.get("subtitle", ())))


def study_picture(answer: WorkAnswer, *, language: str, theme: str, narrow: bool) -> bytes:
    """The picture of a study for a page, as SVG without its title."""
    if theme not in ("light", "dark"):
        raise InvalidInput("pictures are light or dark; nothing was drawn.")
    return _picture(_Drawn(answer), language, theme, narrow=narrow)


class _Drawn:
    """A study, to be found again among the pictures that were drawn."""

    def __init__(self, answer: WorkAnswer) -> None:
        self.answer = answer
        self.key = answer.release.statement.identifier, answer.job.name

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Drawn) and other.key == self.key


@lru_cache(maxsize=MOST_PICTURES)
def _chart(drawn: _Drawn, language: str, theme: str) -> ChartSpec:
    spec: ChartSpec = study_result(drawn.answer).plot(language=language, theme=theme).to_dict()
    return spec


@lru_cache(maxsize=MOST_PICTURES)
def _picture(drawn: _Drawn, language: str, theme: str, *, narrow: bool) -> bytes:
    made = laid_out({**_chart(drawn, language, theme), "background": "transparent"}, label="")
    return str(made.narrow if narrow else made.roomy).encode()


def _writer(result: "StudyResult", kind: str, language: str) -> Callable[[Path], object]:
    languages = [language, "en" if language != "en" else "zh"]
    writers: Mapping[str, Callable[[Path], object]] = {
        "csv": result.to_csv,
        "excel": lambda path: result.to_excel(path, languages=languages),
        "latex": lambda path: result.to_latex(path, language=language),
    }
    return writers[kind]


def _common(answer: WorkAnswer, kind: str, address: str) -> bytes:
    """What every work has: its certificate, and the code that asks the same, as a notebook or alone."""
    if kind == "certificate":
        return answer.release.certificate.text.encode()
    lines, account = code_lines(answer), answer.job.account
    if kind == "notebook":
        return notebook_of(answer.job.title, lines, address=address, account=account).encode()
    head = ["import os", *(["from datetime import date"] if any("date.from" in line for line in lines) else []), ""]
    head += ["import sfumato as sf", "", "# a token of yours: make one on the page of your account"]
    head += [connected(address, account)]
    return "\n".join([*head, *lines, ""]).encode()


def _stem(answer: WorkAnswer) -> str:
    statement = answer.release.statement
    return file_name(statement.dataset, statement.identifier).removesuffix(".json")
