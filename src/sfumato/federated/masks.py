"""Keys and masks: X25519 between two sites, HKDF to a key for one use in one round, ChaCha20 to uniform numbers.

Every key is derived under the digest of the round's terms: the run, the round, the roster and all numbers. A key of
another round, roster or use is an independent one. Masks are modulo 2^b, and one keystream makes all of a mask.
"""

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.errors import Refused
from sfumato.noise.words import WordArray

__all__ = [
    "KEY",
    "NONCE",
    "TAG",
    "KeyWords",
    "Residues",
    "add_mask",
    "channel",
    "derived",
    "keystream",
    "lane",
    "private_key",
    "public_half",
    "shared_secret",
    "subtract_mask",
]

KEY = 32  # bytes of every key: 256 bits
NONCE, TAG = 12, 28  # bytes by which a sealed text is longer: its nonce, and that with its tag
_ZEROS = memoryview(bytes(1 << 18))  # what is encrypted, so that the keystream itself comes out

Residues = np.ndarray[tuple[int], np.dtype[np.generic]]
"""Whole numbers modulo 2^b in the narrowest unsigned type that holds b bits."""


def derived(secret: bytes, use: str, digest: bytes, *places: int) -> bytes:
    """A key for one use in one round: HKDF with SHA-256, bound to the terms of the round and to the sites by number.

    >>> len(derived(bytes(32), "mask", bytes(32), 1, 2))
    32
    """
    info = b"sfumato secure sum 1\0" + use.encode() + b"\0" + digest + b"".join(i.to_bytes(4, "big") for i in places)
    return HKDF(algorithm=SHA256(), length=KEY, salt=None, info=info).derive(secret)


def private_key(private: bytes) -> X25519PrivateKey:
    """An X25519 key from its bytes."""
    return X25519PrivateKey.from_private_bytes(private)


def public_half(private: bytes) -> bytes:
    """The public half of an X25519 key."""
    return private_key(private).public_key().public_bytes_raw()


def shared_secret(private: X25519PrivateKey, public: bytes) -> bytes:
    """What two sites have in common by X25519; a public key that makes it the same for everybody is refused."""
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise Refused("a public key of a site is no key that X25519 can use; nothing was sent.") from None


def channel(secret: bytes, digest: bytes, sender: int, receiver: int) -> tuple[ChaCha20Poly1305, bytes]:
    """What seals the one text from a site to another in a round, and what is authenticated beside it."""
    key = derived(secret, "channel", digest, sender, receiver)
    return ChaCha20Poly1305(key), digest + sender.to_bytes(4, "big") + receiver.to_bytes(4, "big")


def lane(bits: int) -> np.dtype[np.generic]:
    """The type of numbers modulo 2^bits: it wraps at a multiple of 2^bits by itself."""
    return np.dtype(np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64).newbyteorder("<")


def keystream(key: bytes, size: int, kind: np.dtype[np.generic]) -> Residues:
    """``size`` uniform numbers of a type: the keystream of ChaCha20 under a key that is used for nothing else."""
    out = np.empty(size, dtype=kind)
    if size:
        stream, room = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor(), out.data.cast("B")
        for start in range(0, len(room), len(_ZEROS)):
            part = room[start : start + len(_ZEROS)]
            stream.update_into(_ZEROS[: len(part)], part)
    return out


def add_mask(total: Residues, key: bytes) -> None:
    """Add the mask of a key to ``total``, in its place."""
    np.add(total, keystream(key, total.size, total.dtype), out=total)


def subtract_mask(total: Residues, key: bytes) -> None:
    """Take the mask of a key from ``total``, in its place."""
    np.subtract(total, keystream(key, total.size, total.dtype), out=total)


class KeyWords:
    """Words of the keystream of one key: what somebody drew from it, whoever holds the key draws again.

    It is for noise that is taken out again when its key is shown; the key comes from the operating system and is shown
    for that reason alone.
    """

    __slots__ = ("_stream",)

    def __init__(self, key: bytes) -> None:
        self._stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()

    @property
    def width(self) -> int:
        """A word has 64 bits."""
        return 64

    def fill(self, out: WordArray) -> None:
        """Overwrite ``out``, a contiguous array, with the next words."""
        if out.size:
            self._stream.update_into(bytes(out.nbytes), out.data.cast("B"))
