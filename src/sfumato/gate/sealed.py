"""States that survive: encrypted, authenticated, and bound to the charge that they belong to.

A state is JSON, and may have a body of bytes beside it: what a training run holds, sealed in pieces.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from sfumato.core.documents import Json, canonical, parse
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused

__all__ = ["charge_of", "derived_secret", "locked", "read_sealed", "remove_sealed", "write_sealed"]

SealedState = Mapping[str, Any]  # JSON that this code wrote and sealed: it opens only as it was written
MAGIC = b"sfumato stream state 1\n"
BODIED = b"sfumato bodied state 1\n"  # as long as the other: the header begins at the same place
PIECE = 1 << 28  # bytes of a body that are sealed at once
LEAST = 4096  # bytes of a state: smaller ones are filled up, and larger ones to the next power of two


def derived_secret(key: SigningKey, purpose: str) -> bytes:
    """32 bytes for one purpose that only the holder of a signing key can work out (HKDF with SHA-256).

    >>> key = SigningKey.new()
    >>> derived_secret(key, "a") == derived_secret(key, "a"), derived_secret(key, "a") == derived_secret(key, "b")
    (True, False)
    """
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    private = key.private.private_bytes_raw()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=f"sfumato {purpose}".encode()).derive(private)


def write_sealed(
    path: Path, secret: bytes, header: Json, state: Json, body: bytes | None = None, what: str = "stream"
) -> None:
    """Write a state so that after a crash the file holds it, or the one before it, whole.

    ``header`` is readable by all and authenticated; ``state`` is encrypted (AES-256-GCM), and filled up to a power of
    two bytes. The size of the file is no secret that is kept: it tells within a factor of two how much is in it, and
    where it doubles, that one person more came. A ``body`` is sealed as it is: its size must be public.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head = canonical(header).encode()
    nonce, magic = secrets.token_bytes(12), MAGIC if body is None else BODIED
    sealed = AESGCM(secret).encrypt(nonce, _plain(state), magic + head)
    length = b"" if body is None else len(sealed).to_bytes(8, "big")
    beside = _beside(path)
    try:
        beside.unlink(missing_ok=True)  # what a crash has left, or somebody has laid there
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(magic + len(head).to_bytes(4, "big") + head + length + nonce + sealed)
            for piece in _pieces(secret, nonce, body or b""):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as wrong:
        raise Refused(
            f"the state of the {what} was not written to {path}: {wrong.strerror}. Nothing was released; the charge "
            f"counts. Make room and resume the {what}."
        ) from None


def remove_sealed(path: Path) -> None:
    """Remove a state, and what a crash may have left beside it."""
    for file in (path, _beside(path)):
        file.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def read_sealed(path: Path, secret: bytes, *, what: str = "stream") -> tuple[SealedState, SealedState, bytes]:
    """The header, the state and the body of a file; one that was changed, or sealed with another key, is refused."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    data, head, start = _opened(path)
    magic = data[: len(MAGIC)]
    end = len(data)
    if magic == BODIED:
        start, end = start + 8, start + 20 + int.from_bytes(data[start : start + 8], "big")
    nonce = data[start : start + 12]
    try:
        if magic not in (MAGIC, BODIED):
            raise InvalidTag
        plain = AESGCM(secret).decrypt(nonce, data[start + 12 : end], magic + head)
        body = _opened_pieces(secret, nonce, memoryview(data)[end:])
    except (InvalidTag, ValueError):
        raise Refused(
            f"{path} is not a state of a {what} that was sealed with the key of this vault, or it was changed; nothing "
            f"was resumed. Open the vault with the key that the {what} was started with."
        ) from None
    header, state = parse(head.decode()), parse(plain.rstrip(b" ").decode())
    return cast("SealedState", header), cast("SealedState", state), body


def charge_of(path: Path, *, what: str = "stream") -> int:
    """The number of the charge that a file says it belongs to; whether that is true, :func:`read_sealed` says."""
    try:
        header = cast("SealedState", parse(_opened(path)[1].decode()))
        return int(header["charge"])
    except (InvalidInput, KeyError, TypeError, ValueError):
        raise Refused(f"{path} is not a state of a {what}; nothing was resumed and nothing was spent.") from None


def _opened(path: Path) -> tuple[bytes, bytes, int]:
    """The bytes of a file, those of its header, and where what is sealed begins."""
    try:
        data = path.read_bytes()
    except OSError:
        raise InvalidInput(f"{path} cannot be read; nothing was resumed.") from None
    start = len(MAGIC) + 4
    end = start + int.from_bytes(data[len(MAGIC) : start], "big")
    return data, data[start:end], end


@contextlib.contextmanager
def locked(path: Path, *, what: str = "stream") -> Iterator[int]:
    """Hold a state file: while one process runs a stream, no other may."""
    try:
        file = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as wrong:
        raise Refused(f"{path} cannot be held: {wrong.strerror}. Nothing was read and nothing was spent.") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"the {what} of {path} is running elsewhere; nothing was read, released or spent.") from None
        yield file
    finally:
        os.close(file)


def _pieces(secret: bytes, nonce: bytes, body: bytes) -> Iterator[bytes]:
    """The pieces of a body, each bound to the nonce of its state, its own place and the last one's."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    view, count = memoryview(body), -(-len(body) // PIECE)
    for place in range(count):
        own, about = secrets.token_bytes(12), nonce + place.to_bytes(4, "big") + count.to_bytes(4, "big")
        yield own + AESGCM(secret).encrypt(own, view[place * PIECE : (place + 1) * PIECE], about)


def _opened_pieces(secret: bytes, nonce: bytes, sealed: memoryview) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    whole = PIECE + 28  # with its nonce and its tag
    count, parts = -(-len(sealed) // whole), []
    for place in range(count):
        piece, about = sealed[place * whole : (place + 1) * whole], nonce + place.to_bytes(4, "big")
        parts.append(AESGCM(secret).decrypt(bytes(piece[:12]), piece[12:], about + count.to_bytes(4, "big")))
    return b"".join(parts)


def _plain(state: Json) -> bytes:
    plain = canonical(state).encode()
    return plain.ljust(max(LEAST, 1 << (len(plain) - 1).bit_length()))
