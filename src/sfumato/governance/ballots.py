"""Ballots: what somebody decides, on a paper that can be signed on another machine and handed in by anybody.

A paper is written where the ledger is, signed where the key is, and entered where the ledger is again. Signing needs
neither ledger nor database nor network. What is signed is the act and all that it is bound to (:class:`Bound`), in one
canonical text (:func:`text_of`); the record keeps both, so that every replay checks the signature again.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.documents import Json, canonical, encode
from sfumato.core.exact import natural
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.ballot_words import Matter, said_of
from sfumato.governance.board import (
    BoardEntry,
    Choice,
    Proposal,
    Reasons,
    Veto,
    VetoLifted,
    Vote,
    Withdrawal,
    moment,
)
from sfumato.governance.paper_file import PaperFile

__all__ = ["UNSET", "Ballot", "Bound", "Matter", "bytes_digest", "text_of"]

UNSET = "0001-01-01T00:00:00+00:00"
"""When a request on a paper was made: it gets its time, and its number, when it is entered."""
_SET_LATER = ("at", "number")  # of an act: when it is entered, and as which proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a ballot is bound to, so that it counts once, in one ledger, about one thing, and by one key.

    ``board`` is the entry that seated the board; ``head`` and ``digest`` are an entry of the record that the paper was
    written after; ``about`` is the SHA-256 of the proposal's bytes, for a vote or a withdrawal; ``expires`` is judged
    when the ballot is handed in, and None for a veto alone; ``nonce`` tells two ballots of the same words apart.
    """

    KIND: ClassVar[str] = "board.bound"
    VERSION: ClassVar[int] = 1
    ledger: str
    board: int
    head: int
    digest: str
    about: str | None
    expires: str | None
    nonce: str
    key: str

    def __post_init__(self) -> None:
        natural(self.board, "the entry of a board")
        natural(self.head, "the entry of a head")
        if self.expires is not None:
            moment(self.expires)


def text_of(act: BoardEntry, bound: Bound) -> bytes:
    """What is signed: the act, without the time and number that it gets when it is entered, and what it is bound to.

    >>> bound = Bound(ledger="a", board=1, head=1, digest="b", about=None, expires=None, nonce="c", key="d")
    >>> no = Veto(at="2026-01-05T09:00:00+00:00", community="valley", voter="mele", dataset="visits", reason="no")
    >>> later = replace(no, at="2026-01-06T09:00:00+00:00")
    >>> text_of(no, bound) == text_of(later, bound), text_of(no, bound) == text_of(replace(no, reason="yes"), bound)
    (True, False)
    """
    whole = encode(act)
    said: dict[str, Json] = {}
    if isinstance(whole, dict):
        said = {name: part for name, part in whole.items() if name not in _SET_LATER}
    return canonical(["a ballot of the board", encode(bound), said]).encode()


def bytes_digest(proposal: Proposal) -> str:
    """The SHA-256 of a proposal's canonical bytes: all of its 64 digits, since whoever proposes may look for a twin."""
    return hashlib.sha256(canonical(encode(proposal)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot(PaperFile):
    """A paper to be signed, or a signed ballot; a file of text (:meth:`save`, :meth:`load`).

    Guarantee: a signed ballot that was altered anywhere, or is meant for another ledger, board, proposal, veto or key,
    is refused, and so is one that was handed in before. Assumes: whoever signs has read what :attr:`words` says, on a
    machine of their own. Public: all of it. A paper made by somebody else proves nothing; what it says is what is
    signed, and the ledger refuses what is not so.
    """

    KIND: ClassVar[str] = "board.ballot"
    VERSION: ClassVar[int] = 1
    PARTS: ClassVar = (Proposal, Reasons, Budget, Veto)
    CALLED: ClassVar[str] = "a ballot"
    matter: Matter
    ledger: str
    board: int
    head: int
    digest: str
    expires: str | None
    nonce: str
    keys: tuple[tuple[str, str], ...]
    proposal: Proposal | None = None
    community: str | None = None
    dataset: str | None = None
    veto: int | None = None
    vetoed: Veto | None = None
    signer: str | None = None
    choice: Choice | None = None
    reason: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        about_proposal = self.matter in (Matter.VOTE, Matter.WITHDRAW, Matter.REQUEST)
        named = (self.proposal is not None, self.community is not None, self.dataset is not None)
        lifted = (self.veto is not None, self.vetoed is not None)
        lifts = self.matter is Matter.LIFT
        if named != (about_proposal, not about_proposal, not about_proposal) or lifted != (lifts, lifts):
            raise InvalidInput(f"this paper does not say what it is about ({self.matter.value}); nothing was done.")
        if (self.expires is None) is not (self.matter is Matter.VETO):
            raise InvalidInput("a veto does not expire and every other ballot does; nothing was done.")
        given = {self.signer is None, self.reason is None, self.signature is None}
        if len(given) > 1 or (self.choice is not None) is not (self.signature is not None and self._votes):
            raise InvalidInput("a ballot is signed as a whole, or not at all; nothing was done.")
        if self._mute and self.reason:
            raise InvalidInput(f"a paper to {self.matter.value} has no room for a reason; nothing was done.")
        asked = self.proposal if self.matter is Matter.REQUEST else None
        if asked is not None and (asked.number, asked.at) != (1, UNSET):
            raise InvalidInput("a request has no number and no time before it is entered; nothing was done.")

    @property
    def _mute(self) -> bool:
        return self.matter in (Matter.REQUEST, Matter.WITHDRAW)

    @property
    def _votes(self) -> bool:
        return self.matter is Matter.VOTE

    @property
    def key(self) -> str:
        """The public key of whoever signed it, as the paper states it."""
        return dict(self.keys).get(self.signer or "", "")

    @property
    def words(self) -> tuple[str, ...]:
        """What it says, in plain words: everything that whoever signs should read."""
        cast = None if self.signature is None else (str(self.signer), self.key, self.choice, str(self.reason))
        about = self.bound().about
        lines = said_of(
            self.matter, proposal=self.proposal, about=about, veto=self.vetoed, said=(self.community, self.dataset)
        )
        ends = "It does not expire." if self.expires is None else f"This ballot can be handed in until {self.expires}."
        place = f"written after entry {self.head} of the record, whose digest is {self.digest}"
        stands = f"Ledger {self.ledger}; its board was seated by entry {self.board}; {place}."
        return (*lines, ends, stands, "Not signed yet." if cast is None else _signed(*cast))

    def bound(self) -> Bound:
        """What the signature of a signed ballot covers beside its act."""
        asked = None if self.matter is Matter.REQUEST else self.proposal
        return Bound(
            ledger=self.ledger,
            board=self.board,
            head=self.head,
            digest=self.digest,
            about=None if asked is None else bytes_digest(asked),
            expires=self.expires,
            nonce=self.nonce,
            key=self.key,
        )

    def act(self, at: str, number: int) -> BoardEntry:
        """What is entered by it, at a time; a request as the proposal of that number."""
        by, reason = self.signer or "", self.reason or ""
        community, dataset = self.community or "", self.dataset or ""
        if self.proposal is None:
            if self.matter is Matter.VETO:
                return Veto(at=at, community=community, voter=by, dataset=dataset, reason=reason)
            return VetoLifted(at=at, community=community, voter=by, dataset=dataset, reason=reason, veto=self.veto)
        if self.matter is Matter.REQUEST:
            return replace(self.proposal, at=at, number=number)
        if self.matter is Matter.WITHDRAW:
            return Withdrawal(proposal=self.proposal.number, at=at, by=by)
        choice = Choice.ABSTAIN if self.choice is None else self.choice
        return Vote(proposal=self.proposal.number, at=at, voter=by, choice=choice, reason=reason)

    def signed(self, key: SigningKey, *, choice: Choice | None = None, reason: str = "") -> "Ballot":
        """The ballot, signed with one's own key: a vote with a choice, anything else without."""
        if self.signature is not None:
            raise Refused("this ballot is signed already; nothing was signed. Ask for a paper of your own.")
        name = next((name for name, known in self.keys if known == key.public_text), None)
        if name is None:
            raise Refused(
                f"the board of this paper does not know the key {key.public_text}; nothing was signed. Sign with the "
                "key whose public half the board has, or have it taken up: sfumato budget request --action board"
            )
        if self._votes and choice is None:
            raise NotDeclared("a vote is yes, no or abstain; nothing was signed. Say which: --choice yes")
        if not self._votes and choice is not None:
            raise InvalidInput(f"this paper is to {self.matter.value} and asks for no choice; nothing was signed.")
        if self._mute and self.proposal is not None and self.proposal.proposer != name:
            owner, what = self.proposal.proposer, f"withdraw request {self.proposal.number}"
            does = what if self.matter is Matter.WITHDRAW else "sign this request"
            raise Refused(f"only {owner!r} can {does}, and this is the key of {name!r}; nothing was signed.")
        filled = replace(self, signer=name, choice=choice, reason=reason, signature="")
        return replace(filled, signature=key.sign(text_of(filled.act(UNSET, 1), filled.bound())))


def _signed(name: str, key: str, choice: Choice | None, reason: str) -> str:
    does = "signs" if choice is None else "abstains" if choice is Choice.ABSTAIN else f"votes {choice.value}"
    return f"{name} {does}, with the key {key}{f': {reason}' if reason else '.'}"
