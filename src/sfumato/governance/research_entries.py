"""What the record says of a research environment: its projects, the programs that were handed in, and every run.

A project is what the board approves: who, what for, which columns, which account. A program is bound to its project by
the signature of one of its people. All of it is public: the record is the log.
"""

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from sfumato.core.documents import canonical, encode
from sfumato.core.exact import natural
from sfumato.core.query import Dataset, check_name
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.governance.consent import within

__all__ = [
    "MOST_CODE",
    "ProgramSubmitted",
    "Project",
    "ProjectOpened",
    "ResearchEntry",
    "RunLogged",
    "RunPhase",
    "program_text",
]

MOST_CODE = 64 * 2**10
"""Bytes of a program: it stands in the record, where everybody can read what ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Who may ask what of which columns, for what, and from which account.

    ``people`` are names with their public keys; ``columns`` are those of each dataset that may be used, and no others;
    with ``reviewed`` the board approves each program too. Public: every field.

    >>> study = Project(name="wards", purpose="research/wards", recipient="public", account="hospital/wards",
    ...                 people=(("ada", "0" * 64),), columns=(("visits", ("age",)),))
    >>> study.datasets, study.subject[:8]
    (('visits',), 'project ')
    """

    KIND: ClassVar[str] = "research.project"
    VERSION: ClassVar[int] = 1
    name: str
    purpose: str
    recipient: str
    account: str
    people: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    reviewed: bool = True

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a project")
        for said, what in ((self.purpose, "purpose"), (self.recipient, "recipient"), (self.account, "account")):
            check_name(said, f"the {what} of a project")
        within(self.purpose, (self.purpose,))
        _distinct([name for name, _ in self.people], "the people of a project")
        _distinct([key for _, key in self.people], "the keys of the people of a project")
        for name, key in self.people:
            check_name(name, "the name of somebody in a project")
            if len(key) != 64 or not set(key) <= set("0123456789abcdef"):
                raise InvalidInput(f"the key of {name!r} is not a public key; nothing was done.")
        _distinct(self.datasets, "the datasets of a project")
        for dataset, columns in self.columns:
            _distinct(columns, f"the columns of {dataset!r} in a project")

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets that it may ask."""
        return tuple(dataset for dataset, _ in self.columns)

    @property
    def subject(self) -> str:
        """What the board decides on: all of this, by its digest."""
        return f"project {hashlib.sha256(canonical(encode(self)).encode()).hexdigest()}"

    def program_subject(self, job: str, code: str) -> str:
        """What the board decides on where it approves a program: its code, its kind and this project."""
        whole = canonical(["a program of a project", self.subject, job, code]).encode()
        return f"program {hashlib.sha256(whole).hexdigest()}"


class RunPhase(Enum):
    """What became of a run, one entry each; a run that was killed has no end."""

    STARTED = "started"
    RELEASED = "released"
    FAILED = "failed"
    STORED = "stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectOpened:
    """A project that the board approved by ``proposal``; a later one of the same name takes its place."""

    KIND: ClassVar[str] = "research.opened"
    VERSION: ClassVar[int] = 1
    at: str
    project: Project
    proposal: int

    def __post_init__(self) -> None:
        natural(self.proposal, "the number of a proposal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSubmitted:
    """A program of a project, signed by one of its people; ``job`` is how it is run."""

    KIND: ClassVar[str] = "research.program"
    VERSION: ClassVar[int] = 1
    at: str
    project: str
    subject: str
    by: str
    job: str
    code: str
    signature: str

    def __post_init__(self) -> None:
        try:
            size = len(self.code.encode())
        except UnicodeEncodeError:
            raise InvalidInput("a program is text that can be written as UTF-8; nothing was done.") from None
        if not self.code.strip():
            raise NotDeclared("a program that is empty asks for nothing; nothing was done.")
        if size > MOST_CODE:
            raise InvalidInput(f"a program has at most {MOST_CODE:,} bytes, and this one {size:,}; nothing was done.")

    def signed(self, ledger: str, key: SigningKey) -> str:
        """The signature of somebody over this program, for one ledger."""
        return key.sign(program_text(ledger, self))

    def holds(self, ledger: str, key: str) -> bool:
        """Whether the signature is that of this key, over this program, for this ledger."""
        return signature_holds(key, self.signature, program_text(ledger, self))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLogged:
    """That a program ran, or what became of it: ``program`` is its entry, ``run`` the entry that started the run.

    ``editions`` are the data as they were; ``releases`` the identifiers of all that left, in order; ``level`` how the
    box was shut.
    """

    KIND: ClassVar[str] = "research.run"
    VERSION: ClassVar[int] = 1
    at: str
    program: int
    phase: RunPhase
    run: int | None
    editions: tuple[Dataset, ...]
    releases: tuple[str, ...]
    level: str

    def __post_init__(self) -> None:
        natural(self.program, "the entry of a program")
        if (self.run is None) is not (self.phase is RunPhase.STARTED):
            raise InvalidInput("the end of a run names its start, and a start names none; nothing was done.")
        if self.releases and self.phase not in (RunPhase.RELEASED, RunPhase.STORED):
            raise InvalidInput("a run that is not over, or failed, let nothing out; nothing was done.")


ResearchEntry = ProjectOpened | ProgramSubmitted | RunLogged


def program_text(ledger: str, program: ProgramSubmitted) -> bytes:
    """What is signed by whoever hands a program in: ledger, project as approved, name, kind and code."""
    said = [ledger, program.project, program.subject, program.by, program.job, program.code]
    return canonical(["a program for a project", *said]).encode()


def _distinct(names: "tuple[str, ...] | list[str]", what: str) -> None:
    if not names:
        raise NotDeclared(f"{what} are missing; nothing was done.")
    if len({name.casefold() for name in names}) != len(names) or not all(name.strip() for name in names):
        raise InvalidInput(f"{what} must be names, each given once, capital letters aside; nothing was done.")
