"""Keys for the people of a board in tests: always the same for a name, and none of them protects anything."""

import hashlib
from dataclasses import replace
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.core.signature import SigningKey
from sfumato.governance.board import Board


@cache
def key_of(name: str) -> SigningKey:
    """The key that somebody keeps at home."""
    return SigningKey(
        Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode(errors="surrogatepass")).digest())
    )


def keyed(board: Board) -> Board:
    """The board, which knows the key of everybody on it."""
    return replace(board, keys=tuple((name, key_of(name).public_text) for name in sorted(board.people)))


def reseated(board: Board, **fields: object) -> Board:
    """Another board, whose people have the same keys and whose new people have theirs."""
    return keyed(replace(board, keys=(), **fields))  # type: ignore[arg-type]
