"""Attacks on every way out of one kind: the ε of the certificate beside the ε that was proven."""

import json
import math
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.audit import audit, end_of_audit

if TYPE_CHECKING:
    from sfumato.audit import WayAudited

__all__ = ["audit", "graph", "local", "release", "stream", "synthetic", "training"]

Samples = Annotated[int, typer.Option(min=1_000, help="Draws for each way out, at most.")]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.999999, help="Of all rows together.")]
Only = Annotated[str, typer.Option(help="Attack only the ways out with this in their names.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
SAMPLES = 100_000
COLUMNS = ("way out", "ε claimed", "δ", "ε proven", "by the curve", "ratio", "how", "confidence", "verdict")


@audit.command()
def release(
    *, samples: Samples = SAMPLES, confidence: Confidence = 0.99, only: Only = "", as_json: AsJson = False
) -> None:
    """Attack every way out of tables: counts, sums, medians, keys, regressions and others, through a vault.

    Each way out is called as users call it, on two invented tables that differ in one unit; the ε claimed is the one
    charged. Every one has a copy that is broken on purpose and must be refuted. "Nothing found" is no proof. Exits
    with 4 if a claim is refuted or a broken copy is not.

    Example: $ sfumato audit release --only counts --samples 20000
    """
    _attack("release", samples, confidence, only, as_json=as_json)


@audit.command()
def stream(
    *, samples: Samples = SAMPLES, confidence: Confidence = 0.99, only: Only = "", as_json: AsJson = False
) -> None:
    """Attack every way out of streams: running totals and alarms, as sfumato audit release does for tables.

    Example: $ sfumato audit stream --samples 2000
    """
    _attack("stream", samples, confidence, only, as_json=as_json)


@audit.command()
def graph(
    *, samples: Samples = SAMPLES, confidence: Confidence = 0.99, only: Only = "", as_json: AsJson = False
) -> None:
    """Attack every way out of graphs: edges, degrees, stars and others, as sfumato audit release does for tables.

    Example: $ sfumato audit graph --samples 20000
    """
    _attack("graph", samples, confidence, only, as_json=as_json)


@audit.command()
def local(
    *, samples: Samples = SAMPLES, confidence: Confidence = 0.99, only: Only = "", as_json: AsJson = False
) -> None:
    """Attack every way to report in the local model, by the reports of many clients.

    Example: $ sfumato audit local --samples 2000
    """
    _attack("local", samples, confidence, only, as_json=as_json)


@audit.command()
def synthetic(
    *, samples: Samples = SAMPLES, confidence: Confidence = 0.99, only: Only = "", as_json: AsJson = False
) -> None:
    """Attack synthetic rows: the noisy tables that they are made of, and who can be told to be in the data.

    Example: $ sfumato audit synthetic --only tables --samples 20000
    """
    _attack("synthetic", samples, confidence, only, as_json=as_json)


@audit.command()
def training(
    *, samples: Samples = SAMPLES, confidence: Confidence = 0.99, only: Only = "", as_json: AsJson = False
) -> None:
    """Attack what is released of training: weights, and votes of teachers; needs the optional part for learning.

    Example: $ sfumato audit training --samples 2000
    """
    _attack("training", samples, confidence, only, as_json=as_json)


def _attack(kind: str, samples: int, confidence: float, only: str, *, as_json: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from sfumato.audit import ways_out

    rows: list[WayAudited] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("attacking", total=None)
        for row in ways_out(kind, samples=samples, confidence=confidence, only=only):
            rows.append(row)
            progress.update(task, description=row.way.name)
    if not rows:
        raise typer.BadParameter("no way out has this in its name; nothing was attacked.", param_hint="--only")
    if as_json:
        typer.echo(json.dumps([_plain(row) for row in rows], indent=1, ensure_ascii=False))
    else:
        _shown(rows)
    end_of_audit([(row.twin, row.refuted) for row in rows if row.skipped is None])


def _shown(rows: "list[WayAudited]") -> None:
    from rich.console import Console
    from rich.table import Table

    stands = "Shipped. 'nothing found' is no proof: these attacks found nothing"
    for twin, title in ((False, stands), (True, "Broken on purpose: these must be refuted")):
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for column in COLUMNS:
            table.add_column(column, justify="right" if column.startswith(("ε", "δ", "ratio", "by")) else "left")
        for row in rows:
            if row.twin == twin:
                table.add_row(*_cells(row))
        Console().print(table)


def _cells(row: "WayAudited") -> tuple[str, ...]:
    name = f"{row.way.name}: {row.way.flaw}" if row.twin else row.way.name
    if row.skipped is not None:
        return (name, "—", "—", "—", "—", "—", row.skipped, "—", "not attacked")
    return (
        name,
        f"{float(row.epsilon):g}",
        f"{float(row.delta):.2g}",
        _number(row.point),
        _number(row.by_curve),
        _number(row.ratio),
        f"{row.way.how}: {f'{row.draws:,} draws' if row.draws else 'exact'}",
        f"{row.confidence:.5f}",
        "refuted" if row.refuted else "NOT refuted" if row.twin else "nothing found",
    )


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
