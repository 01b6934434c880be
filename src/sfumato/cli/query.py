"""One question in SQL, from a file and its schema to numbers with margins."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.asked import (
    RELATION,
    Confidence,
    DatedChargeOptions,
    FileAndTableOptions,
    SpendOptions,
    deliver,
    vault_for,
)
from sfumato.cli.data import Data, Within, source_of
from sfumato.cli.groups import grouped
from sfumato.cli.ledger import charged
from sfumato.cli.output import AsJson
from sfumato.cli.protected import unit_of
from sfumato.errors import InvalidInput, NotDeclared, Refused

if TYPE_CHECKING:
    from sfumato.core.limits import Limit
    from sfumato.core.units import Unit
    from sfumato.tables.schema import Schema

__all__ = ["protected_by", "query"]

SEVERAL = "whoever has several rows is protected less"


@grouped
def query(
    data: Data,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The question: SELECT … FROM the name in the schema.")],
    *,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The public facts; see sfumato schema draft.")],
    spend: SpendOptions,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Who is protected, if the schema does not say: user:COLUMN, family:SIZE:COLUMN or record (rows).",
        ),
    ] = None,
    groups: Annotated[
        int | None, typer.Option(min=1, help="At most this many groups of a person count, if the schema does not say …")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="… with at most this many rows in each.")] = None,
    unit_relation: Annotated[Literal["add/remove", "replace"], typer.Option(help=RELATION)] = "add/remove",
    even_if_useless: Annotated[
        bool,
        typer.Option("--even-if-useless", help="Pay also for an answer whose margin is wider than all it can be."),
    ] = False,
    confidence: Confidence = "0.95",
    files: FileAndTableOptions,
    table: Within = None,
    charge: DatedChargeOptions,
    as_json: AsJson = False,
) -> None:
    """Ask one question in SQL and print the answer with its margins.

    The schema says who is protected and how much of each person counts; one without a unit column is refused, unless
    --unit says it. With --account the charge counts in the ledger (--ledger, else SFUMATO_LEDGER, else ./ledger.toml),
    whose key signs; the same question again gives the stored answer at no cost. Without, no ledger is kept: the charge
    is printed and not recorded, and asking again is another charge; where there is a ledger (here,
    beside the data, or in SFUMATO_LEDGER) that needs --no-ledger. All options are checked before anything is read. The
    picture and the report replace earlier ones of the same name.

    The second example is for the schema that the first drafts, which does not say yet who is protected.

    Example: $ sfumato schema draft sfumato-demo/visits.parquet -o visits.toml

    Example: $ sfumato query sfumato-demo/visits.parquet "SELECT COUNT(*) FROM visits" --schema visits.toml --unit user:patient_id --groups 1 --rows 3 --epsilon 1
    """  # noqa: E501 - an example is one line
    from sfumato.core.units import Record
    from sfumato.laws.margins import level_of
    from sfumato.tables.schema import Schema

    level = level_of(confidence)
    files.check()
    facts = Schema.load(schema)
    days = charge.days
    charge.check_account()
    charge.check_ledger(data)
    protected, limit = protected_by(facts, unit, unit_relation), _limit(groups, rows)
    with ExitStack() as held:
        book = None if charge.account is None else held.enter_context(charged(charge.ledger))
        vault = vault_for(
            protected, name="sfumato query", population=facts.population, spend=spend, charge=charge, book=book
        )
        question = vault.table(source_of(data, table), schema=facts, limit=limit).sql(sql)
        release = question.release(
            epsilon=spend.epsilon, delta=spend.delta, reads=days, even_if_useless=even_if_useless
        )
        beside = SEVERAL if isinstance(protected, Record) else ""
        failed = deliver(release, vault, level, files, charged=book is not None, as_json=as_json, beside=beside)
    if failed is not None:
        raise failed


def _limit(groups: int | None, rows: int | None) -> "Limit | None":
    """How much of each person counts, where an option says it."""
    from sfumato.core.limits import Limit

    if (groups is None) is not (rows is None):
        raise InvalidInput(
            "--groups and --rows go together: the most groups of a person that count, and the most rows in each. "
            "Nothing was read and nothing was spent."
        )
    return None if groups is None or rows is None else Limit(groups=groups, rows_per_group=rows)


def protected_by(facts: "Schema", said: str | None, relation: str) -> "Unit":
    """Who is protected, as the schema or the option says; never guessed."""
    from sfumato.core.units import Family, Record, User, describe, user

    if said is None and facts.unit is None:
        raise NotDeclared(
            "neither the schema nor --unit says who is protected; nothing was read and nothing was spent. Declare the "
            "column that tells persons apart under [unit] in the schema, with a [limit]; or say --unit record, if each "
            "row is about somebody else: whoever has several rows is then protected less."
        )
    if said is None:
        return user(str(facts.unit), relation=relation)
    unit = unit_of(said, relation)
    if not isinstance(unit, Record | User | Family):
        raise InvalidInput(
            f"rows of a table are protected as record, user:COLUMN or family:SIZE:COLUMN, and not as {said!r}; nothing "
            "was read and nothing was spent."
        )
    if facts.unit is not None and isinstance(unit, Record):
        raise Refused(
            f"the schema says that {facts.unit!r} identifies persons, and --unit record would protect single "
            f"rows, which is less than {describe(user(facts.unit, relation=relation))}. Nothing was read and nothing "
            "was spent. Leave --unit out."
        )
    return unit
