"""Ed25519 keys: made once, kept outside the database, public halves handed around as text."""

import errno
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["SigningKey", "read_public_key", "signature_holds"]

_LONGEST = 1 << 16
"""More bytes than a private key has."""
_FIELD = 2**255 - 19
_EIGHTH = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
"""The y of two points of order 8; that of the two others is its negative."""
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _EIGHTH, _FIELD - _EIGHTH})
"""The y of the points whose order divides 8, whatever the sign of their x."""


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """A private key; it never shows itself in a repr, a log or a certificate.

    >>> key = SigningKey.new()
    >>> signature_holds(key.public_text, key.sign(b"text"), b"text")
    True
    """

    private: "Ed25519PrivateKey"

    def __repr__(self) -> str:
        return f"<SigningKey with the public half {self.public_text[:16]}…>"

    @classmethod
    def new(cls) -> "SigningKey":
        """Make a key from the operating system's randomness."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path) -> "SigningKey":
        """Read a key that :meth:`save` wrote; one that others than its owner can read or write is refused."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem, shared = _held_in(Path(path))
        try:
            private = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError):
            private = None
        if private is None and _is_key(pem.decode("latin-1").strip()):
            raise InvalidInput(
                f"{path} holds a public key, which verifies and cannot sign. Nothing was signed. Give the private key "
                "that it belongs to."
            )
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidInput(
                f"{path} is not an Ed25519 signing key that can be read: it holds something else, or was damaged or "
                "encrypted. Nothing was signed. Bring the right file back; a new key would sign as somebody else."
            )
        if shared:
            raise InvalidInput(
                f"others than its owner can read or write the key {path}, so that others can sign with it. Nothing was "
                f"signed. Shut it: chmod 600 {path}; if somebody may have read it, a new key must take its place."
            )
        return cls(private)

    def save(self, path: str | Path) -> None:
        """Write the key, readable by its owner alone, and its public half beside it as ``.pub``; never overwrite."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        pem = self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = Path(f"{path}.pub")
        try:
            if public.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as wrong:
            raise InvalidInput(f"the key was not written to {path}: {wrong.strerror}. Choose a new file.") from None
        with os.fdopen(descriptor, "wb") as private:
            private.write(pem)
        public.write_text(self.public_text + "\n", encoding="ascii")

    @property
    def public_text(self) -> str:
        """The public half as 64 hexadecimal digits."""
        return _public_text(self.private)

    def sign(self, text: bytes) -> str:
        """Sign bytes; the signature is 128 hexadecimal digits."""
        return self.private.sign(text).hex()


@lru_cache(maxsize=64)
def _public_text(private: "Ed25519PrivateKey") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _held_in(path: Path) -> tuple[bytes, bool]:
    """What the file of a private key holds, and whether others than its owner can read or write it."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST), bool(os.fstat(file.fileno()).st_mode & 0o077)
    except FileNotFoundError:
        raise InvalidInput(f"there is no key {path}; nothing was signed. Make one: sfumato key new {path}") from None
    except PermissionError:
        raise InvalidInput(
            f"you are not permitted to read the key {path}; nothing was signed. Ask its owner, or use your own key."
        ) from None
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or "that is no name of a file"
        raise InvalidInput(f"the key {path} could not be read: {reason}. Nothing was signed.") from None


def read_public_key(text_or_path: str | Path) -> str:
    """Read a public key from its 64 hexadecimal digits, or from the file that holds them.

    Refused: points of small order, under which a signature can hold for every text, and spellings of a point that are
    not its one canonical one.
    """
    text, named = str(text_or_path), ""
    if not _is_key(text):  # only then a file: one that is *named* like a key must not stand in for it
        named = text
        try:
            text = Path(text).read_text(encoding="utf-8", errors="replace").strip()
        except PermissionError:
            raise InvalidInput(f"you are not permitted to read {named}; nothing was verified.") from None
        except (OSError, ValueError):
            text = ""
    if not _is_key(text):
        raise InvalidInput("a public key is 64 hexadecimal digits, or a file that holds them; nothing was verified.")
    if not _sound(text):
        raise InvalidInput(
            f"the public key {named or text} is one that no key pair has (a point of small order, or another spelling "
            "of a point): signatures of everything could hold for it. Nothing was verified. Ask its owner for the key."
        )
    return text


def _is_key(text: str) -> bool:
    return len(text) == 64 and all(digit in "0123456789abcdef" for digit in text)


@lru_cache(maxsize=256)
def _sound(public_text: str) -> bool:
    """Whether a public key is spelled as it must be and is not one of the eight points of small order (RFC 8032)."""
    try:
        y = int.from_bytes(bytes.fromhex(public_text), "little") & ~(1 << 255)
    except ValueError:
        return False
    return y < _FIELD and y not in _SMALL_ORDER


@lru_cache(maxsize=256)
def _public_key(public_text: str) -> "Ed25519PublicKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_text))


def signature_holds(public_text: str, signature: str, text: bytes) -> bool:
    """Say whether ``signature`` is that of ``public_text`` over ``text``; malformed input does not hold.

    Nor does anything under a key of small order or in a spelling that is not canonical (:func:`read_public_key`). A
    signature has one spelling, that of :meth:`SigningKey.sign`: capitals and spaces do not hold.

    >>> signature_holds("00", "00", b"text")
    False
    """
    from cryptography.exceptions import InvalidSignature

    if not _sound(public_text) or len(signature) != 128 or not set(signature) <= set("0123456789abcdef"):
        return False
    try:
        _public_key(public_text).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True
