"""Streams on the command line: a building to watch, and running totals of events in a file."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import stream_total
from sfumato.cli.output import AsJson, say_json, terminal

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.console import Console, Group

    from sfumato.demo.live_chart import Point
    from sfumato.demo.watched_building import Moment, WatchedBuilding

__all__ = ["stream"]

stream = typer.Typer(
    help="Data that keeps coming: watch a generated building, or total the events of a file step by step.\n\n"
    "Example: $ sfumato stream demo --fast",
    no_args_is_help=True,
)

MOST_STEPS, MOST_PEOPLE = 9_600, 20_000
FRAME = 0.03  # seconds between two steps on a terminal
BEAT = 12  # steps between two lines where there is no terminal: three hours
WIDE, NARROW, LEAST = 110, 20, 72  # of charts, in columns
GUARANTEES = {
    "event level": "hides one quarter of an hour of one person; many of them together are hidden less",
    "user level": "hides a person with all their quarters of an hour",
}


@stream.command()
def demo(
    *,
    epsilon: Annotated[str, typer.Option(help="ε of each of the two series; the alarms cost half of it.")] = "1",
    steps: Annotated[int, typer.Option(min=1, max=MOST_STEPS, help="How many quarters of an hour to watch.")] = 480,
    people: Annotated[int, typer.Option(min=1, max=MOST_PEOPLE, help="How many people to invent.")] = 1_200,
    fast: Annotated[bool, typer.Option("--fast", help="Do not wait between two steps.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch a generated building: how many are in it, at event level and at user level, alarms, and what was spent.

    Nobody lives in the building, so that the true line may be shown beside what is released; of real people it may not.
    On a terminal the charts grow as the steps come; elsewhere a line is printed every three hours.

    Example: $ sfumato stream demo --fast

    Example: $ sfumato stream demo --steps 192 --epsilon 1/2 --people 300 --fast --json
    """
    from sfumato.demo.watched_building import WatchedBuilding

    watched = WatchedBuilding(epsilon=epsilon, steps=steps, people=people)
    console = terminal(quiet=as_json)
    console.print(
        f"A generated building with {people:,} invented people, {steps:,} quarters of an hour. Nobody lives in it: "
        "that is why the true line may be shown."
    )
    seen: list[Moment] = []
    if console.is_terminal and not as_json:
        _animate(console, watched, seen, wait=0.0 if fast else FRAME)
    else:
        for moment in watched:
            seen.append(moment)
            if moment.step % BEAT == 0 or moment.step == steps or moment.alarm:
                console.print(_line(moment), soft_wrap=True)
        console.print(_charts(console, watched, seen))
    if as_json:
        say_json(_document(watched, seen, epsilon))
    else:
        _sum_up(console, watched, seen)


def _animate(console: "Console", watched: "WatchedBuilding", seen: "list[Moment]", *, wait: float) -> None:
    from rich.live import Live

    with Live(console=console, auto_refresh=False) as live:
        for moment in watched:
            seen.append(moment)
            live.update(_charts(console, watched, seen), refresh=True)
            if wait:
                time.sleep(wait)


def _line(moment: "Moment") -> str:
    """One step as a line: the true value, and the released one with its margin."""
    told = "  ".join(
        f"{name} {point.released:,.0f} ±{point.margin:,.0f}"
        for name, point in (("event", moment.event), ("user", moment.user))
    )
    return (
        f"{moment.time}  true {moment.event.true:,.0f}  {told}{'  ALARM: the hall is crowded' if moment.alarm else ''}"
    )


def _charts(console: "Console", watched: "WatchedBuilding", seen: "list[Moment]") -> "Group":
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    from sfumato.demo.live_chart import ALARM, BOTH, RELEASED, TRUE, UNSURE, chart

    beside = console.width >= WIDE
    room = max(NARROW, min(LEAST, (console.width // 2 if beside else console.width) - 10))
    drawn = []
    for name in GUARANTEES:
        points = [_point(moment, name) for moment in seen]
        raised = watched.raised if name == "user level" else []
        lines = chart(points, top=watched.people, steps=watched.steps, width=room, alarms=raised)
        title = f"{name}: people in the building, mean of the last hour"
        text = Text("\n".join([title, *lines]), no_wrap=True, overflow="crop")
        for signs, style in ((RELEASED + BOTH, "cyan"), (UNSURE, "dim cyan"), (TRUE, "yellow"), (ALARM, "bold red")):
            text.highlight_regex(f"[{signs}]+", style)
        drawn.append(text)
    key = f"{TRUE} true  {RELEASED} released  {BOTH} both  {UNSURE} within its margin, 95%  {ALARM} alarm"
    last = f"{seen[-1].time}  alarms: {len(watched.raised)}{', halted' if watched.halted else ''}" if seen else ""
    charts = Columns(drawn, padding=(0, 2)) if beside else Group(*drawn)
    return Group(charts, *(Text(words, no_wrap=True, overflow="crop") for words in (key, last)))


def _point(moment: "Moment", name: str) -> "Point":
    return moment.event if name == "event level" else moment.user


def _sum_up(console: "Console", watched: "WatchedBuilding", seen: "list[Moment]") -> None:
    """What was spent and what it bought."""
    from sfumato.demo.bars import spent_bar
    from sfumato.demo.watched_building import ALARMS, clock_time

    vaults = {"event level": watched.event_level, "user level": watched.user_level}
    for name, guarantee in GUARANTEES.items():
        vault, off = vaults[name], _error([_point(moment, name) for moment in seen])
        charges = [vault.spent.epsilon] if name == "event level" else _shares(vault.spent.epsilon)
        console.print(f"\n{name}: {guarantee}", style="bold", soft_wrap=True)
        console.print(f"  off by {off:,.1f} people on average, and margins of {_margin(seen, name):,.0f}")
        console.print(f"  spent {spent_bar(charges, vault.budget, width=30)}, all of it before the first step")
    if watched.warning is not None:
        console.print(f"\nWhat that costs: {watched.warning}")
    when = ", ".join(clock_time(step) for step in watched.raised) or "none"
    console.print(
        f"\nalarms (more than about {watched.threshold:,} in the hall, at user level): {when}"
        + (f"; after {ALARMS} it says nothing more" if watched.halted else "")
    )


def _shares(spent: "Fraction") -> "list[Fraction]":
    """The series and the alarms, which cost half as much."""
    return [spent * 2 / 3, spent / 3]


def _error(points: "list[Point]") -> float:
    return sum(abs(point.released - point.true) for point in points) / len(points)


def _margin(seen: "list[Moment]", name: str) -> float:
    return _point(seen[-1], name).margin


def _document(watched: "WatchedBuilding", seen: "list[Moment]", epsilon: str) -> dict[str, object]:
    vaults = {"event level": watched.event_level, "user level": watched.user_level}
    return {
        "generated": True,
        "people": watched.people,
        "steps": watched.steps,
        "epsilon": epsilon,
        "series": {
            name: {
                "spent": {"epsilon": str(vault.spent.epsilon), "delta": str(vault.spent.delta)},
                "mean_error": _error([_point(moment, name) for moment in seen]),
                "margin": _margin(seen, name),
                "released": [_point(moment, name).released for moment in seen],
            }
            for name, vault in vaults.items()
        },
        "true": [moment.event.true for moment in seen],
        "alarms": {"threshold": watched.threshold, "steps": watched.raised, "halted": watched.halted},
    }


stream.command("total")(stream_total.total)
