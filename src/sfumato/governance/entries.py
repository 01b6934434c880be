"""What the record holds: one document for each thing that happened, never changed afterwards.

The record is the ledger. Balances, open charges and stored answers are worked out from these entries and from nothing
else (:mod:`sfumato.governance.ledger_state`); a new kind of entry is added to :data:`ENTRIES` and to ``apply`` there.
"""

import hashlib
import secrets
from dataclasses import dataclass
from fractions import Fraction
from json.encoder import encode_basestring as _quoted  # a text as canonical JSON has it
from typing import ClassVar, get_args

from sfumato.core import units
from sfumato.core.budget import Budget
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.query import Dataset
from sfumato.core.statement import Account
from sfumato.core.units import Unit
from sfumato.errors import LedgerError, SfumatoError
from sfumato.governance import board, consent, plans
from sfumato.governance.ballots import Bound
from sfumato.governance.board import Board, Proposal, Veto, VetoLifted, Vote, Withdrawal
from sfumato.governance.consent import Terms
from sfumato.governance.key_documents import KeyCertificate, KeyRevocation, RootSuccession, SignedByRoot
from sfumato.governance.key_entries import KeyCertified, KeyRevoked, RootRotated
from sfumato.governance.plans import Schedule
from sfumato.governance.policies import BaseAndReserve, Proportional
from sfumato.governance.research_entries import ProgramSubmitted, Project, ProjectOpened, RunLogged
from sfumato.governance.time_windows import TimeWindows

__all__ = [
    "ADMINISTRATIVE",
    "CHARGING",
    "ENTRIES",
    "KEYS",
    "START",
    "AccountOpened",
    "Acted",
    "Administered",
    "AdministrativeEntry",
    "Advanced",
    "BoardSeated",
    "ClockConfirmed",
    "Committed",
    "DataClosed",
    "DatasetClosed",
    "DatasetDeclared",
    "Entry",
    "Expired",
    "KeyCertified",
    "KeyRevoked",
    "LedgerOpened",
    "Migrated",
    "PlanAdopted",
    "PolicyDeclared",
    "PopulationDeclared",
    "ProgramSubmitted",
    "ProjectOpened",
    "Recovered",
    "Released",
    "Repriced",
    "Reserved",
    "RootRotated",
    "Row",
    "RunLogged",
    "Started",
    "TermsDeclared",
    "WindowsDeclared",
    "WitnessNamed",
    "unwrapped",
]

START = "0" * 64
"""What the first entry follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOpened:
    """The first entry: a random identifier, and the public key that signs heads.

    ``root`` is the public key of the institution's root, where keys have roles, ``next_root`` the hash of the root
    after it, and ``signature`` the root's over all of this (:mod:`sfumato.governance.keyring`).
    """

    KIND: ClassVar[str] = "ledger.opened"
    VERSION: ClassVar[int] = 2
    at: str
    identifier: str
    key: str
    root: str | None = None
    next_root: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOpened:
    """A level of the tree ``institution/department/project`` and its cap, with the recorded reason for it.

    ``rho`` is the cap of a zCDP filter and ``loss`` that of a Rényi filter at ``order``, worked out from ``cap``;
    without them sums of ε and δ decide.
    """

    KIND: ClassVar[str] = "ledger.account"
    VERSION: ClassVar[int] = 2
    at: str
    path: str
    unit: Unit
    cap: Budget
    rho: Fraction | None
    reason: str
    order: Fraction | None = None
    loss: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationDeclared:
    """People on whom several datasets, copies and versions may exist: all of them draw on this one cap."""

    KIND: ClassVar[str] = "ledger.population"
    VERSION: ClassVar[int] = 2
    at: str
    name: str
    unit: Unit
    cap: Budget
    rho: Fraction | None
    reason: str
    order: Fraction | None = None
    loss: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetDeclared:
    """A version of a dataset, whose people it is about, and the cap that all its versions share."""

    KIND: ClassVar[str] = "ledger.dataset"
    VERSION: ClassVar[int] = 1
    at: str
    dataset: Dataset
    population: str
    cap: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetClosed:
    """No row of this version is read any more: its engine failed, and failing again could reveal what a row holds."""

    KIND: ClassVar[str] = "ledger.dataset_closed"
    VERSION: ClassVar[int] = 1
    at: str
    dataset: Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class DataClosed:
    """The stored rows behind a version that was closed, by digests of where they lie, or of their people and that.

    Every version that was declared before and reads one of them is closed with it, whatever it is called. One that is
    declared later is the steward's word that the data was mended.
    """

    KIND: ClassVar[str] = "ledger.data_closed"
    VERSION: ClassVar[int] = 1
    at: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsDeclared:
    """What a dataset may be used for; new terms end the approvals that were given to older ones."""

    KIND: ClassVar[str] = "ledger.terms"
    VERSION: ClassVar[int] = 1
    at: str
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDeclared:
    """How the cap of an account is shared out among those below it; ``reserve`` is what only the board can unlock."""

    KIND: ClassVar[str] = "ledger.policy"
    VERSION: ClassVar[int] = 1
    at: str
    path: str
    policy: Proportional | BaseAndReserve
    reserve: Budget
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsDeclared:
    """A budget for each window of time, for an account whose unit lies in one window."""

    KIND: ClassVar[str] = "ledger.windows"
    VERSION: ClassVar[int] = 1
    at: str
    path: str
    windows: TimeWindows


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSeated:
    """Who decides from now on; every later board rests on the approved ``proposal`` that names it."""

    KIND: ClassVar[str] = "ledger.board"
    VERSION: ClassVar[int] = 1
    at: str
    board: Board
    by: str
    reason: str
    proposal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """A proposal, a vote, a veto: what somebody did on the board, signed with that person's key.

    ``bound`` is what the signature covers beside the act. Before rows were signed, names without a key acted without
    a signature, and nothing was bound.
    """

    KIND: ClassVar[str] = "ledger.acted"
    VERSION: ClassVar[int] = 2
    at: str
    act: Proposal | Vote | Veto | VetoLifted | Withdrawal
    signature: str | None
    bound: Bound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAdopted:
    """A plan of releases, as it was solved, for an account."""

    KIND: ClassVar[str] = "ledger.plan"
    VERSION: ClassVar[int] = 1
    at: str
    account: str
    schedule: Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A charge that counts from now on, against every balance in ``lines``.

    ``account`` is how the account stood right after the charge. ``queued`` says that no row may be read before a
    :class:`Started` entry; ``expires`` is when the charge is stale. ``approvals`` are the board's decisions that it
    rests on, one for each dataset; ``reads`` are the first and the last day of the data, where windows ask for them.
    ``losses`` are what it counts against each line that a filter keeps; the first version stated one ``rho`` for all.
    """

    KIND: ClassVar[str] = "ledger.reserved"
    VERSION: ClassVar[int] = 2
    at: str
    account: Account
    unit: Unit
    datasets: tuple[Dataset, ...]
    lines: tuple[str, ...]
    cost: Budget
    rho: Fraction | None
    idempotency: str | None
    queued: bool
    expires: str | None
    purpose: str | None = None
    recipient: str | None = None
    approvals: tuple[int, ...] = ()
    reads: tuple[str, str] | None = None
    question: str | None = None
    losses: tuple[tuple[str, Fraction], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """From here on rows may be read for a charge that was queued, or once more for one that was open before.

    Read once more, its cost is added to the sums of heads, and to no balance: one answer at most is stored for it.
    """

    KIND: ClassVar[str] = "ledger.started"
    VERSION: ClassVar[int] = 1
    at: str
    charge: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """The next ``place`` in the count of an open charge, from 0 and one by one: a stream has gone on.

    ``holder`` is a random name of the state that took it. No other state can have the place.
    """

    KIND: ClassVar[str] = "ledger.advanced"
    VERSION: ClassVar[int] = 1
    at: str
    charge: int
    place: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The answer to a charge: the canonical question and the certificate, stored before it is delivered."""

    KIND: ClassVar[str] = "ledger.committed"
    VERSION: ClassVar[int] = 1
    at: str
    charge: int
    question: str
    certificate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A charge that was given back, because nothing was read for it."""

    KIND: ClassVar[str] = "ledger.released"
    VERSION: ClassVar[int] = 1
    at: str
    charge: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """A stale charge; it goes on counting unless it was queued and never started."""

    KIND: ClassVar[str] = "ledger.expired"
    VERSION: ClassVar[int] = 1
    at: str
    charge: int
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The decision to go on after entries were lost: ``gap`` is charged to every balance.

    ``anchored`` is the text of the last head that was anchored before (empty if that was lost too). The entry's number
    follows both the record and that head, so numbers may jump here and nowhere else. ``approvals`` are the members of
    the board who agreed, each with a signature (before rows were signed: where the board knew a key). ``whole`` says
    that nobody knows what the lost entries charged: then every balance is used up. ``after`` is the digest of the last
    entry that is left, ``expires`` until when members may have agreed. ``witnessed`` is the text of the last head that
    the witness had countersigned, where it was asked, and ``basis`` says in words how the gap is known. ``closes`` says
    that all versions of data are closed that were declared before: one of the lost entries may have closed them. The
    first versions stated none of these five.
    """

    KIND: ClassVar[str] = "ledger.recovered"
    VERSION: ClassVar[int] = 5
    at: str
    reason: str
    anchored: str
    lost: int
    gap: Budget
    approvals: tuple[tuple[str, str], ...] = ()
    whole: bool = False
    after: str = ""
    expires: str | None = None
    witnessed: str = ""
    basis: str = ""
    closes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    """A charge that turned out to cost more than was said when it was made: a claim was corrected.

    It counts even where it goes beyond a cap, since what was released is known. ``losses`` are what it counts now
    against each line that a filter keeps.
    """

    KIND: ClassVar[str] = "ledger.repriced"
    VERSION: ClassVar[int] = 1
    at: str
    charge: int
    cost: Budget
    losses: tuple[tuple[str, Fraction], ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """From here on rows are signed: all above was replayed and held to the anchor by who brought the tables up to date.

    ``digest`` is that of the last entry before, ``state`` the root of the map of the state that follows from them, and
    ``tables`` the revision that the database had.
    """

    KIND: ClassVar[str] = "ledger.migrated"
    VERSION: ClassVar[int] = 1
    at: str
    tables: str
    digest: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockConfirmed:
    """Somebody's word that nobody used the ledger ``since`` the entry before, and that its clock is right.

    A clock that runs ahead would shut the ledger once it is set right. Silence that was confirmed once is not asked
    about again, if it lasts no longer.
    """

    KIND: ClassVar[str] = "ledger.clock"
    VERSION: ClassVar[int] = 1
    at: str
    since: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessNamed:
    """Who countersigns this record from now on, by a public key, and how much may be charged beyond what it has seen.

    The ``lease`` comes into force with the first head that the witness countersigns with it. Where a board is seated,
    it has decided on both.
    """

    KIND: ClassVar[str] = "ledger.witness"
    VERSION: ClassVar[int] = 1
    at: str
    key: str
    lease: Budget
    reason: str


AdministrativeEntry = (
    AccountOpened
    | PopulationDeclared
    | DatasetDeclared
    | TermsDeclared
    | PolicyDeclared
    | WindowsDeclared
    | BoardSeated
    | PlanAdopted
    | Repriced
    | ClockConfirmed
    | WitnessNamed
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Administered:
    """An administrative entry of a ledger with a root, signed by an administrator for the decisions before it."""

    KIND: ClassVar[str] = "ledger.administered"
    VERSION: ClassVar[int] = 1
    entry: AdministrativeEntry
    key: str
    signature: str

    @property
    def at(self) -> str:
        """The time of the entry that it holds."""
        return self.entry.at


Entry = (
    LedgerOpened
    | AccountOpened
    | PopulationDeclared
    | DatasetDeclared
    | DatasetClosed
    | DataClosed
    | TermsDeclared
    | PolicyDeclared
    | WindowsDeclared
    | BoardSeated
    | Acted
    | PlanAdopted
    | Reserved
    | Started
    | Advanced
    | Committed
    | Released
    | Expired
    | Recovered
    | Repriced
    | Migrated
    | ClockConfirmed
    | WitnessNamed
    | KeyCertified
    | KeyRevoked
    | RootRotated
    | Administered
    | ProjectOpened
    | ProgramSubmitted
    | RunLogged
)

_KINDS = frozenset(get_args(Entry))

ADMINISTRATIVE = (
    *(AccountOpened, PopulationDeclared, DatasetDeclared, TermsDeclared, PolicyDeclared, WindowsDeclared),
    *(BoardSeated, PlanAdopted, Repriced, ClockConfirmed, WitnessNamed),
)
"""The entries that an administrator signs, where a ledger has a root."""

KEYS = (KeyCertified, KeyRevoked, RootRotated)
"""The entries that a root signs."""

CHARGING = (Reserved, Started, Advanced, Committed, Released, Expired)
"""The entries of a charge, which are many."""

ENTRIES = Registry(
    dict.fromkeys(
        (
            *(units.Record, units.User, units.Family, units.Event, units.Edge, units.Node, units.Weight, units.Client),
            *(Budget, Dataset, Account, *board.DECLARATIONS, *consent.DECLARATIONS, *plans.DECLARATIONS),
            *(Proportional, BaseAndReserve, TimeWindows),
            *(LedgerOpened, AccountOpened, PopulationDeclared, DatasetDeclared, DatasetClosed, DataClosed),
            *(TermsDeclared, PolicyDeclared, WindowsDeclared, BoardSeated, Acted, Bound, PlanAdopted),
            *(Reserved, Started, Advanced, Committed, Released, Expired, Recovered, Repriced, Migrated, ClockConfirmed),
            *(WitnessNamed, KeyCertificate, KeyRevocation, RootSuccession, SignedByRoot),
            *(KeyCertified, KeyRevoked, RootRotated, Administered),
            *(Project, ProjectOpened, ProgramSubmitted, RunLogged),
        )
    )
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the record: its digest covers its number, its body and, through ``previous``, all rows before it.

    ``nonce`` is random, so that two copies of a record never go on with the same digest; the first rows of old ledgers
    have none. ``head`` is the text of the signed head that this row was the end of, ``subtrees`` the hashes of the
    subtrees of the tree of entries that this row completed, smallest first; neither is part of the digest.

    >>> row = Row.after(0, START, LedgerOpened(at="2026-01-01T00:00:00+00:00", identifier="a", key="b"))
    >>> row.number, row.kind, row.digest == row.expected
    (1, 'ledger.opened', True)
    """

    number: int
    kind: str
    body: str
    previous: str
    digest: str
    nonce: str = ""
    head: str = ""
    subtrees: str = ""

    @classmethod
    def after(cls, number: int, previous: str, entry: Entry) -> "Row":
        """The row that holds ``entry`` after the row ``number``."""
        body, nonce = canonical(encode(entry)), secrets.token_hex(16)
        digest = _digest(number + 1, previous, body, nonce)
        return cls(number + 1, entry.KIND, body, previous, digest, nonce)

    @property
    def expected(self) -> str:
        """The digest that this row must have."""
        return _digest(self.number, self.previous, self.body, self.nonce)

    @property
    def entry(self) -> Entry:
        """The entry; a body that is not an entry is an error that names the row."""
        try:
            read: Entry = ENTRIES.decode(parse(self.body), f"entry {self.number}")
        except SfumatoError as wrong:
            raise LedgerError(f"entry {self.number} of the record cannot be read: {wrong}") from None
        if type(read) not in _KINDS:
            raise LedgerError(f"entry {self.number} of the record is not an entry, but {read.KIND!r}.")
        return read


def unwrapped(entry: Entry) -> Entry:
    """What an entry says: of one that an administrator signed, the entry inside."""
    return entry.entry if isinstance(entry, Administered) else entry


def _digest(number: int, previous: str, body: str, nonce: str) -> str:
    # The canonical JSON of a list of these, written out: a record is hashed often, and has long bodies.
    text = f"[{number},{_quoted(previous)},{_quoted(body)}{f',{_quoted(nonce)}' if nonce else ''}]"
    try:
        return hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return ""  # no row that was written by this code has such a text
