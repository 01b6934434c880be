"""The paper by which a program is handed in to a project: written at the ledger, and signed where the key is."""

import hashlib
from dataclasses import dataclass, replace
from typing import ClassVar

from sfumato.core.signature import SigningKey
from sfumato.errors import Refused
from sfumato.governance.paper_file import PaperFile
from sfumato.governance.research_entries import ProgramSubmitted

__all__ = ["ProgramPaper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPaper(PaperFile):
    """A program of a project, to be signed by the one who hands it in; a file of text (:meth:`save`, :meth:`load`).

    Guarantee: the signature covers the ledger, the project as it was approved, who hands the program in, how it is run
    and its whole text; the ledger refuses a paper that was altered, or that the key of somebody else signed. Assumes:
    whoever signs has compared the digest, or read the text, on a machine of their own. Public: all of it.
    """

    KIND: ClassVar[str] = "research.paper"
    VERSION: ClassVar[int] = 1
    CALLED: ClassVar[str] = "the paper of a program"
    ledger: str
    project: str
    subject: str
    by: str
    job: str
    code: str
    signature: str | None = None

    def __post_init__(self) -> None:
        self.program("")  # what is no program is refused here

    @property
    def words(self) -> tuple[str, ...]:
        """What it says, in plain words: everything that whoever signs should read."""
        body = self.code.encode()
        return (
            f"{self.by} hands in a program for the {self.subject} ({self.project!r}), to be run as {self.job}.",
            f"Its text, below as code, has {len(body):,} bytes; its SHA-256 is {hashlib.sha256(body).hexdigest()}.",
            f"For the ledger {self.ledger}.",
            "Not signed yet." if self.signature is None else f"{self.by} signs.",
        )

    def signed(self, key: SigningKey) -> "ProgramPaper":
        """The paper with the signature of a key."""
        if self.signature is not None:
            raise Refused("this paper is signed already; nothing was signed. Ask for one of your own.")
        return replace(self, signature=self.program("").signed(self.ledger, key))

    def program(self, at: str) -> ProgramSubmitted:
        """What is entered by it, at a time; the ledger looks whether the signature holds."""
        return ProgramSubmitted(
            at=at,
            project=self.project,
            subject=self.subject,
            by=self.by,
            job=self.job,
            code=self.code,
            signature=self.signature or "",
        )
