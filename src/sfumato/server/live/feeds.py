"""What a service keeps of live streams: feeds that stewards declared, and streams that analysts opened on them."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Literal

import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, check_name
from sfumato.core.units import Unit, event, user
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import population_line
from sfumato.server.database import Database
from sfumato.server.live.tables import FEEDS, POINTS, STREAMS
from sfumato.streams.sources import Clock, Columns, GrowingFile, RedisEvents
from sfumato.streams.stream import TotalQuestion
from sfumato.vault import Vault

__all__ = ["OVER", "Feed", "Feeds", "LiveStream", "Phase", "StreamPoint", "without_secrets"]

Phase = Literal["opening", "running", "waiting", "ended", "refused"]
"""``waiting`` is for the broker."""
OVER: frozenset[Phase] = frozenset({"ended", "refused"})
MOST_STEPS = 100_000
LENGTHS = (1, 10, 60, 900, 3600, 86_400)
FILE = "file:"
"""How the address of a file of this machine begins; no form declares one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Where events come from. Public: all but ``url``, which its repr leaves out."""

    name: str
    edition: str
    url: str = field(repr=False)
    key: str
    time: str
    person: str | None
    relation: str
    population: str
    trim: bool
    declared_by: str
    declared: float

    @property
    def unit(self) -> Unit:
        """Who is protected: persons where their column is said, and single events otherwise."""
        return event(relation=self.relation) if self.person is None else user(self.person, relation=self.relation)

    def events(self, stream: str = "") -> RedisEvents | GrowingFile:
        """The events for one stream, not opened yet; its group on the broker has the name of both."""
        columns = Columns(time=self.time, person=self.person, zone=UTC)
        if self.url.startswith(FILE):
            return GrowingFile(self.url.removeprefix(FILE), columns)
        return RedisEvents(self.url, self.key, columns, group=f"sfumato {self.name} {stream}".strip(), trim=self.trim)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStream:
    """A stream that somebody opened. Public."""

    name: str
    feed: str
    edition: str
    title: str
    account: str
    login: str
    start: float
    every: int
    horizon: int
    days: int | None
    epsilon: str
    delta: str
    phase: Phase
    words: str
    release: str | None

    @property
    def spend(self) -> Budget:
        """What the whole stream costs."""
        return Budget(epsilon=Fraction(self.epsilon), delta=Fraction(self.delta))

    @property
    def clock(self) -> Clock:
        """Its steps."""
        return Clock(start=datetime.fromtimestamp(self.start, UTC), every=timedelta(seconds=self.every))

    def question(self, vault: Vault) -> TotalQuestion:
        """What is asked of a vault; it holds no data."""
        limit = None if self.days is None else Limit(groups=self.days, rows_per_group=1)
        stream = vault.stream(name=self.feed, version=self.edition, horizon=self.horizon, limit=limit)
        return stream.running_total()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPoint:
    """A total that was released. Public."""

    step: int
    total: float
    margin: float


class Feeds:
    """The feeds and the streams of a service.

    Guarantee: nothing here holds an event; what is kept of a stream are its released totals. Safe for threads.
    """

    def __init__(self, database: Database, ledger: Ledger, now: Callable[[], float]) -> None:
        self._database, self._ledger, self._now = database, ledger, now

    def declare(
        self,
        *,
        name: str,
        edition: str,
        url: str,
        key: str,
        time: str,
        person: str | None,
        relation: str,
        population: str,
        cap: Budget,
        trim: bool,
        by: str,
        of_file: bool = False,
    ) -> Feed:
        """Declare a feed, in the ledger first. Reads no event, and does not speak to the broker.

        Guarantee: a file of this machine is read only where ``of_file`` says so, which no page does.
        """
        check_name(name, "feed")
        if url.startswith(FILE) is not of_file:
            raise Refused(
                "no address of Redis: a form cannot have files of this machine read; nothing was declared. Give an "
                "address such as redis://127.0.0.1:6379/0"
            )
        feed = Feed(
            name=name,
            edition=edition,
            url=url,
            key=key,
            time=time,
            person=person or None,
            relation=relation,
            population=population,
            trim=trim,
            declared_by=by,
            declared=self._now(),
        )
        feed.events().close()  # what is no address, or no column, is refused here
        known = next((one for one in self.feeds() if one.name == feed.name), None)
        if (
            known is not None
            and not known.url
            and known == replace(feed, url="", declared_by=known.declared_by, declared=known.declared)
        ):
            return self._found_again(known, url)
        if known is not None:
            raise Refused(f"there is a feed {feed.name!r} already; nothing was changed. Choose another name.")
        declared = self._unit_of(population)
        if declared.KIND != feed.unit.KIND or declared.relation is not feed.unit.relation:
            raise Refused(
                f"the population {population!r} is about other units than this feed; nothing was declared. Choose a "
                "population whose unit and neighbouring relation are those of the feed."
            )
        self._ledger.declare_dataset(Dataset(name=feed.name, edition=edition), population=population, cap=cap)
        with self._database.writing() as connection:
            connection.execute(
                sa.insert(FEEDS).values({column.name: getattr(feed, column.name) for column in FEEDS.columns})
            )
        return feed

    def _found_again(self, feed: Feed, url: str) -> Feed:
        """Give a feed its address again, which no backup holds; the ledger knows the feed."""
        with self._database.writing() as connection:
            connection.execute(sa.update(FEEDS).where(FEEDS.c.name == feed.name, FEEDS.c.url == "").values(url=url))
        return replace(feed, url=url)

    def _unit_of(self, population: str) -> Unit:
        for balance in self._ledger.balances():
            if balance.name == population_line(population):
                return balance.unit
        raise NotDeclared("the ledger knows no such population; nothing was declared.")

    def feeds(self) -> tuple[Feed, ...]:
        """All feeds, by name."""
        with self._database.reading() as connection:
            return tuple(Feed(**row._mapping) for row in connection.execute(sa.select(FEEDS).order_by(FEEDS.c.name)))

    def feed(self, name: str) -> Feed:
        """One feed."""
        for one in self.feeds():
            if one.name == name:
                return one
        raise NotDeclared("there is no such feed; nothing was done.")

    def drafted(
        self,
        *,
        feed: str,
        title: str,
        account: str,
        by: str,
        every: int,
        horizon: int,
        days: int | None,
        spend: Budget,
    ) -> LiveStream:
        """A stream as it would be opened now: it begins with the next whole step. Charges and keeps nothing."""
        held = self.feed(feed)
        if not held.url:
            raise Refused(
                f"{held.name!r} waits for its address, which no backup holds; nothing was done. A steward declares "
                "this feed again, with the same words and its address."
            )
        if every not in LENGTHS:
            raise InvalidInput(f"a step lasts {', '.join(map(str, LENGTHS))} seconds; nothing was done.")
        if not 1 <= horizon <= MOST_STEPS:
            raise InvalidInput(f"a stream has 1 to {MOST_STEPS:,} steps; nothing was done.")
        if held.trim and any(one.feed == held.name and one.phase not in OVER for one in self.streams()):
            raise Refused(
                f"a stream of {held.name!r} is open and removes from the broker what it counted: a second one would "
                "miss events. Nothing was done. Wait until that stream has ended, or declare a feed that keeps them."
            )
        if (days is None) is not (held.person is None):
            raise InvalidInput("for persons, and for them alone, say in how many steps one counts; nothing was done.")
        return LiveStream(
            name=secrets.token_hex(8),
            feed=held.name,
            edition=held.edition,
            title=title.strip()[:200] or held.name,
            account=account,
            login=by,
            start=(self._now() // every + 1) * every,
            every=every,
            horizon=horizon,
            days=days,
            epsilon=str(spend.epsilon),
            delta=str(spend.delta),
            phase="opening",
            words="",
            release=None,
        )

    def keep(self, stream: LiveStream) -> None:
        """Write a stream down, so that its feeder opens it."""
        with self._database.writing() as connection:
            connection.execute(
                sa.insert(STREAMS).values({column.name: getattr(stream, column.name) for column in STREAMS.columns})
            )

    def streams(self) -> tuple[LiveStream, ...]:
        """All streams, the newest first."""
        with self._database.reading() as connection:
            chosen = sa.select(STREAMS).order_by(STREAMS.c.start.desc(), STREAMS.c.name)
            return tuple(LiveStream(**row._mapping) for row in connection.execute(chosen))

    def stream(self, name: str) -> LiveStream | None:
        """One stream, if there is one."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(STREAMS).where(STREAMS.c.name == name)).first()
        return None if row is None else LiveStream(**row._mapping)

    def points(self, name: str) -> tuple[StreamPoint, ...]:
        """What a stream has released so far."""
        chosen = sa.select(POINTS.c.step, POINTS.c.total, POINTS.c.margin).where(POINTS.c.stream == name)
        with self._database.reading() as connection:
            return tuple(StreamPoint(**row._mapping) for row in connection.execute(chosen.order_by(POINTS.c.step)))

    def told(self, name: str, point: StreamPoint) -> None:
        """Keep a released total; one that is kept already stays."""
        with self._database.writing() as connection:
            known = sa.select(POINTS.c.step).where(POINTS.c.stream == name, POINTS.c.step == point.step)
            if connection.execute(known).first() is None:
                values = {"stream": name, "step": point.step, "total": point.total, "margin": point.margin}
                connection.execute(sa.insert(POINTS).values(values))

    def moved(self, name: str, phase: Phase, *, words: str = "", release: str | None = None) -> None:
        """Say how a stream stands."""
        with self._database.writing() as connection:
            values = {"phase": phase, "words": words, "release": release}
            connection.execute(sa.update(STREAMS).where(STREAMS.c.name == name).values(values))


def without_secrets(url: str) -> str:
    """An address as a backup holds it: none at all where it may hold a password.

    >>> without_secrets("redis://broker:6379/0"), without_secrets("redis://ada:word@broker/0")
    ('redis://broker:6379/0', '')
    """
    return url if url.startswith(FILE) or not set("@?#%") & set(url) else ""
