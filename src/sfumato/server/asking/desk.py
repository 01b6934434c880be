"""The desk of a service: offers, the queue and its lanes, and the releases that came of jobs, for pages and the API."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.limits import Limit
from sfumato.core.release import Release, presenter_of, viewed
from sfumato.core.view import View
from sfumato.errors import LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance.ledger_state import account_line
from sfumato.reports.stored import stored_release
from sfumato.server.asking.offers import AskableDataset, Asker, Offer
from sfumato.server.asking.projects import AnalystProject, Projects
from sfumato.server.asking.undue import Undue
from sfumato.server.jobs.process import COMMAND
from sfumato.server.jobs.queue import Job, JobOutcome, JobQueue, Slots
from sfumato.server.jobs.runner import JobRunner
from sfumato.server.watching import LOGGER
from sfumato.server.works.rows import MADE, FileMaker
from sfumato.tables.persons import private_datasets

if TYPE_CHECKING:
    from sfumato.server.service import Service
    from sfumato.server.visitors import Visitor

__all__ = ["QuestionDesk", "desk_of", "open_desk"]

MOST_KEPT = 256
DESK = "questions"
_turn = threading.Lock()


class QuestionDesk:
    """Everything that asking needs of one service.

    Guarantee: no row is read in this process; whoever may not charge an account learns nothing of its questions.
    """

    def __init__(self, service: "Service", slots: Slots, command: Sequence[str]) -> None:
        self.service, self._command = service, tuple(command)
        service.database.create()  # the tables of this area, which was imported since
        self.queue = JobQueue(service.database, slots=slots, now=service.now)
        self.undue = Undue(self.queue, service.ledger)
        self.asker = Asker(service.ledger, service.datasets, undue=self.undue)
        self.projects = Projects(service.database, now=service.now)
        self._kept: OrderedDict[str, Release] = OrderedDict()
        self._turn = threading.Lock()
        self.runner: JobRunner | None = None
        self.files = FileMaker(service.folder / MADE, log=lambda words: LOGGER.info("job", extra={"event": words}))
        service.on_start(self._start)
        service.on_stop(self._stop)

    def _start(self) -> None:
        self.runner = JobRunner(
            self.queue,
            self.service.ledger,
            self.service.datasets,
            owner=self.service.owner,
            key=str(self.service.release_key),
            command=self._command,
            log=lambda words: LOGGER.info("job", extra={"event": words}),
        )
        self.runner.start()

    def _stop(self) -> None:
        if self.runner is not None:
            self.runner.stop()
        self.files.stop()

    @property
    def datasets(self) -> Mapping[str, AskableDataset]:
        """The datasets that can be asked, by name."""
        return self.service.datasets

    def accounts(self, visitor: "Visitor") -> tuple[str, ...]:
        """The accounts that somebody may charge, the deepest first."""
        start = account_line("")
        names = [balance.name for balance in self.service.ledger.balances()]
        paths = [name.removeprefix(start) for name in names if name.startswith(start)]
        return tuple(
            sorted((path for path in paths if visitor.may_charge(path)), key=lambda each: (-each.count("/"), each))
        )

    def account(self, visitor: "Visitor", asked: str | None) -> str:
        """The account that somebody means; theirs, or refused in the same words whether there is one or not."""
        mine = self.accounts(visitor)
        if asked in mine:
            return str(asked)
        if asked:
            raise Refused(
                "you may not charge this account, whether or not there is one of this name; nothing was charged. "
                "Choose one of yours."
            )
        if not mine:
            raise NotDeclared(
                "no account is yours to charge, so that nothing can be asked; nothing was charged. Ask an "
                "administrator for one."
            )
        return mine[0]

    def ask(
        self,
        visitor: "Visitor",
        offer: Offer,
        *,
        title: str | None = None,
        project: str | None = None,
        fresh: bool = False,
        even_if_useless: bool = False,
        limit: Limit | None = None,
        idempotency: str | None = None,
        work: str | None = None,
    ) -> Job:
        """Hand in what was offered, if it is open; its price is what the offer says."""
        if not offer.open:
            raise Refused(offer.refusal)
        if project is not None:
            self.projects.project(project, visitor)
        return self.queue.submit(
            login=str(visitor.name),
            account=offer.account,
            query=offer.query,
            spend=offer.spend,
            title=title or offer.question,
            sql=offer.sql,
            project=project,
            fresh=fresh,
            even_if_useless=even_if_useless,
            limit=limit,
            idempotency=idempotency,
            work=work,
        )

    def job(self, visitor: "Visitor", name: str) -> Job:
        """A question of an account that somebody may charge now, whoever asked it."""
        job = self.queue.job(name)
        if not visitor.may_charge(job.account):
            raise NotDeclared("there is no question of this name, or it is not yours; nothing was done.")
        return job

    def asked_by(self, visitor: "Visitor") -> list[Job]:
        """What somebody asked, of the accounts that they may charge now; the latest first."""
        return [job for job in self.queue.of(login=str(visitor.name)) if visitor.may_charge(job.account)]

    def asked_in(self, visitor: "Visitor", project: AnalystProject) -> list[Job]:
        """What was asked in a project, of the accounts that somebody may charge now; the latest first."""
        return [job for job in self.queue.of(project=project.name) if visitor.may_charge(job.account)]

    def release(self, job: Job) -> Release:
        """The release that a job became, shown as it was asked for."""
        found, charged = self._handed_out(job), job.charged or Budget.none()
        paid = replace(
            found, presenter=presenter_of(found), charged=charged, repeated=charged == Budget.none()
        )  # what this question cost, and not what it costs to look at its answer
        return viewed(paid, self._view(job))

    def certificate(self, job: Job) -> str:
        """The certificate of the release that a job became, as the ledger stored it."""
        return self._text(self._handed_out(job).statement.identifier)

    def _handed_out(self, job: Job) -> Release:
        """The release that a job became; refused where terms, a veto or the board forbid its use today."""
        found, versions = self.stored(_answer_of(job)), self.service.datasets.versions(job.dataset)
        held = next((each for each in versions if each.edition == job.edition), None)
        use = self.service.ledger.account(
            job.account,
            unit=self.service.ledger.balance(job.account).unit,
            purpose=None if held is None else held.purpose,
            recipient=None if held is None else held.recipient,
        )
        query = found.statement.query
        use.check_use([query.dataset, *private_datasets(getattr(query, "joins", ()))])
        return found

    def stored(self, identifier: str) -> Release:
        """A release by its identifier, as the ledger stored it."""
        with self._turn:
            found = self._kept.get(identifier)
        if found is None:
            found = stored_release(self._text(identifier))
            with self._turn:
                self._kept[identifier] = found
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
        return found

    def _text(self, identifier: str) -> str:
        text = self.service.ledger.certificate(identifier)
        if text is None:
            raise LedgerError("the ledger holds no such answer; nothing was shown. Verify it.")
        return text

    def _view(self, job: Job) -> View | None:
        if job.sql is None:
            return None
        try:
            return self.asker.question(job.account, job.dataset, job.sql).view
        except SfumatoError:  # its data have another schema by now: then the whole answer is shown
            return None


def _answer_of(job: Job) -> str:
    """The release that a job became; before its deadline there is none."""
    if job.outcome is not JobOutcome.RELEASED or job.release is None:
        raise Refused("this question has no answer to show; nothing was done.")
    return job.release


def desk_of(service: "Service") -> QuestionDesk:
    """The desk of a service."""
    return open_desk(service)


def open_desk(service: "Service", slots: Slots | None = None, command: Sequence[str] = COMMAND) -> QuestionDesk:
    """The desk of a service, made at the first call; ``slots`` and the ``command`` of workers count then."""
    with _turn:
        found = service.held.get(DESK)
        if not isinstance(found, QuestionDesk):
            said = service.settings
            usual = Slots(length=float(said.slot_seconds), lanes=said.workers)
            found = service.held[DESK] = QuestionDesk(service, slots or usual, command)
        return found
