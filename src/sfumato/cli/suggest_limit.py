"""A limit for planned questions, from a file and its schema."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from sfumato.cli.asked import RELATION, DatedChargeOptions, FileOptions, SpendOptions, deliver, vault_for
from sfumato.cli.data import Data, Within, source_of
from sfumato.cli.groups import grouped
from sfumato.cli.ledger import charged
from sfumato.cli.output import AsJson
from sfumato.cli.query import protected_by
from sfumato.errors import Unsupported

__all__ = ["suggest_limit"]


@grouped
def suggest_limit(
    data: Data,
    *,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The public facts; see sfumato schema draft.")],
    planned: Annotated[
        list[str],
        typer.Option(metavar="ε", help="The ε of a question that you plan under the limit; once for each question."),
    ],
    spend: SpendOptions,
    most: Annotated[int, typer.Option(min=1, help="The largest limit of rows that is considered.")] = 1024,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that the questions group by, with keys in the schema; or more."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="The condition of the questions, such as: age >= 65.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Who is protected, if the schema does not say: user:COLUMN.")
    ] = None,
    unit_relation: Annotated[Literal["add/remove", "replace"], typer.Option(help=RELATION)] = "add/remove",
    files: FileOptions,
    table: Within = None,
    charge: DatedChargeOptions,
    as_json: AsJson = False,
) -> None:
    """Ask how much of each person should count, so that what is cut off and the noise are small together.

    This is a release of its own: it is charged, signed and certified, and reads all rows of each person, each of whom
    counts once. Give it about as much ε as the question where one follows, and a sixth of everything where ten do. What
    it says goes into the [limit] of the schema, or into --groups and --rows of sfumato query.

    Example: $ sfumato suggest-limit sfumato-demo/visits.parquet --schema visits.toml --unit user:patient_id --planned 1 --epsilon 1
    """  # noqa: E501 - an example is one line
    from sfumato.laws.margins import level_of
    from sfumato.tables.schema import Schema

    level = level_of("0.95")
    files.check()
    if files.plot is not None:
        raise Unsupported(
            "a limit is chosen and not measured, so there is no error to draw; nothing was read and nothing was spent. "
            "Leave --plot out."
        )
    facts = Schema.load(schema)
    days = charge.days
    charge.check_account()
    charge.check_ledger(data)
    protected = protected_by(facts, unit, unit_relation)
    with ExitStack() as held:
        book = None if charge.account is None else held.enter_context(charged(charge.ledger))
        vault = vault_for(
            protected, name="sfumato suggest-limit", population=facts.population, spend=spend, charge=charge, book=book
        )
        rows = vault.table(source_of(data, table), schema=facts)
        rows = rows if where is None else rows.where(where)
        question = rows.group_by(*(by or ())).suggest_limit(spend=planned, most=most)
        release = question.release(epsilon=spend.epsilon, delta=spend.delta, reads=days)
        failed = deliver(release, vault, level, files, charged=book is not None, as_json=as_json)
    if failed is not None:
        raise failed
