"""The keys of a ledger with a root, as a receipt shows them: each document of the root and the way to a head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.governance.anchor import Head
from sfumato.governance.entries import KEYS, LedgerOpened, Row
from sfumato.governance.entry_tree import inclusion_holds, leaf_hash
from sfumato.governance.keyring import KeyRing

__all__ = ["KeyStep", "ring_shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStep:
    """An entry by which a root says whose key does what, whole, and the hashes from it to the tree of a head."""

    KIND: ClassVar[str] = "ledger.receipt_key"
    VERSION: ClassVar[int] = 1
    number: int
    previous: str
    nonce: str
    body: str
    path: tuple[str, ...]

    @property
    def row(self) -> Row:
        """The row of the record."""
        return Row(self.number, "", self.body, self.previous, "", self.nonce)


def ring_shown(steps: Sequence[KeyStep], head: Head) -> KeyRing:
    """Who may do what, from the entries that a receipt shows; refused where one is not in the tree of the head.

    Guarantee: every key in it was certified by a root of the chain that begins with the opening, in an entry at that
    place of the record. Assumes: whoever made the receipt left no later document of the root out, which would leave a
    revoked key valid; a published head from after the revocation cannot be led to from a record that goes on without
    it.
    """
    ring: KeyRing | None = None
    for step in steps:
        try:
            path, root = [bytes.fromhex(each) for each in step.path], bytes.fromhex(head.tree)
            held = inclusion_holds(leaf_hash(step.row.expected), step.number - 1, head.number, path, root)
            entry = step.row.entry
        except (SfumatoError, ValueError):
            raise InvalidInput(f"entry {step.number} of the keys in the receipt cannot be read.") from None
        if not held:
            raise Refused(f"entry {step.number} of the keys in the receipt is not in the tree of its head.")
        if ring is None and isinstance(entry, LedgerOpened) and step.number == 1:
            ring = KeyRing.opened(entry)
        elif ring is not None and isinstance(entry, KEYS):
            ring = ring.after(step.number, entry)
        else:
            raise Refused(f"entry {step.number} of the keys in the receipt is not a document of a root.")
    if ring is None or ring.ledger != head.ledger:
        raise Refused("the receipt shows no keys of a root: the ledger has none, or the receipt is older.")
    return ring
