"""The page and the folder for whoever gets synthetic persons with their rows: one file a table, and words for all."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.description import Listed, OneLine, Phrase, Word, phrase
from sfumato.core.document_page import DocumentPage, PageSection
from sfumato.core.documents import encode
from sfumato.core.release import presenter_of
from sfumato.core.terminal import harmless_text
from sfumato.synthesis.dictionary import about_column, as_code, as_text, has_formulas, limit_words, made_words
from sfumato.synthesis.folder import CERTIFICATE, QUALITY, SCHEMA, into_folder
from sfumato.synthesis.quality_page import ShownParts
from sfumato.synthesis.related_parts import RelatedParts
from sfumato.synthesis.table_schema import MEDIA, field_of, name_in

if TYPE_CHECKING:
    from sfumato.synthesis.related_result import SyntheticRelations

__all__ = ["related_page", "write_relations"]

KIND, VERSION = "synthetic_relations", 1
NUMBER = "number"


def related_page(made: "SyntheticRelations", parts: RelatedParts) -> DocumentPage:
    """The quality page of persons with their rows; all of it is a function of the release."""
    quality, found = made.quality, made.release.statement.dataset
    shown = ShownParts(
        release=made.release,
        columns=parts.columns,
        codes=parts.codes,
        measured=parts.measured,
        total=quality.estimated_persons,
        absent=parts.absent,
        persons=True,
    )
    what, kept, lacking = made._words()
    sizes: list[tuple[Word, Word]] = [
        (
            f"{table.num_rows:,}",
            phrase("related.card_rows", table=OneLine(name)) if place else Phrase("related.persons"),
        )
        for place, (name, table) in enumerate(made.tables.items())
    ]
    cards = [*sizes, (f"{len(quality.marginals):,}", shown.say("card_tables"))]
    if quality.chi_squared is not None:
        cards.append((f"{quality.chi_squared:.2f}", Phrase("related.card_fit")))
    kept += [
        phrase("related.fits", child=OneLine(name), chi=Listed(tuple(f"{each:.2f}" for each in fits)))
        for name, fits in quality.child_chi_squared.items()
        if fits
    ]
    return DocumentPage(
        release=made.release,
        kind=Phrase("related.kind"),
        title=phrase("related.title", data=OneLine(found.name), edition=OneLine(found.edition)),
        asked=_wide(parts),
        lead=(*what, shown.say("claim"), Phrase("quality.source")),
        glance=(*cards, *shown.cards()),
        sections=(
            PageSection(name="kept", heading=shown.say("kept"), blocks=tuple(kept)),
            PageSection(name="lacking", heading=shown.say("lacking"), blocks=tuple(lacking)),
            *shown.sections([*range(parts.top), *parts.first]),
            PageSection(name="data", heading=Phrase("quality.data"), blocks=(Phrase("related.no_comparison"),)),
        ),
        spend=made.release.statement.spend,
    )


def _wide(parts: RelatedParts) -> Word:
    """What is counted, with the names of columns as they stand on the page."""
    names = [column.name for column in parts.columns[parts.top :]]
    if not names:
        return Phrase("related.wide_bare")
    return phrase("related.wide", first=OneLine(names[0]))


def write_relations(
    made: "SyntheticRelations",
    parts: RelatedParts,
    folder: str | Path,
    *,
    form: str = "parquet",
    languages: Sequence[str] = ("en", "zh"),
    grounds: tuple[str, str] = ("", ""),
) -> tuple[Path, ...]:
    """Write all files into a new or empty folder: all of them or, where something goes wrong, none.

    Guarantee: every file is a function of the release and of what was declared.
    """

    def fill(place: Path, languages: Sequence[str]) -> list[str]:
        written = made.to_csv(place) if form == "csv" else made.to_parquet(place)
        made.release.certificate.save(place / CERTIFICATE)
        text = json.dumps(_schema(made, parts, written, form), indent=1, ensure_ascii=False, allow_nan=False)
        (place / SCHEMA).write_text(text + "\n", encoding="utf-8")
        made.report(place / QUALITY, languages=languages, reason=grounds[0], legal_basis=grounds[1])
        names = [*(file.name for file in written), CERTIFICATE, SCHEMA, QUALITY]
        for language in languages:
            columns, explanation = f"dictionary.{language}.md", f"explanation.{language}.txt"
            words = _dictionary(made, parts, language, form=form, explanation=explanation)
            (place / columns).write_text(words, encoding="utf-8")
            (place / explanation).write_text(made.explain(language) + "\n", encoding="utf-8")
            names += [columns, explanation]
        return names

    return into_folder(folder, form, languages, fill)


def _schema(made: "SyntheticRelations", parts: RelatedParts, written: Sequence[Path], form: str) -> dict[str, object]:
    """The schema of all files: a data package with one resource a table, linked by the person's number."""
    said, quality = made.release.statement, made.quality
    persons = next(iter(made.tables))
    link: dict[str, object] = {"name": name_in(made.person, form), "type": "integer"}
    resources = []
    for (name, table), file in zip(made.tables.items(), written, strict=True):
        top = name == persons
        fields: list[object] = [link | {"constraints": {"required": True, "unique": top, "minimum": 1}}]
        if not top:
            holds = {"required": True, "minimum": 1, "maximum": quality.most[name]}
            fields.append({"name": NUMBER, "type": "integer", "constraints": holds})
        fields += [field_of(column, form) for column in parts.declared[name].columns]
        keys = [link["name"]] if top else [link["name"], NUMBER]
        reference = {"resource": persons, "fields": link["name"]}
        schema: dict[str, object] = {"fields": fields, "primaryKey": keys, "missingValues": [""]}
        if not top:
            schema["foreignKeys"] = [{"fields": link["name"], "reference": reference}]
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        about = {"name": name, "path": file.name, "format": form, "mediatype": MEDIA[form], "encoding": "utf-8"}
        size = {"bytes": file.stat().st_size, "hash": f"sha256:{digest}", "rows": table.num_rows}
        resources.append(about | size | {"schema": schema})
    return {
        "kind": KIND,
        "version": VERSION,
        "dataset": {"name": said.dataset.name, "version": said.dataset.edition},
        "release": said.identifier,
        "guarantee": encode(said.guarantee),
        "unit": encode(said.unit),
        "persons": {"declared": quality.declared_persons, "noisy": quality.estimated_persons},
        "resources": resources,
        "measured": [
            {"columns": list(each.columns), "cells": each.cells, "noise_standard_deviation": each.noise}
            for each in quality.marginals
        ],
    }


def _dictionary(made: "SyntheticRelations", parts: RelatedParts, language: str, *, form: str, explanation: str) -> str:
    """The data dictionary of all tables, as Markdown; names and values are set as code."""
    presenter = presenter_of(made.release)

    def say(word: Word) -> str:
        return presenter.words(word, language)

    beside = {"explanation": explanation, "schema": SCHEMA, "certificate": CERTIFICATE}
    found = [
        f"# {harmless_text(say(phrase('related.dictionary', data=as_text(made.release.statement.dataset.name))))}",
        say(phrase("dictionary.about", **{name: as_code(file) for name, file in beside.items()})),
        say(Phrase("dictionary.sources")),
        *limit_words(made.release, language),
    ]
    if form == "csv" and any(has_formulas(each) for each in parts.declared.values()):
        found.append(say(Phrase("dictionary.formula")))
    persons = next(iter(made.tables))
    for name in made.tables:
        found.append(f"## {as_code(f'{name}.{form}')}")
        top = name == persons
        link = "link_top" if top else "link_below"
        lines = [say(phrase(f"related.{link}", person=as_code(made.person), number=as_code(NUMBER)))]
        condition = parts.declared[name].condition
        if condition:
            lines.append(say(phrase("dictionary.where", condition=as_code(condition))))
        found.append("\n".join(f"- {line}" for line in lines))
        for column in parts.declared[name].columns:
            label = column.name if top else f"{name}.{column.name}"
            tables = [
                (tuple(parts.labels.get(other, other) for other in each.columns), each.noise)
                for each in made.quality.marginals
            ]
            held = [(names, noise) for names, noise in tables if label in names]
            words = about_column(column, made_words(label, held, unit="persons"))
            found += [f"### {as_code(column.name)}", "\n".join(f"- {say(word)}" for word in words)]
    return "\n\n".join(found) + "\n"
