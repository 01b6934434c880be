"""The demonstration."""

import math
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.output import AsJson, say_json, terminal

if TYPE_CHECKING:
    from sfumato.core.budget import Budget
    from sfumato.core.release import Release
    from sfumato.demo.tour import Tour
    from sfumato.inference import Ratio

__all__ = ["demo"]

MOST_PATIENTS = 2_000_000

demo = typer.Typer(invoke_without_command=True)


@demo.callback()
def guided(
    context: typer.Context,
    *,
    folder: Annotated[Path, typer.Option(help="Where the files go; made if it is not there.")] = Path("sfumato-demo"),
    patients: Annotated[
        int, typer.Option(min=1, max=MOST_PATIENTS, help="How many fictional patients to invent.")
    ] = 20_000,
    as_json: AsJson = False,
) -> None:
    """Take the guided tour: three private releases with error bars from a generated hospital network, and a report.

    No real person occurs in the data. The tour spends its own privacy budget, derives a share at no cost, shows a heat
    table and a refusal, and ends with the commands to look at what it wrote. A folder that holds anything but an
    earlier tour is refused.

    Example: $ sfumato demo

    Example: $ sfumato demo --folder tour --patients 2000 --json
    """
    if context.invoked_subcommand is not None:
        return
    from sfumato.demo.tour import tour

    shown = tour(folder, patients=patients, program=_program(), console=terminal(quiet=as_json))
    if as_json:
        say_json(_document(folder, shown))


def _program() -> str:
    """What to type to run this program: after ``make run`` it is not on the search path."""
    here = sys.argv[0]
    if os.path.basename(here) != "sfumato" or shutil.which("sfumato"):
        return "sfumato"
    return os.path.relpath(here)


def _document(folder: Path, shown: "Tour") -> dict[str, object]:
    return {
        "folder": str(folder),
        "budget": _amount(shown.budget),
        "spent": _amount(shown.spent),
        "releases": [_release(release) for release in shown.releases],
        "share": _share(shown.share),
        "refused": shown.refusal,
        "files": [str(file) for file in shown.files],
        "next": list(shown.next),
    }


def _release(release: "Release") -> dict[str, object]:
    said = release.statement
    return {
        "dataset": said.dataset.name,
        "identifier": said.identifier,
        "charged": _amount(release.charged),
        "repeated": release.repeated,
        "noise": said.mechanism.KIND.removeprefix("mechanism."),
        "margin": said.law.margin("0.95"),
        "labels": {name: list(column) for name, column in release.labels.items()},
        "values": list(release.values),
    }


def _share(share: "Ratio") -> dict[str, object]:
    """The derived figure; what the noise leaves open is null."""
    return {
        "labels": {name: list(column) for name, column in share.labels.items()},
        "values": [value if math.isfinite(value) else None for value in share.values],
        "intervals": [list(ends) if all(map(math.isfinite, ends)) else None for ends in share.interval()],
    }


def _amount(amount: "Budget") -> dict[str, str]:
    return {"epsilon": str(amount.epsilon), "delta": str(amount.delta)}
