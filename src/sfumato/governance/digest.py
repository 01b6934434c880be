"""The digest that names a document in a decision, so that everybody decides on the same text."""

import hashlib

from sfumato.core.documents import Document, canonical, encode

__all__ = ["digest_of"]


def digest_of(document: Document) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of the canonical text.

    >>> from sfumato.core.budget import Budget
    >>> digest_of(Budget(epsilon=1))
    '73422deae5e6c268e5fa3a2caaec6b5e'
    """
    return hashlib.sha256(canonical(encode(document)).encode()).hexdigest()[:32]
