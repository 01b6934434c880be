"""The keys of a ledger with a root: certified, revoked, and the root itself followed by its successor."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.signature import SigningKey, read_public_key
from sfumato.errors import NotDeclared
from sfumato.governance.key_documents import (
    NONE,
    KeyCertificate,
    KeyRevocation,
    Role,
    RootDocument,
    RootSuccession,
    SignedByRoot,
    root_hash,
)
from sfumato.governance.keyring import KeyRing, signed_by_root

if TYPE_CHECKING:
    from sfumato.governance.decision_state import DecisionState
    from sfumato.governance.entries import Entry
    from sfumato.governance.transaction import Transaction

__all__ = ["Keyed"]


class Keyed(ABC):
    """The part of a ledger in which a root says which key may do what; every method enters one document of the root.

    Guarantee: what a key may do goes by where the root's word stands in the record. A key that charges signs heads from
    the entry that certifies it on, and after the one that revokes it no more; of a stolen root no thief can name the
    successor. What a thief of a key that charges can do with the database and the anchor until somebody verifies: sign
    heads over a state that does not follow from the record, so that charges are admitted that no cap allows. What the
    thief cannot do is open an account, raise a cap or declare data without ``verify`` naming the entry.
    """

    @abstractmethod
    def _enter(self, make: "Callable[[Transaction, str], Sequence[Entry]]") -> None:
        """Enter what ``make`` returns, in one transaction, and anchor it."""

    @abstractmethod
    def decision_state(self) -> "DecisionState":
        """What was decided and declared so far."""

    def keys(self) -> KeyRing | None:
        """Who may do what by which key; None where the ledger has no root and its one key does everything."""
        return self.decision_state().keys

    def certify(
        self,
        key: str | Path,
        *,
        role: Role | str,
        holder: str,
        root: SigningKey | str | Path,
        until: str | None = None,
    ) -> SignedByRoot:
        """Let a key act in a role, from this entry on and until its last day; the certificate, to lie beside the key.

        ``key`` is public. Where the old key that charges is lost, open the ledger with the new one: the entry that
        certifies it is the first that it signs.
        """
        public = read_public_key(key)

        def said(ring: KeyRing) -> RootDocument:
            number = ring.number + 1
            return KeyCertificate(
                ledger=ring.ledger, number=number, role=Role(role), key=public, holder=holder, until=until
            )

        return self._signed(said, root)

    def revoke(self, key: str | Path, *, role: Role | str, reason: str, root: SigningKey | str | Path) -> SignedByRoot:
        """Let a key act in a role no more, after this entry; what it signed before stands."""
        public = read_public_key(key)

        def said(ring: KeyRing) -> RootDocument:
            number = ring.number + 1
            return KeyRevocation(ledger=ring.ledger, number=number, role=Role(role), key=public, reason=reason)

        return self._signed(said, root)

    def rotate_root(self, root: SigningKey | str | Path, *, next_root: str | Path | None) -> SignedByRoot:
        """Put the root whose hash was recorded before in the place of the present one, whose key is not needed.

        ``next_root`` is the public key of the root after it, of which the hash is recorded; without it this one is the
        last.
        """
        coming = NONE if next_root is None else root_hash(read_public_key(next_root))
        signing = _loaded(root)

        def said(ring: KeyRing) -> RootDocument:
            return RootSuccession(
                ledger=ring.ledger,
                number=ring.number + 1,
                previous=ring.root,
                root=signing.public_text,
                next_root=coming,
            )

        return self._signed(said, signing)

    def enter(self, signed: SignedByRoot) -> None:
        """Enter a document that a root signed elsewhere: a root is best kept on a machine without a network."""
        self._enter(lambda _, at: [signed_by_root(at, signed)])

    def _signed(self, said: Callable[[KeyRing], RootDocument], root: SigningKey | str | Path) -> SignedByRoot:
        signing = _loaded(root)
        made: list[SignedByRoot] = []

        def make(transaction: "Transaction", at: str) -> "list[Entry]":
            ring = transaction.decision_state().keys
            if ring is None:
                raise NotDeclared(
                    "this ledger was made without a root, and its one key does everything; nothing was changed. Roles "
                    "by key begin with a ledger: sfumato ledger init --root FILE"
                )
            made.append(SignedByRoot.sign(said(ring), signing))
            return [signed_by_root(at, made[-1])]

        self._enter(make)
        return made[-1]


def _loaded(key: SigningKey | str | Path) -> SigningKey:
    return key if isinstance(key, SigningKey) else SigningKey.load(key)
