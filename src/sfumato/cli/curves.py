"""Kaplan–Meier curves on a terminal and for programs, each point with its interval."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.answers import figures
from sfumato.cli.asked import FileOptions, charge_document, say_charge
from sfumato.cli.output import harmless, say, say_json, terminal
from sfumato.errors import SfumatoError

if TYPE_CHECKING:
    from rich.table import Table

    from sfumato.studies.survival import SurvivalResult
    from sfumato.vault import Vault

__all__ = ["deliver_curve"]


def deliver_curve(
    result: "SurvivalResult", vault: "Vault", level: Fraction, files: FileOptions, *, as_json: bool
) -> SfumatoError | OSError | None:
    """Write the files and print the curves; whatever cannot be written is handed back, and the numbers are shown."""
    from sfumato.core.units import describe

    release = result.release
    written, failed = _written(result, files, level)
    if as_json:
        columns = {name: list(values) for name, values in result.table(confidence=level).columns.items()}
        named = [str(file) for file in written]
        said = charge_document(release, vault, charged=True)
        say_json({**said, "confidence": str(level), "survival": columns, "written": named})
        return failed
    terminal().print(_curves(result, level))
    say("")
    say("in the interval: sampling and noise; every point has its own, the uniform band is wider")
    say(f"protected: {describe(vault.unit)}")
    say_charge(release, vault, charged=True)
    for file in written:
        say(f"written: {file}")
    return failed


def _written(
    result: "SurvivalResult", files: FileOptions, level: Fraction
) -> tuple[list[Path], SfumatoError | OSError | None]:
    """The files that were asked for; the picture shows the curves and not the counts that they are made of."""
    written, failed = replace(files, plot=None).write(result.release, level)
    if files.plot is not None:
        from sfumato.reports.plots import save

        try:
            written.append(save(result.plot(), files.plot))
        except (SfumatoError, OSError) as wrong:
            failed = failed or wrong
    return written, failed


def _curves(result: "SurvivalResult", level: Fraction) -> "Table":
    from rich.table import Table
    from rich.text import Text

    from sfumato.core.exact import decimal_down

    shown = result.table(confidence=level).columns
    labels = [name for name in shown if name not in ("at_risk", "events", "survival", "low", "high")]
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in labels:
        drawn.add_column(Text(harmless(name)))
    for title in ("at risk", "events", "survival", f"{decimal_down(100 * level)}% interval"):
        drawn.add_column(title, justify="right", no_wrap=True)
    for place, value in enumerate(shown["survival"]):
        whole = [f"{float(shown[name][place]):,.0f}" for name in ("at_risk", "events")]  # type: ignore[arg-type]  # numbers
        ends = figures(value, (shown["low"][place], shown["high"][place]))
        drawn.add_row(*(Text(harmless(str(shown[name][place]))) for name in labels), *whole, *ends)
    return drawn
