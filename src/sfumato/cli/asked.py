"""What every question on the command line shares: its options, its vault, the files it writes, the way it is shown."""

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

import typer

from sfumato.cli.output import say, terminal
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError

if TYPE_CHECKING:
    from sfumato.core.release import Release
    from sfumato.core.units import Unit
    from sfumato.governance.ledger import Ledger
    from sfumato.vault import Vault

__all__ = [
    "Account",
    "Book",
    "Confidence",
    "Days",
    "Delta",
    "Epsilon",
    "KeyFile",
    "NoLedger",
    "Picture",
    "Purpose",
    "Recipient",
    "Report",
    "Save",
    "check_account",
    "check_files",
    "check_ledger",
    "days_of",
    "document",
    "show",
    "vault_for",
    "write",
]

PICTURES, REPORTS, TABLES = (".svg", ".png", ".html", ".htm"), (".html", ".htm", ".pdf"), (".csv",)

Epsilon = Annotated[str, typer.Option(help="ε to spend, as a decimal or a fraction such as 0.5 or 1/2.")]
Delta = Annotated[str, typer.Option(help="δ that may be spent beside it, such as 1e-6.")]
Confidence = Annotated[str, typer.Option(help="How sure the intervals are, such as 0.95.")]
Picture = Annotated[Path | None, typer.Option(metavar="FILE", help="A picture to write: .svg, .png or .html.")]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="A report to write: .html or .pdf.")]
Save = Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the certificate; never overwritten.")]
KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The key to sign with, from sfumato key new; a new one if not given."),
]
Book = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The ledger's settings file; with --account, to be charged.")
]
Account = Annotated[
    str | None, typer.Option(metavar="PATH", help="The account to charge: institution/department/project.")
]
NoLedger = Annotated[
    bool, typer.Option("--no-ledger", help="Keep no ledger although there is one; the charge is remembered by nobody.")
]
Purpose = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="What it is for, such as research/oncology, where data have terms."),
]
Recipient = Annotated[str | None, typer.Option(metavar="NAME", help="Who gets the answer, such as public.")]
Days = Annotated[
    str | None,
    typer.Option(metavar="FIRST/LAST", help="The days that are read, 2026-01-01/2026-01-31, for windows of time."),
]


def check_account(account: str | None, *beside: object) -> None:
    """Refuse what belongs to an account where none is charged."""
    if account is None and any(said is not None for said in beside):
        raise NotDeclared(
            "a ledger, a purpose, a recipient and days go with the account that is charged; nothing was read and "
            "nothing was spent. Say --account institution/department/project"
        )


def check_ledger(account: str | None, data: str | Path, *, no_ledger: bool) -> None:
    """Refuse to pass over a ledger that is there: named by the environment, or in a folder of the data, or in this one.

    Looked at are this folder and that of the data, the one that links lead to, and all folders above them up to the
    home folder.
    A release that it does not know of is charged to nobody, and neither caps nor vetoes hold for it.
    """
    from sfumato.governance.settings import NAME, VARIABLE, file_of

    if no_ledger and account is not None:
        raise InvalidInput(
            "--no-ledger and --account say opposite things; nothing was read and nothing was spent. Leave one out."
        )
    if no_ledger or account is not None:
        return
    folders = (*_around(Path()), *(() if (place := _place_of(str(data))) is None else _around(place)))
    found = next((folder / NAME for folder in folders if (folder / NAME).is_file()), None)
    if found is None and os.environ.get(VARIABLE):
        found = file_of(None)
    if found is not None:
        raise NotDeclared(
            f"there is a ledger, {found}, and no account to charge: its budgets and vetoes would be passed over. "
            "Nothing was read and nothing was spent. Say --account institution/department/project, or --no-ledger if "
            "this release is really to be kept out of it."
        )


def _place_of(data: str) -> Path | None:
    """The file or folder that a question names, also in the URL of a database in a file; None for a server."""
    if data.startswith("duckdb://"):
        return Path(unquote(data.partition("?")[0].removeprefix("duckdb://")))
    return None if "://" in data else Path(data)


def _around(place: Path) -> list[Path]:
    """A folder, or the folder of a file, and those above up to the home folder; as it was named, and without links."""
    found: list[Path] = []
    for whole in (place.absolute(), place.resolve()):
        for folder in (whole, *whole.parents):
            found.append(folder)
            if folder == Path.home():
                break
    return found


def vault_for(
    unit: "Unit",
    *,
    name: str,
    population: int | None,
    epsilon: str,
    delta: str,
    key: Path | None,
    charged: "Ledger | None",
    account: str | None,
    purpose: str | None,
    recipient: str | None,
) -> "Vault":
    """A vault for one question: for it alone, under the ``name`` of its command, or for an account of the ledger."""
    from sfumato.core.budget import Budget
    from sfumato.vault import Vault

    if charged is not None:
        return Vault(
            unit=unit,
            population=population,
            key=key,
            ledger=charged,
            account=account,
            purpose=purpose,
            recipient=recipient,
        )
    budget = Budget.asked(epsilon=epsilon, delta=delta)
    return Vault(unit=unit, budget=budget, name=name, population=population, key=key)


def days_of(text: str | None) -> tuple[str, str] | None:
    """The first and the last day that are read, if any are said."""
    if text is None:
        return None
    first, sign, last = text.partition("/")
    if not (first and sign and last):
        raise InvalidInput(f"{text!r} are no days; nothing was read and nothing was spent. Say 2026-01-01/2026-01-31")
    return first, last


def check_files(
    plot: Path | None,
    report: Path | None,
    save: Path | None,
    table: Path | None = None,
    *,
    grounds: tuple[str, str] = ("", ""),
) -> None:
    """Refuse what could not be written before anything is spent; ``grounds`` for publication stand in a report."""
    if report is None and any(grounds):
        raise InvalidInput(
            "--reason and --legal-basis stand in a report, and none was asked for; nothing was read and nothing was "
            "spent. Add --report FILE."
        )
    for file, endings in ((plot, PICTURES), (report, REPORTS), (table, TABLES)):
        if file is not None and file.suffix.lower() not in endings:
            raise InvalidInput(
                f"{file.name} cannot be written: choose an ending of {', '.join(endings)}. Nothing was read and "
                "nothing was spent."
            )
    if save is not None and (save.exists() or save.is_symlink()):
        raise InvalidInput(f"{save} is there already and is not overwritten. Nothing was read and nothing was spent.")
    named = [file.absolute() for file in (plot, report, save, table) if file is not None]
    if len(set(named)) != len(named):
        raise InvalidInput("two outputs have the same file; nothing was read and nothing was spent. Name another.")
    for file in named:
        if not file.parent.is_dir():
            raise InvalidInput(f"there is no folder {file.parent}; nothing was read and nothing was spent. Make it.")
    if plot is not None:
        from sfumato.core.extras import need

        need("altair", "pip install 'sfumato[plots]'")


def write(
    release: "Release",
    *,
    plot: Path | None,
    report: Path | None,
    save: Path | None,
    table: Path | None = None,
    reason: str = "",
    legal_basis: str = "",
) -> tuple[list[Path], SfumatoError | OSError | None]:
    """Write the files that were asked for; what went wrong first is handed back, not raised."""

    def draw(file: Path) -> Path:
        from sfumato.reports.plots import save as save_plot

        return save_plot(release.plot(), file)

    def tabulate(file: Path) -> Path:
        from pyarrow import csv

        csv.write_csv(release.to_arrow(), file)
        return file

    def set_page(file: Path) -> Path:
        return release.report(file, reason=reason, legal_basis=legal_basis)

    makers: list[tuple[Path | None, Callable[[Path], Path]]] = [
        (save, release.certificate.save),
        (plot, draw),
        (report, set_page),
        (table, tabulate),
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


def show(
    release: "Release",
    vault: "Vault",
    level: Fraction,
    written: list[Path],
    *,
    charged: bool,
    beside: str = "",
    most: int | None = None,
) -> None:
    """Print the answer, who is protected (and what is to be said ``beside``), the charge and the files; ``most`` rows.

    Rows beyond these are counted by what is public: the labels of a question, or an answer that is released.
    """
    from sfumato.cli.answers import answer_table
    from sfumato.core.units import describe

    terminal().print(answer_table(release, level, most=most))
    rows = len(release.shown(level)[0][1])
    if most is not None and rows > most:
        say(f"… and {rows - most:,} more: --csv FILE writes all of them")
    say("")
    for name, column in release.columns.items():
        if not column.measured and column.rank_margin is not None:
            say(f"{name}: chosen by rank, which is right within {column.rank_margin:,} rows with 95% confidence")
    say(f"protected: {describe(vault.unit)}{beside and f'; {beside}'}")
    say(f"charged: {'nothing, this is the stored answer' if release.repeated else release.charged}")
    if charged:
        say(f"ledger: {vault.name}, which may still ask for {vault.left}")
    else:
        say("ledger: none; nobody but you remembers this charge, and asking again adds to it")
    for file in written:
        say(f"written: {file}")


def document(
    release: "Release", vault: "Vault", level: Fraction, written: list[Path], *, charged: bool
) -> dict[str, Any]:
    """The same for programs."""
    from sfumato.cli import answers
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
        **answers.document(release, level),
        "identifier": said.identifier,
        "public_key": vault.public_key,
        "written": [str(file) for file in written],
    }
