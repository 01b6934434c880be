"""The demonstration."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    *,
    folder: Annotated[Path, typer.Option(help="Where the files go; made if it is not there.")] = Path("sfumato-demo"),
    patients: Annotated[int, typer.Option(min=1, help="How many fictional patients to invent.")] = 20_000,
) -> None:
    """Take a tour: a generated hospital network, a private release with error bars, a report to open.

    No real person occurs in the data. The tour spends a budget of its own, shows a refusal, and ends with the
    commands to look at what it wrote.

    Example: $ sfumato demo
    """
    from rich.console import Console

    from sfumato.demo.tour import tour

    tour(folder, patients=patients, console=Console())
