"""The desk of research: projects, programs that are tried on invented rows, and runs, one at a time, in a worker.

This process keeps the ledger and reads no data: a run is entered here before it starts, carried out by a process of its
own, and what left is looked up in the ledger before its end is entered.
"""

import json
import queue
import subprocess  # the program is Python itself, with a module of ours
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.errors import EngineFailed, InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.governance.board import Outcome, Proposal
from sfumato.governance.program_paper import ProgramPaper
from sfumato.governance.research_entries import Project, RunLogged, RunPhase
from sfumato.reports.stored import stored_release
from sfumato.research.environment import JOBS, ResearchEnvironment, ResearchJob, dry_run
from sfumato.research.served import ServedProject
from sfumato.server.asking.offers import no_rows
from sfumato.server.research.tables import DRAFTED, TRIALS
from sfumato.server.watching import LOGGER
from sfumato.tables.schema import Schema
from sfumato.vault import Vault

if TYPE_CHECKING:
    from sfumato.server.service import Service

__all__ = ["COMMAND", "ProgramStanding", "ProjectStanding", "ResearchDesk", "Trial", "open_research", "research_of"]

COMMAND = (sys.executable, "-m", "sfumato.server.research.worker")
DESK = "research"
MOST_DRAFTED, MOST_TRIALS = 500, 2_000
LONGEST_RUN = 6 * 3_600.0
_turn = threading.Lock()

Phase = Literal["waiting", "running", "finished", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStanding:
    """A project and how it stands: drafted, asked for, approved, open, or ended; ``request`` is that to the board."""

    project: Project
    state: Literal["drafted", "asked", "approved", "open", "ended"]
    request: int | None
    by: str

    @property
    def digest(self) -> str:
        """What the board decides on."""
        return self.project.subject.rpartition(" ")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A program that was tried on invented rows, and what it would have cost. Public: nobody's data were read."""

    digest: str
    project: str
    job: str
    code: str
    login: str
    made: float
    phase: Phase
    epsilon: str
    delta: str
    releases: int
    words: str

    @property
    def cost(self) -> Budget:
        """What it would have cost."""
        return Budget(epsilon=Fraction(self.epsilon), delta=Fraction(self.delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStanding:
    """A program that was handed in, and how it stands; ``runs`` are its runs with their entries, the oldest first."""

    number: int
    project: str
    by: str
    job: str
    code: str
    at: str
    state: Literal["review", "asked", "ready", "queued", "running", "released", "failed", "cut", "ended"]
    request: int | None
    runs: tuple[tuple[int, RunLogged], ...]


class ResearchDesk:
    """Projects, trials and runs of one service.

    Guarantee: no row is read in this process, and a run is entered before it starts; only releases that the ledger
    stored are named as what left. Assumes: the workers of this service are its own.
    """

    def __init__(self, service: "Service", jobs: Mapping[str, ResearchJob], command: Sequence[str]) -> None:
        self.service, self._jobs, self._command = service, jobs, tuple(command)
        service.database.create()  # the tables of this area, which was imported since
        self._work: queue.Queue[tuple[Literal["trial", "run", "stop"], str]] = queue.Queue()
        self._queued: dict[int, None] = {}
        self._running: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        service.on_start(self.start)
        service.on_stop(self.stop)

    # ------------------------------------------------------------------------------------------------------- projects

    def projects(self) -> tuple[ProjectStanding, ...]:
        """All projects, those that were drafted last first."""
        with self.service.database.reading() as connection:
            rows = connection.execute(sa.select(DRAFTED).order_by(DRAFTED.c.made.desc())).all()
        drafted = {row.digest: (_project(row.project), row.login) for row in rows}
        found = [self._standing(project, login) for project, login in drafted.values()]
        opened = [each.project for each in self.service.ledger.research().projects.values()]
        undrafted = [each for each in opened if each.subject.rpartition(" ")[2] not in drafted]
        return (*found, *(self._standing(project, "") for project in undrafted))

    def project(self, digest: str) -> ProjectStanding:
        """A project by the digest of what the board decides on."""
        for standing in self.projects():
            if standing.digest == digest:
                return standing
        raise NotDeclared("there is no such project; nothing was done.")

    def draft(self, project: Project, *, by: str) -> ProjectStanding:
        """Keep the text of a project, so that the board can read what it decides on; nothing is entered."""
        for name, columns in project.columns:
            if not set(columns) <= set(self._schema(name).types):
                raise InvalidInput(f"{name!r} has no such columns; nothing was kept.")
        digest = project.subject.rpartition(" ")[2]
        with self.service.database.writing() as connection:
            count = connection.scalar(sa.select(sa.func.count()).select_from(DRAFTED)) or 0
            if connection.execute(sa.select(DRAFTED.c.digest).where(DRAFTED.c.digest == digest)).first() is None:
                if count >= MOST_DRAFTED:
                    raise Refused("there are too many drafts of projects; nothing was kept. Tell an administrator.")
                values = {"digest": digest, "project": canonical(encode(project)), "login": by}
                connection.execute(sa.insert(DRAFTED).values({**values, "made": self.service.now()}))
        return self.project(digest)

    def open(self, standing: ProjectStanding) -> None:
        """Open a project that the board approved."""
        if standing.state != "approved" or standing.request is None:
            raise Refused("the board has not approved this project, or it is open already; nothing was changed.")
        self.service.ledger.open_project(standing.project, proposal=standing.request)

    # --------------------------------------------------------------------------------------------------------- trials

    def try_out(self, standing: ProjectStanding, *, job: str, code: str, by: str) -> Trial:
        """Have a program tried on invented rows of the same schemas; one that was tried before is not tried again."""
        project = standing.project
        if standing.state != "open" or by not in dict(project.people):
            raise Refused("programs are tried by the people of a project that is open; nothing was run.")
        if job not in self._jobs:
            raise InvalidInput("choose how the program is run; nothing was run.")
        ProgramPaper(ledger="", project=project.name, subject=project.subject, by=by, job=job, code=code)
        digest = project.program_subject(job, code).rpartition(" ")[2]
        known = self.trial(digest)
        if known is not None and known.phase != "failed":
            return known
        made = Trial(
            digest=digest,
            project=standing.digest,
            job=job,
            code=code,
            login=by,
            made=self.service.now(),
            phase="waiting",
            epsilon="0",
            delta="0",
            releases=0,
            words="",
        )
        with self.service.database.writing() as connection:
            if (connection.scalar(sa.select(sa.func.count()).select_from(TRIALS)) or 0) >= MOST_TRIALS:
                raise Refused("too many programs were tried here; nothing was run. Tell an administrator.")
            connection.execute(sa.delete(TRIALS).where(TRIALS.c.digest == digest))
            connection.execute(
                sa.insert(TRIALS).values({name.name: getattr(made, name.name) for name in TRIALS.columns})
            )
        self._work.put(("trial", digest))
        return made

    def trial(self, digest: str) -> Trial | None:
        """A program that was tried, by its digest."""
        with self.service.database.reading() as connection:
            row = connection.execute(sa.select(TRIALS).where(TRIALS.c.digest == digest)).first()
        return None if row is None else Trial(**row._mapping)

    def trials(self, login: str) -> tuple[Trial, ...]:
        """What somebody tried, the latest first."""
        chosen = sa.select(TRIALS).where(TRIALS.c.login == login).order_by(TRIALS.c.made.desc()).limit(50)
        with self.service.database.reading() as connection:
            return tuple(Trial(**row._mapping) for row in connection.execute(chosen))

    def paper(self, trial: Trial) -> ProgramPaper:
        """The paper of a program that came to its end in its trial."""
        if trial.phase != "finished":
            raise Refused("this program has not come to its end in a dry run; nothing was written.")
        name = self.project(trial.project).project.name
        return self.service.ledger.program_paper(name, by=trial.login, code=trial.code, job=trial.job)

    def hand_in(self, paper: ProgramPaper) -> int:
        """Enter a program by its signed paper, whoever carries it; the number of its entry."""
        project = self.service.ledger.project(paper.project)
        trial = self.trial(project.program_subject(paper.job, paper.code).rpartition(" ")[2])
        if trial is None or trial.phase != "finished":
            raise Refused("this program has not come to its end in a dry run here; it was not handed in. Try it first.")
        before = self.service.ledger.research().programs.items()
        known = next((number for number, each in before if each.signature == paper.signature), None)
        if known is not None:
            raise Refused(f"this paper was handed in already, as program {known}; nothing was entered.")
        return self.service.ledger.submit_signed(paper)

    # ----------------------------------------------------------------------------------------------------------- runs

    def programs(self) -> tuple[ProgramStanding, ...]:
        """All programs that were handed in, the newest first."""
        research = self.service.ledger.research()
        return tuple(self.program(number) for number in sorted(research.programs, reverse=True))

    def program(self, number: int) -> ProgramStanding:
        """A program by its entry, and how it stands."""
        decided = self.service.ledger.decision_state()
        found = decided.research.programs.get(number)
        if found is None:
            raise NotDeclared("there is no such program; nothing was done.")
        runs = tuple((at, run) for at, run in decided.research.runs.items() if run.program == number)
        request = None
        opened = decided.research.projects[found.project]
        if opened.project.reviewed:
            subject = opened.project.program_subject(found.job, found.code)
            request = self._request(subject)
        return ProgramStanding(
            number=number,
            project=opened.project.subject.rpartition(" ")[2],
            by=found.by,
            job=found.job,
            code=found.code,
            at=found.at,
            state=self._program_state(number, runs, request),
            request=None if request is None else request.number,
            runs=runs,
        )

    def run(self, number: int) -> None:
        """Put a program into the queue; refused where it may not run."""
        self.service.ledger.runnable(number)
        if number in self._queued or number == self._running:
            raise Refused("this program waits for its run already; nothing was changed.")
        self._queued[number] = None
        self._work.put(("run", str(number)))

    def certificate(self, identifier: str) -> str:
        """The certificate of a release that left a run; nothing else is handed out."""
        runs = self.service.ledger.research().runs.values()
        found = self.service.ledger.certificate(identifier) if any(identifier in run.releases for run in runs) else None
        if found is None:
            raise NotDeclared("there is no such release of a run; nothing was handed out.")
        return found

    # -------------------------------------------------------------------------------------------------------- working

    def start(self) -> None:
        """Try and run what waits, until it is stopped."""
        self._stopping.clear()
        with self.service.database.writing() as connection:  # what was cut off is tried anew
            cut = sa.update(TRIALS).where(TRIALS.c.phase == "running")
            connection.execute(cut.values(phase="waiting"))
            waiting = connection.scalars(sa.select(TRIALS.c.digest).where(TRIALS.c.phase == "waiting")).all()
        for digest in waiting:
            self._work.put(("trial", digest))
        self._thread = threading.Thread(target=self._go, name="research", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the run that is under way, if there is one: it stays in the record without an end, and counts."""
        self._stopping.set()
        self._work.put(("stop", ""))
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
        if self._thread is not None:
            self._thread.join(10)

    def _go(self) -> None:
        while not self._stopping.is_set():
            what, name = self._work.get()
            try:
                if what == "trial":
                    self._tried(name)
                elif what == "run":
                    self._run(int(name))
            except Exception as bug:  # noqa: BLE001 - the next one has its turn; the words of a bug might quote a row
                LOGGER.info("research", extra={"event": f"research failed: {type(bug).__name__}"})
            finally:
                if what == "run":
                    self._queued.pop(int(name), None)
                    self._running = None

    def _tried(self, digest: str) -> None:
        trial = self.trial(digest)
        if trial is None or trial.phase != "waiting":
            return
        self._keep(replace(trial, phase="running"))
        try:
            project = self.project(trial.project).project
            balance = self.service.ledger.balance(project.account)
            vault = Vault(unit=balance.unit, budget=balance.cap, name="dry run")
            schemas = {name: self._schema(name) for name in project.datasets}
            found = dry_run(project, trial.code, schemas, vault=vault, job=self._jobs[trial.job])
        except SfumatoError as wrong:
            self._keep(replace(trial, phase="failed", words=str(wrong)))
            return
        except Exception:
            self._keep(replace(trial, phase="failed"))
            raise
        self._keep(
            replace(
                trial,
                phase="finished" if found.finished else "failed",
                epsilon=str(found.cost.epsilon),
                delta=str(found.cost.delta),
                releases=len(found.releases),
            )
        )

    def _run(self, number: int) -> None:
        self._running = number
        self._queued.pop(number, None)
        program = self.service.ledger.research().programs[number]
        jobs = {program.job: _WorkerJob(self, program.job)}
        data = {name: (no_rows(held.schema), held.schema) for name, held in self.service.datasets.items()}
        key = self.service.release_key
        ResearchEnvironment(ledger=self.service.ledger, data=data, key=key, jobs=jobs).run(number)

    def carry_out(self, job: str, code: str, served: ServedProject) -> bool:
        """Have a worker run a program, and let out what it released; whether it came to its end."""
        project = served.project
        held = {name: self.service.datasets[name] for name in project.datasets}
        task = {
            "owner": self.service.owner,
            "key": str(self.service.release_key),
            "unit": encode(self.service.ledger.balance(project.account).unit),
            "project": canonical(encode(project)),
            "data": {name: {"place": each.place, "schema": each.schema.to_toml()} for name, each in held.items()},
            "job": job,
            "code": code,
        }
        process = subprocess.Popen(  # noqa: S603 - the command is ours
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._process = process
        try:
            written, _ = process.communicate(json.dumps(task).encode() + b"\n", timeout=LONGEST_RUN)
        except subprocess.TimeoutExpired:
            return False
        finally:
            self._process = None
            process.kill()
            process.wait()
        if self._stopping.is_set():
            raise EngineFailed("the service stops; the run has no end, and what was charged counts.")
        return self._heard(written, served)

    def _heard(self, written: bytes, served: ServedProject) -> bool:
        """Let out what a worker released, as the ledger stored it; its word alone lets nothing out."""
        try:
            said = json.loads(written)
            finished, released = said["finished"] is True, [str(each) for each in said["released"]]
        except (ValueError, KeyError, TypeError):
            return False
        for identifier in released:
            text = self.service.ledger.certificate(identifier)
            if text is None:
                return False
            served.hand_out(stored_release(text))
        return finished

    def _keep(self, trial: Trial) -> None:
        values = {column.name: getattr(trial, column.name) for column in TRIALS.columns}
        with self.service.database.writing() as connection:
            connection.execute(sa.update(TRIALS).where(TRIALS.c.digest == trial.digest).values(values))

    # ----------------------------------------------------------------------------------------------------------- parts

    def _schema(self, name: str) -> Schema:
        if name not in self.service.datasets:
            raise NotDeclared(f"there is no dataset {name!r} here; nothing was done.")
        return self.service.datasets[name].schema

    def _request(self, subject: str) -> Proposal | None:
        """The newest request to the board about something."""
        minutes = self.service.ledger.decision_state().minutes
        proposals = () if minutes is None else minutes.proposals
        return next((each for each in reversed(proposals) if each.subject == subject), None)

    def _standing(self, project: Project, by: str) -> ProjectStanding:
        decided = self.service.ledger.decision_state()
        request, opened = self._request(project.subject), decided.research.projects.get(project.name)
        approved = decided.approvals().find(project.subject, project) is not None
        decision = None if request is None or decided.minutes is None else decided.minutes.decision(request.number)
        state: Literal["drafted", "asked", "approved", "open", "ended"] = "drafted"
        if opened is not None and opened.project == project and request is not None:
            state = "open" if approved and opened.proposal == request.number else "approved" if approved else "ended"
        elif approved:
            state = "approved"
        elif request is not None:
            state = "asked" if decision is None else "ended"
        number = None if request is None else request.number
        return ProjectStanding(project=project, state=state, request=number, by=by)

    def _program_state(
        self, number: int, runs: tuple[tuple[int, RunLogged], ...], request: Proposal | None
    ) -> Literal["review", "asked", "ready", "queued", "running", "released", "failed", "cut", "ended"]:
        if number == self._running:
            return "running"
        if number in self._queued:
            return "queued"
        if runs:
            phase = runs[-1][1].phase
            return "cut" if phase is RunPhase.STARTED else "failed" if phase is RunPhase.FAILED else "released"
        try:
            self.service.ledger.runnable(number)
        except SfumatoError:
            minutes = self.service.ledger.decision_state().minutes
            decision = None if request is None or minutes is None else minutes.decision(request.number)
            waits = request is not None and decision is None
            return (
                "asked" if waits else "review" if decision is None or decision.outcome is Outcome.EXPIRED else "ended"
            )
        return "ready"

    def level_of(self, job: str) -> str:
        """How programs of a kind are shut off here."""
        return self._jobs[job].level


@dataclass(frozen=True, slots=True)
class _WorkerJob:
    """A job that a worker of the service carries out."""

    desk: ResearchDesk
    job: str

    @property
    def level(self) -> str:
        """How it is shut off, as the job itself would be."""
        return self.desk.level_of(self.job)

    def run(self, code: str, project: ServedProject) -> bool:
        """Run a program to its end."""
        return self.desk.carry_out(self.job, code, project)


def research_of(service: "Service") -> ResearchDesk:
    """The desk of research of a service."""
    return open_research(service)


def open_research(
    service: "Service", jobs: Mapping[str, ResearchJob] = JOBS, command: Sequence[str] = COMMAND
) -> ResearchDesk:
    """The desk of research of a service, made at the first call; jobs and the ``command`` of workers count then."""
    with _turn:
        found = service.held.get(DESK)
        if not isinstance(found, ResearchDesk):
            found = service.held[DESK] = ResearchDesk(service, jobs, command)
        return found


def _project(text: str) -> Project:
    found: Project = Registry((Project,)).decode(parse(text), "project")
    return found
