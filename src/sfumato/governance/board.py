"""The board and what is said in it: who decides, what is proposed, votes, vetoes and decisions, as documents.

Each document states one thing that happened and is never changed. What follows from them is worked out by
:class:`sfumato.governance.minutes.Minutes` and by nothing else.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from itertools import chain
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.documents import LEFT_OUT
from sfumato.core.exact import natural
from sfumato.core.signature import read_public_key
from sfumato.errors import InvalidInput, NotDeclared, Refused

__all__ = [
    "DECLARATIONS",
    "Action",
    "Board",
    "BoardEntry",
    "Choice",
    "Committee",
    "Community",
    "Decision",
    "Outcome",
    "Proposal",
    "Reasons",
    "Veto",
    "VetoLifted",
    "Vote",
    "Withdrawal",
    "actor",
    "fingerprint",
    "moment",
    "signed_by",
]

LEAST_QUORUM = 2
_UNSEEN = re.compile(r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Joiners, fillers, blanks and variants, which count as printable and show nothing."""


class Action(Enum):
    """What a proposal asks for."""

    DATASET = "open a dataset"
    RAISE = "raise a cap"
    UNLOCK = "unlock a part of the reserve"
    PLAN = "adopt a plan"
    EXCEPTION = "make an exception"
    BOARD = "change the board"


class Choice(Enum):
    """A vote."""

    YES = "yes"
    NO = "no"
    ABSTAIN = "abstain"


class Outcome(Enum):
    """How a proposal ended."""

    APPROVED = "approved"
    REJECTED = "rejected"
    VETOED = "vetoed"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committee:
    """The data access committee of one site; an approval needs one of its community representatives too.

    >>> north = Committee(site="north", members=("hana", "ivo", "jun"), representatives=("jun",), quorum=2)
    >>> north.quorum
    2
    """

    KIND: ClassVar[str] = "board.committee"
    VERSION: ClassVar[int] = 1
    site: str
    members: tuple[str, ...]
    representatives: tuple[str, ...]
    quorum: int

    def __post_init__(self) -> None:
        _named(self.site, "a committee needs its site")
        _body(f"the committee of {self.site!r}", self.members, self.quorum)
        if not self.representatives or not set(self.representatives) <= set(self.members):
            raise NotDeclared(
                f"the committee of {self.site!r} needs community representatives among its members; nothing was done."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Community:
    """People who hold a veto over datasets about them, and who speaks for them."""

    KIND: ClassVar[str] = "board.community"
    VERSION: ClassVar[int] = 1
    name: str
    representatives: tuple[str, ...]
    datasets: tuple[str, ...]

    def __post_init__(self) -> None:
        _named(self.name, "a community needs a name")
        _distinct(f"the representatives of {self.name!r}", self.representatives)
        _distinct(f"the datasets of {self.name!r}", self.datasets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Who decides: the members and their quorum, the committees of sites, and the communities that hold a veto.

    ``keys`` are the public keys of people, one each. Whoever has none is listed and cannot act.

    >>> Board(members=("ada", "ben", "cho"), quorum=2).quorum
    2
    """

    KIND: ClassVar[str] = "board"
    VERSION: ClassVar[int] = 1
    members: tuple[str, ...]
    quorum: int
    committees: tuple[Committee, ...] = ()
    communities: tuple[Community, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    proposers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _body("the board", self.members, self.quorum)
        _distinct("the committees' sites", tuple(committee.site for committee in self.committees), empty=True)
        _distinct("the communities", tuple(community.name for community in self.communities), empty=True)
        _distinct("the names of those whose keys are known", tuple(name for name, _ in self.keys), empty=True)
        for name, key in self.keys:
            if not isinstance(key, str) or len(key) != 64 or not set(key) <= set("0123456789abcdef"):
                raise InvalidInput(
                    f"the key of {name!r} is not a public key of 64 hexadecimal digits; nothing was done."
                )
            read_public_key(key)
            if name not in self.people:
                raise InvalidInput(f"{name!r} has a key and sits nowhere; nothing was done.")
        _distinct("the keys", tuple(key for _, key in self.keys), empty=True)
        _distinct("the proposers", self.proposers, empty=True)
        groups = {community.name for community in self.communities}, {committee.site for committee in self.committees}
        if any(len({_folded(name) for name in names}) < len(names) for names in (self.people, *groups)):
            raise InvalidInput("two names of the board differ by their spelling alone; nothing was done.")

    @property
    def people(self) -> frozenset[str]:
        """Everybody who may act: members, committees, representatives, proposers."""
        local = (name for committee in self.committees for name in committee.members)
        spoken = (name for community in self.communities for name in community.representatives)
        return frozenset((*self.members, *self.proposers, *local, *spoken))

    @property
    def silent(self) -> tuple[str, ...]:
        """Those who have no key and therefore cannot act, by name."""
        return tuple(sorted(self.people - dict(self.keys).keys()))

    def key_of(self, name: str) -> str:
        """The public key that somebody acts with; who is not on the board, or has none, is refused."""
        if name not in self.people:
            raise Refused(
                f"{name!r} is not known to the board; nothing was entered. Members, committees, representatives and "
                "those named as proposers act on it, under one name each, spelt as the board spells it."
            )
        key = dict(self.keys).get(name)
        if key is None:
            raise Refused(
                f"the board knows no key of {name!r}, and nobody acts on it without one; nothing was entered. Whoever "
                f"that is makes one (sfumato key new {name}.key), keeps it, and sends {name}.key.pub; a board that "
                "names it under [keys] is seated by decision: sfumato budget request --action board --board FILE"
            )
        return key

    def committee(self, site: str) -> Committee:
        """The committee of a site."""
        for committee in self.committees:
            if committee.site == site:
                return committee
        raise NotDeclared(f"the site {site!r} has no data access committee; nothing was done. Declare one.")

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that this board states: of people, sites, communities and datasets."""
        bodies = ((committee.site, *committee.members) for committee in self.committees)
        groups = ((group.name, *group.representatives, *group.datasets) for group in self.communities)
        return (*self.members, *self.proposers, *chain(*bodies, *groups))

    def community(self, name: str) -> Community:
        """The community of a name."""
        for community in self.communities:
            if community.name == name:
                return community
        raise NotDeclared(f"no community is named {name!r}; nothing was done.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why this ε: what is gained, what those in the data risk, and why this much and neither more nor less.

    An ε is chosen by weighing these two; there is no default, and an empty text is refused.
    """

    KIND: ClassVar[str] = "board.reasons"
    VERSION: ClassVar[int] = 1
    benefit: str
    risk: str
    choice: str

    def __post_init__(self) -> None:
        for name, text in (("benefit", self.benefit), ("risk", self.risk), ("choice", self.choice)):
            if not isinstance(text, str) or not text.strip():
                raise NotDeclared(
                    f"the reasons for ε say nothing about {name!r}; nothing was done. ε weighs a benefit against a "
                    "risk: state benefit, risk and why this choice, in words that the people concerned can read."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A request to the board.

    ``datasets`` and ``sites`` are all that it touches; ``amount`` is the budget it asks for, where it asks for one;
    ``subject`` is its title, or the digest of a plan.
    """

    KIND: ClassVar[str] = "board.proposal"
    VERSION: ClassVar[int] = 1
    number: int
    at: str
    expires: str
    proposer: str
    action: Action
    account: str | None
    datasets: tuple[str, ...]
    sites: tuple[str, ...]
    amount: Budget | None
    subject: str
    reasons: Reasons

    def __post_init__(self) -> None:
        natural(self.number, "the number of a proposal")
        _named(self.proposer, "a proposal needs its proposer")
        _named(self.subject, "a proposal needs a subject")
        if moment(self.expires) <= moment(self.at):
            raise InvalidInput("a proposal must expire after it is made; nothing was done.")
        _distinct("the datasets of a proposal", self.datasets, empty=True)
        _distinct("the sites of a proposal", self.sites, empty=True)
        if self.action in (Action.RAISE, Action.UNLOCK) and (self.account is None or self.amount is None):
            raise NotDeclared(f"a proposal to {self.action.value} needs an account and an amount; nothing was done.")
        if self.amount is not None and self.amount.epsilon == 0 and self.amount.delta == 0:
            raise InvalidInput("a proposal for an amount of 0 asks for nothing; nothing was done.")
        if self.action is Action.DATASET and not self.datasets:
            raise NotDeclared("a proposal to open a dataset needs its name; nothing was done.")
        if self.action is Action.DATASET and (self.account is not None or self.amount is not None):
            raise InvalidInput(
                "opening a dataset gives no amount to an account; nothing was done. Propose a raise or a plan for that."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One person's vote on one proposal; it is cast once and stands."""

    KIND: ClassVar[str] = "board.vote"
    VERSION: ClassVar[int] = 1
    proposal: int
    at: str
    voter: str
    choice: Choice
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Veto:
    """A community's veto over a dataset: it ends every open proposal about it and blocks releases while it stands."""

    KIND: ClassVar[str] = "board.veto"
    VERSION: ClassVar[int] = 1
    at: str
    community: str
    voter: str
    dataset: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VetoLifted:
    """The same community lifts its veto; what was approved before must be approved anew.

    ``veto`` is the entry of the veto that is meant: no other is lifted. The first ledgers did not state it.
    """

    KIND: ClassVar[str] = "board.veto_lifted"
    VERSION: ClassVar[int] = 1
    at: str
    community: str
    voter: str
    dataset: str
    reason: str
    veto: int | None = field(default=None, metadata={LEFT_OUT: True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """The proposer takes a proposal back."""

    KIND: ClassVar[str] = "board.withdrawal"
    VERSION: ClassVar[int] = 1
    proposal: int
    at: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How a proposal ended, when, by whose votes, and in a few words why."""

    KIND: ClassVar[str] = "board.decision"
    VERSION: ClassVar[int] = 1
    proposal: int
    at: str
    outcome: Outcome
    yes: tuple[str, ...]
    no: tuple[str, ...]
    why: str


BoardEntry = Proposal | Vote | Veto | VetoLifted | Withdrawal

DECLARATIONS = (
    *(Budget, Board, Committee, Community, Reasons),
    *(Proposal, Vote, Veto, VetoLifted, Withdrawal, Decision),
)
"""What a Registry needs to read them."""


def actor(act: BoardEntry) -> str:
    """Whose act it is."""
    match act:
        case Proposal():
            return act.proposer
        case Withdrawal():
            return act.by
    return act.voter


def fingerprint(key: str) -> str:
    """A public key for people to compare: its first 16 digits.

    >>> fingerprint("0123456789abcdef" * 4)
    '0123 4567 89ab cdef'
    """
    return " ".join(key[start : start + 4] for start in range(0, 16, 4))


def signed_by(key: str | None) -> str:
    """Whether an act is signed, and with which key, for people to compare.

    >>> signed_by("0123456789abcdef" * 4), signed_by(None)
    ('signed, key 0123 4567 89ab cdef', 'not signed')
    """
    return "not signed" if key is None else f"signed, key {fingerprint(key)}"


def moment(text: str) -> datetime:
    """Read a moment with its offset from UTC.

    >>> moment("2026-01-31T12:00:00+00:00").year
    2026
    """
    try:
        when = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidInput(f"{text!r} is not a moment; nothing was done. Write 2026-01-31T12:00:00+00:00.") from None
    if when.tzinfo is None:
        raise InvalidInput(f"{text!r} has no offset from UTC; nothing was done. Write 2026-01-31T12:00:00+00:00.")
    return when


def _folded(name: str) -> str:
    """A name without what the eye does not see: case, width, how much space there is, signs that do not show."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    seen = "".join(sign for sign in plain if sign.isprintable() and not _UNSEEN.match(sign))
    return " ".join(seen.split())


def _named(text: object, what: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise NotDeclared(f"{what}; nothing was done.")


def _distinct(what: str, names: tuple[str, ...], *, empty: bool = False) -> None:
    if len(set(names)) != len(names) or not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidInput(f"{what} must be names, each given once; nothing was done.")
    if not names and not empty:
        raise NotDeclared(f"{what} are missing; nothing was done.")


def _body(what: str, members: tuple[str, ...], quorum: int) -> None:
    _distinct(f"the members of {what}", members)
    if natural(quorum, f"the quorum of {what}", least=LEAST_QUORUM) > len(members):
        raise InvalidInput(f"{what} has {len(members)} members and a quorum of {quorum}: it could never decide.")
