"""The queue: every job has a lane and a slot from the moment it is handed in, and is looked at after its deadline."""

import hashlib
import math
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any  # values of a row

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.core.limits import Limit
from sfumato.core.query import Query
from sfumato.errors import NotDeclared, Refused
from sfumato.server.database import Database
from sfumato.server.jobs.tables import JOBS, WORKS

__all__ = ["MOST_ATTEMPTS", "Job", "JobOutcome", "JobQueue", "Slots"]

MOST_ATTEMPTS = 3


class JobOutcome(StrEnum):
    """What became of a job; ``PENDING`` until its deadline, whatever happened."""

    PENDING = "pending"
    RELEASED = "released"
    REFUSED = "refused"
    """Before any charge, and it says why."""
    FAILED = "failed"
    """After the reservation, and it says the same whatever happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """How many jobs run at once, how long each of them holds its lane, and how many may wait."""

    length: float = 10.0
    """Seconds, however long the work takes."""
    lanes: int = 2
    most_waiting: int = 200
    most_each: int = 20
    """Waiting, of one person."""
    of_works: int = 2
    """How many times as long the slot of a work is, such as a study: it counts more. The kind of a job is public."""

    def lasting(self, *, work: bool) -> float:
        """How long the slot of a job is: of a question, or of a work.

        >>> Slots(length=10).lasting(work=True)
        20
        """
        return self.length * (self.of_works if work else 1)

    @property
    def tick(self) -> float:
        """Deadlines are whole multiples of it: seconds, or less where slots are shorter than one."""
        return min(1.0, self.length / 4)

    @property
    def margin(self) -> float:
        """How long before its deadline a job is stopped, so that ending it does not show."""
        return min(1.0, self.length / 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A question that was handed in. ``ends`` is its deadline, in seconds since 1970."""

    name: str
    login: str
    account: str
    dataset: str
    edition: str
    project: str | None
    title: str
    query: str
    sql: str | None
    spend: Budget
    fresh: bool
    even_if_useless: bool
    limit: Limit | None
    made: float
    lane: int
    starts: float
    ends: float
    attempts: int
    phase: str
    outcome: JobOutcome
    """As anybody may see it now."""
    release: str | None
    charged: Budget | None
    words: str

    @property
    def key(self) -> str:
        """Under which idempotency key it is charged."""
        return f"job {self.name}"

    @property
    def filed(self) -> str:
        """That key as the owner of the ledger files it, for workers of this user."""
        return f"{os.geteuid()}:{self.key}"


class JobQueue:
    """Jobs in the service's database.

    Guarantee: when a job starts, and when its outcome is shown, follows from when jobs were handed in, and from
    nothing that a job did. Assumes: ``now`` is the clock of all who use the database.
    """

    def __init__(self, database: Database, *, slots: Slots | None = None, now: Callable[[], float] = time.time) -> None:
        self._database, self.slots, self.now = database, slots or Slots(), now
        self.changed = threading.Condition()

    def submit(
        self,
        *,
        login: str,
        account: str,
        query: Query,
        spend: Budget,
        title: str,
        sql: str | None = None,
        project: str | None = None,
        fresh: bool = False,
        even_if_useless: bool = False,
        limit: Limit | None = None,
        idempotency: str | None = None,
        work: str | None = None,
    ) -> Job:
        """Hand a question in, which was offered before; it has its slot at once. Nothing is charged yet.

        ``work`` is the form of what its answer becomes, where that is more than a table of numbers.

        Under one ``idempotency`` key somebody hands one question in: said again it is the same job.
        """
        name, text = secrets.token_hex(12), canonical(encode(query))
        sent = None
        if idempotency is not None:
            sent = hashlib.sha256(canonical([login, account, idempotency]).encode()).hexdigest()
        with self._database.writing() as connection:
            found = None
            if sent is not None:
                found = connection.execute(sa.select(JOBS).where(JOBS.c.sent == sent)).one_or_none()
            if found is not None:
                same = (found.query, found.epsilon, found.delta) == (text, str(spend.epsilon), str(spend.delta))
                if not same or _work(connection, found.name) != work:
                    raise Refused(
                        "another question was handed in under this key; nothing was charged. Give each its own key."
                    )
                return self._seen(found)
            waiting = _count(connection, JOBS.c.phase != "done")
            own = _count(connection, JOBS.c.phase != "done", JOBS.c.login == login)
            if waiting >= self.slots.most_waiting or own >= self.slots.most_each:
                raise Refused(
                    f"{own} of your questions wait, and {waiting} in all, which is as many as may; nothing was "
                    "charged. Ask again when some are answered."
                )
            lane, starts, ends = self._slot(connection, length=self.slots.lasting(work=work is not None))
            connection.execute(
                sa.insert(JOBS).values(
                    name=name,
                    login=login,
                    account=account,
                    dataset=query.dataset.name,
                    edition=query.dataset.edition,
                    project=project,
                    title=title[:300],
                    query=text,
                    sql=sql,
                    epsilon=str(spend.epsilon),
                    delta=str(spend.delta),
                    fresh=fresh,
                    even_if_useless=even_if_useless,
                    groups=None if limit is None else limit.groups,
                    rows_per_group=None if limit is None else limit.rows_per_group,
                    sent=sent,
                    made=self.now(),
                    lane=lane,
                    starts=starts,
                    ends=ends,
                    attempts=0,
                    phase="waiting",
                )
            )
            if work is not None:
                connection.execute(sa.insert(WORKS).values(job=name, form=work))
        self.wake()
        return self.job(name)

    def job(self, name: str) -> Job:
        """A job, as anybody may see it now."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(JOBS).where(JOBS.c.name == name)).one_or_none()
        if row is None:
            raise NotDeclared("there is no question of this name, or it is not yours; nothing was done.")
        return self._seen(row)

    def work(self, name: str) -> str | None:
        """The form of what the answer of a job becomes; None where it is a table of numbers."""
        with self._database.reading() as connection:
            return _work(connection, name)

    def of(self, *, login: str | None = None, project: str | None = None, most: int = 200) -> list[Job]:
        """The jobs of somebody, or of a project; the latest first."""
        chosen = sa.select(JOBS).order_by(JOBS.c.made.desc()).limit(most)
        if login is not None:
            chosen = chosen.where(JOBS.c.login == login)
        if project is not None:
            chosen = chosen.where(JOBS.c.project == project)
        with self._database.reading() as connection:
            return [self._seen(row) for row in connection.execute(chosen)]

    def undue(self) -> list[Job]:
        """The jobs that were begun, and of which nobody may see yet what became."""
        hidden = (JOBS.c.phase == "started") | ((JOBS.c.phase == "done") & (JOBS.c.ends > self.now()))
        with self._database.reading() as connection:
            return [self._seen(row) for row in connection.execute(sa.select(JOBS).where(hidden))]

    def answered(self, job: Job) -> bool:
        """Whether the question of a job was answered by another one before, as anybody may see."""
        chosen = sa.select(JOBS).where(
            JOBS.c.query == job.query,
            JOBS.c.dataset == job.dataset,
            JOBS.c.outcome == JobOutcome.RELEASED.value,
            JOBS.c.name != job.name,
        )
        with self._database.reading() as connection:
            found = [self._seen(row) for row in connection.execute(chosen)]
        return any(
            (each.spend, each.limit, each.outcome) == (job.spend, job.limit, JobOutcome.RELEASED) for each in found
        )

    def wake(self) -> None:
        """Have the lanes look again."""
        with self.changed:
            self.changed.notify_all()

    # ------------------------------------------------------------------------------------------------- for the lanes

    def take(self, lane: int) -> Job | None:
        """The job of a lane whose slot has begun, marked as started; None where there is none now."""
        with self._database.writing() as connection:
            due = (JOBS.c.lane == lane) & (JOBS.c.phase == "waiting") & (JOBS.c.starts <= self.now())
            row = connection.execute(sa.select(JOBS).where(due).order_by(JOBS.c.starts).limit(1)).one_or_none()
            if row is None:
                return None
            if row.ends - self.slots.margin <= self.now():  # nobody was there in its slot
                self._again(connection, row.name)
                return None
            _set(connection, row.name, phase="started", attempts=row.attempts + 1)
        return self.job(row.name)

    def next_start(self, lane: int) -> float | None:
        """When the next slot of a lane with a job begins."""
        with self._database.reading() as connection:
            chosen = sa.select(sa.func.min(JOBS.c.starts)).where(JOBS.c.lane == lane, JOBS.c.phase == "waiting")
            found = connection.execute(chosen).scalar()
        return None if found is None else float(found)

    def started(self) -> list[Job]:
        """Jobs that were started, and of which nobody knows yet what became."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(JOBS).where(JOBS.c.phase == "started")).all()
        return [self._seen(row) for row in rows]

    def released(self, name: str, *, release: str, charged: Budget) -> None:
        """Note which release a job became."""
        self._done(name, JobOutcome.RELEASED, release=release, charged=charged)

    def refused(self, name: str, words: str) -> None:
        """Note that a job was refused before anything was charged."""
        self._done(name, JobOutcome.REFUSED, words=words)

    def failed(self, name: str) -> None:
        """Note that a job failed after its charge; how is not written down."""
        self._done(name, JobOutcome.FAILED)

    def again(self, name: str) -> None:
        """Give a job another slot, which was neither charged nor answered; after a few, refuse it."""
        with self._database.writing() as connection:
            self._again(connection, name)
        self.wake()

    def _again(self, connection: Connection, name: str) -> None:
        attempts = connection.execute(sa.select(JOBS.c.attempts).where(JOBS.c.name == name)).scalar_one()
        if attempts >= MOST_ATTEMPTS:
            words = "the service was stopped each time before it came to this question; nothing was charged. Ask again."
            _set(connection, name, phase="done", outcome=JobOutcome.REFUSED.value, words=words)
            return
        length = self.slots.lasting(work=_work(connection, name) is not None)
        lane, starts, ends = self._slot(connection, length=length, but=name)
        _set(connection, name, phase="waiting", lane=lane, starts=starts, ends=ends)

    def _slot(self, connection: Connection, *, length: float, but: str = "") -> tuple[int, float, float]:
        """The lane that is free first, when, and until when: a function of the slots that were given out."""
        now = self.now()
        taken = sa.select(JOBS.c.lane, sa.func.max(JOBS.c.ends)).where(JOBS.c.ends > now, JOBS.c.name != but)
        free = dict(tuple(row) for row in connection.execute(taken.group_by(JOBS.c.lane)))
        lane = min(range(self.slots.lanes), key=lambda each: (free.get(each, 0.0), each))
        starts = max(now, free.get(lane, 0.0))
        tick = self.slots.tick
        return lane, starts, math.ceil((starts + length) / tick) * tick

    def _done(
        self,
        name: str,
        outcome: JobOutcome,
        *,
        release: str | None = None,
        charged: Budget | None = None,
        words: str = "",
    ) -> None:
        with self._database.writing() as connection:
            _set(
                connection,
                name,
                phase="done",
                outcome=outcome.value,
                release=release,
                charged_epsilon=None if charged is None else str(charged.epsilon),
                charged_delta=None if charged is None else str(charged.delta),
                words=words,
            )

    def _seen(self, row: Row[Any]) -> Job:
        """A row as it may be seen now: before its deadline nothing of its outcome is."""
        shown = row.phase == "done" and self.now() >= row.ends
        released = shown and row.outcome == JobOutcome.RELEASED.value
        return Job(
            name=row.name,
            login=row.login,
            account=row.account,
            dataset=row.dataset,
            edition=row.edition,
            project=row.project,
            title=row.title,
            query=row.query,
            sql=row.sql,
            spend=Budget(epsilon=Fraction(row.epsilon), delta=Fraction(row.delta)),
            fresh=row.fresh,
            even_if_useless=row.even_if_useless,
            limit=None if row.groups is None else Limit(groups=row.groups, rows_per_group=row.rows_per_group),
            made=row.made,
            lane=row.lane,
            starts=row.starts,
            ends=row.ends,
            attempts=row.attempts,
            phase=row.phase,
            outcome=JobOutcome(row.outcome) if shown else JobOutcome.PENDING,
            release=row.release if released else None,
            charged=Budget(epsilon=Fraction(row.charged_epsilon), delta=Fraction(row.charged_delta))
            if released
            else None,
            words=row.words if shown and row.outcome == JobOutcome.REFUSED.value else "",
        )


def _count(connection: Connection, *conditions: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(JOBS).where(*conditions)).scalar_one())


def _work(connection: Connection, name: str) -> str | None:
    found = connection.execute(sa.select(WORKS.c.form).where(WORKS.c.job == name)).scalar()
    return None if found is None else str(found)


def _set(connection: Connection, name: str, **values: object) -> None:
    connection.execute(sa.update(JOBS).where(JOBS.c.name == name).values(**values))
