"""Where rows come from, and comparisons of batches: read again off the released sums of each charge."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from sfumato.core.description import Word
from sfumato.core.documents import Json
from sfumato.core.release import Release
from sfumato.governance.provenance import Provenance
from sfumato.reports.evidence.sections import Section
from sfumato.reports.words.rendering import render

__all__ = ["batch_effects", "batches_of"]

LANGUAGES = ("en", "zh")


class _Table(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Mapping[str, Sequence[object]]: ...


class _Comparison(Protocol):
    """A comparison of batches, of whatever kind of data: what it is, and what it found."""

    field: str
    column: str
    declared: tuple[tuple[str, str], ...]
    p_value: float
    verdict: str

    @property
    def title(self) -> Word: ...

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]: ...

    @property
    def notes(self) -> tuple[Word, ...]: ...

    def tables(self, confidence: Fraction = ...) -> tuple[_Table, ...]: ...


class _Compares(Protocol):
    def batch_comparison(self, release: Release) -> _Comparison | None: ...


def batches_of(release: Release | None) -> Json:
    """The comparison of batches that a release holds, as plain JSON with words in each language; null without one."""
    compared = None if release is None else _compared(release)
    if compared is None:
        return None
    main = compared.tables()[0]
    rows: Sequence[Json] = [[_text(cell) for cell in row] for row in zip(*main.columns.values(), strict=True)]
    words: dict[str, Json] = {
        language: [
            render(compared.title, language),
            *(f"{render(name, language)}: {render(value, language)}" for name, value in compared.facts),
            *(render(note, language) for note in compared.notes),
        ]
        for language in LANGUAGES
    }
    return {
        "field": compared.field,
        "column": compared.column,
        "declared": [{"field": field, "column": column} for field, column in compared.declared],
        "p_value": None if math.isnan(compared.p_value) else _text(compared.p_value),
        "verdict": compared.verdict,
        "columns": list(main.columns),
        "rows": list(rows),
        "words": words,
    }


def batch_effects(compared: Sequence[tuple[Provenance, Json]]) -> Section:
    """Which provenance was declared and which batches were compared, charge by charge; a question where none were."""
    found = [(charge, each) for charge, each in compared if isinstance(each, dict)]
    says = (
        "A batch, an instrument, a site or a step of processing can shift what is measured. Each comparison below was "
        "one charge: rows and means by batch, and a joint test whose null distribution holds sampling and noise.",
        *(() if found else ("No comparison of batches is among these charges.",)),
    )
    rows = [
        (
            f"charge {charge.number}",
            "; ".join(f"{each.dataset.name} {each.dataset.edition}" for each in charge.readings),
            _declared(made),
            f"{made['field']} ({made['column']})",
            "no test" if made["p_value"] is None else str(made["p_value"]),
            str(made["verdict"]),
        )
        for charge, made in found
    ]
    questions = [
        "Which batches, instruments, sites and steps of processing do the rows come from, and were they the same for "
        "everybody who is compared?"
    ]
    if any(made["verdict"] == "differ" for _, made in found):
        questions.append("Where batches differ: is it the processing or the people, and which releases does it touch?")
    return Section(
        title="Provenance and batch effects",
        source="Declared provenance of rows: batch, instrument, site, step of processing",
        says=says,
        columns=("charge", "data", "provenance declared", "compared by", "p-value", "verdict at 5%"),
        rows=tuple(rows),
        questions=tuple(questions),
    )


def _declared(made: Mapping[str, Json]) -> str:
    said = made["declared"]
    listed = said if isinstance(said, list) else []
    return ", ".join(f"{each['field']} = {each['column']}" for each in listed if isinstance(each, dict))


def _compared(release: Release) -> _Comparison | None:
    query: _Compares | object = release.statement.query
    ask = getattr(query, "batch_comparison", None)
    found: _Comparison | None = ask(release) if callable(ask) else None
    return found


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return "" if math.isnan(cell) else f"{cell:.6g}"
    return str(cell)
