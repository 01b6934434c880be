"""Attacks on every way out of one kind: the ε of the certificate beside the ε that was proven."""

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.audit import audit, end_of_audit
from sfumato.cli.audit_table import AuditLine, as_verdict, named_alike, show_audits

if TYPE_CHECKING:
    from sfumato.audit import WayAudited

__all__ = ["audit"]

Samples = Annotated[int, typer.Option(min=1_000, help="Draws for each way out, at most.")]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.999999, help="Of all rows together.")]
Only = Annotated[str, typer.Option(help="Attack only the ways out with this in their names.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
SAMPLES = 100_000
HEADS = ("way out", "ε\nclaimed", "δ", "ε\nproven", "by the\ncurve", "ratio", "verdict")
COMMANDS = {
    "release": """
    Attack every way out of tables: counts, sums, medians, keys, regressions and others, through a vault.

    Each way out is called as users call it, on two invented tables that differ in one unit; the ε claimed is the one
    charged. Every one has a copy that is broken on purpose and must be refuted. "Nothing found" is no proof. Exits
    with 4 if a claim is refuted or a broken copy is not.

    Example: $ sfumato audit release --only counts --samples 20000
    """,
    "stream": """
    Attack every way out of streams: running totals and alarms, as sfumato audit release does for tables.

    Example: $ sfumato audit stream --samples 2000
    """,
    "graph": """
    Attack every way out of graphs: edges, degrees, stars and others, as sfumato audit release does for tables.

    Example: $ sfumato audit graph --samples 20000
    """,
    "local": """
    Attack every way to report in the local model, by the reports of many clients.

    Example: $ sfumato audit local --samples 2000
    """,
    "synthetic": """
    Attack synthetic rows: the noisy tables that they are made of, and who can be told to be in the data.

    Example: $ sfumato audit synthetic --only tables --samples 20000
    """,
    "training": """
    Attack what is released of training: weights, and votes of teachers; needs the optional part for learning.

    Example: $ sfumato audit training --samples 2000
    """,
}


def _command(kind: str) -> Callable[..., None]:
    """The command of a kind: all of them take the same options."""

    def attack(
        *, samples: Samples = SAMPLES, confidence: Confidence = 0.99, only: Only = "", as_json: AsJson = False
    ) -> None:
        _attack(kind, samples, confidence, only, as_json=as_json)

    attack.__doc__ = COMMANDS[kind]
    return attack


for _kind in COMMANDS:
    audit.command(_kind)(_command(_kind))


def _attack(kind: str, samples: int, confidence: float, only: str, *, as_json: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from sfumato.audit import ways_out
    from sfumato.audit.ways_shipped import WAYS

    named_alike(only, [way.name for way in WAYS if way.kind == kind], "way out")
    rows: list[WayAudited] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("attacking", total=None)
        for row in ways_out(kind, samples=samples, confidence=confidence, only=only):
            rows.append(row)
            progress.update(task, description=row.way.name)
    if as_json:
        typer.echo(json.dumps([_plain(row) for row in rows], indent=1, ensure_ascii=False))
    else:
        show_audits(HEADS, [_line(row) for row in rows], _notes(rows, confidence))
    end_of_audit([(row.twin, row.refuted) for row in rows if row.skipped is None])


def _line(row: "WayAudited") -> AuditLine:
    claimed = (f"{float(row.epsilon):g}", f"{float(row.delta):.2g}")
    return AuditLine(
        name=f"{row.way.name}: {row.way.flaw}" if row.twin else row.way.name,
        numbers=("—",) * 5
        if row.skipped is not None
        else (*claimed, _number(row.point), _number(row.by_curve), _number(row.ratio)),
        verdict=as_verdict(twin=row.twin, refuted=row.refuted, skipped=row.skipped),
        twin=row.twin,
    )


def _notes(rows: "list[WayAudited]", confidence: float) -> list[str]:
    """What all rows have in common, in place of columns."""
    attacked = [row for row in rows if row.skipped is None]
    draws = sorted({row.draws for row in attacked if row.draws})
    notes = [
        f"All rows together hold with confidence {confidence:g}"
        + (f", each by itself with {min(row.confidence for row in attacked):.5f} or more." if attacked else ".")
    ]
    if draws:
        many = f"{draws[0]:,}" if len(draws) == 1 else f"{draws[0]:,} to {draws[-1]:,}"
        exact = "; others have exact probabilities" if any(not row.draws for row in attacked) else ""
        notes.append(f"Each row has {many} draws of either neighbour{exact}.")
    if any(row.by_curve is not None for row in attacked):
        notes.append("By the curve: the least Gaussian curve that is not refuted, where noise is stated as Gaussian.")
    notes.append("How each row was attacked: --json.")
    if skipped := sorted({row.skipped for row in rows if row.skipped is not None}):
        notes.append(f"Rows {'; '.join(skipped)}.")
    return notes


def _number(bound: float | None) -> str:
    if bound is None:
        return "—"
    return f"{bound:.3f}" if math.isfinite(bound) else "∞"


def _plain(row: "WayAudited") -> dict[str, object]:
    def finite(bound: float | None) -> float | str | None:
        return "infinite" if bound is not None and math.isinf(bound) else bound

    return {
        "name": row.way.name,
        "kind": row.way.kind,
        "how": row.way.how,
        "twin": row.twin,
        "flaw": row.way.flaw if row.twin else None,
        "epsilon": str(row.epsilon),
        "delta": float(row.delta),
        "point": finite(row.point),
        "by_curve": finite(row.by_curve),
        "ratio": finite(row.ratio),
        "draws": row.draws,
        "releases": row.releases,
        "confidence": row.confidence,
        "refuted": row.refuted,
        "skipped": row.skipped,
    }
