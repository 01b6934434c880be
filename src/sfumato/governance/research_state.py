"""What follows from the entries of a research environment: which projects are in force, what waits, what ran.

Every replay of the record checks all of it again: the board's approval of a project and of its programs, the signature
of whoever handed a program in, and that no run was entered for anything else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.core.query import Dataset
from sfumato.errors import NotDeclared, Refused
from sfumato.governance.board import Proposal, Veto
from sfumato.governance.minutes import Minutes
from sfumato.governance.research_entries import (
    ProgramSubmitted,
    Project,
    ProjectOpened,
    ResearchEntry,
    RunLogged,
    RunPhase,
)

__all__ = ["Approvals", "ResearchState"]

_DONE = "Nothing was read, run or spent."


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """What the board has approved as exceptions, and its minutes; a veto later than a proposal ends its approval."""

    ledger: str
    minutes: Minutes | None
    approved: tuple[Proposal, ...]

    def find(self, subject: str, project: Project, number: int | None = None) -> Proposal | None:
        """The approval in force of a subject: for these datasets and this account, and no others."""
        for proposal in reversed(self.approved):
            named = proposal.subject == subject and set(proposal.datasets) == set(project.datasets)
            if named and proposal.account == project.account and number in (None, proposal.number):
                return None if self._ended(proposal) else proposal
        return None

    def _ended(self, proposal: Proposal) -> bool:
        entries: Sequence[object] = () if self.minutes is None else self.minutes.entries
        place = next((at for at, entry in enumerate(entries) if entry == proposal), len(entries))
        return any(isinstance(entry, Veto) and entry.dataset in proposal.datasets for entry in entries[place:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchState:
    """Projects by name, programs and runs by the number of their entry."""

    projects: Mapping[str, ProjectOpened] = field(default_factory=dict)
    programs: Mapping[int, ProgramSubmitted] = field(default_factory=dict)
    runs: Mapping[int, RunLogged] = field(default_factory=dict)

    def after(self, number: int, entry: ResearchEntry, approvals: Approvals) -> "ResearchState":
        """The state with one entry more, or a refusal that says why it may not be entered."""
        match entry:
            case ProjectOpened():
                self._check_opening(entry, approvals)
                return replace(self, projects={**self.projects, entry.project.name: entry})
            case ProgramSubmitted():
                self._check_program(entry, approvals)
                return replace(self, programs={**self.programs, number: entry})
            case RunLogged():
                self._check_run(entry, approvals)
                return replace(self, runs={**self.runs, number: entry})

    def project(self, name: str, approvals: Approvals) -> Project:
        """A project that is in force: opened, and neither vetoed nor replaced since."""
        opened = self.projects.get(name)
        if opened is None:
            raise NotDeclared(f"no project {name!r} is open. {_DONE} Open it: sfumato research project")
        if approvals.find(opened.project.subject, opened.project, opened.proposal) is None:
            raise Refused(
                f"the approval of the project {name!r} has ended: a community vetoed its data, or entries were lost. "
                f"{_DONE} Ask the board anew."
            )
        return opened.project

    def runnable(self, number: int, approvals: Approvals) -> tuple[ProgramSubmitted, Project]:
        """A program and its project, where the program may run now."""
        program = self.programs.get(number)
        if program is None:
            raise NotDeclared(f"entry {number} is no program that was handed in. {_DONE} See: sfumato research log")
        project = self.project(program.project, approvals)
        self._check_signed(program, project, approvals)
        subject = project.program_subject(program.job, program.code)
        if project.reviewed and approvals.find(subject, project) is None:
            raise Refused(
                f"the board has not approved this program for {project.name!r} as the project stands now. {_DONE} Ask "
                f"it: sfumato research request {number}"
            )
        return program, project

    def answered(self, number: int, editions: Sequence[Dataset]) -> tuple[int, RunLogged] | None:
        """The run that the same program had on the same data, where it ended with releases."""
        program = self.programs[number]
        same = {at for at, other in self.programs.items() if _alike(other, program)}
        for at, logged in self.runs.items():
            done = logged.phase is RunPhase.RELEASED
            if done and logged.program in same and set(logged.editions) == set(editions):
                return at, logged
        return None

    @property
    def waiting(self) -> tuple[int, ...]:
        """The programs that have not run yet, in order."""
        ran = {logged.program for logged in self.runs.values()}
        return tuple(number for number in self.programs if number not in ran)

    def _check_opening(self, entry: ProjectOpened, approvals: Approvals) -> None:
        project = entry.project
        if approvals.minutes is None:
            raise NotDeclared("a project is approved by a board, and none is seated; nothing was changed.")
        known = self.projects.get(project.name)
        if known is not None and entry.proposal <= known.proposal:
            raise Refused(f"a later decision opened the project {project.name!r} already; nothing was changed.")
        if approvals.find(project.subject, project, entry.proposal) is None:
            raise Refused(
                f"request {entry.proposal} is no approval in force of this project with its datasets and account; "
                "nothing was changed. What is approved is the text of the project: one that was altered since is "
                "another one."
            )

    def _check_program(self, entry: ProgramSubmitted, approvals: Approvals) -> None:
        self._check_signed(entry, self.project(entry.project, approvals), approvals)

    def _check_signed(self, entry: ProgramSubmitted, project: Project, approvals: Approvals) -> None:
        key = dict(project.people).get(entry.by)
        if key is None or entry.subject != project.subject or not entry.holds(approvals.ledger, key):
            raise Refused(
                f"this program is not signed by one of the people of the project {project.name!r} as it stands now. "
                f"{_DONE}"
            )

    def _check_run(self, entry: RunLogged, approvals: Approvals) -> None:
        if entry.run is None:
            self.runnable(entry.program, approvals)
            return
        start = self.runs.get(entry.run)
        ends = [logged for logged in self.runs.values() if logged.run == entry.run]
        if entry.phase is RunPhase.STORED:
            self.runnable(entry.program, approvals)
            first = next((logged for logged in ends if logged.phase is RunPhase.RELEASED), None)
            again = None if first is None else replace(first, at=entry.at, phase=entry.phase, program=entry.program)
            same = first is not None and _alike(self.programs[entry.program], self.programs[first.program])
            if again != entry or not same:
                raise Refused("a stored answer is that of the same program on the same data; nothing was entered.")
        elif start is None or start.run is not None or start.program != entry.program or ends:
            raise Refused("a run ends once, after its start, for its own program; nothing was entered.")


def _alike(one: ProgramSubmitted, other: ProgramSubmitted) -> bool:
    return (one.subject, one.job, one.code) == (other.subject, other.job, other.code)
