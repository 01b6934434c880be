"""Jobs end at deadlines that say nothing about the data, and are charged once at most, whoever is killed when."""

import os
import signal
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.errors import NotDeclared, Refused
from sfumato.server.database import Database
from sfumato.server.jobs.process import WorkerProcess
from sfumato.server.jobs.queue import Job, JobOutcome, JobQueue, Slots
from tests.server.asked_services import ACCOUNT, BY_WARD, CANARY, asked

ALL = 'SELECT COUNT(*) AS n FROM "visits"'
OLD = 'SELECT COUNT(*) AS n FROM "visits" WHERE "age" >= 50'


def unreliable(how: str, folder: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.server.unreliable_worker", how, str(folder / "done"))


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time = 1_000.25

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> JobQueue:
    database = Database(f"sqlite:///{tmp_path / 'service.db'}")
    database.create()
    return JobQueue(database, slots=Slots(length=10, lanes=2, most_each=4, most_waiting=6), now=clock)


@pytest.fixture
def submit(queue: JobQueue) -> Callable[..., str]:
    from sfumato.core.query import Dataset
    from sfumato.tables.queries.count import Count

    query = Count(dataset=Dataset(name="visits", edition="1"), where=None, by=(), joins=())

    def submitted(login: str = "ada", **said: object) -> str:
        spend = Budget(epsilon=1)
        return queue.submit(login=login, account=ACCOUNT, query=query, spend=spend, title="n", **said).name  # type: ignore[arg-type]

    return submitted


def test_slots_follow_from_when_jobs_were_handed_in_and_from_nothing_else(
    queue: JobQueue, submit: Callable[..., str], clock: Clock
) -> None:
    first, second, third = (queue.job(submit()) for _ in range(3))
    assert [(job.lane, job.starts, job.ends) for job in (first, second, third)] == [
        (0, 1000.25, 1011),
        (1, 1000.25, 1011),
        (0, 1011, 1021),
    ]
    taken = queue.take(0)
    assert taken is not None
    queue.released(first.name, release="abc", charged=Budget(epsilon=1))
    clock.time = 1003.0  # it took three seconds, and its lane is free no earlier for it
    assert queue.take(0) is None
    assert queue.job(submit()).starts == 1011


def test_the_slot_of_a_work_is_longer_by_its_kind_alone(
    queue: JobQueue, submit: Callable[..., str], clock: Clock
) -> None:
    work, question = queue.job(submit(work="{}")), queue.job(submit())
    assert (work.ends, question.ends) == (1021, 1011)
    assert (queue.work(work.name), queue.work(question.name)) == ("{}", None)
    clock.time = 1020.5  # nobody was there in its slot
    assert queue.take(work.lane) is None
    assert queue.job(work.name).ends == 1041


@pytest.mark.parametrize("end", ["released", "failed", "refused"])
def test_before_its_deadline_nothing_of_an_outcome_is_seen(
    end: str, queue: JobQueue, submit: Callable[..., str], clock: Clock
) -> None:
    name = submit()
    waiting = queue.job(name)
    assert queue.take(0) is not None
    if end == "released":
        queue.released(name, release="abc", charged=Budget(epsilon=1))
    elif end == "failed":
        queue.failed(name)
    else:
        queue.refused(name, "words")
    for clock.time in (1000.25, 1005.0, 1010.99):
        seen = queue.job(name)
        assert (seen.outcome, seen.release, seen.charged, seen.words) == (JobOutcome.PENDING, None, None, "")
        assert (seen.ends, seen.starts) == (waiting.ends, waiting.starts)
        assert queue.of(login="ada")[0].outcome is JobOutcome.PENDING
    clock.time = 1011.0
    assert queue.job(name).outcome is JobOutcome(end)


def test_as_many_questions_wait_as_may_and_the_refusal_charges_nothing(
    queue: JobQueue, submit: Callable[..., str]
) -> None:
    for _ in range(4):
        submit()
    with pytest.raises(Refused, match="4 of your questions wait"):
        submit()
    submit("ben")
    submit("ben")
    with pytest.raises(Refused, match="6 in all"):
        submit("cho")


def test_under_one_key_one_question_is_handed_in(queue: JobQueue, submit: Callable[..., str]) -> None:
    assert submit(idempotency="k") == submit(idempotency="k")
    assert submit("ben", idempotency="k") != submit(idempotency="k")
    with pytest.raises(NotDeclared):
        queue.job("none")


def test_a_slot_that_nobody_was_there_for_is_given_again(
    queue: JobQueue, submit: Callable[..., str], clock: Clock
) -> None:
    name = submit()
    clock.time = 1010.5
    assert queue.take(0) is None
    later = queue.job(name)
    assert (later.phase, later.starts, later.outcome) == ("waiting", 1010.5, JobOutcome.PENDING)


def test_an_answer_is_there_at_its_deadline_and_charged_once(tmp_path: Path) -> None:
    with asked(tmp_path / "service") as made:
        job = made.submitted()
        assert job.outcome is JobOutcome.PENDING
        ended = made.ended(job.name)
        assert (ended.outcome, ended.charged) == (JobOutcome.RELEASED, Budget(epsilon="1/10"))
        assert made.desk.release(ended).labels == {"ward": ["east", "west"]}
        again = made.ended(made.submitted().name)
        assert (again.release, again.charged) == (ended.release, Budget.none())
        assert made.spent == Fraction(1, 10)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        ("after the read", JobOutcome.FAILED),
        ("before the charge", JobOutcome.RELEASED),
        ("after the charge", JobOutcome.FAILED),
        ("before the store", JobOutcome.FAILED),
        ("after the store", JobOutcome.RELEASED),
    ],
)
def test_a_worker_that_is_killed_is_charged_for_once_and_never_reads_again(
    step: str, outcome: JobOutcome, tmp_path: Path
) -> None:
    with asked(tmp_path / "service", command=unreliable(step, tmp_path)) as made:
        ended = made.ended(made.submitted().name)
        assert (ended.outcome, made.spent) == (outcome, Fraction(1, 10))
        assert (tmp_path / "done").exists()
        if outcome is JobOutcome.RELEASED:
            assert made.desk.release(ended).statement.identifier == ended.release
        else:
            assert (ended.release, ended.words, ended.charged) == (None, "", None)
        after = made.ended(made.submitted(OLD).name)  # the lane goes on
        assert (after.outcome, made.spent) == (JobOutcome.RELEASED, Fraction(1, 5))


@pytest.mark.long
def test_failures_after_the_charge_look_alike(tmp_path: Path) -> None:
    seen = []
    for how in ("after the read", "stuck", "raised"):
        folder = tmp_path / how.replace(" ", "-")
        folder.mkdir()
        slots = Slots(length=8.0, lanes=1) if how == "stuck" else None
        with asked(folder / "service", slots=slots, command=unreliable(how, folder)) as made:
            while not made.desk.runner._workers[0]._ready:  # type: ignore[union-attr]  # a slot here is short
                time.sleep(0.05)
            job = made.submitted()
            ended = made.ended(job.name)
            assert ended.ends == job.ends
            seen.append((ended.outcome, ended.words, ended.release, ended.charged, made.spent))
            assert CANARY not in repr(ended)
    assert len(set(map(repr, seen))) == 1
    assert seen[0][0] is JobOutcome.FAILED


@pytest.mark.long
@pytest.mark.parametrize("at", ["waiting", "started", "stored"])
def test_a_service_that_is_killed_settles_its_jobs_when_it_comes_back(at: str, tmp_path: Path) -> None:
    with asked(tmp_path / "service") as made:
        runner = made.desk.runner
        assert runner is not None
        runner.stop()  # as if the process were gone, with whatever it had begun
        job = made.submitted()
        if at != "waiting":
            taken = None
            while taken is None:
                taken = made.desk.queue.take(0)
        if at == "stored":
            from sfumato.server.jobs.worker import answered

            reply = answered(runner._task(made.desk.queue.job(job.name)))
            assert reply["released"] is not None
        made.desk._start()
        ended = made.ended(job.name)
        assert (ended.outcome, made.spent) == (JobOutcome.RELEASED, Fraction(1, 10))


@pytest.mark.long
def test_workers_end_with_the_service(tmp_path: Path) -> None:
    with asked(tmp_path / "service") as made:
        made.ended(made.submitted(ALL).name)
        assert made.desk.runner is not None
        pids = made.desk.runner.pids
        assert len(pids) == 1
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_says_nothing_is_ended_by_the_moment_it_was_given() -> None:
    worker = WorkerProcess((sys.executable, "-c", "import time; print('{}', flush=True); time.sleep(600)"))
    try:
        assert worker.ready(until=time.time() + 30)
        assert worker.asked({}, until=time.time() + 0.2) is None
        assert worker.pid is None
    finally:
        worker.kill()


@pytest.mark.long
def test_a_question_that_the_ledger_refuses_meanwhile_says_so_and_costs_nothing(tmp_path: Path) -> None:
    with asked(tmp_path / "service", cap=Budget(epsilon="3/20")) as made:
        first, second = made.submitted(BY_WARD), made.submitted(OLD)  # each fits by itself
        made.ended(first.name)
        made.desk.queue.wake()
        outcomes = [made.ended(job.name).outcome for job in (first, second)]
        assert outcomes == [JobOutcome.RELEASED, JobOutcome.REFUSED]
        assert "asks for ε = 1/10" in made.desk.queue.job(second.name).words
        assert made.spent == Fraction(1, 10)


@pytest.mark.long
def test_a_lane_whose_worker_is_killed_while_idle_goes_on(tmp_path: Path) -> None:
    with asked(tmp_path / "service") as made:
        made.ended(made.submitted(ALL).name)
        assert made.desk.runner is not None
        os.kill(made.desk.runner.pids[0], signal.SIGKILL)
        assert made.ended(made.submitted(BY_WARD).name).outcome is JobOutcome.RELEASED


@pytest.mark.long
def test_a_lane_that_fails_settles_first_what_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked(tmp_path / "service") as made:
        runner, failed = made.desk.runner, []
        assert runner is not None
        settled = runner._settled

        def failing(job: Job, reply: object) -> None:
            if not failed:
                failed.append(job.name)
                raise OSError("the disk is full")
            settled(job, reply)  # type: ignore[arg-type]

        monkeypatch.setattr(runner, "_settled", failing)
        ended = made.ended(made.submitted().name)
        assert (failed, ended.outcome, made.spent) == ([ended.name], JobOutcome.RELEASED, Fraction(1, 10))
