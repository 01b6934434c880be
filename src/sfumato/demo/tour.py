"""The tour behind ``sfumato demo``: a generated hospital network, asked through a vault, from budget to report.

The tour itself never sees a row: the generator returns a path, and everything that is shown or written comes out of a
:class:`~sfumato.core.release.Release`. A test runs it on two different networks with the noise held still and compares
every character.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up
from sfumato.core.limits import Limit
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.units import user
from sfumato.demo import network
from sfumato.demo.bars import table
from sfumato.engines.expressions import col
from sfumato.errors import BudgetExceeded, InvalidInput, MissingExtra
from sfumato.reports.page import page
from sfumato.tables.table import Table
from sfumato.vault import Vault

__all__ = ["FOLDER", "Tour", "tour"]

FOLDER = "sfumato-demo"
README = """\
This folder was made by `sfumato demo`, which overwrites its own files when it is run again.
The hospital network in it is generated: no real person occurs.
"""
FILES = {
    "visits.parquet": "the fictional visits; only the steward would hold such a file",
    "key": "signs releases; only the steward would hold it",
    "key.pub": "public: readers check signatures with it",
    "ili.json": "public: the release as a certificate",
    "ili.svg": "public: the release as a picture",
    "ili.png": "public: the same picture",
    "report.html": "public: the release as a page, in English and Chinese",
}
ASKED = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """What the tour has to show: its releases, how the account stands, and the files that it wrote."""

    releases: tuple[Release, ...]
    budget: Budget
    spent: Budget
    refusal: str
    files: tuple[Path, ...]


def tour(folder: str | Path = FOLDER, *, patients: int = 20_000, seed: int = 2026, console: Console) -> Tour:
    """Walk from data to report in ``folder``, saying each step on ``console``.

    A folder that holds anything but an earlier tour is refused, so that no file of yours is overwritten.
    """
    place = Path(folder)
    _claim(place)
    key = _key(place / "key")

    _step(console, 1, "A hospital network", "Generated for this tour: no real person occurs in it.")
    with console.status("Inventing patients and their visits…"):
        rows = network.generate(place, patients=patients, seed=seed)

    _step(
        console,
        2,
        "A vault and its budget",
        "Protected is a patient, with all of their visits, present or absent (add/remove).\n"
        "All releases together may cost ε = 2. Of each patient at most 2 groups count, with 3 visits in each.",
    )
    vault = Vault(
        unit=user("patient_id", relation="add/remove"), budget=Budget(epsilon=2), name="hospital network", key=key
    )
    visits = vault.table(
        rows,
        name="visits",
        version="demo",
        limit=Limit(groups=2, rows_per_group=3),
        bounds={"sbp": network.SBP},
        keys={"region": network.REGIONS, "sex": network.SEXES, "diagnosis": network.DIAGNOSES},
    )

    _step(console, 3, "What would it be worth?", "Visits for influenza-like illness (ILI) by region, asked at ε = 1/2.")
    question = visits.where(col("diagnosis") == "ILI").group_by("region").count()
    _say(console, str(question.preview(epsilon=ASKED)))
    needed = decimal_up(question.epsilon_for(margin=20))
    _say(console, f"To come within ±20 instead, the price would be ε = {needed}.")

    _step(console, 4, "The release", "Charged first, then counted, then blurred, then signed.")
    with console.status("Charging, counting and adding noise…"):
        ili = question.release(epsilon=ASKED)
    _show(console, ili)
    _say(console, f"The noise is as wide in small {network.SMALL_REGION} as anywhere: that is what hides its patients.")

    _step(console, 5, "A second release", "Visits by sex and diagnosis, at ε = 1.")
    with console.status("Charging, counting and adding noise…"):
        by_sex = visits.group_by("sex", "diagnosis").count().release(epsilon=1)
    _show(console, by_sex)

    _step(console, 6, "The same question again", "Asking twice must not wear the noise away.")
    again = question.release(epsilon=ASKED)
    same = "the same numbers" if again.values == ili.values else "other numbers"
    _say(console, f"The stored answer came back: {same}, charged {again.charged}.")

    _step(console, 7, "What was spent", f"Spent {vault.spent} of {vault.budget}; left {vault.left}.")
    refusal = _refused(console, vault, visits.group_by("diagnosis"))

    _step(console, 8, "The files", "In real life only the public ones would leave the building.")
    files = _write(console, place, ili)
    shown = Tour(
        releases=(ili, by_sex, again),
        budget=vault.budget,
        spent=vault.spent,
        refusal=refusal,
        files=(rows, place / "key", place / "key.pub", *files),
    )
    _farewell(console, place, shown.files)
    return shown


def _claim(place: Path) -> None:
    """Take an empty or a new folder, or one that an earlier tour made."""
    mark = place / "README.txt"
    with _writing(place):
        place.mkdir(parents=True, exist_ok=True)
        ours = mark.is_file() and mark.read_text(encoding="utf-8", errors="replace").startswith(README.splitlines()[0])
        if not ours and any(place.iterdir()):
            raise InvalidInput(
                f"the folder {place} holds files that are not from an earlier tour, and the tour overwrites files. "
                "Nothing was written. Choose another folder: sfumato demo --folder NEW"
            )
        mark.write_text(
            README + "\n" + "".join(f"{name:16}{words}\n" for name, words in FILES.items()), encoding="utf-8"
        )


def _key(path: Path) -> SigningKey:
    """The key of an earlier tour, or a new one; a file that is no key is left alone."""
    if path.exists():
        try:
            key = SigningKey.load(path)
        except InvalidInput:
            raise InvalidInput(
                f"{path} is in the place of the tour's key and cannot be read as one. Nothing was overwritten. "
                "Remove it, or choose another folder: sfumato demo --folder NEW"
            ) from None
    else:
        key = SigningKey.new()
        path.with_name("key.pub").unlink(missing_ok=True)
        key.save(path)
    with _writing(path):
        path.with_name("key.pub").write_text(key.public_text + "\n", encoding="ascii")
    return key


def _refused(console: Console, vault: Vault, visits: Table) -> str:
    """Ask for more than is left, and show that the vault says no."""
    before = vault.spent
    _say(console, "Now a request for ε = 1, which is more than is left:")
    try:
        visits.count().release(epsilon=1)
    except BudgetExceeded as refusal:
        console.print(Padding(Text(str(refusal), style="yellow"), (0, 0, 0, 5), expand=False))
        unchanged = "unchanged" if vault.spent == before else "changed"
        _say(console, f"Refused. The account is {unchanged}: spent {vault.spent}.")
        return str(refusal)
    raise AssertionError("a release beyond the budget was not refused")


def _write(console: Console, place: Path, release: Release) -> tuple[Path, ...]:
    files = [place / "ili.json"]
    with _writing(place):
        release.certificate.save(files[0])
        with console.status("Drawing and writing the report…"):
            try:
                chart = release.plot()
                for name in ("ili.svg", "ili.png"):
                    chart.save(str(place / name), scale_factor=2)
                    files.append(place / name)
            except MissingExtra as missing:
                _say(console, f"No picture: {missing}")
            files.append(place / "report.html")
            files[-1].write_text(page(release), encoding="utf-8")
    return tuple(files)


def _farewell(console: Console, place: Path, files: tuple[Path, ...]) -> None:
    width = max(len(str(file)) for file in files) + 2
    for file in files:
        _line(console, f"{file!s:{width}}{FILES[file.name]}")
    certificate, public, report = (shlex.quote(str(place / name)) for name in ("ili.json", "key.pub", "report.html"))
    console.print("\nNext:", style="bold")
    for command in (
        f"sfumato verify {certificate} --key {public}",
        f"sfumato explain {certificate} --lang zh",
        f"open {report} in a browser",
    ):
        _line(console, command)


def _step(console: Console, number: int, title: str, words: str = "") -> None:
    console.print(f"\n{number}. {title}", style="bold", markup=False, highlight=False)
    if words:
        _say(console, words)


def _say(console: Console, words: str) -> None:
    console.print(Padding(Text(words), (0, 0, 0, 3), expand=False))


def _line(console: Console, words: str) -> None:
    """Print without breaking the line, so that a command can be copied."""
    console.print(f"     {words}", soft_wrap=True, markup=False, highlight=False)


def _show(console: Console, release: Release) -> None:
    console.print(Padding(table(release), (1, 0, 1, 5), expand=False))
    said = release.statement
    margin, joint = said.law.margin(Fraction(19, 20)), said.law.margin(Fraction(19, 20), numbers=len(said.values))
    _say(
        console,
        f"Charged {release.charged}. Of 100 such releases, on average at least 95 have a given number within ±{margin} "
        f"of the exact one (as far as the limit lets rows in), and all {len(said.values)} at once within ±{joint}. "
        "The light end of a bar is that error.",
    )


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        raise InvalidInput(
            f"{place} cannot be written: {wrong.strerror or wrong}. Choose another folder: sfumato demo --folder NEW"
        ) from None
