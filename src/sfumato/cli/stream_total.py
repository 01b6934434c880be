"""A running total of the events in a file, step by step, from their times to numbers with margins."""

import re
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.asked import (
    RELATION,
    ChargeOptions,
    Confidence,
    FileAndTableOptions,
    Foresee,
    Population,
    SpendOptions,
    deliver,
    vault_for,
)
from sfumato.cli.groups import grouped
from sfumato.cli.ledger import charged
from sfumato.cli.output import AsJson, say, say_json
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.core.limits import Limit
    from sfumato.streams.sources import Clock
    from sfumato.streams.stream import TotalQuestion

__all__ = ["total"]

NOTHING = "Nothing was read of the rows and nothing was spent."
LENGTH = re.compile(r"([1-9][0-9]{0,8}) ?(s|min|h|d|w)")
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
MOST_ROWS = 60  # of an answer on a terminal
DATA = "The stream and what is protected"

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The events, one on each line: .csv with a header, .jsonl or .ndjson.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """The steps of time that are released."""

    start: Annotated[
        str, typer.Option(metavar="TIME", help="When step 1 begins, such as 2026-01-01T00:00Z.", rich_help_panel=DATA)
    ]
    every: Annotated[
        str, typer.Option(metavar="LENGTH", help="How long a step lasts: 15min, 1h, 1d, 1w.", rich_help_panel=DATA)
    ]
    steps: Annotated[int, typer.Option(min=1, help="How many steps there are.", rich_help_panel=DATA)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """What a row of the file says, what of it counts, and who is protected."""

    times: Annotated[
        str, typer.Option("--time", metavar="COLUMN", help="When it was, ISO 8601.", rich_help_panel=DATA)
    ] = "time"
    zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="The zone of times that name none, such as Europe/Zurich; else they are dropped.",
            rich_help_panel=DATA,
        ),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Protect persons, and not single events: their ids.", rich_help_panel=DATA),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, help="In how many steps a person counts; in all if not given.", rich_help_panel=DATA
        ),
    ] = None
    separation: Annotated[
        int, typer.Option(min=1, help="How many steps apart a person counts.", rich_help_panel=DATA)
    ] = 1
    amount: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What an event counts; 1 if not given.", rich_help_panel=DATA)
    ] = None
    max_per_event: Annotated[
        int | None,
        typer.Option(
            min=1, help="The most that one event counts, or a person's in a step; 1 if not given.", rich_help_panel=DATA
        ),
    ] = None
    each: Annotated[int | None, typer.Option("--each", min=1, hidden=True)] = None  # its name up to 0.2
    most: Annotated[
        int, typer.Option("--most", min=1, help="The public largest number of a step, held to.", rich_help_panel=DATA)
    ] = 1_000_000
    unit_relation: Annotated[Literal["add/remove", "replace"], typer.Option(help=RELATION, rich_help_panel=DATA)] = (
        "add/remove"
    )
    population: Population = None
    name: Annotated[str | None, typer.Option(help="The public name of the stream; that of the file if not given.")] = (
        None
    )
    version: Annotated[
        str | None, typer.Option(help="Your label of this state of the data; needed with --account.")
    ] = None


@grouped
def total(
    data: File,
    *,
    steps: StepOptions,
    spend: SpendOptions,
    events: EventOptions,
    preview: Foresee = False,
    confidence: Confidence = "0.95",
    files: FileAndTableOptions,
    charge: ChargeOptions,
    as_json: AsJson = False,
) -> None:
    """Total the events of a file, step by step, and print each total with its margin.

    Steps are released for the whole declared time, whatever the file holds. Rows without a readable time, before the
    start or after the last step are dropped silently. Protected is one event, unless --person names the column
    of persons: then a person with all their events, which count as far as --limit and --max-per-event allow.
    A ledger is kept as by sfumato query.

    Example: $ sfumato stream total arrivals.csv --start 2026-01-01T00:00Z --every 1h --steps 24 --epsilon 1

    Example: $ sfumato stream total arrivals.csv --person who --start 2026-01-01T00Z --every 1d --steps 7 --epsilon 1
    """
    from sfumato.core.budget import Budget
    from sfumato.core.units import event, user
    from sfumato.laws.margins import level_of
    from sfumato.streams.sources import Clock, Columns, GrowingFile, Inbox

    level, person, most = level_of(confidence), events.person, _most(events)
    Budget.asked(epsilon=spend.epsilon, delta=spend.delta)
    start = _moment(steps.start, events.zone)
    clock = Clock(start=start, every=_length(steps.every))
    columns = Columns(time=events.times, person=person, amount=events.amount, zone=_zone(events.zone))
    if person is None and (events.limit is not None or events.separation != 1):
        raise InvalidInput(
            f"--limit and --separation are for persons. {NOTHING} Say --person COLUMN, or leave them out."
        )
    files.check()
    charge.check_account()
    if not preview:
        charge.check_ledger(data)
    if charge.account is not None and events.version is None:
        raise NotDeclared(f"an account is charged for a version that the ledger knows. {NOTHING} Say --version.")
    if preview and files.named:
        raise InvalidInput(f"a preview has no answer to write. {NOTHING} Leave one out.")
    if not data.is_file():
        raise InvalidInput(f"there is no file {data.name}. {NOTHING}")
    with ExitStack() as held:
        source = held.enter_context(GrowingFile(data, columns, complete=True))
        source.check_columns()
        book = None if charge.account is None else held.enter_context(charged(charge.ledger))
        relation = events.unit_relation
        vault = vault_for(
            event(relation=relation) if person is None else user(person, relation=relation),
            name="sfumato stream total",
            population=events.population,
            spend=spend,
            charge=charge,
            book=book,
            reads=_days(clock, steps.steps, start.tzinfo),
        )
        question = vault.stream(
            name=data.stem if events.name is None else events.name,
            version=events.version,
            horizon=steps.steps,
            bounds=(0, events.most),
            max_per_event=most if person is None else 1,  # of persons the limit says it
            limit=None if person is None else _limit(events.limit, steps.steps, most),
            separation=events.separation,
        ).running_total()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            if preview:
                _foresee(question, spend, confidence, steps.steps, as_json=as_json)
                return
            running = question.open(epsilon=spend.epsilon, delta=spend.delta)
        for warning in heard:
            say(f"sfumato: {warning.message}", error=True)
        inbox = Inbox(running, clock)
        inbox.put_all(source.poll())
        for _ in inbox.tell(clock.begins(steps.steps + 1)):
            pass  # everything released is in the release
        release = running.close()
        beside = "one event and nothing larger" if person is None else "a person with all their events"
        failed = deliver(
            release, vault, level, files, charged=book is not None, as_json=as_json, beside=beside, most=MOST_ROWS
        )
        if not as_json:
            say(f"steps: of {steps.every} each, the first from {clock.start.isoformat(sep=' ')} on")
    if failed is not None:
        raise failed


def _foresee(question: "TotalQuestion", spend: SpendOptions, confidence: str, steps: int, *, as_json: bool) -> None:
    margins = question.margins(epsilon=spend.epsilon, delta=spend.delta, confidence=confidence)
    if as_json:
        say_json({"steps": steps, "confidence": confidence, "margins": list(margins)})
        return
    say(f"the total after step 1 within ±{margins[0]:,.1f}, after step {steps:,} within ±{margins[-1]:,.1f}")
    say(f"the widest margin is ±{max(margins):,.1f}; each with confidence {confidence}")


def _days(clock: "Clock", steps: int, zone: tzinfo | None) -> tuple[str, str]:
    """The first and the last day of the steps, by the zone of their start; events of other days are dropped.

    >>> from datetime import UTC
    >>> from sfumato.streams.sources import Clock
    >>> _days(Clock(start=datetime(2026, 1, 31, tzinfo=UTC), every=timedelta(hours=12)), 4, UTC)
    ('2026-01-31', '2026-02-01')
    """
    try:
        ends = (clock.start, clock.begins(steps + 1) - timedelta(microseconds=1))
        first, last = (end.astimezone(zone).date().isoformat() for end in ends)
    except OverflowError:
        raise InvalidInput(f"{steps:,} such steps end beyond the calendar. {NOTHING} Say fewer --steps.") from None
    return first, last


def _most(events: EventOptions) -> int:
    """How much one event counts at most, by the option or by its old name."""
    from sfumato.core.deprecation import GONE

    if events.each is None:
        return 1 if events.max_per_event is None else events.max_per_event
    if events.max_per_event is not None:
        raise InvalidInput(f"--each is the old name of --max-per-event, and both were given. {NOTHING} Leave it out.")
    say(f"sfumato: --each is now --max-per-event. The old name goes in sfumato {GONE}.", error=True)
    return events.each


def _limit(limit: int | None, steps: int, most: int) -> "Limit":
    from sfumato.core.limits import Limit

    return Limit(groups=steps if limit is None else limit, rows_per_group=most)


def _moment(text: str, zone: str | None) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a time. {NOTHING} Say --start 2026-01-01T00:00Z.") from None
    if found.utcoffset() is None:
        found = found.replace(tzinfo=_zone(zone))
    return found


def _zone(name: str | None) -> tzinfo | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"{name!r} is not a time zone. {NOTHING} Say one such as Europe/Zurich.") from None


def _length(text: str) -> timedelta:
    """How long a step lasts.

    >>> _length("15min"), _length("1 d")
    (datetime.timedelta(seconds=900), datetime.timedelta(days=1))
    """
    found = LENGTH.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{text!r} is not a length of time. {NOTHING} Say --every 15min, 1h, 1d or 1w.")
    return int(found[1]) * timedelta(seconds=SECONDS[found[2]])
