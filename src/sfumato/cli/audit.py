"""Attacks on what is shipped."""

import json
import math
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sfumato.audit import Verdict

__all__ = ["audit"]

REFUTED = 4


def audit(
    *,
    samples: Annotated[int, typer.Option(min=1_000, help="Samples for each sampling attack.")] = 400_000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999999, help="Of all proven bounds together.")] = 0.99,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Attack every shipped mechanism, and broken twins of them: the ε claimed beside the ε proven by attack.

    A proven ε above the claim refutes it. The twins are wrong on purpose and must all be refuted, or the attacks are
    blunt. What may go wrong with the confidence asked for is shared out evenly, so that each bound holds with more.
    Exits with 4 if a claim is refuted or a twin gets away.

    Example: $ sfumato audit --samples 200000
    """
    from rich.console import Console
    from rich.progress import Progress

    from sfumato.audit import ATTACKS, TWINS

    verdicts: list[tuple[Verdict, bool]] = []
    alpha = (1 - confidence) / (len(ATTACKS) + len(TWINS))
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("attacking", total=len(ATTACKS) + len(TWINS))
        for attack in (*ATTACKS, *TWINS):
            progress.update(task, description=attack.name)
            verdicts.append((attack.run(samples=samples, alpha=alpha), attack in TWINS))
            progress.advance(task)
    if as_json:
        typer.echo(json.dumps([_plain(verdict, twin=twin) for verdict, twin in verdicts], indent=1, ensure_ascii=False))
    else:
        _table(verdicts)
    if any(verdict.refuted != twin for verdict, twin in verdicts):
        raise typer.Exit(REFUTED)


def _table(verdicts: "list[tuple[Verdict, bool]]") -> None:
    from rich.console import Console
    from rich.table import Table

    for twins, title in ((False, "Shipped mechanisms"), (True, "Broken twins, which must be refuted")):
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for column in ("mechanism", "ε claimed", "δ", "ε proven", "by", "confidence", "verdict"):
            table.add_column(column, justify="right" if column.startswith(("ε", "δ")) else "left")
        for verdict, twin in verdicts:
            if twin == twins:
                table.add_row(
                    verdict.name,
                    f"{verdict.epsilon:g}",
                    f"{verdict.delta:g}",
                    f"{verdict.proven:.4f}" if math.isfinite(verdict.proven) else "∞",
                    verdict.method,
                    f"{verdict.confidence:g}",
                    "refuted" if verdict.refuted else "stands",
                )
        Console().print(table)


def _plain(verdict: "Verdict", *, twin: bool) -> dict[str, object]:
    return {
        "name": verdict.name,
        "mechanism": verdict.kind,
        "twin": twin,
        "epsilon": verdict.epsilon,
        "delta": verdict.delta,
        "proven": verdict.proven if math.isfinite(verdict.proven) else "infinite",
        "method": verdict.method,
        "confidence": verdict.confidence,
        "refuted": verdict.refuted,
    }
