"""What every question on the command line shares: its options, its vault, the files it writes, the way it is shown."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from urllib.parse import unquote

import typer

from sfumato.cli.output import LegalBasis, Reason, say, say_json, terminal
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError

if TYPE_CHECKING:
    from sfumato.core.release import Release
    from sfumato.core.units import Unit
    from sfumato.governance.ledger import Ledger
    from sfumato.inference.selected_values import SelectedValues
    from sfumato.vault import Vault

__all__ = [
    "RELATION",
    "ChargeOptions",
    "Confidence",
    "DatedChargeOptions",
    "DaysRead",
    "FileAndTableOptions",
    "FileOptions",
    "Foresee",
    "Population",
    "SpendOptions",
    "charge_document",
    "days_of",
    "deliver",
    "say_charge",
    "vault_for",
]

PICTURES, REPORTS = (".svg", ".png", ".pdf", ".html", ".htm"), (".html", ".htm", ".pdf")
TABLES, WORKBOOKS = (".csv",), (".xlsx",)

Confidence = Annotated[str, typer.Option(help="How sure the intervals are, such as 0.95.")]
Foresee = Annotated[bool, typer.Option("--preview", help="Show the expected error; reads nothing and spends nothing.")]
Population = Annotated[
    int | None, typer.Option(min=1, help="A public bound on how many are protected, to judge a δ by.")
]
DaysRead = Annotated[
    str | None,
    typer.Option(metavar="FIRST/LAST", help="The days that are read, 2026-01-01/2026-01-31, for windows of time."),
]
RELATION = "What makes neighbours: a unit more, or one replaced."


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendOptions:
    """What a question may cost."""

    epsilon: Annotated[str, typer.Option(help="ε to spend, as a decimal or a fraction such as 0.5 or 1/2.")]
    delta: Annotated[str, typer.Option(help="δ that may be spent beside it, such as 1e-6.")] = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """The files that an answer goes to."""

    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A picture to write: .svg, .png, .pdf or .html.")
    ] = None
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="A report to write: .html or .pdf.")] = None
    reason: Reason = ""
    legal_basis: LegalBasis = ""
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the certificate; never overwritten.")
    ] = None

    @property
    def table(self) -> Path | None:
        """Where the whole answer goes as a table."""
        return None

    @property
    def workbook(self) -> Path | None:
        """Where it goes as a workbook for Excel."""
        return None

    @property
    def named(self) -> list[Path]:
        """Every file that was named."""
        all_of_them = (self.plot, self.report, self.save, self.table, self.workbook)
        return [file for file in all_of_them if file is not None]

    def check(self) -> None:
        """Refuse what could not be written, before anything is spent."""
        if self.report is None and (self.reason or self.legal_basis):
            raise InvalidInput(
                "--reason and --legal-basis stand in a report, and none was asked for; nothing was read and nothing "
                "was spent. Add --report FILE."
            )
        kinds = (self.plot, PICTURES), (self.report, REPORTS), (self.table, TABLES), (self.workbook, WORKBOOKS)
        for file, endings in kinds:
            if file is not None and file.suffix.lower() not in endings:
                raise InvalidInput(
                    f"{file.name} cannot be written: choose an ending of {', '.join(endings)}. Nothing was read and "
                    "nothing was spent."
                )
        if self.save is not None and (self.save.exists() or self.save.is_symlink()):
            raise InvalidInput(
                f"{self.save} already exists and is not overwritten. Nothing was read and nothing was spent."
            )
        named = [file.absolute() for file in self.named]
        if len(set(named)) != len(named):
            raise InvalidInput("two outputs have the same file; nothing was read and nothing was spent. Name another.")
        for file in named:
            if not file.parent.is_dir():
                raise InvalidInput(
                    f"there is no folder {file.parent}; nothing was read and nothing was spent. Make it."
                )
        if self.plot is not None:
            from sfumato.core.extras import need

            need("altair", "pip install 'sfumato[plots]'")

    def write(self, release: "Release", level: Fraction) -> tuple[list[Path], SfumatoError | OSError | None]:
        """Write the files that were asked for; what went wrong first is handed back, not raised."""

        def draw(file: Path) -> Path:
            from sfumato.reports.plots import save as save_plot

            return save_plot(release.plot(), file)

        def set_page(file: Path) -> Path:
            return release.report(file, reason=self.reason, legal_basis=self.legal_basis)

        makers: list[tuple[Path | None, Callable[[Path], Path]]] = [
            (self.save, release.certificate.save),
            (self.plot, draw),
            (self.report, set_page),
            (self.table, lambda file: release.to_csv(file, level)),
            (self.workbook, lambda file: release.to_excel(file, level)),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAndTableOptions(FileOptions):
    """The same, and the whole answer as a table."""

    table_out: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="The whole answer as a table to write: .csv.")
    ] = None
    workbook_out: Annotated[
        Path | None,
        typer.Option("--excel", metavar="FILE", help="The same as a workbook for Excel, with its explanation: .xlsx."),
    ] = None

    @property
    def table(self) -> Path | None:
        """Where the whole answer goes as a table."""
        return self.table_out

    @property
    def workbook(self) -> Path | None:
        """Where it goes as a workbook for Excel."""
        return self.workbook_out


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeOptions:
    """Who signs, and whose account is charged in which ledger."""

    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The key to sign with, from sfumato key new; a new one if not given."),
    ] = None
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The ledger's settings file, or unix:SOCKET; with --account.")
    ] = None
    account: Annotated[
        str | None, typer.Option(metavar="PATH", help="The account to charge: institution/department/project.")
    ] = None
    purpose: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="What it is for, such as research/oncology, where data have terms."),
    ] = None
    recipient: Annotated[str | None, typer.Option(metavar="NAME", help="Who gets the answer, such as public.")] = None
    no_ledger: Annotated[
        bool,
        typer.Option("--no-ledger", help="Keep no ledger although there is one; the charge is not recorded."),
    ] = False

    @property
    def days(self) -> tuple[str, str] | None:
        """The first and the last day that are read, if any are said."""
        return None

    def check_account(self) -> None:
        """Refuse what belongs to an account where none is charged."""
        if self.account is None and any(
            said is not None for said in (self.ledger, self.purpose, self.recipient, self.days)
        ):
            raise NotDeclared(
                "a ledger, a purpose, a recipient and days go with the account that is charged; nothing was read and "
                "nothing was spent. Say --account institution/department/project"
            )

    def check_ledger(self, data: str | Path) -> None:
        """Refuse to pass over a ledger that is there: named by the environment, or in a folder of the data or this one.

        Looked at are this folder and that of the data, the one that links lead to, and all folders above them up to the
        home folder.
        A release that it does not know of is charged to nobody, and neither caps nor vetoes hold for it.
        """
        from sfumato.governance.settings import NAME, VARIABLE, file_of, owner_of

        if self.no_ledger and self.account is not None:
            raise InvalidInput(
                "--no-ledger and --account say opposite things; nothing was read and nothing was spent. Leave one out."
            )
        if self.no_ledger or self.account is not None:
            return
        folders = (*_around(Path()), *(() if (place := _place_of(str(data))) is None else _around(place)))
        found: Path | str | None = next((folder / NAME for folder in folders if (folder / NAME).is_file()), None)
        if found is None and os.environ.get(VARIABLE):
            found = owner_of(None) or file_of(None)
        if found is not None:
            raise NotDeclared(
                f"there is a ledger, {found}, and no account to charge: its budgets and vetoes would be passed over. "
                "Nothing was read and nothing was spent. Say --account institution/department/project, or --no-ledger "
                "if this release is really to be kept out of it."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedChargeOptions(ChargeOptions):
    """The same, for the days that are read."""

    reads: DaysRead = None

    @property
    def days(self) -> tuple[str, str] | None:
        """The first and the last day that are read, if any are said."""
        return days_of(self.reads)


def days_of(said: str | None) -> tuple[str, str] | None:
    """The first and the last day of a period as it is written on the command line; refused where it is none.

    >>> days_of("2026-01-01/2026-01-31")
    ('2026-01-01', '2026-01-31')
    """
    if said is None:
        return None
    first, sign, last = said.partition("/")
    if not (first and sign and last):
        raise InvalidInput(
            f"{said!r} is not a period of days; nothing was read and nothing was spent. Say 2026-01-01/2026-01-31"
        )
    return first, last


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
    spend: SpendOptions,
    charge: ChargeOptions,
    book: "Ledger | str | None",
    reads: tuple[str, str] | None = None,
) -> "Vault":
    """A vault for one question: for it alone, under the ``name`` of its command, or for an account of the ledger.

    ``reads`` are the days that the question itself says it reads, where the options do not.
    """
    from sfumato.core.budget import Budget
    from sfumato.vault import Vault

    if book is not None:
        return Vault(
            unit=unit,
            population=population,
            key=charge.key,
            ledger=book,
            account=charge.account,
            purpose=charge.purpose,
            recipient=charge.recipient,
            reads=charge.days if reads is None else reads,
        )
    budget = Budget.asked(epsilon=spend.epsilon, delta=spend.delta)
    return Vault(unit=unit, budget=budget, name=name, population=population, key=charge.key)


def deliver(
    release: "Release",
    vault: "Vault",
    level: Fraction,
    files: FileOptions,
    *,
    charged: bool,
    as_json: bool,
    beside: str = "",
    most: int | None = None,
) -> SfumatoError | OSError | None:
    """Write the files and print the answer; whatever cannot be written is handed back, and the numbers are shown."""
    written, failed = files.write(release, level)
    if as_json:
        say_json(_document(release, vault, level, written, charged=charged))
    else:
        _show(release, vault, level, written, charged=charged, beside=beside, most=most)
    return failed


def _show(
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
    from sfumato.core.release import shown_columns
    from sfumato.core.units import describe

    terminal().print(answer_table(release, level, most=most))
    rows = len(shown_columns(release, level)[0][1])
    if most is not None and rows > most:
        say(f"… and {rows - most:,} more: --csv FILE or --excel FILE writes all of them")
    say("")
    for name, column in release.columns.items():
        if not column.measured and (margin := cast("SelectedValues", column).rank_margin) is not None:
            say(f"{name}: chosen by rank, which is right within {margin:,} rows with 95% confidence")
            say("  (in a group of fewer rows it may be any value; for an interval of values, count by value:")
            say("  docs/how-to/quantiles.md)")
    if any(column.measured for column in release.columns.values()):
        limit = release.limit_words()
        cut = "what this limit cut, and " if release.limit_cuts() else ""
        counted = f"counted: {limit}; " if limit else ""
        sampled = [name for name, column in release.columns.items() if column.estimates_population]
        if sampled:
            missed = "; not what this limit cut" if release.limit_cuts() else ""
            say(f"{counted}in the interval of {', '.join(sampled)}: sampling and noise{missed}")
        if len(sampled) < len(release.columns):
            others = " of the others" if sampled else ""
            say(f"{'' if sampled else counted}not in the interval{others}: {cut}sampling")
    elif release.limit_words():
        say(f"counted: {release.limit_words()}")
    say(f"protected: {describe(vault.unit)}{beside and f'; {beside}'}")
    say_charge(release, vault, charged=charged)
    for file in written:
        say(f"written: {file}")


def say_charge(release: "Release", vault: "Vault", *, charged: bool) -> None:
    """Print what was charged, and where that stands."""
    say(f"charged: {'nothing, this is the stored answer' if release.repeated else release.charged}")
    if charged:
        say(f"ledger: {vault.name}, which may still ask for {vault.left}")
    else:
        say("ledger: none; this charge is not recorded, and asking again adds to it")


def charge_document(release: "Release", vault: "Vault", *, charged: bool) -> dict[str, object]:
    """The same for programs, with the data and who is protected."""
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
    }


def _document(
    release: "Release", vault: "Vault", level: Fraction, written: list[Path], *, charged: bool
) -> dict[str, object]:
    """The same for programs."""
    from sfumato.cli import answers

    return {
        **charge_document(release, vault, charged=charged),
        "confidence": str(level),
        **answers.document(release, level),
        "identifier": release.statement.identifier,
        "public_key": vault.public_key,
        "written": [str(file) for file in written],
    }
