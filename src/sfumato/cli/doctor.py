"""What an installation can do: its optional parts, and whether noise, clock, fonts, boxes and the browser are fit."""

import importlib.metadata
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.output import AsJson, say_json, say_line
from sfumato.errors import Refused, SfumatoError, Unsupported
from sfumato.version import __version__

__all__ = ["CHECKS", "Diagnosis", "doctor", "findings"]

State = Literal["fit", "missing", "unfit"]
PYTHONS = (3, 11)
FOR_USERS = ("plots", "graphs", "files", "studies", "postgres", "spark", "learning", "server")
_OF_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_NAME = re.compile(r"[\w.-]+")
_SIGN = "差"  # stands in every report in Chinese


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one look found: the part, whether it is fit, what is there, and what to do about it.

    A part that is ``missing`` is optional. One that is ``unfit`` must be mended before anything is released.
    """

    part: str
    state: State
    says: str
    do: str = ""


def doctor(*, as_json: AsJson = False) -> None:
    """Say what is installed and what is missing, and whether this machine is fit to draw noise and keep time.

    Reads no data, opens no ledger and writes nothing. Ends with 1 if something is unfit; optional parts that are
    missing are shown with what installs them.

    Example: $ sfumato doctor
    """
    found = list(findings())
    unfit = [one for one in found if one.state == "unfit"]
    if as_json:
        say_json({"version": __version__, "fit": not unfit, "findings": [asdict(one) for one in found]})
    else:
        for one in found:
            say_line(f"{one.state:8} {one.part:20} {one.says}{f'  {one.do}' if one.do else ''}")
        missing = sum(one.state == "missing" for one in found)
        say_line(f"Fit: {len(found) - missing - len(unfit)}; optional and missing: {missing}; unfit: {len(unfit)}.")
    if unfit:
        raise typer.Exit(Exit.REFUSED)


def findings() -> Iterator[Diagnosis]:
    """Everything that is looked at, in order; whatever goes wrong while looking is a finding itself."""
    for part, look in CHECKS.items():
        try:
            yield from look()
        except SfumatoError as wrong:
            yield Diagnosis(part=part, state="missing", says=str(wrong))
        except Exception as wrong:  # noqa: BLE001 - a broken installation breaks in any way, and this has to say so
            said = f"looking failed with {type(wrong).__name__}: {str(wrong).partition(chr(10))[0]}"
            yield Diagnosis(part=part, state="unfit", says=said, do="Reinstall: pip install --force-reinstall sfumato")


def _python() -> Iterator[Diagnosis]:
    here = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    right = sys.version_info >= PYTHONS
    yield Diagnosis(
        part="python",
        state="fit" if right else "unfit",
        says=f"{here}; sfumato {__version__}",
        do="" if right else "Install Python 3.11 or newer.",
    )


def _packages() -> Iterator[Diagnosis]:
    try:
        wanted = importlib.metadata.requires("sfumato") or []
    except importlib.metadata.PackageNotFoundError:
        says = "sfumato runs from its sources, so nothing says which packages it needs."
        yield Diagnosis(part="packages", state="missing", says=says, do="pip install .")
        return
    by_extra: dict[str, list[str]] = {}
    for line in wanted:
        of, name = _OF_EXTRA.search(line), _NAME.match(line)
        if name is not None:
            by_extra.setdefault(of[1] if of else "", []).append(name[0])
    base = _absent(by_extra.pop("", []))
    yield Diagnosis(
        part="packages",
        state="unfit" if base else "fit",
        says=f"not installed: {', '.join(base)}" if base else "all that every part needs is installed",
        do="pip install sfumato" if base else "",
    )
    for extra in [each for each in FOR_USERS if each in by_extra]:
        absent = _absent(by_extra[extra])
        yield Diagnosis(
            part=f"extra {extra}",
            state="missing" if absent else "fit",
            says=f"not installed: {', '.join(absent)}" if absent else "installed",
            do=f"pip install 'sfumato[{extra}]'" if absent else "",
        )


def _absent(names: list[str]) -> list[str]:
    found = {re.sub(r"[-_.]+", "-", each.metadata["Name"] or "").lower() for each in importlib.metadata.distributions()}
    return [name for name in dict.fromkeys(names) if re.sub(r"[-_.]+", "-", name).lower() not in found]


def _noise() -> Iterator[Diagnosis]:
    import numpy as np

    from sfumato.noise.words import SystemWords

    if hasattr(os, "getrandom"):
        try:
            os.getrandom(1, os.GRND_NONBLOCK)
        except BlockingIOError:
            says = "the operating system's generator has no entropy yet; a release would wait for it."
            yield Diagnosis(part="noise", state="unfit", says=says, do="Wait, or give the machine a source of entropy.")
            return
    words = np.zeros((2, 8192), dtype=np.uint64)
    for row in words:  # each from a source of its own, as each draw is
        SystemWords().fill(row)
    ones = float(np.bitwise_count(words).sum()) / words.size / 64
    alike = len(np.unique(words)) < words.size
    right = abs(ones - 0.5) < 0.005 and not alike  # of 1,048,576 bits: ten standard deviations
    yield Diagnosis(
        part="noise",
        state="fit" if right else "unfit",
        says="random bits come from the operating system, and its keys of AES-256"
        if right
        else f"{ones:.1%} of the random bits are ones{', and words repeat' if alike else ''}.",
        do="" if right else "Release nothing from this machine.",
    )


def _clock() -> Iterator[Diagnosis]:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    built = Path(__file__).stat().st_mtime
    late = time.time() >= built
    yield Diagnosis(
        part="clock",
        state="fit" if late else "unfit",
        says=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        + ("" if late else ", which is before sfumato was installed here"),
        do="" if late else "Set the clock: ledgers and time windows go by it.",
    )
    try:
        ZoneInfo("Europe/London")
    except ZoneInfoNotFoundError:
        yield Diagnosis(part="time zones", state="missing", says="no time zones are known.", do="pip install tzdata")
    else:
        yield Diagnosis(part="time zones", state="fit", says="known")


def _fonts() -> Iterator[Diagnosis]:
    from sfumato.reports.plots import fonts

    absent = fonts.missing(_SIGN)  # without the plots extra this raises MissingExtra, with the command
    yield Diagnosis(
        part="fonts",
        state="missing" if absent else "fit",
        says="no font has Chinese signs, so pictures in Chinese are refused" if absent else "Chinese can be drawn",
        do="pip install 'sfumato[plots]'" if absent else "",
    )


def _boxes() -> Iterator[Diagnosis]:
    if not sys.platform.startswith("linux"):
        says = "programs of researchers run on Linux alone."
        yield Diagnosis(part="boxes", state="missing", says=says)
        return
    from sfumato.boxes.trial import tested_level

    try:
        level = tested_level()
    except (Refused, Unsupported) as wrong:
        do = "Install bubblewrap or runsc, on a kernel with Landlock where namespaces may be made."
        yield Diagnosis(part="boxes", state="missing", says=str(wrong), do=do)
    else:
        says = f"level {level.value}: a hostile program found no way out of the first box"
        yield Diagnosis(part="boxes", state="fit", says=says)


def _browser() -> Iterator[Diagnosis]:
    from sfumato.reports.browser import find

    yield Diagnosis(part="browser", state="fit", says=f"PDF is printed with {find().name}")


def _ledger() -> Iterator[Diagnosis]:
    import sqlite3

    right = sqlite3.threadsafety > 0
    yield Diagnosis(
        part="ledger",
        state="fit" if right else "unfit",
        says=f"SQLite {sqlite3.sqlite_version}",
        do="" if right else "Use PostgreSQL, or a Python whose SQLite may be used by threads.",
    )


CHECKS: dict[str, Callable[[], Iterator[Diagnosis]]] = {
    "python": _python,
    "packages": _packages,
    "noise": _noise,
    "clock": _clock,
    "ledger": _ledger,
    "fonts": _fonts,
    "boxes": _boxes,
    "browser": _browser,
}
"""What is looked at, by the part; each look may find several things."""
