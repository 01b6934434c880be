"""The part of a ledger that keeps a research environment: projects, programs and runs, each an entry of the record."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.errors import NotDeclared, Refused
from sfumato.governance.entries import Committed, Entry
from sfumato.governance.ledger_state import account_line
from sfumato.governance.program_paper import ProgramPaper
from sfumato.governance.research_entries import ProgramSubmitted, Project, ProjectOpened, RunLogged, RunPhase
from sfumato.governance.spelling import check_spelling

if TYPE_CHECKING:
    from sfumato.governance.research_state import ResearchState
    from sfumato.governance.transaction import Transaction

__all__ = ["Researched"]

Seen = TypeVar("Seen")


class Researched(ABC):
    """Projects, programs and runs; every method that changes something enters one entry, or nothing.

    Guarantee: whatever stands here was approved and signed as it says, and is checked again by every replay; an entry
    that was edited or removed is found (``sfumato ledger verify``). Public: all of it.
    """

    identifier: str

    @abstractmethod
    def _enter(self, make: "Callable[[Transaction, str], Sequence[Entry]]") -> None:
        """Enter what ``make`` returns, in one transaction, and anchor it."""

    @abstractmethod
    def _look(self, make: "Callable[[Transaction, str], Seen]") -> Seen:
        """What ``make`` finds in one transaction, at the time that an entry would bear; nothing is entered."""

    def research(self) -> "ResearchState":
        """All projects, programs and runs."""
        return self._look(lambda transaction, _: transaction.decision_state().research)

    def project(self, name: str) -> Project:
        """A project that is in force; refused where none is."""

        def look(transaction: "Transaction", _: str) -> Project:
            decided = transaction.decision_state()
            return decided.research.project(name, decided.approvals())

        return self._look(look)

    def runnable(self, number: int) -> tuple[ProgramSubmitted, Project]:
        """A program by its entry, and its project; refused where it may not run now."""

        def look(transaction: "Transaction", _: str) -> tuple[ProgramSubmitted, Project]:
            decided = transaction.decision_state()
            return decided.research.runnable(number, decided.approvals())

        return self._look(look)

    def open_project(self, project: Project, *, proposal: int) -> int:
        """Open a project that the board approved, by the number of the request; the number of the entry."""
        check_spelling([project.name, *(name for name, _ in project.people)], "a name in a project")

        def make(transaction: "Transaction", at: str) -> Entry:
            if transaction.balance(account_line(project.account)) is None:
                raise NotDeclared(
                    f"the account {project.account!r} of the project is not open; nothing was changed. Open it: "
                    "sfumato account open"
                )
            return ProjectOpened(at=at, project=project, proposal=proposal)

        return self._entered(make)

    def submit_program(self, project: str, *, by: str, code: str, key: SigningKey, job: str = "script") -> int:
        """Hand a program in, signed by one of the people of the project; the number of the entry."""

        def make(transaction: "Transaction", at: str) -> Entry:
            decided = transaction.decision_state()
            known = decided.research.project(project, decided.approvals())
            made = {"at": at, "project": project, "subject": known.subject, "by": by, "job": job, "code": code}
            unsigned = ProgramSubmitted(**made, signature="")
            return ProgramSubmitted(**made, signature=unsigned.signed(self.identifier, key))

        return self._entered(make)

    def program_paper(self, project: str, *, by: str, code: str, job: str = "script") -> ProgramPaper:
        """A paper with which somebody of the project hands a program in, to be signed elsewhere; nothing is entered."""
        known = self.project(project)
        if by not in dict(known.people):
            raise Refused(
                f"{by!r} is not of the project {project!r}; nothing was written. Its people hand programs in."
            )
        return ProgramPaper(
            ledger=self.identifier, project=known.name, subject=known.subject, by=by, job=job, code=code
        )

    def submit_signed(self, paper: ProgramPaper) -> int:
        """Hand a program in by its signed paper, whoever carries it; the number of the entry."""
        return self._entered(lambda _, at: paper.program(at))

    def start_run(self, program: int, editions: Sequence[Dataset], *, level: str) -> int:
        """Enter, before anything runs, that a program runs on these versions of the data."""
        return self._logged(program, RunPhase.STARTED, None, editions, (), level)

    def end_run(self, run: int, phase: RunPhase, releases: Sequence[str] = ()) -> int:
        """Enter what became of a run, and all that it let out."""
        start = self.research().runs.get(run)
        if start is None:
            raise Refused(f"entry {run} is no run; nothing was entered.")
        return self._logged(start.program, phase, run, start.editions, releases, start.level)

    def repeat_run(self, program: int, first: RunLogged) -> int:
        """Enter that a program was answered from what the same one had let out before."""
        return self._logged(program, RunPhase.STORED, first.run, first.editions, first.releases, first.level)

    def certificate(self, identifier: str) -> str | None:
        """The certificate of a release by its identifier, as the ledger stored it; None where there is none."""

        def look(transaction: "Transaction", _: str) -> str | None:
            for row in transaction.rows_with(Committed.KIND, identifier):
                entry = row.entry
                if isinstance(entry, Committed) and identifier in entry.certificate:
                    return entry.certificate
            return None

        return self._look(look) if identifier.isalnum() else None

    def _logged(
        self,
        program: int,
        phase: RunPhase,
        run: int | None,
        editions: Sequence[Dataset],
        releases: Sequence[str],
        level: str,
    ) -> int:
        def make(_: "Transaction", at: str) -> Entry:
            return RunLogged(
                at=at,
                program=program,
                phase=phase,
                run=run,
                editions=tuple(editions),
                releases=tuple(releases),
                level=level,
            )

        return self._entered(make)

    def _entered(self, make: "Callable[[Transaction, str], Entry]") -> int:
        """Enter one entry; its number."""
        place: list[int] = []

        def one(transaction: "Transaction", at: str) -> list[Entry]:
            place.append(transaction.end().number + 1)
            return [make(transaction, at)]

        self._enter(one)
        return place[-1]
