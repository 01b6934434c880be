"""Ed25519 keys: made once, kept outside the database, public halves handed around as text."""

import errno
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["SigningKey", "read_public_key", "signature_holds"]


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
        """Read a key that :meth:`save` wrote."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            private = load_pem_private_key(Path(path).read_bytes(), password=None)
        except (OSError, ValueError, TypeError):
            raise InvalidInput(f"{path} is not a readable signing key. Make one: sfumato key new {path}") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidInput(f"{path} holds another kind of key. Make an Ed25519 key: sfumato key new {path}")
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


def read_public_key(text_or_path: str | Path) -> str:
    """Read a public key from its 64 hexadecimal digits, or from the file that holds them."""
    text = str(text_or_path)
    if not _is_key(text):  # only then a file: one that is *named* like a key must not stand in for it
        try:
            text = Path(text).read_text(encoding="utf-8", errors="replace").strip()
        except (OSError, ValueError):
            text = ""
    if not _is_key(text):
        raise InvalidInput("a public key is 64 hexadecimal digits, or a file that holds them; nothing was verified.")
    return text


def _is_key(text: str) -> bool:
    return len(text) == 64 and all(digit in "0123456789abcdef" for digit in text)


def signature_holds(public_text: str, signature: str, text: bytes) -> bool:
    """Say whether ``signature`` is that of ``public_text`` over ``text``; malformed input does not hold.

    A signature has one spelling, that of :meth:`SigningKey.sign`: capitals and spaces do not hold.

    >>> signature_holds("00", "00", b"text")
    False
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(signature) != 128 or not set(signature) <= set("0123456789abcdef"):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_text)).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True
