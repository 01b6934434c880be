"""The anchor: the signed head of the record, kept outside the database in a store that only moves forward.

A database that was restored from an old backup, or cut short, is older than its anchor and is refused. That protects
as far as the anchor does: keep it on another disk than the database, and out of the same backup. An anchor is a file,
or a row of a second database (:mod:`sfumato.governance.anchor_database`).
"""

import errno
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar  # what was worked out is of the type that its key stands for

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import LedgerError, SfumatoError

__all__ = ["Anchor", "FileAnchor", "Head", "SignedHead", "foreign", "forked"]

SLOT = 8192
"""Bytes of a slot: two rationals of a thousand digits each way fit."""
PATIENCE = 10
"""Seconds to wait for others who read or move the anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a record stands: its last entry, and the sums of all that was ever charged (given back or not).

    ``state`` is the root of the map of the stored state, ``decisions`` a digest of all entries that decide or declare
    something; heads of the first version state neither. ``tree`` is the root of the tree of all entries
    (:mod:`sfumato.governance.entry_tree`), which heads of the second version do not state either.
    """

    KIND: ClassVar[str] = "ledger.head"
    VERSION: ClassVar[int] = 3
    ledger: str
    number: int
    digest: str
    at: str
    epsilon: Fraction
    delta: Fraction
    decisions: str = ""
    state: str = ""
    tree: str = ""

    def __hash__(self) -> int:
        return hash((self.number, self.digest))  # looked up at every charge, and rationals take their time


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHead:
    """A head and its signature. Public: it can be printed in a newspaper, and later holds the record to it.

    >>> key = SigningKey.new()
    >>> head = Head(ledger="a", number=1, digest="0" * 64, at="2026-01-01", epsilon=Fraction(0), delta=Fraction(0))
    >>> SignedHead.read(SignedHead.sign(head, key).text).holds(key.public_text)
    True
    """

    KIND: ClassVar[str] = "ledger.signed_head"
    VERSION: ClassVar[int] = 1
    head: Head
    signature: str

    def __hash__(self) -> int:
        return hash(self.signature)

    @classmethod
    def sign(cls, head: Head, key: SigningKey) -> "SignedHead":
        """Sign a head."""
        signed = cls(head=head, signature=key.sign(_signed(head)))
        _RECENT.put((signed, key.public_text), value=True)  # whoever signed need not verify
        return signed

    @classmethod
    def read(cls, text: str) -> "SignedHead":
        """Read what :attr:`text` wrote."""
        read: SignedHead = _RECENT.get(text, lambda: _read(text))
        return read

    @property
    def text(self) -> str:
        """The head as canonical JSON."""
        return _text(self)

    def holds(self, public_text: str) -> bool:
        """Whether the owner of a public key signed this head."""
        holds: bool = _RECENT.get(
            (self, public_text), lambda: signature_holds(public_text, self.signature, _signed(self.head))
        )
        return holds


_HEADS = Registry((Head, SignedHead))


def _read(text: str) -> SignedHead:
    read = _HEADS.decode(parse(text), "head")
    if not isinstance(read, SignedHead):
        raise LedgerError("this is not a signed head; nothing was compared with it.")
    return read


Known = TypeVar("Known")


class _Recent:
    """The last few things that were worked out: the same head is read before and after each charge.

    Nothing is ever taken out of either half, so threads need no lock; at worst something is worked out twice.
    """

    HALF = 16

    def __init__(self) -> None:
        self._new: dict[object, Any] = {}
        self._old: dict[object, Any] = {}

    def get(self, key: object, work: Callable[[], Known]) -> Known:
        """What is known, or else is worked out."""
        for known in (self._new, self._old):
            if key in known:
                found: Known = known[key]
                return found
        return self.put(key, value=work())

    def put(self, key: object, *, value: Known) -> Known:
        """Know this from now on."""
        if len(self._new) >= self.HALF:
            self._old, self._new = self._new, {}
        self._new[key] = value
        return value


_RECENT = _Recent()


@lru_cache(maxsize=64)  # the row and the anchor ask for the same one
def _text(signed: SignedHead) -> str:
    kind, signature = signed.KIND, canonical(signed.signature)
    return f'{{"head":{_said(signed.head)},"kind":"{kind}","signature":{signature},"version":{signed.VERSION}}}'


@lru_cache(maxsize=64)
def _said(head: Head) -> str:
    """A head as it was signed: one of an older version without what came later."""
    body = encode(head)
    if not head.tree and isinstance(body, dict):
        version, later = (2, {"tree"}) if head.state else (1, {"decisions", "state", "tree"})
        body = {name: value for name, value in body.items() if name not in later} | {"version": version}
    return canonical(body)


def _signed(head: Head) -> bytes:
    return _said(head).encode()


class Anchor(Protocol):
    """Where the last signed head of a ledger is kept; one conformance test holds every kind to these words.

    Guarantee: once :meth:`advance` has returned, :meth:`last` gives this head or a later one, after a crash of the
    process and, where it was ``durable``, of the machine. Safe for several processes at once.
    """

    @property
    def name(self) -> str:
        """What messages call the anchor; without a password."""
        ...

    def create(self, head: SignedHead) -> None:
        """Keep the first head, in a place that must be empty."""
        ...

    def last(self) -> SignedHead | None:
        """The head that was anchored last; None where there is no anchor, an error where it cannot be read."""
        ...

    def readable(self) -> SignedHead | None:
        """The head that was anchored last; None also where the anchor holds none that can be read."""
        ...

    def set_aside(self) -> None:
        """Make room for a new anchor; what cannot be read is kept under another name."""
        ...

    def advance(self, head: SignedHead, *, durable: bool) -> SignedHead:
        """Move forward to a head; nothing where a later one is anchored. The newest one that is anchored then."""
        ...

    def witnessed(self) -> str | None:
        """The text of the last witnessed head, if one is kept: as somebody wrote it, so its reader proves it."""
        ...

    def keep_witnessed(self, text: str) -> None:
        """Keep a witnessed head in place of the one before. To lose it costs one more question to the witness."""
        ...

    def close(self) -> None:
        """Give back what is held; it can be used again."""
        ...


def foreign(name: str, ledger: str) -> LedgerError:
    """The refusal to move the anchor of another ledger."""
    return LedgerError(
        f"the anchor {name} belongs to another ledger ({ledger}); it was not moved. Open the ledger with its own "
        "anchor."
    )


def forked(name: str, number: int) -> LedgerError:
    """The refusal to anchor another head at a number that has one."""
    return LedgerError(
        f"the anchor {name} holds another entry {number}: two copies of this ledger are in use. Nothing was delivered. "
        "Stop both and compare them: sfumato ledger verify"
    )


class FileAnchor:
    """Two slots in one file, written in turn: whatever stops a write, the head before it is still there.

    Guarantee: once :meth:`advance` has returned, :meth:`last` gives this head or a later one, after a crash of the
    process and, where it was ``durable``, of the machine. Safe for several processes at once.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def create(self, head: SignedHead) -> None:
        """Write the first head to a file that must not exist yet."""
        with self._failing():
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _write(file, 0, head)
                _fill(file, bytes(SLOT), SLOT)  # later writes need no new room, which a full disk would not give
                os.fsync(file)
            finally:
                os.close(file)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # the name of the file must outlive the machine too
            finally:
                os.close(folder)

    def last(self) -> SignedHead | None:
        """The head that was anchored last; None where there is no file."""
        if not self.path.exists():
            return None
        with self._locked(fcntl.LOCK_SH) as file:
            return max(self._slots(file), key=lambda slot: slot[0].head.number)[0]

    def readable(self) -> SignedHead | None:
        """The head that was anchored last; None also where the file holds none that can be read."""
        try:
            return self.last()
        except LedgerError:
            return None

    def set_aside(self) -> None:
        """Make room for a new anchor; what cannot be read is kept under another name."""
        if self.path.exists():
            self.path.rename(self.path.with_name(f"{self.path.name}.unreadable-{secrets.token_hex(4)}"))

    def advance(self, head: SignedHead, *, durable: bool) -> SignedHead:
        """Move forward to a head; nothing where a later one is anchored. The newest one that is anchored then."""
        with self._locked(fcntl.LOCK_EX) as file:
            newest, place = max(self._slots(file), key=lambda slot: slot[0].head.number)
            if newest.head.ledger != head.head.ledger:
                raise foreign(self.name, newest.head.ledger)
            if newest.head.number == head.head.number and newest.head.digest != head.head.digest:
                raise forked(self.name, head.head.number)
            if newest.head.number < head.head.number:
                _write(file, 1 - place, head)
            if durable:
                os.fdatasync(file)
            return max(newest, head, key=lambda one: one.head.number)

    def witnessed(self) -> str | None:
        """The text of the last witnessed head, from a file beside the anchor."""
        with self._failing():
            return self._beside.read_text("utf-8", errors="replace") if self._beside.exists() else None

    def keep_witnessed(self, text: str) -> None:
        """Put a witnessed head in place of the one before, whole or not at all."""
        new = self._beside.with_name(f"{self._beside.name}-{secrets.token_hex(4)}")
        with self._failing():
            new.write_text(text, "utf-8")
            new.replace(self._beside)

    def close(self) -> None:
        """Nothing: the file is open only while it is used."""

    @property
    def _beside(self) -> Path:
        return self.path.with_name(f"{self.path.name}.witnessed")

    def _slots(self, file: int) -> list[tuple[SignedHead, int]]:
        found = []
        both = os.pread(file, 2 * SLOT, 0)
        for place in (0, 1):
            slot = both[place * SLOT : (place + 1) * SLOT]
            text, _, digest = slot[: slot.find(b"  ")].rpartition(b" ")
            if digest != _checked(text):
                continue  # never written, or the machine stopped in the middle: then nothing was read for it
            try:
                found.append((SignedHead.read(text.decode()), place))
            except (SfumatoError, UnicodeDecodeError):
                continue
        if not found:
            raise LedgerError(
                f"the anchor {self.path} holds no head that can be read. Nothing was read and nothing was spent. "
                "Restore the anchor, or have the board recover the ledger: sfumato ledger recover"
            )
        return found

    @contextmanager
    def _locked(self, how: int) -> Iterator[int]:
        with self._failing():
            file = os.open(self.path, os.O_RDWR if how == fcntl.LOCK_EX else os.O_RDONLY)
            try:
                self._wait(file, how)
                yield file
            finally:
                os.close(file)

    def _wait(self, file: int, how: int) -> None:
        """Lock the file, or say that somebody holds it: whoever may read it can hold it for ever."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return fcntl.flock(file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise LedgerError(
                        f"the anchor {self.path} has been locked by another process for {PATIENCE} seconds, and no "
                        "ledger holds it that long. Nothing was read and nothing was delivered; what the record holds "
                        "counts. Find who has the file open, let nobody else read it (chmod 600), and try again."
                    ) from None
                time.sleep(0.001)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as wrong:
            raise LedgerError(
                f"the anchor {self.path} cannot be used: {wrong.strerror}. Nothing was read and nothing was delivered; "
                "what the record holds counts. Repair the anchor's store and try again."
            ) from None


def _write(file: int, place: int, head: SignedHead) -> None:
    said = head.text
    _RECENT.put(said, value=head)
    text = said.encode()
    text += b" " + _checked(text)  # half a head in front of half an older one must not pass for a head
    if len(text) + 2 >= SLOT:  # its end is found by the white space behind it
        raise LedgerError("the head is too long for its anchor; nothing was delivered. Charge with fewer digits.")
    _fill(file, text.ljust(SLOT - 1) + b"\n", place * SLOT)


def _fill(file: int, slot: bytes, place: int) -> None:
    if os.pwrite(file, slot, place) != len(slot):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # half a slot is no slot


def _checked(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
