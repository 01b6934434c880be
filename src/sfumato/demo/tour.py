"""The tour behind ``sfumato demo``: a generated hospital network, asked through a vault, from budget to report.

The tour itself never sees a row: the generator returns a path, and everything that is shown or written comes out of a
:class:`~sfumato.core.release.Release`. A test runs it on two different networks with the noise held still and compares
every character.
"""

import shlex
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up
from sfumato.core.limits import Limit
from sfumato.core.question import Question
from sfumato.core.release import Release
from sfumato.core.units import user
from sfumato.demo import network
from sfumato.demo.bars import SPENT, share_table, spent_bar, table
from sfumato.demo.folder import FILES, FOLDER, claim, key_of, write
from sfumato.demo.heat import heat
from sfumato.engines.expressions import col
from sfumato.errors import BudgetExceeded
from sfumato.inference import Ratio
from sfumato.vault import Vault

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["FOLDER", "Tour", "tour"]

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
DELTA = Fraction(1, 10**6)
INDENT, ROOM = 5, 30
OPENERS = {"darwin": "open", "win32": "start"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """What the tour has to show: its releases, how the account stands, and the files that it wrote."""

    releases: tuple[Release, ...]
    share: Ratio
    budget: Budget
    spent: Budget
    refusal: str
    files: tuple[Path, ...]
    next: tuple[str, ...]


def tour(
    folder: str | Path = FOLDER,
    *,
    patients: int = 20_000,
    seed: int = 2026,
    program: str = "sfumato",
    console: Console,
) -> Tour:
    """Walk from data to report in ``folder``, saying each step on ``console``; commands to type start with ``program``.

    A folder that holds anything but an earlier tour is refused, so that no file of yours is overwritten.
    """
    place = Path(folder)
    claim(place)
    told = _Telling(console)

    told.step("A hospital network", "Generated for this tour: no real person occurs in it.")
    with console.status("Inventing patients and their visits…"):
        rows = network.generate(place, patients=patients, seed=seed)

    told.step(
        "A vault and its privacy budget",
        "Protected is a patient, with all of their visits, present or absent (add/remove). The privacy budget "
        "for all releases together is ε = 2 and δ = 1e-6; then the vault stops.",
    )
    vault = Vault(
        unit=user("patient_id", relation="add/remove"),
        budget=Budget(epsilon=2, delta=DELTA),
        name="hospital network",
        key=key_of(place),
    )
    keys = {"region": network.REGIONS, "diagnosis": network.DIAGNOSES}
    thrice, often = (Limit(groups=groups, rows_per_group=1) for groups in (3, 12))
    seen = vault.table(rows, name="patients seen", version="demo", limit=thrice, keys=keys)

    told.step(
        "How much of a patient should count?",
        "Nobody declared how often patients come, and looking would not be private. So it is asked, at ε = 1/10: how "
        "many patients have how many visits.",
    )
    spread = told.release(vault.table(rows, name="all visits", version="demo").contributions(most=16), epsilon=TENTH)
    told.show(table(spread, width=told.bars))
    told.say(
        f"Charged {_amount(spread.charged)}. Noise has to hide whoever comes most often, with all visits that count. "
        "So below each patient counts once in a cell. "
        "suggest_limit(…) would weigh what a limit cuts against the noise that it needs, for a price as well."
    )

    told.step(
        "What would it be worth?",
        "Patients seen for influenza-like illness (ILI), by region, at ε = 1/2. However often someone came, they count "
        "once in a region, and in at most 3 regions: so one person can move the numbers only a little.",
    )
    ill = seen.where(col("diagnosis") == "ILI").group_by("region").count()
    told.say(str(ill.preview(epsilon=HALF)))
    told.say(f"To come within ±20 instead, the price would be ε = {decimal_up(ill.epsilon_for(margin=20))}.")

    told.step("The first release", "Charged first, then counted, then blurred, then signed.")
    ili = told.release(ill)
    told.show(table(ili, width=told.bars))
    told.margins(ili, "The light end of a bar is that error." if told.bars else "")
    told.say(f"The noise is as wide in small {network.SMALL_REGION} as anywhere: that is what hides its patients.")

    told.step("The second release", "Patients seen by region, whatever for, at ε = 1/2.")
    everyone = told.release(seen.group_by("region").count())
    told.show(table(everyone, width=told.bars))
    told.margins(everyone)

    told.step(
        "A share, at no cost",
        "Each region's part of all patients with ILI. Nothing is read for it, so nothing is charged; its error follows "
        "from the noise of all regions. (The first release over the second is refused: of a patient seen in more than "
        "3 regions, the limit may keep other regions in the one than in the other.)",
    )
    share = cast("Ratio", ili.figure / ili.figure.total())
    told.show(share_table(share, width=told.bars))

    told.step(
        "The third release: a heat table",
        "Patients seen, by region and diagnosis, at ε = 1/2. Here a patient may count in 12 cells, for which a "
        "small δ buys narrower noise (Gaussian in place of Laplace):",
    )
    cells = (
        vault.table(rows, name="patients by diagnosis", version="demo", limit=often, keys=keys)
        .group_by("region", "diagnosis")
        .count()
    )
    pure, traded = cells.preview(epsilon=HALF), cells.preview(epsilon=HALF, delta=DELTA)
    told.say(f"±{pure.margin} for each cell with ε alone, ±{traded.margin} with δ = 1e-6 besides.")
    map_of_cells = told.release(cells, delta=DELTA)
    told.show(heat(map_of_cells, width=console.width - INDENT))
    told.margins(map_of_cells)

    told.step("The same question again", "Asking twice must not average the noise away.")
    again = ill.release(epsilon=HALF)
    same = "the same numbers" if again.values == ili.values else "other numbers"
    told.say(f"The stored answer came back: {same}, charged {again.charged}.")

    told.step(
        "What was spent",
        f"ε = {vault.spent.epsilon} of {vault.budget.epsilon}, and δ = {decimal_up(vault.spent.delta)} of "
        f"{decimal_up(vault.budget.delta)}.",
    )
    spending = {
        "visits of a patient": spread,
        "ILI by region": ili,
        "patients by region": everyone,
        "the heat table": map_of_cells,
    }
    told.line(spent_bar([release.charged.epsilon for release in spending.values()], vault.budget, width=told.across))
    told.say("\n".join(f"{sign} {name}" for sign, name in zip(SPENT, spending, strict=True)), indent=INDENT)
    refusal = _refused(told, vault, seen.group_by("diagnosis").count())

    told.step("The files", "In real life only the public ones would leave the building.")
    with console.status("Drawing and writing the report…"):
        written, missing = write(place, ili=ili, everyone=everyone, heat=map_of_cells)
    if missing is not None:
        told.say(f"No picture: {missing}")
    files = (rows, place / "key", place / "key.pub", *written)
    told.files(files)
    commands = _commands(place, program)
    console.print("\nNext:", style="bold")
    for command in commands:
        told.line(command)
    told.say(
        "The last one is the next thing to see: the same network as a service, in a browser, with people of every role."
    )
    return Tour(
        releases=(ili, everyone, map_of_cells, again, spread),
        share=share,
        budget=vault.budget,
        spent=vault.spent,
        refusal=refusal,
        files=files,
        next=commands,
    )


@dataclass(slots=True)
class _Telling:
    """Says the steps on a console, narrow or wide."""

    console: Console
    steps: int = 0

    @property
    def bars(self) -> int:
        """How wide the bars of a table may be; none at all where there is no room."""
        return max(0, min(26, self.console.width - 50)) if self.console.width >= 56 else 0

    @property
    def across(self) -> int:
        return max(10, min(40, self.console.width - 20))

    def step(self, title: str, words: str) -> None:
        self.steps += 1
        self.console.print(f"\n{self.steps}. {title}", style="bold", markup=False, highlight=False)
        self.say(words)

    def say(self, words: str, *, style: str = "", indent: int = 3) -> None:
        self.console.print(Padding(Text(words, style=style), (0, 0, 0, indent), expand=False))

    def line(self, words: str) -> None:
        """Print without breaking the line, so that a command can be copied."""
        self.console.print(f"{'':{INDENT}}{words}", soft_wrap=True, markup=False, highlight=False)

    def show(self, drawn: "RenderableType") -> None:
        self.console.print(Padding(drawn, (1, 0, 1, INDENT), expand=False))

    def release(self, question: Question, *, epsilon: Fraction = HALF, delta: Fraction = Fraction(0)) -> Release:
        with self.console.status("Charging, counting and adding noise…"):
            return question.release(epsilon=epsilon, delta=delta)

    def margins(self, release: Release, closing: str = "") -> None:
        law, numbers = release.statement.law, len(release.values)
        level = Fraction(19, 20)
        self.say(
            f"Charged {_amount(release.charged)}. Of 100 such releases, on average at least 95 have a given number "
            f"within ±{law.margin(level)} of the figure of these data under the limit ({release.limit_words()}), and "
            f"all {numbers} at once within ±{law.margin(level, numbers=numbers)}. {closing}".rstrip()
        )

    def files(self, files: tuple[Path, ...]) -> None:
        width = max(len(str(file)) for file in files)
        if self.console.width >= INDENT + width + ROOM:
            listed = Table.grid(padding=(0, 2, 0, 0))
            for file in files:
                listed.add_row(Text(str(file), no_wrap=True), FILES[file.name])
            self.console.print(Padding(listed, (0, 0, 0, INDENT), expand=False))
        else:
            for file in files:
                self.line(str(file))
                self.say(FILES[file.name], style="dim", indent=INDENT + 2)


def _refused(told: _Telling, vault: Vault, question: Question) -> str:
    """Ask for more than is left, and show that the vault says no."""
    before = vault.spent
    told.say("Now a request for ε = 1, which is more than is left:")
    try:
        question.release(epsilon=1)
    except BudgetExceeded as refusal:
        told.say(str(refusal), style="yellow", indent=INDENT)
        told.say(f"Refused. The account is {'unchanged' if vault.spent == before else 'changed'}.")
        return str(refusal)
    raise AssertionError("a release beyond the budget was not refused")


def _commands(place: Path, program: str) -> tuple[str, ...]:
    certificate, heat_map, public, report = (
        shlex.quote(str(place / name)) for name in ("ili.json", "heat.json", "key.pub", "report.html")
    )
    return (
        f"{OPENERS.get(sys.platform, 'xdg-open')} {report}",
        f"{program} verify {certificate} --key {public}",
        f"{program} explain {heat_map} --lang zh",
        f"{program} units {certificate} --family 3",
        f"{program} serve --demo",
    )


def _amount(amount: Budget) -> str:
    """An amount with decimals where that is shorter: δ = 1e-6 and not 1/1000000."""
    delta = "" if amount.delta == 0 else f", δ = {decimal_up(amount.delta)}"
    return f"ε = {amount.epsilon}{delta}"
