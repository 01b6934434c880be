"""Attacks on what is shipped."""

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.audit_table import AuditLine, as_verdict, named_alike, show_audits
from sfumato.cli.output import say

if TYPE_CHECKING:
    from sfumato.audit import Verdict

__all__ = ["audit", "end_of_audit"]

REFUTED = 4
HEADS = ("mechanism", "ε\nclaimed", "δ", "ε\nproven", "verdict")

audit = typer.Typer(invoke_without_command=True)


@audit.callback()
def shipped(
    context: typer.Context,
    *,
    samples: Annotated[int, typer.Option(min=1_000, help="Samples for each sampling attack, at most.")] = 400_000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999999, help="Of all verdicts together.")] = 0.99,
    only: Annotated[str, typer.Option(help="Run only the attacks with this in their names.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Attack what is shipped, and deliberately broken mechanisms: the ε claimed beside the ε proven by attack.

    Three kinds of attack. Neighbouring inputs are put through a mechanism, as exact distributions or as samples: a
    proven ε above the claim refutes it. The draws of every mechanism are compared with the distribution that it states.
    And invented data goes through whole releases: tables, graphs, streams, reports of clients, training, evaluation;
    what comes out is compared with what the certificate states. Rows that stand are not proven: these attacks found
    nothing. Not attacked: the engines that read data, the ledger, and everything that a row does not name.

    All deliberately broken mechanisms must be refuted, or the attacks are too weak. The confidence asked for is for
    all verdicts together, so each verdict alone has a higher one. Where torch is not installed, the
    rows that need it say so. Exits with 4 if a claim is refuted or a broken mechanism is not.

    Example: $ sfumato audit --samples 200000
    """
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.progress import Progress

    from sfumato.audit import ATTACKS, TWINS

    chosen = [(attack, False) for attack in ATTACKS] + [(twin, True) for twin in TWINS]
    named_alike(only, [attack.name for attack, _ in chosen], "attack")
    chosen = [(attack, twin) for attack, twin in chosen if only.casefold() in attack.name.casefold()]
    verdicts: list[tuple[Verdict, bool]] = []
    alpha = (1 - confidence) / len(chosen)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("attacking", total=len(chosen))
        for attack, twin in chosen:
            progress.update(task, description=attack.name)
            verdicts.append((attack.run(samples=samples, alpha=alpha), twin))
            progress.advance(task)
    if as_json:
        typer.echo(json.dumps([_plain(verdict, twin=twin) for verdict, twin in verdicts], indent=1, ensure_ascii=False))
    else:
        _shown(verdicts, confidence)
    end_of_audit([(twin, verdict.refuted) for verdict, twin in verdicts if verdict.skipped is None])


def _shown(verdicts: "list[tuple[Verdict, bool]]", confidence: float) -> None:
    lines = [
        AuditLine(
            name=verdict.name,
            numbers=(f"{verdict.epsilon:g}", f"{verdict.delta:g}", _proven(verdict)),
            verdict=as_verdict(twin=twin, refuted=verdict.refuted, skipped=verdict.skipped),
            twin=twin,
        )
        for verdict, twin in verdicts
    ]
    notes = [
        f"All rows together hold with confidence {confidence:g}. Rows without an ε proven compare draws with the "
        "distribution that they are stated to have. How each row was attacked, and its own confidence: --json."
    ]
    if skipped := sorted({verdict.skipped for verdict, _ in verdicts if verdict.skipped is not None}):
        notes.append(f"Rows {'; '.join(skipped)}.")
    show_audits(HEADS, lines, notes)


def _proven(verdict: "Verdict") -> str:
    if verdict.proven is None:
        return "—"
    return f"{verdict.proven:.4f}" if math.isfinite(verdict.proven) else "∞"


def end_of_audit(judged: Sequence[tuple[bool, bool]]) -> None:
    """Say why an audit failed, and exit with 4: a shipped claim was refuted, or a broken copy was not.

    Of each attack: whether it is of a broken copy, and whether it refuted.
    """
    claims = sum(refuted for twin, refuted in judged if not twin)
    missed = sum(not refuted for twin, refuted in judged if twin)
    if claims:
        say(f"{claims} shipped claim(s) refuted, with the confidence stated.", error=True)
    if missed:
        say(
            f"{missed} broken mechanism(s) not refuted: the attacks are too weak with this many samples. "
            "Use more --samples.",
            error=True,
        )
    if claims or missed:
        raise typer.Exit(REFUTED)


def _plain(verdict: "Verdict", *, twin: bool) -> dict[str, object]:
    return {
        "name": verdict.name,
        "mechanism": verdict.kind,
        "twin": twin,
        "epsilon": verdict.epsilon,
        "delta": verdict.delta,
        "proven": "infinite" if verdict.proven is not None and math.isinf(verdict.proven) else verdict.proven,
        "doubt": verdict.doubt,
        "method": verdict.method,
        "confidence": verdict.confidence,
        "refuted": verdict.refuted,
        "skipped": verdict.skipped,
    }
