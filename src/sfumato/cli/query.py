"""One question in SQL, from a file and its schema to numbers with margins."""

from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli.data import Data, Within, source_of
from sfumato.cli.ledger import opened
from sfumato.cli.output import AsJson, say, say_json, terminal
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError

if TYPE_CHECKING:
    from sfumato.core.release import Release
    from sfumato.governance.ledger import Ledger
    from sfumato.tables.schema import Schema
    from sfumato.vault import Vault

__all__ = ["query"]

PICTURES, REPORTS = (".svg", ".png", ".html", ".htm"), (".html", ".htm", ".pdf")


def query(
    data: Data,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The question: SELECT … FROM the name in the schema.")],
    *,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The public facts; see sfumato schema draft.")],
    epsilon: Annotated[str, typer.Option(help="ε to spend, as a decimal or a fraction such as 0.5 or 1/2.")],
    delta: Annotated[str, typer.Option(help="δ that may be spent beside it, such as 1e-6.")] = "0",
    unit_relation: Annotated[
        Literal["add/remove", "replace"], typer.Option(help="What makes neighbours: a unit more, or one replaced.")
    ] = "add/remove",
    confidence: Annotated[str, typer.Option(help="How sure the intervals are, such as 0.95.")] = "0.95",
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="A picture to write: .svg, .png or .html.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="A report to write: .html or .pdf.")] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the certificate; never overwritten.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The key to sign with, from sfumato key new; a new one if not given."),
    ] = None,
    table: Within = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The ledger's settings file; with --account, to be charged.")
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="PATH", help="The account to charge: institution/department/project.")
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="What it is for, such as research/oncology, where data have terms."),
    ] = None,
    recipient: Annotated[str | None, typer.Option(metavar="NAME", help="Who gets the answer, such as public.")] = None,
    reads: Annotated[
        str | None,
        typer.Option(metavar="FIRST/LAST", help="The days that are read, 2026-01-01/2026-01-31, for windows of time."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask one question in SQL and print the answer with its margins.

    The schema says who is protected and how much of each person counts; without a unit column it is single rows. With
    --account the charge counts in the ledger (--ledger, else SFUMATO_LEDGER, else ./ledger.toml), whose key signs; the
    same question again gives the stored answer at no cost. Without, no ledger is kept: the charge is printed and
    remembered by nobody but you, and asking again is another charge. All options are checked before anything is read.
    The picture and the report replace earlier ones of the same name.

    Example: $ sfumato schema draft sfumato-demo/visits.parquet -o visits.toml

    Example: $ sfumato query sfumato-demo/visits.parquet "SELECT COUNT(*) FROM visits" --schema visits.toml --epsilon 1
    """
    from sfumato.laws.margins import level_of
    from sfumato.tables.schema import Schema

    level = level_of(confidence)
    _check_files(plot, report, save)
    facts = Schema.load(schema)
    days = _days(reads)
    if account is None and any(said is not None for said in (ledger, purpose, recipient, days)):
        raise NotDeclared(
            "a ledger, a purpose, a recipient and days go with the account that is charged; nothing was read and "
            "nothing was spent. Say --account institution/department/project"
        )
    with ExitStack() as held:
        book = None if account is None else held.enter_context(opened(ledger))
        vault = _vault(
            facts,
            relation=unit_relation,
            epsilon=epsilon,
            delta=delta,
            key=key,
            charged=book,
            account=account,
            purpose=purpose,
            recipient=recipient,
        )
        question = vault.table(source_of(data, table), schema=facts).sql(sql)
        release = question.release(epsilon=epsilon, delta=delta, reads=days)
        # From here on there is an answer: whatever cannot be written, the numbers are shown.
        written, failed = _write(release, plot=plot, report=report, save=save)
        if as_json:
            say_json(_document(release, vault, level, written, charged=book is not None))
        else:
            _show(release, vault, level, written, charged=book is not None)
    if failed is not None:
        raise failed


def _vault(
    facts: "Schema",
    *,
    relation: str,
    epsilon: str,
    delta: str,
    key: Path | None,
    charged: "Ledger | None",
    account: str | None,
    purpose: str | None,
    recipient: str | None,
) -> "Vault":
    """A vault for this one question: for it alone, or for an account of the ledger."""
    from sfumato.core.budget import Budget
    from sfumato.core.units import record, user
    from sfumato.vault import Vault

    unit = record(relation=relation) if facts.unit is None else user(facts.unit, relation=relation)
    if charged is not None:
        return Vault(
            unit=unit,
            population=facts.population,
            key=key,
            ledger=charged,
            account=account,
            purpose=purpose,
            recipient=recipient,
        )
    return Vault(
        unit=unit,
        budget=Budget.asked(epsilon=epsilon, delta=delta),
        name="sfumato query",
        population=facts.population,
        key=key,
    )


def _days(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    first, sign, last = text.partition("/")
    if not (first and sign and last):
        raise InvalidInput(f"{text!r} are no days; nothing was read and nothing was spent. Say 2026-01-01/2026-01-31")
    return first, last


def _check_files(plot: Path | None, report: Path | None, save: Path | None) -> None:
    """Refuse what could not be written before anything is spent."""
    for file, endings in ((plot, PICTURES), (report, REPORTS)):
        if file is not None and file.suffix.lower() not in endings:
            raise InvalidInput(
                f"{file.name} cannot be written: choose an ending of {', '.join(endings)}. Nothing was read and "
                "nothing was spent."
            )
    if save is not None and (save.exists() or save.is_symlink()):
        raise InvalidInput(f"{save} is there already and is not overwritten. Nothing was read and nothing was spent.")
    named = [file.absolute() for file in (plot, report, save) if file is not None]
    if len(set(named)) != len(named):
        raise InvalidInput("two outputs have the same file; nothing was read and nothing was spent. Name another.")
    for file in named:
        if not file.parent.is_dir():
            raise InvalidInput(f"there is no folder {file.parent}; nothing was read and nothing was spent. Make it.")
    if plot is not None:
        from sfumato.core.extras import need

        need("altair", "pip install 'sfumato[plots]'")


def _write(
    release: "Release", *, plot: Path | None, report: Path | None, save: Path | None
) -> tuple[list[Path], SfumatoError | OSError | None]:
    """Write the files that were asked for; what went wrong first is handed back, not raised."""

    def draw(file: Path) -> Path:
        from sfumato.reports.plots import save as save_plot

        return save_plot(release.plot(), file)

    makers: list[tuple[Path | None, Callable[[Path], Path]]] = [
        (save, release.certificate.save),
        (plot, draw),
        (report, release.report),
    ]
    written: list[Path] = []
    failed: SfumatoError | OSError | None = None
    for file, make in makers:
        if file is not None:
            try:
                written.append(make(file))
            except (SfumatoError, OSError) as wrong:
                failed = failed or wrong
    return written, failed


def _show(release: "Release", vault: "Vault", level: Fraction, written: list[Path], *, charged: bool) -> None:
    from sfumato.cli.answers import answer_table
    from sfumato.core.units import Record, describe

    terminal().print(answer_table(release, level))
    say("")
    for name, column in release.columns.items():
        if not column.measured and column.rank_margin is not None:
            say(f"{name}: chosen by rank, which is right within {column.rank_margin:,} rows with 95% confidence")
    rows = "; the schema names no unit column, so whoever has several rows is protected less"
    say(f"protected: {describe(vault.unit)}{rows if isinstance(vault.unit, Record) else ''}")
    say(f"charged: {'nothing, this is the stored answer' if release.repeated else release.charged}")
    if charged:
        say(f"ledger: {vault.name}, which may still ask for {vault.left}")
    else:
        say("ledger: none; nobody but you remembers this charge, and asking again adds to it")
    for file in written:
        say(f"written: {file}")


def _document(
    release: "Release", vault: "Vault", level: Fraction, written: list[Path], *, charged: bool
) -> dict[str, Any]:
    from sfumato.cli.answers import document
    from sfumato.core.units import describe

    said = release.statement
    return {
        "dataset": {"name": said.dataset.name, "version": said.dataset.edition},
        "protected": describe(said.unit),
        "charged": {"epsilon": str(release.charged.epsilon), "delta": str(release.charged.delta)},
        "ledger": {
            "account": vault.name,
            "left": {"epsilon": str(vault.left.epsilon), "delta": str(vault.left.delta)},
            "repeated": release.repeated,
        }
        if charged
        else None,
        "confidence": str(level),
        **document(release, level),
        "identifier": said.identifier,
        "public_key": vault.public_key,
        "written": [str(file) for file in written],
    }
