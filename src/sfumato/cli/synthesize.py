"""Synthetic rows, from a file and its schema to a folder that can be handed on."""

import math
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.asked import (
    RELATION,
    DatedChargeOptions,
    Foresee,
    SpendOptions,
    charge_document,
    say_charge,
    vault_for,
)
from sfumato.cli.data import Data, Within, source_of
from sfumato.cli.groups import grouped
from sfumato.cli.ledger import charged
from sfumato.cli.output import AsJson, LegalBasis, Reason, say, say_json, say_paragraphs
from sfumato.cli.query import SEVERAL, protected_by
from sfumato.cli.synthesis_options import NOTHING, SynthesisOptions
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError

if TYPE_CHECKING:
    from sfumato.synthesis.preview import SynthesisPreview
    from sfumato.synthesis.result import SyntheticTable
    from sfumato.vault import Vault

__all__ = ["synthesize"]


@grouped
def synthesize(
    data: Data,
    *,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The public facts; see sfumato schema draft.")],
    spend: SpendOptions,
    asked: SynthesisOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="A new or empty folder for the files.")
    ] = None,
    format: Annotated[Literal["parquet", "csv"], typer.Option(help="How the rows are written.")] = "parquet",
    lang: Annotated[Literal["both", "en", "zh"], typer.Option(help="The languages of the texts.")] = "both",
    reason: Reason = "",
    legal_basis: LegalBasis = "",
    preview: Foresee = False,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Who is protected, if the schema does not say: user:COLUMN, family:SIZE:COLUMN or record (rows).",
        ),
    ] = None,
    rows_per_person: Annotated[
        int | None, typer.Option(min=1, help="At most this many rows of a person count; else as the schema says.")
    ] = None,
    unit_relation: Annotated[Literal["add/remove", "replace"], typer.Option(help=RELATION)] = "add/remove",
    table: Within = None,
    charge: DatedChargeOptions,
    as_json: AsJson = False,
) -> None:
    """Make synthetic rows and write a folder for whoever gets them.

    Noisy tables of the columns are measured for one charge, and rows are made of that release alone; whatever is asked
    of the rows costs nothing more. The folder holds rows.parquet or rows.csv, the certificate, a schema, a
    quality page, a data dictionary and an explanation: all from the release and what was declared.

    Columns have keys or bounds in the schema. --preview shows which tables would be measured, and how exactly. A ledger
    is kept as by sfumato query: with --account, and then the same command with another folder gives the stored answer
    and the same rows at no cost; otherwise not (--no-ledger, where there is one). Rules and --rows do not change what
    is charged; --expected-rows may, where other tables are chosen for it. All options are checked before anything is
    read. A folder that holds anything is refused.

    The examples are for a schema, declared.toml, in which columns have keys or bounds.

    Example: $ sfumato synthesize sfumato-demo/visits.parquet --schema declared.toml --epsilon 1 --expected-rows 5000 --preview

    Example: $ sfumato synthesize sfumato-demo/visits.parquet --schema declared.toml --epsilon 1 --rows 5000 --bins age=8 --out partner

    Example: $ sfumato synthesize sfumato-demo/visits.parquet --schema declared.toml --columns sex,region --epsilon 1 --out table --format csv
    """  # noqa: E501 - an example is one line
    from sfumato.core.budget import Budget
    from sfumato.core.limits import Limit
    from sfumato.core.units import Record, describe
    from sfumato.reports.waiting import waiting
    from sfumato.tables.schema import Schema

    Budget.asked(epsilon=spend.epsilon, delta=spend.delta)
    _check_out(out, preview=preview)
    facts = Schema.load(schema)
    days = charge.days
    charge.check_account()
    if not preview:
        charge.check_ledger(data)
    protected = protected_by(facts, unit, unit_relation)
    limit = None if rows_per_person is None else Limit(groups=1, rows_per_group=rows_per_person)
    with ExitStack() as held:
        book = None if charge.account is None else held.enter_context(charged(charge.ledger))
        vault = vault_for(
            protected, name="sfumato synthesize", population=facts.population, spend=spend, charge=charge, book=book
        )
        synthesis = asked.of(vault.table(source_of(data, table), schema=facts, limit=limit))
        if preview:
            _foresee(synthesis.preview(epsilon=spend.epsilon, delta=spend.delta), as_json=as_json)
            return
        assert out is not None  # noqa: S101 - as was just asked
        plan = synthesis.plan(epsilon=spend.epsilon, delta=spend.delta)
        question = synthesis.question(epsilon=spend.epsilon, delta=spend.delta)
        release = question.release(epsilon=spend.epsilon, delta=spend.delta, reads=days)
        with waiting("making the rows …"):
            made = synthesis.made(release, plan.reason)
        failed: SfumatoError | None = None
        written: tuple[Path, ...] = ()
        try:
            with waiting("writing the files …"):
                written = made.write(
                    out,
                    format=format,
                    languages=("en", "zh") if lang == "both" else (lang,),
                    reason=reason,
                    legal_basis=legal_basis,
                )
        except SfumatoError as wrong:
            failed = wrong
        if as_json:
            say_json(_document(made, vault, written, charged=book is not None))
        else:
            say_paragraphs(made.explain("zh" if lang == "zh" else "en"))
            say("")
            if isinstance(protected, Record):
                say(f"protected: {describe(vault.unit)}; {SEVERAL}")
            say_charge(release, vault, charged=book is not None)
            for file in written:
                say(f"written: {file}")
    if failed is not None:
        raise failed


def _check_out(out: Path | None, *, preview: bool) -> None:
    """Refuse a folder that could not be written to, before anything is spent."""
    from sfumato.synthesis.folder import check_folder

    if preview:
        if out is not None:
            raise InvalidInput(f"a preview has nothing to write. {NOTHING} Leave --out or --preview out.")
        return
    if out is None:
        raise NotDeclared(f"nobody said where the rows go. {NOTHING} Say --out FOLDER, or --preview to see the cost.")
    try:
        check_folder(out)
    except InvalidInput as wrong:
        raise InvalidInput(f"{wrong} {NOTHING}") from None
    if not os.access(out if out.is_dir() else out.absolute().parent, os.W_OK):
        raise InvalidInput(f"{out} cannot be written. {NOTHING} Choose another folder.")


def _foresee(found: "SynthesisPreview", *, as_json: bool) -> None:
    """Print what would be measured."""
    from sfumato.core.units import describe

    if not as_json:
        say(str(found))
        say(f"protected: {describe(found.unit)}")
        return
    say_json(
        {
            "protected": describe(found.unit),
            "spend": {"epsilon": str(found.spend.epsilon), "delta": str(found.spend.delta)},
            "measured": found.reason,
            "cells": found.cells,
            "rows": found.rows,
            "tables": [
                {
                    "columns": list(each.columns),
                    "cells": each.cells,
                    "noise_standard_deviation": each.noise,
                    "predicted_error": each.predicted_error,
                }
                for each in found.marginals
            ],
            "limit": found.limited or None,
        }
    )


def _document(made: "SyntheticTable", vault: "Vault", written: tuple[Path, ...], *, charged: bool) -> dict[str, object]:
    """The result for programs."""
    quality = made.quality
    return {
        **charge_document(made.release, vault, charged=charged),
        "columns": made.rows.column_names,
        "rows": made.rows.num_rows,
        "rows_declared": quality.declared_rows,
        "measured": quality.reason,
        "tables": [
            {"columns": list(each.columns), "cells": each.cells, "noise_standard_deviation": each.noise}
            for each in quality.marginals
        ],
        "chi_squared_per_cell": _finite(quality.chi_squared),
        "distance_to_fit": _finite(quality.distance_to_fit),
        "limit": made.release.limit_words() or None,
        "identifier": made.release.statement.identifier,
        "public_key": vault.public_key,
        "written": [str(file) for file in written],
    }


def _finite(figure: float | None) -> float | None:
    """A figure as JSON has it."""
    return figure if figure is not None and math.isfinite(figure) else None
