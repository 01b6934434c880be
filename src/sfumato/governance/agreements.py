"""Agreements to a recovery: members sign at home that the ledger goes on after a loss, and what that costs."""

from dataclasses import dataclass, replace
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.documents import Json, canonical, encode
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.governance.entries import Recovered
from sfumato.governance.paper_file import PaperFile

__all__ = ["CLOSED", "Agreement", "recovery_text"]


CLOSED = "All data are closed, since one of the lost entries may have closed them: declare them as new versions."


def recovery_text(ledger: str, entry: Recovered) -> bytes:
    """What a member signs who agrees to a recovery: all of it but its time and the names of the others.

    The first agreements did not state the end of the record and had no expiry.
    """
    said: list[Json] = [ledger, entry.reason, entry.anchored, entry.lost, encode(entry.gap)]
    if not entry.after:
        return canonical(["a recovery", *said, *(["whole"] if entry.whole else [])]).encode()
    known: list[Json] = [entry.whole, entry.after, entry.expires, entry.witnessed, entry.basis]
    data = ["data are closed"] if entry.closes else []
    return canonical(["an agreement to a recovery", *said, *known, *data]).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(PaperFile):
    """A paper on which a member of the board agrees to a recovery, or the signed agreement.

    Guarantee: it counts for one loss: of the entries after ``after``, with this charge and reason, until it expires.
    """

    KIND: ClassVar[str] = "board.agreement"
    VERSION: ClassVar[int] = 1
    PARTS: ClassVar = (Budget,)
    CALLED: ClassVar[str] = "an agreement"
    ledger: str
    keys: tuple[tuple[str, str], ...]
    reason: str
    anchored: str
    lost: int
    gap: Budget
    whole: bool
    after: str
    expires: str
    witnessed: str
    basis: str
    signer: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        if not self.after:  # the text of the first agreements, which was bound to no record and did not expire
            raise InvalidInput("this agreement does not say where the record ends that it is for; nothing was done.")

    @classmethod
    def to(cls, entry: Recovered, ledger: str, keys: tuple[tuple[str, str], ...]) -> "Agreement":
        """A paper to agree to a recovery, for whoever has one of these keys."""
        return cls(
            ledger=ledger,
            keys=keys,
            reason=entry.reason,
            anchored=entry.anchored,
            lost=entry.lost,
            gap=entry.gap,
            whole=entry.whole,
            after=entry.after,
            expires=str(entry.expires),
            witnessed=entry.witnessed,
            basis=entry.basis,
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What it says, in plain words: everything that whoever signs should read."""
        cost = f"Every balance is charged {self.gap}."
        if self.whole:
            cost = "Nobody knows what was charged, so nothing is left under any cap."
        signed = "Not signed yet."
        if self.signature is not None:
            signed = f"{self.signer} agrees, with the key {dict(self.keys).get(str(self.signer), '')}."
        return (
            f"An agreement that the ledger {self.ledger} goes on after a loss: {self.reason}",
            f"Entries that are lost: {self.lost}. {cost} How that is known: {self.basis}.",
            "All approvals end, and so do vetoes among the lost entries: say them again.",
            *([] if not self.entry("").closes else [CLOSED]),
            f"The record that is gone on with ends at the entry whose digest is {self.after}.",
            f"This agreement can be handed in until {self.expires}.",
            signed,
        )

    def signed(self, key: SigningKey) -> "Agreement":
        """The agreement, signed with one's own key."""
        name = next((name for name, known in self.keys if known == key.public_text), None)
        if name is None or self.signature is not None:
            raise Refused("this paper is signed already, or its board does not know this key; nothing was signed.")
        return replace(self, signer=name, signature=key.sign(recovery_text(self.ledger, self.entry(""))))

    def entry(self, at: str) -> Recovered:
        """The recovery that is agreed to, at a time."""
        return Recovered(
            at=at,
            reason=self.reason,
            anchored=self.anchored,
            lost=self.lost,
            gap=self.gap,
            whole=self.whole,
            after=self.after,
            expires=self.expires,
            witnessed=self.witnessed,
            basis=self.basis,
            closes=self.whole or self.lost > 0 or self.gap != Budget.none(),
        )
