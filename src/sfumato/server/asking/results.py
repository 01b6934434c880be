"""Results: the table of an answer with its intervals, its pictures, its files, and a notebook that repeats it."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from sfumato.core.foreign import ChartSpec
from sfumato.core.release import Release, population_intervals, shown_columns
from sfumato.core.rounding import rounded, short
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.reports.columns import described
from sfumato.reports.drawings import laid_out
from sfumato.reports.page import file_name
from sfumato.server.jobs.queue import Job

__all__ = [
    "DOWNLOADS",
    "AnswerTable",
    "Download",
    "Headline",
    "connected",
    "download",
    "headline",
    "in_code",
    "notebook",
    "notebook_of",
    "page_picture",
    "picture",
    "result_table",
    "written_file",
]

CONFIDENCE = Fraction(19, 20)
MOST_ROWS = 500
MOST_PICTURES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCell:
    """A number and its interval, with as many digits as its margin makes worth reading."""

    value: str
    low: str
    high: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """An answer as a table: labels first, then each column with its interval; up to a number of rows."""

    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[ResultCell, ...]], ...]
    more: int
    population: tuple[str, ...]
    """Columns whose interval covers sampling too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file of an answer."""

    name: str
    kind: str
    body: bytes


def result_table(release: Release) -> AnswerTable:
    """The table of a release; post-processing alone."""
    counts = {name for name, known in described(release.statement).measured.items() if known.counts}
    sampled = population_intervals(release, CONFIDENCE)
    columns, cells = [], []
    for name, values, noise in shown_columns(release, CONFIDENCE):
        ends = sampled.get(name, noise)
        columns.append(name)
        if ends is None:
            cells.append([ResultCell(value=short(value), low="", high="", known=False) for value in values])
            continue
        texts = (rounded(value, *pair, whole=name in counts) for value, pair in zip(values, ends, strict=True))
        cells.append([_cell(text) for text in texts])
    labels = release.labels
    number = len(cells[0]) if cells else 0
    shown = min(number, MOST_ROWS)
    return AnswerTable(
        labels=tuple(labels),
        columns=tuple(columns),
        rows=tuple(
            (tuple(str(label[place]) for label in labels.values()), tuple(column[place] for column in cells))
            for place in range(shown)
        ),
        more=number - shown,
        population=tuple(name for name in columns if name in sampled),
    )


def _cell(text: tuple[str, str, str] | None) -> ResultCell:
    if text is None:
        return ResultCell(value="?", low="", high="", known=False)
    return ResultCell(value=text[0], low=text[1], high=text[2], known=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What stands above a picture."""

    title: str
    lines: tuple[str, ...]


@lru_cache(maxsize=MOST_PICTURES)
def _chart(shown: "_Shown", language: str, theme: str) -> ChartSpec:
    spec: ChartSpec = shown.release.plot(language=language, theme=theme).to_dict()
    return spec


def headline(release: Release, language: str) -> Headline | None:
    """The title of the picture for a page, and the lines under it; None where there is nothing to draw."""
    try:
        title = _chart(_Shown(release), language, "light")["title"]
    except SfumatoError:  # the extra is not installed, or this kind of answer has no picture
        return None
    return Headline(title=title["text"], lines=tuple(title.get("subtitle", ())))


@lru_cache(maxsize=MOST_PICTURES)
def _page_picture(shown: "_Shown", language: str, theme: str, *, narrow: bool) -> bytes:
    spec = {**_chart(shown, language, theme), "background": "transparent"}
    made = laid_out(spec, label="")
    return str(made.narrow if narrow else made.roomy).encode()


def page_picture(release: Release, *, language: str, theme: str, narrow: bool) -> bytes:
    """The picture for a page, as SVG without its title, which the page has in its own type."""
    if theme not in ("light", "dark"):
        raise InvalidInput("pictures are light or dark; nothing was drawn.")
    return _page_picture(_Shown(release), language, theme, narrow=narrow)


def picture(release: Release, ending: str, *, language: str, theme: str, kind: str = "intervals") -> bytes:
    """A picture of a release as ``svg`` or ``png``."""
    if ending not in ("svg", "png") or theme not in ("light", "dark") or kind not in ("intervals", "noise", "belief"):
        raise InvalidInput("pictures are svg or png, light or dark; nothing was drawn.")
    return _drawn(_Shown(release), ending, language, theme, kind)


class _Shown:
    """A release as it is shown, to be found again among the pictures that were drawn."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.key = release.statement.identifier, repr(release.view)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shown) and other.key == self.key


@lru_cache(maxsize=MOST_PICTURES)
def _drawn(shown: _Shown, ending: str, language: str, theme: str, kind: str) -> bytes:
    from sfumato.reports.plots import save

    chart = shown.release.plot(kind, language=language, theme=theme)
    return written_file(lambda path: save(chart, path), ending)


def written_file(write: Callable[[Path], object], ending: str) -> bytes:
    """What a writer of files writes, as bytes."""
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        path = Path(folder) / f"answer.{ending}"
        write(path)
        return path.read_bytes()


def download(release: Release, job: Job, kind: str, *, language: str, address: str) -> Download:
    """A file of an answer, by the name of its kind."""
    if kind not in DOWNLOADS:
        raise InvalidInput(f"answers are downloaded as {', '.join(DOWNLOADS)}; nothing was made.")
    ending, media = DOWNLOADS[kind]
    stem = file_name(release.statement.dataset, release.statement.identifier).removesuffix(".json")
    languages = [language, "en" if language != "en" else "zh"]

    def parquet(path: Path) -> None:
        import pyarrow.parquet as pq

        pq.write_table(release.to_arrow(), path)

    writers: Mapping[str, Callable[[Path], object]] = {
        "csv": release.to_csv,
        "excel": lambda path: release.to_excel(path, languages=languages),
        "parquet": parquet,
        "report": lambda path: release.report(path, languages=languages),
    }
    if kind in writers:
        body = written_file(writers[kind], ending)
    elif kind == "certificate":
        body = release.certificate.text.encode()
    elif kind == "notebook":
        body = notebook(job, address=address).encode()
    else:
        body = picture(release, ending, language=language, theme="light")
    return Download(name=f"{stem}.{ending}", kind=media, body=body)


DOWNLOADS: Mapping[str, tuple[str, str]] = {
    "csv": ("csv", "text/csv; charset=utf-8"),
    "excel": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "parquet": ("parquet", "application/vnd.apache.parquet"),
    "svg": ("svg", "image/svg+xml"),
    "png": ("png", "image/png"),
    "certificate": ("json", "application/json"),
    "notebook": ("ipynb", "application/x-ipynb+json"),
    "report": ("html", "text/html; charset=utf-8"),
}
"""The files of an answer: the ending of each, and what it is."""


def notebook(job: Job, *, address: str) -> str:
    """A notebook that asks the same again, which costs nothing: the answer is stored."""
    asked = in_code(job.sql or "")
    spend = f'epsilon="{job.spend.epsilon}"' + (f', delta="{job.spend.delta}"' if job.spend.delta else "")
    ask = f"answer = service.sql({asked}, {spend}, table={in_code(job.dataset)})\nanswer"
    return _written_notebook(
        job.title, address, job.account, [ask, "print(answer.explain())", "answer.plot()"], moments=False
    )


def in_code(text: str) -> str:
    """A text as a constant of Python, whoever wrote it: it is the same text there, and never code.

    >>> print(in_code('visits", x=exit()'))
    "visits\\", x=exit()"
    """
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)


def connected(address: str, account: str) -> str:
    """The line of code that connects to a service for one account."""
    return f'service = sf.connect({in_code(address)}, token=os.environ["SFUMATO_TOKEN"], account={in_code(account)})'


def notebook_of(title: str, lines: Sequence[str], *, address: str, account: str) -> str:
    """A notebook of lines of code that ask something again, which costs nothing: the answer is stored."""
    moments = any("date.from" in line for line in lines)
    return _written_notebook(title, address, account, ["\n".join(lines)], moments=moments)


def _written_notebook(title: str, address: str, account: str, parts: Sequence[str], *, moments: bool) -> str:
    connect = (
        f"import os\n{'from datetime import date' + chr(10) if moments else ''}\nimport sfumato as sf\n\n"
        "# a token of yours: make one on the page of your account\n" + connected(address, account)
    )
    cells = [
        ("markdown", f"# {title}\n\nThe answer is stored, so that asking for it again costs nothing."),
        ("code", connect),
        *(("code", part) for part in parts),
    ]
    return json.dumps(
        {
            "cells": [_notebook_cell(number, kind, text) for number, (kind, text) in enumerate(cells)],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        ensure_ascii=False,
        indent=1,
    )


def _notebook_cell(number: int, kind: str, text: str) -> dict[str, object]:
    cell: dict[str, object] = {
        "id": f"cell-{number}",
        "cell_type": kind,
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
