"""The query compiler under fuzzing, on the schema of a steward."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.asked import RELATION
from sfumato.cli.audit import REFUTED
from sfumato.cli.output import AsJson, say, say_json

if TYPE_CHECKING:
    from sfumato.audit.plans import PlansAudit, PlanTried

__all__ = ["plans"]


def plans(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The public facts; see sfumato schema draft.")],
    *,
    number: Annotated[int, typer.Option("--plans", min=1, max=100_000, help="How many random plans are tried.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="The same seed tries the same plans on the same rows.")] = 1,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Who is protected, if the schema does not say: user:COLUMN, family:SIZE:COLUMN or record (rows).",
        ),
    ] = None,
    unit_relation: Annotated[Literal["add/remove", "replace"], typer.Option(help=RELATION)] = "add/remove",
    as_json: AsJson = False,
) -> None:
    """Fuzz the query compiler on a schema: does one person move an answer further than it declares?

    Random questions about the declared columns (counts, sums, means, proportions, histograms, with groups, filters and
    limits) are answered exactly on a few invented rows and on their neighbours: each person taken out, or replaced. A
    change beyond the declared sensitivity refutes the guarantee of that question, and is printed with it. Of the
    schema the declaration alone is used: no data are opened, no ledger is asked, nothing is spent.

    "Nothing found" is no proof. Not tried are joins, one row a person, quantiles, choices and studies. Takes some
    seconds for 10 plans. Exits with 4 if a plan is refuted.

    Example: $ sfumato audit plans declared.toml --plans 10
    """
    from sfumato.audit.plans import plans as fuzz
    from sfumato.cli.query import protected_by
    from sfumato.core.units import Family, Record, User
    from sfumato.tables.schema import Schema

    facts = Schema.load(schema)
    protected = protected_by(facts, unit, unit_relation)
    found = fuzz(
        facts, plans=number, seed=seed, unit=protected if isinstance(protected, Record | User | Family) else None
    )
    if as_json:
        say_json(_plain(found))
    else:
        say(str(found))
    if found.refuted:
        raise typer.Exit(REFUTED)


def _plain(found: "PlansAudit") -> dict[str, object]:
    return {
        "dataset": found.dataset,
        "unit": found.unit,
        "seed": found.seed,
        "plans": len(found.tried),
        "refused": found.refused,
        "pairs": found.pairs,
        "largest": found.largest,
        "attained": found.attained,
        "refuted": found.refuted,
        "beyond": [_one(each) for each in found.beyond],
    }


def _one(tried: "PlanTried") -> dict[str, object]:
    ratios = {norm.replace(" ", "_"): str(share) for norm, share in tried.ratios.items()}
    return {"plan": tried.words, "pairs": tried.pairs, "ratios": ratios, "differs": tried.differs}
