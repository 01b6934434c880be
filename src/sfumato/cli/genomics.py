"""Genomics on the command line: how many people a genotype singles out, and the public layer of a study."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.asked import ChargeOptions, Population, SpendOptions, vault_for
from sfumato.cli.groups import grouped
from sfumato.cli.ledger import charged
from sfumato.cli.output import AsJson, say, say_json
from sfumato.cli.written import PAGES, check_file, say_written, written_last
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.genomics.uniqueness_page import TypingLevel

__all__ = ["genomics"]

genomics = typer.Typer(
    help="Genotypes and peptides: why they identify people, and what of a study can be published.\n\nExample: "
    "$ sfumato genomics uniqueness --people 1000",
    no_args_is_help=True,
)
PERSON = "patient"


@genomics.command()
def uniqueness(
    *,
    people: Annotated[int, typer.Option(min=1, help="How many people are in the file.")] = 1000,
    alleles: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="How many alleles are told apart at each gene, such as 150,200,40."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a page with the curves, .html.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how many of a number of people are the only ones with their HLA genotype. Reads no data.

    It shows three levels of typing at HLA-A and HLA-B, from proteins to supertypes, and yours where --alleles gives
    its numbers. Coarser typing leaves people unique: what is published needs noise.

    Example: $ sfumato genomics uniqueness --people 1000 -o uniqueness.html
    """
    from sfumato.genomics.uniqueness_page import typing_levels, write_uniqueness_page

    check_file(out, PAGES)
    levels = typing_levels(people=people, alleles=None if alleles is None else _numbers(alleles))
    say_json([_plain(level) for level in levels]) if as_json else _told(levels)
    written_last(None if out is None else lambda: write_uniqueness_page(levels, out), quiet=as_json)


@genomics.command()
@grouped
def publish(
    *,
    genotypes: Annotated[
        Path, typer.Option(metavar="FILE", help="Columns patient and allele, or patient, A1, A2, B1, B2; .csv or .tsv.")
    ],
    peptides: Annotated[Path, typer.Option(metavar="FILE", help="Columns patient, peptide and allele; .csv or .tsv.")],
    supertypes: Annotated[Path, typer.Option(metavar="FILE", help="A public table: allele and supertype, .csv.")],
    supertypes_version: Annotated[str, typer.Option(help="The name of that table, which is published with it.")],
    version: Annotated[str, typer.Option(help="The edition of the study, such as 2026-11.")],
    spend: SpendOptions,
    peptides_per_patient: Annotated[int, typer.Option(min=1, help="At most this many peptides of a patient count.")],
    supertypes_per_patient: Annotated[int, typer.Option(min=1, help="At most this many supertypes count.")] = 4,
    peptide_list: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A public list of peptides, one a line; without it they are found for a δ."),
    ] = None,
    family: Annotated[
        int | None, typer.Option(min=2, help="Protect this many relatives together, rather than one patient.")
    ] = None,
    population: Population = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="A new or empty folder for the layer.")],
    charge: ChargeOptions,
    as_json: AsJson = False,
) -> None:
    """Release supertype frequencies and peptide counts of a study into a folder; its rows stay where they are.

    Three releases are made: the number of patients, patients by supertype, and patients by peptide. Each has its
    certificate in the folder. Of each patient only so much counts as the two limits say. Options are checked before a
    file is read, and all three charges before the first is made.

    Example: $ sfumato genomics publish --genotypes genotypes.csv --peptides peptides.tsv --supertypes supertypes.csv --supertypes-version "Sidney 2008" --version 2026-11 --epsilon 2 --delta 1e-7 --peptides-per-patient 5 --out public
    """  # noqa: E501 - an example is one line
    from sfumato import genomics as study_of
    from sfumato.core.budget import Budget
    from sfumato.core.units import family as relatives
    from sfumato.core.units import user
    from sfumato.reports.waiting import waiting

    Budget.asked(epsilon=spend.epsilon, delta=spend.delta)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInput(f"{out} holds something already; nothing was read and nothing was spent. Name a new folder.")
    charge.check_account()
    charge.check_ledger(genotypes)
    table = study_of.SupertypeTable.read(supertypes, version=supertypes_version)
    listed = None if peptide_list is None else peptide_list.read_text("utf-8").split()
    unit = user(PERSON, relation="add/remove") if family is None else relatives(family, PERSON, relation="add/remove")
    with ExitStack() as held:
        book = None if charge.account is None else held.enter_context(charged(charge.ledger))
        vault = vault_for(unit, name="sfumato genomics", population=population, spend=spend, charge=charge, book=book)
        with waiting("reading and counting …"):
            layer = study_of.build_public_layer(
                vault,
                study_of.ImmunopeptidomicsStudy(
                    genotypes=study_of.read_genotypes(genotypes).rows, peptides=study_of.read_peptides(peptides).rows
                ),
                version=version,
                supertypes=table,
                epsilon=spend.epsilon,
                delta=spend.delta,
                peptides_per_patient=peptides_per_patient,
                supertypes_per_patient=supertypes_per_patient,
                peptides=listed,
            )
        folder = layer.save(out)
    found = layer.frequencies()
    if as_json:
        say_json({"folder": str(folder), "supertypes": found.to_pylist(), "epsilon": spend.epsilon})
        return
    say(f"{'supertype':16}{'share':>8}  between")
    for row in found.to_pylist():
        say(f"{row['supertype']:16}{row['share']:>8.1%}  {row['share_low']:.1%} and {row['share_high']:.1%}")
    say_written(folder)


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise InvalidInput(f"{text!r} is no list of numbers of alleles; nothing was done. Say --alleles 150,200.")
    return tuple(int(part) for part in parts)


def _told(levels: "tuple[TypingLevel, ...]") -> None:
    from sfumato.genomics.uniqueness_page import share_text

    say(f"unique genotypes among {levels[0].even.people:,} people\n")
    say(f"{'typing':14}{'alleles':>12}{'genotypes':>16}{'even':>12}{'as 1/rank':>12}")
    for level in levels:
        numbers = "×".join(str(each) for each in level.alleles)
        say(
            f"{level.name.replace('_', ' '):14}{numbers:>12}{level.even.genotypes:>16,}"
            f"{share_text(level.even.unique):>12}{share_text(level.skewed.unique):>12}"
        )


def _plain(level: "TypingLevel") -> dict[str, object]:
    return {
        "typing": level.name,
        "alleles": list(level.alleles),
        "people": level.even.people,
        "genotypes": level.even.genotypes,
        "unique_even": level.even.unique,
        "unique_skewed": level.skewed.unique,
    }
