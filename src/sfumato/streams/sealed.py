"""States that survive: encrypted, authenticated, and bound to the charge that they belong to."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.core.documents import Json, canonical, parse
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused

__all__ = ["charge_of", "derived_secret", "locked", "read_sealed", "remove_sealed", "write_sealed"]

MAGIC = b"sfumato stream state 1\n"
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


def write_sealed(path: Path, secret: bytes, header: Json, state: Json) -> None:
    """Write a state so that after a crash the file holds it, or the one before it, whole.

    ``header`` is readable by all and authenticated; ``state`` is encrypted (AES-256-GCM), and filled up to a power of
    two bytes. The size of the file is no secret that is kept: it tells within a factor of two how much is in it, and
    where it doubles, that one person more came.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head = canonical(header).encode()
    nonce = secrets.token_bytes(12)
    body = AESGCM(secret).encrypt(nonce, _plain(state), MAGIC + head)
    beside = _beside(path)
    try:
        beside.unlink(missing_ok=True)  # what a crash has left, or somebody has laid there
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(MAGIC + len(head).to_bytes(4, "big") + head + nonce + body)
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
            f"the state of the stream was not written to {path}: {wrong.strerror}. Nothing was told; the charge "
            "counts. Make room and resume the stream."
        ) from None


def remove_sealed(path: Path) -> None:
    """Remove a state, and what a crash may have left beside it."""
    for file in (path, _beside(path)):
        file.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def read_sealed(path: Path, secret: bytes) -> tuple[Any, Any]:
    """The header and the state of a file; one that was changed, or sealed with another key, is refused."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    data, head, start = _opened(path)
    nonce, body = data[start : start + 12], data[start + 12 :]
    try:
        if not data.startswith(MAGIC):
            raise InvalidTag
        plain = AESGCM(secret).decrypt(nonce, body, MAGIC + head)
    except (InvalidTag, ValueError):
        raise Refused(
            f"{path} is no state of a stream that was sealed with the key of this vault, or it was changed; nothing "
            "was resumed. Open the vault with the key that the stream was started with."
        ) from None
    return parse(head.decode()), parse(plain.rstrip(b" ").decode())


def charge_of(path: Path) -> int:
    """The number of the charge that a file says it belongs to; whether that is true, :func:`read_sealed` says."""
    try:
        header: Any = parse(_opened(path)[1].decode())
        return int(header["charge"])
    except (InvalidInput, KeyError, TypeError, ValueError):
        raise Refused(f"{path} is no state of a stream; nothing was resumed and nothing was spent.") from None


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
def locked(path: Path) -> Iterator[int]:
    """Hold a state file: while one process runs a stream, no other may."""
    try:
        file = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as wrong:
        raise Refused(f"{path} cannot be held: {wrong.strerror}. Nothing was read and nothing was spent.") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"the stream of {path} is running elsewhere; nothing was read, told or spent.") from None
        yield file
    finally:
        os.close(file)


def _plain(state: Json) -> bytes:
    plain = canonical(state).encode()
    return plain.ljust(max(LEAST, 1 << (len(plain) - 1).bit_length()))
