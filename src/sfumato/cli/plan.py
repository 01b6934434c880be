"""Plans on the command line: what a year of releases costs, adopting it, and carrying it out."""

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.ledger import Where, opened
from sfumato.cli.output import AsJson, one_line, say, say_json, say_line, terminal
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.cli.schedules import document, draw, plain_table, show
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.runner import Runner, Step, StepOutcome

__all__ = ["plan"]

plan = typer.Typer(
    help="Solve a plan of repeated releases, adopt it, and carry it out: each period once.\n\n"
    "Example: $ sfumato plan solve plan.toml",
    no_args_is_help=True,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan, in TOML; see docs/how-to/plans.md.")]
Until = Annotated[
    str | None, typer.Option(metavar="DATE", help="Only periods that end by this day, such as 2026-03-31.")
]
MANY, NAMED, LONGEST_SLEEP = 5, 8, 60.0


@plan.command()
def solve(
    file: File,
    *,
    within: Annotated[
        Path | None,
        typer.Option("--ledger", metavar="FILE", help="A ledger whose balances bind as well; its settings file."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A picture of the planned year: .svg, .png, .pdf or .html.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what each release of a plan costs and how exact it will be, or which constraint it breaks.

    Sensitivities follow from the questions, the unit and the limits in the schemas. No data is opened and nothing is
    spent. The tight figure is for information: it holds while the plan is carried out as it stands.

    Example: $ sfumato plan solve plan.toml
    """
    from sfumato.runner import PlanFile
    from sfumato.runner.adoption import levels

    read = PlanFile.load(file)
    if within is None:
        found = read.solved()
    else:
        with reading(within, None, None) as home:
            found = read.solved(levels(home, read))
    say_json(document(read, found)) if as_json else show(read, found)
    if plot is not None:
        draw(found, plot)
        say_line(f"written: {plot}", error=as_json)


@plan.command()
def digest(file: File, *, as_json: AsJson = False) -> None:
    """Print the digest that names a plan: what a request to the board has as its subject.

    It covers every question, schema, limit, path and target: a plan that was changed has another one. Paths are covered
    as they are written; the folder that they are taken from, where the plan lies, is the steward's word.

    Example: $ sfumato plan digest plan.toml
    """
    from sfumato.runner import PlanFile

    read = PlanFile.load(file)
    if as_json:
        say_json({"plan": read.plan.name, "year": read.plan.year, "account": read.account, "digest": read.digest})
    else:
        say(read.digest)


@plan.command()
def adopt(file: File, *, ledger: Where = None, as_json: AsJson = False) -> None:
    """Record a plan in the ledger, solved within what its account, datasets and populations have left.

    Where the ledger has a board, it must have approved a request whose subject is the plan's digest. A changed plan is
    adopted anew; periods that were released under an earlier version are not released again.

    Example: $ sfumato plan adopt plan.toml
    """
    from sfumato import runner

    read = runner.PlanFile.load(file)
    with opened(ledger) as home:
        adopted = runner.adopt(home, read)
    if as_json:
        say_json({**document(read, adopted.schedule), "entry": adopted.number})
        return
    show(read, adopted.schedule)
    say_line(f"adopted: entry {adopted.number} of the ledger, digest {read.digest}")


@plan.command()
def run(
    file: File,
    *,
    until: Until = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where certificates and results are written.")] = Path(
        "releases"
    ),
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on: sleep until the next period is over, until all are done.")
    ] = False,
    look_every: Annotated[
        int, typer.Option(metavar="MINUTES", min=1, max=1440, help="How often --watch looks for late data.")
    ] = 10,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Make every release of an adopted plan that is due: its period is over (by UTC) and its data is there.

    Each period is charged once and has one answer, wherever a run was cut off and however many run at once. Data that
    comes late is released when it comes; what is missing is reported and waited for. Derived figures are computed from
    stored releases and cost nothing. A budget that is used up stops the run with the numbers. While the plan states no
    reason or no legal_basis, every result says that it is a draft.

    Example: $ sfumato plan run plan.toml --out releases
    """
    from sfumato.runner import PlanFile, Runner

    last, read = _day(until), PlanFile.load(file)
    told: set[tuple[str, str, str]] = set()
    with opened(ledger) as home:
        while True:
            ready = Runner.of(read, home)
            failed = _pass(ready, out, last, told, as_json=as_json)
            if not watch or not _sleep(ready, last, timedelta(minutes=look_every), quiet=as_json):
                break
    if failed:
        raise typer.Exit(Exit.REFUSED)


@plan.command()
def correct(
    file: File,
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="The dataset, by the name in its schema.")],
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="The period as the plan names it: 2026-03-04.")],
    *,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Declare that the file of a period was corrected: what is planned of it is released again, and charged again.

    Put the corrected file in place of the old one first. What was released of the earlier version stands; figures over
    longer periods are computed anew from the corrected one.

    Example: $ sfumato plan correct plan.toml visits 2024-Q1
    """
    from sfumato.runner import PlanFile, Runner

    read = PlanFile.load(file)
    with opened(ledger) as home:
        ready = Runner.of(read, home)
        version, names = ready.correct(dataset, period)
        cost = sum((ready.schedule.line(name).amount for name in names), Fraction(0))
    if as_json:
        say_json({"dataset": version.name, "version": version.edition, "releases": list(names), "epsilon": str(cost)})
        return
    say_line(f"declared: version {version.edition} of {version.name}")
    say_line(f"the next run releases {', '.join(names)} anew, at ε = {cost} in all")


@plan.command()
def status(
    file: File,
    *,
    until: Until = None,
    key: Trusted = None,
    head: Published = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Say which periods of an adopted plan are done, cut off after their charge, due, missing their data, or waiting.

    Example: $ sfumato plan status plan.toml
    """
    from sfumato.runner import PlanFile, Runner, Standing

    read, last = PlanFile.load(file), _day(until)
    with reading(ledger, key, head) as home:
        steps = Runner.of(read, home).steps(until=last)
    if as_json:
        say_json([_step(step) for step in steps])
        return
    names = list(dict.fromkeys((step.name, step.source) for step in steps))
    table = plain_table("release", "source", *(standing.value for standing in Standing), words=2)
    for name, source in names:
        counts = Counter(step.standing for step in steps if (step.name, step.source) == (name, source))
        table.add_row(one_line(name), source.value, *(str(counts[standing]) for standing in Standing))
    terminal().print(table)
    for standing in (Standing.OPEN, Standing.DUE, Standing.MISSING, Standing.CLOSED):
        for name, source in names:
            labels = [s.label for s in steps if (s.name, s.source, s.standing) == (name, source, standing)]
            if labels:
                say_line(f"{standing.value}: {name} {_listed(labels)}")


# ------------------------------------------------------------------------------------------------------------ a run


def _pass(ready: "Runner", out: Path, until: date | None, told: set[tuple[str, str, str]], *, as_json: bool) -> bool:
    """Make what is due and report it, even if something stops it; report what is missing once. Whether any failed."""
    from sfumato.runner import Fate

    new: list[StepOutcome] = []
    failed = whole = False
    try:
        for outcome in _made(ready, out, until, watched=not as_json):
            failed = failed or outcome.fate is Fate.FAILED
            mark = (outcome.step.name, outcome.step.label, outcome.words)
            if mark not in told:
                new.append(outcome)
            if outcome.fate in (Fate.MISSING, Fate.FAILED):
                told.add(mark)
        whole = True
    finally:
        if new or whole:
            _tell(new, as_json=as_json)
            if not as_json and ready.file.grounds.missing and any(outcome.files for outcome in new):
                say(ready.file.grounds.line("en"), error=True)
    return failed


def _made(ready: "Runner", out: Path, until: date | None, *, watched: bool) -> "Iterable[StepOutcome]":
    """The outcomes of a run, with a bar beside a long one where somebody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from sfumato.runner import Fate, Standing

    total = sum(step.standing in (Standing.DUE, Standing.OPEN) for step in ready.steps(until=until))
    console = Console(stderr=True)
    with ExitStack() as stack:
        bar = None
        if watched and console.is_terminal and total > MANY:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            bar = stack.enter_context(Progress(*columns, console=console, transient=True))
            task = bar.add_task("releasing", total=total)
        for outcome in ready.run(out, until=until):
            if bar is not None and outcome.fate in (Fate.RELEASED, Fate.KEPT, Fate.FAILED):
                bar.update(task, advance=1, description=one_line(f"{outcome.step.name} {outcome.step.label}"))
            yield outcome


def _tell(outcomes: "list[StepOutcome]", *, as_json: bool) -> None:
    from sfumato.runner import Fate

    if as_json:
        say_json(
            [
                {
                    **_step(outcome.step),
                    "fate": outcome.fate.value,
                    "charged": str(outcome.cost.epsilon),
                    "written": [str(file) for file in outcome.files],
                    "words": outcome.words,
                }
                for outcome in outcomes
            ]
        )
        return
    for fate in (Fate.RELEASED, Fate.KEPT, Fate.COMPUTED, Fate.MISSING):
        several = [outcome for outcome in outcomes if outcome.fate is fate]
        for name, why in dict.fromkeys((outcome.step.name, outcome.step.why) for outcome in several):
            mine = [outcome for outcome in several if (outcome.step.name, outcome.step.why) == (name, why)]
            cost = sum((outcome.cost.epsilon for outcome in mine), Fraction(0))
            charged = f", charged ε = {cost}" if cost else f" ({why})" if why and fate is Fate.MISSING else ""
            say_line(f"{fate.value}: {name} {_listed([outcome.step.label for outcome in mine])}{charged}")
    for outcome in outcomes:
        if outcome.fate is Fate.FAILED:
            charged = f", charged ε = {outcome.cost.epsilon}" if outcome.cost.epsilon else ""
            say_line(f"failed: {outcome.step.name} {outcome.step.label}{charged}: {outcome.words}", error=True)
    if not outcomes:
        say("nothing was due")
        return
    paid = [outcome for outcome in outcomes if outcome.cost.epsilon]
    if len({(outcome.step.name, outcome.fate) for outcome in paid}) > 1:
        total = sum((outcome.cost.epsilon for outcome in paid), Fraction(0))
        say_line(f"charged by this run: ε = {total}")


def _sleep(ready: "Runner", until: date | None, look_every: timedelta, *, quiet: bool) -> bool:
    """Wait for the next period to be over, or for data that is late; False where nothing is left to wait for."""
    from sfumato.runner import Standing

    steps = ready.steps(until=until)
    late = any(step.standing is Standing.MISSING and not step.why for step in steps)
    waiting = any(step.standing is Standing.WAITING for step in steps)
    now = datetime.now(UTC)
    moments = [moment for moment in (ready.next_due(now=now) if waiting else None,) if moment is not None]
    moments += [now + look_every] if late else []
    if not moments:
        return False
    wake = min(moments)
    if not quiet:
        say_line(f"waiting until {wake.isoformat(timespec='minutes')}; Ctrl-C ends it")
    while (left := (wake - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(min(left, LONGEST_SLEEP))  # in pieces: the clock of a machine that slept has moved on
    return True


def _step(step: "Step") -> dict[str, str]:
    return {
        "release": step.name,
        "period": step.label,
        "source": step.source.value,
        "standing": step.standing.value,
    }


def _listed(labels: list[str]) -> str:
    """Some labels: all if they are few, else the ends.

    >>> _listed(["2026-01", "2026-02"]), _listed([f"2026-{month:02}" for month in range(1, 13)])
    ('2026-01, 2026-02', '2026-01 … 2026-12 (12)')
    """
    return ", ".join(labels) if len(labels) <= NAMED else f"{labels[0]} … {labels[-1]} ({len(labels)})"


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"--until {text} is not a day; nothing was done. Write it as 2026-03-31.") from None
