"""Secrets that this service hands out: drawn by the operating system, kept as digests, compared in constant time."""

import hashlib
import hmac
import secrets

__all__ = ["digest_of", "form_token", "new_secret", "same"]


def new_secret() -> str:
    """A new secret of 256 bits, as text for a cookie or a header."""
    return secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """What is kept of a secret. It has 256 bits of its own, so that a plain hash says nothing about it.

    >>> digest_of("a") == digest_of("b")
    False
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def form_token(cookie: str, session: str | None) -> str:
    """What a form carries: it follows from a cookie of the browser and from the session, and tells neither.

    >>> form_token("cookie", None) == form_token("cookie", "session")
    False
    """
    return hmac.new(cookie.encode(), (session or "").encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two texts are the same, in a time that does not depend on where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())
