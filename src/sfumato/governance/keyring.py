"""The keys of a ledger with a root: who may do what, from which entry to which, worked out from the record.

Validity goes by position in the record and never by a stated time, which could be backdated. A last day is judged by
the time of the entry itself, and times of entries never go back. A ledger without a root has no key ring: its one key
does everything.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from sfumato.core.documents import canonical, encode
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import LedgerError, Refused
from sfumato.governance.anchor import SignedHead
from sfumato.governance.entries import (
    ADMINISTRATIVE,
    Administered,
    AdministrativeEntry,
    Entry,
    KeyCertified,
    KeyRevoked,
    LedgerOpened,
    RootRotated,
)
from sfumato.governance.key_documents import (
    NONE,
    KeyCertificate,
    KeyRevocation,
    Role,
    RootStanding,
    SignedByRoot,
    opening_text,
    root_hash,
)

__all__ = ["CertifiedKey", "KeyRing", "administered", "check_entry", "needs_administrator", "signed_by_root"]

_holds = lru_cache(maxsize=8192)(signature_holds)
"""The same declarations are checked again whenever one more is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedKey:
    """A key in a role: valid at the entries from ``since`` to ``ended``, and until its last day."""

    role: Role
    key: str
    holder: str
    since: int
    until: str | None = None
    ended: int | None = None
    why: str = ""

    def valid(self, number: int, at: str) -> bool:
        """Whether it may act in an entry, by its number and its time."""
        within = self.since <= number and (self.ended is None or number <= self.ended)
        return within and (self.until is None or _day(at) <= self.until)

    def refusal(self, number: int, at: str) -> str:
        """Why it may not, in words."""
        if number < self.since:
            return f"it is certified from entry {self.since} on"
        if self.ended is not None and number > self.ended:
            return f"it was revoked by entry {self.ended} ({self.why})"
        return f"its last day was {self.until}, and it is {_day(at)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """All keys that the roots of a ledger ever certified; a value, so that a refused entry changes nothing.

    ``roots`` are the first root and its successors, the last of which signs now; ``number`` is that of the last
    document of a root. Guarantee: every key in it was certified by a root that the one before had named by its hash.
    """

    ledger: str
    roots: tuple[str, ...]
    next_root: str
    keys: tuple[CertifiedKey, ...]
    number: int = 0

    @classmethod
    def opened(cls, entry: LedgerOpened) -> "KeyRing | None":
        """The ring of a new ledger: its root vouches for the first key that charges; None where it has no root."""
        if entry.root is None:
            return None
        text = opening_text(entry.identifier, entry.key, entry.root, entry.next_root)
        if not signature_holds(entry.root, entry.signature, text):
            raise LedgerError("the opening of this ledger is not signed by the root that it names; nothing was done.")
        first = CertifiedKey(role=Role.CHARGE, key=entry.key, holder="the opening", since=1)
        return cls(ledger=entry.identifier, roots=(entry.root,), next_root=entry.next_root, keys=(first,))

    @property
    def root(self) -> str:
        """The root that signs now."""
        return self.roots[-1]

    def after(self, number: int, entry: KeyCertified | KeyRevoked | RootRotated) -> "KeyRing":
        """The ring with one document of the root more, or a refusal that says why it may not be entered."""
        said = entry.signed.said
        if isinstance(said, RootStanding):
            raise _no_document()
        if said.ledger != self.ledger:
            raise Refused(f"this was signed for another ledger ({said.ledger}); nothing was changed.")
        if said.number != self.number + 1:
            raise Refused(
                f"this is document {said.number} of the root, and the next one to be entered is {self.number + 1}: an "
                "old one cannot be entered again, and none can be left out. Nothing was changed."
            )
        ring = replace(self, number=said.number)
        match said:
            case KeyCertificate():
                self._check(entry.signed, self.root)
                return replace(ring, keys=(*self.keys, self._certified(number, said)))
            case KeyRevocation():
                self._check(entry.signed, self.root)
                return replace(ring, keys=self._revoked(number, said))
        if said.previous != self.root or self.next_root == NONE or root_hash(said.root) != self.next_root:
            raise Refused(
                "this is not the root whose hash was recorded beforehand, so that nobody knows whether it is the "
                "institution's. Nothing was changed."
            )
        self._check(entry.signed, said.root)
        return replace(ring, roots=(*self.roots, said.root), next_root=said.next_root)

    def _check(self, signed: SignedByRoot, root: str) -> None:
        if not signed.holds(root):
            raise Refused(f"this is not signed by the root {root[:16]}… of this ledger; nothing was changed.")

    def _certified(self, number: int, said: KeyCertificate) -> CertifiedKey:
        if any(one.ended is None and (one.role, one.key) == (said.role, said.key) for one in self.keys):
            raise Refused(
                f"the key {said.key[:16]}… is certified for {said.role.value!r} already; nothing was changed. Revoke "
                "it first, to change its holder or its last day."
            )
        return CertifiedKey(role=said.role, key=said.key, holder=said.holder, since=number, until=said.until)

    def _revoked(self, number: int, said: KeyRevocation) -> tuple[CertifiedKey, ...]:
        ends = [one for one in self.keys if one.ended is None and (one.role, one.key) == (said.role, said.key)]
        if not ends:
            raise Refused(
                f"no key {said.key[:16]}… is certified for {said.role.value!r} now; nothing was changed. See: sfumato "
                "key list"
            )
        return tuple(replace(one, ended=number, why=said.reason) if one in ends else one for one in self.keys)

    def allows(self, role: Role, key: str, number: int, at: str) -> bool:
        """Whether a key may act in a role in an entry, by its number and its time."""
        return any((one.role, one.key) == (role, key) and one.valid(number, at) for one in self.keys)

    def check(self, role: Role, key: str, number: int, at: str) -> None:
        """Refuse a key that may not act in a role in an entry, and say why."""
        if self.allows(role, key, number, at):
            return
        known = [one for one in self.keys if (one.role, one.key) == (role, key)]
        why = known[-1].refusal(number, at) if known else "the root never certified it for that"
        raise Refused(
            f"the key {key[:16]}… may not act as {role.value!r} at entry {number}: {why}. Nothing was changed. See who "
            "may: sfumato key list"
        )

    def check_set_back(self, since: str, at: str) -> None:
        """Refuse to set the time of a record back to where a key would be valid again whose last day was over."""
        for one in self.keys:
            if one.ended is None and one.until is not None and _day(at) <= one.until < _day(since):
                raise Refused(
                    f"the last day of the key {one.key[:16]}… was {one.until}, the record is at {since}, and a "
                    f"recovery at {at} would make it valid again; nothing was changed. Set the clock; if it is right, "
                    "wait until that day is over."
                )

    def signed(self, head: SignedHead) -> bool:
        """Whether a head was signed by a key that might charge where the head stands."""
        said = head.head
        newest = (one for one in reversed(self.keys) if one.role is Role.CHARGE and one.valid(said.number, said.at))
        return said.ledger == self.ledger and any(head.holds(one.key) for one in newest)


def needs_administrator(entry: Entry) -> bool:
    """Whether an entry of a ledger with a root must be signed by an administrator; acts of the board need no other."""
    return isinstance(entry, ADMINISTRATIVE)


def administered(ring: KeyRing, entry: AdministrativeEntry, before: str, key: SigningKey) -> Administered:
    """An administrative entry with its signature, for one ledger and for the decisions that were made before it."""
    signature = key.sign(_administrative(ring.ledger, entry, before))
    return Administered(entry=entry, key=key.public_text, signature=signature)


def check_entry(ring: KeyRing | None, entry: Entry, number: int, before: str) -> None:
    """Refuse an administrative entry without the signature of an administrator, where the ledger has a root.

    ``before`` is the digest of all decisions before it. An administrative entry changes that digest, so that a
    declaration of earlier days does not hold again.
    """
    if isinstance(entry, Administered):
        if ring is None:
            raise LedgerError("a ledger without a root has no administrators; nothing was changed.")
        ring.check(Role.ADMINISTER, entry.key, number, entry.at)
        if not _holds(entry.key, entry.signature, _administrative(ring.ledger, entry.entry, before)):
            raise Refused(
                f"the signature of the administrator {entry.key[:16]}… does not hold for this entry and for the "
                "decisions before it; nothing was changed."
            )
    elif ring is not None and needs_administrator(entry):
        raise Refused(
            f"an entry {entry.KIND!r} needs the signature of an administrator in this ledger, and has none; nothing "
            "was changed. Give the key of an administrator: Ledger.open(…, administer=…)"
        )


def _administrative(ledger: str, entry: AdministrativeEntry, before: str) -> bytes:
    try:
        return canonical(["an administrative entry", ledger, before, encode(entry)]).encode()
    except UnicodeEncodeError:
        raise LedgerError("an entry holds text that has no bytes; it was not entered.") from None


def _day(at: str) -> str:
    """The day of a time in UTC; of a text that is no time, one that is after every last day."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC).date().isoformat()
    except (ValueError, OverflowError):
        return "9999-12-31T"


def signed_by_root(at: str, signed: SignedByRoot) -> KeyCertified | KeyRevoked | RootRotated:
    """The entry that holds a document of the root."""
    said = signed.said
    if isinstance(said, RootStanding):
        raise _no_document()
    if isinstance(said, KeyCertificate):
        return KeyCertified(at=at, signed=signed)
    return KeyRevoked(at=at, signed=signed) if isinstance(said, KeyRevocation) else RootRotated(at=at, signed=signed)


def _no_document() -> Refused:
    return Refused("a root's word on how many documents it has signed goes with a recovery, and is not entered.")
