"""Opening a ledger: its keys, its first entries, and tables that are older than this code."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sfumato.core.signature import SigningKey, read_public_key
from sfumato.errors import InvalidInput, LedgerError, NotDeclared
from sfumato.governance.anchor import Anchor
from sfumato.governance.entries import Entry, LedgerOpened, Migrated
from sfumato.governance.key_documents import NONE, KeyCertificate, Role, SignedByRoot, opening_text, root_hash
from sfumato.governance.keyring import KeyRing, signed_by_root
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger_state import MemoryLedgerState, end_of
from sfumato.governance.seen_head import SeenHead
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.store import Store
from sfumato.governance.transaction import Transaction
from sfumato.governance.verify import checked_state

__all__ = [
    "Key",
    "brought_up_to_date",
    "check_administered",
    "closed_on_error",
    "existing",
    "first_entries",
    "migrated_from",
    "opened_in",
    "private_key",
    "public_key_of",
    "record_of",
    "role_key",
    "unsigned_in",
]

Key = SigningKey | str | Path
"""A private key, or its file."""
SIGNED = "0005"
"""The first tables whose rows are signed."""


@contextmanager
def closed_on_error(store: Store) -> Iterator[None]:
    """Give the connections back where a ledger is refused: nobody else holds it."""
    try:
        yield
    except BaseException:
        store.close()
        raise


def private_key(key: Key) -> SigningKey:
    """The key, read from its file where it is one."""
    return key if isinstance(key, SigningKey) else SigningKey.load(key)


def role_key(key: Key, role: Role) -> SigningKey:
    """The key of a role, which may be kept on another machine: a new one in its place would be certified by nobody."""
    if not isinstance(key, SigningKey) and not Path(key).exists():
        raise InvalidInput(
            f"there is no key {key}, which is to {role.value} here; nothing was read and nothing was spent. Do this "
            "where that key is, or bring it; the root has to certify another one first: sfumato key certify"
        )
    return private_key(key)


def public_key_of(key: str | Path | None) -> str | None:
    """A public key, by its text or its file, if one is given."""
    return None if key is None else read_public_key(key)


def existing(url: str | Path, *, reads: bool = False) -> Store:
    """The database of a ledger that is there."""
    store = Store(url, reads=reads)
    with closed_on_error(store):
        if not store.exists():
            raise LedgerError(f"there is no ledger at {store.name}; nothing was done. Make one: sfumato ledger init")
    return store


def opened_in(transaction: Transaction, store: Store) -> LedgerOpened:
    """What the record says of itself in its first entry; the anchor has to say the same."""
    first = transaction.row(1)
    opened = None if first is None else first.entry
    if not isinstance(opened, LedgerOpened):
        raise LedgerError(f"the record of {store.name} does not begin with its opening; nothing was done.")
    return opened


def record_of(
    store: Store,
    place: Anchor | SeenHead,
    key: SigningKey | None,
    opened: LedgerOpened,
    clock: Callable[[], datetime],
    *,
    root: str | None = None,
    administer: Key | None = None,
) -> SignedRecord:
    """A record with the key that it is believed by: its own, or that of a root, which must be said."""
    opening = KeyRing.opened(opened)
    if opening is None:
        trusted = key.public_text if key is not None and root is None else root
        if opened.key != trusted or (key is not None and key.public_text != trusted):
            raise LedgerError(f"{store.name} is signed with another key than this one; nothing was done.")
    else:
        trusted = root
    if trusted is None:
        raise NotDeclared(
            f"the keys of {store.name} come from a root, and which one you trust was not said; nothing was done. Give "
            "its public key: root=…, or root = … in the settings."
        )
    bring = None if administer is None else lambda: role_key(administer, Role.ADMINISTER)
    return SignedRecord(store, place, key, opened.identifier, clock, trusted, opening, bring)


def first_entries(
    at: str,
    identifier: str,
    key: SigningKey,
    root: Key | None,
    next_root: str | Path | None,
    roles: dict[str, Key | None],
) -> tuple[LedgerOpened, list[Entry]]:
    """The first entries of a ledger: its opening, and where it has a root, the keys that the root certifies."""
    if root is None:
        return LedgerOpened(at=at, identifier=identifier, key=key.public_text), []
    signing, coming = private_key(root), NONE if next_root is None else root_hash(read_public_key(next_root))
    public = signing.public_text
    signature = signing.sign(opening_text(identifier, key.public_text, public, coming))
    opened = LedgerOpened(
        at=at, identifier=identifier, key=key.public_text, root=public, next_root=coming, signature=signature
    )
    entries: list[Entry] = []
    given = [(role, private_key(one).public_text) for role, one in roles.items() if one is not None]
    for number, (role, one) in enumerate(given, start=1):
        said = KeyCertificate(
            ledger=identifier, number=number, role=Role(role), key=one, holder=f"the {role} key of the opening"
        )
        entries.append(signed_by_root(at, SignedByRoot.sign(said, signing)))
    return opened, entries


def check_administered(transaction: Transaction, record: SignedRecord) -> None:
    """Refuse a ledger with a root in which an administrative entry stands by itself, as far as that shows quickly."""
    if record.opening is None:
        return
    transaction.decision_state()  # which refuses signatures that do not hold
    number = transaction.unsigned()
    if number is not None:
        raise LedgerError(
            f"entry {number} of the record needs the signature of an administrator and has none: whoever holds a key "
            "that charges added it. Nothing was read and nothing was spent. Look at all of it: sfumato ledger verify"
        )


def brought_up_to_date(
    store: Store, place: Anchor, key: SigningKey, root: str | None, clock: Callable[[], datetime]
) -> None:
    """Replay a ledger of older tables, hold it to its anchor, and only then sign what follows from it."""
    with store.rewriting() as (transaction, older):
        if older is None:
            return  # somebody else was faster
        record = record_of(store, place, key, opened_in(transaction, store), clock, root=root)
        last, unsigned = record.anchored(), unsigned_in(older)
        if last is None or last.head.tree or (unsigned and last.head.state):
            raise LedgerError(
                f"the tables of {store.name} are older than its anchor {place.name}: the database was restored from a "
                "backup. Nothing was changed. Bring the newer database back, or have the board recover the ledger."
            )
        state = checked_state(transaction.rows(), heads=(last,), key=record.public_key, unsigned=unsigned)
        end = end_of(state)
        if unsigned and end.number != last.head.number:
            raise LedgerError(
                f"entries {last.head.number + 1} to {end.number} of {store.name} came after what was anchored, and "
                "rows were not signed then, so that anybody may have added them. Nothing was changed. If you know "
                "them, open the ledger once with the sfumato that wrote them, which anchors them."
            )
        record.rewrite(transaction, state, [migrated_from(state, older)])


def unsigned_in(tables: str | None) -> bool:
    """Whether these tables, None for the newest, are from before rows were signed."""
    return tables is not None and tables < SIGNED


def migrated_from(state: MemoryLedgerState, older: str) -> Migrated:
    """The entry that ends a record of older tables."""
    end = end_of(state)
    return Migrated(at=end.at, tables=older, digest=end.digest, state=map_of(state).root())
