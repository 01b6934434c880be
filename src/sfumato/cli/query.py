"""One question in SQL, from a file and its schema to numbers with margins."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.asked import (
    Account,
    Book,
    Confidence,
    Days,
    Delta,
    Epsilon,
    KeyFile,
    Picture,
    Purpose,
    Recipient,
    Report,
    Save,
    check_account,
    check_files,
    days_of,
    document,
    show,
    vault_for,
    write,
)
from sfumato.cli.data import Data, Within, source_of
from sfumato.cli.ledger import opened
from sfumato.cli.output import AsJson, LegalBasis, Reason, say_json

if TYPE_CHECKING:
    from sfumato.core.units import Unit
    from sfumato.tables.schema import Schema

__all__ = ["query"]

SEVERAL = "the schema names no unit column, so whoever has several rows is protected less"


def query(
    data: Data,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The question: SELECT … FROM the name in the schema.")],
    *,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The public facts; see sfumato schema draft.")],
    epsilon: Epsilon,
    delta: Delta = "0",
    unit_relation: Annotated[
        Literal["add/remove", "replace"], typer.Option(help="What makes neighbours: a unit more, or one replaced.")
    ] = "add/remove",
    confidence: Confidence = "0.95",
    plot: Picture = None,
    report: Report = None,
    reason: Reason = "",
    legal_basis: LegalBasis = "",
    save: Save = None,
    key: KeyFile = None,
    table: Within = None,
    ledger: Book = None,
    account: Account = None,
    purpose: Purpose = None,
    recipient: Recipient = None,
    reads: Days = None,
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
    check_files(plot, report, save, grounds=(reason, legal_basis))
    facts = Schema.load(schema)
    days = days_of(reads)
    check_account(account, ledger, purpose, recipient, days)
    with ExitStack() as held:
        book = None if account is None else held.enter_context(opened(ledger))
        vault = vault_for(
            _unit(facts, unit_relation),
            name="sfumato query",
            population=facts.population,
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
        written, failed = write(release, plot=plot, report=report, save=save, reason=reason, legal_basis=legal_basis)
        if as_json:
            say_json(document(release, vault, level, written, charged=book is not None))
        else:
            beside = SEVERAL if facts.unit is None else ""
            show(release, vault, level, written, charged=book is not None, beside=beside)
    if failed is not None:
        raise failed


def _unit(facts: "Schema", relation: str) -> "Unit":
    """The person that the schema tells of, or a row."""
    from sfumato.core.units import record, user

    return record(relation=relation) if facts.unit is None else user(facts.unit, relation=relation)
