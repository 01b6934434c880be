"""Ways to change one field of a certificate, and to sign what was changed with a key of one's own."""

from collections.abc import Callable
from typing import Any

from sfumato.core.certificate import seals, signed_text
from sfumato.core.signature import SigningKey

Change = Callable[[dict[str, Any]], None]


def at(path: str, value: object) -> tuple[str, Change]:
    """Another value in a field."""

    def change(document: dict[str, Any]) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            document = document[parent]
        assert repr(document[name]) != repr(value)
        document[name] = value

    return path, change


def gone(path: str) -> tuple[str, Change]:
    """A field taken away."""

    def change(document: dict[str, Any]) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            document = document[parent]
        del document[name]

    return path, change


def added(path: str, value: object) -> tuple[str, Change]:
    """A field that the version does not know."""

    def change(document: dict[str, Any]) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            document = document[parent]
        assert name not in document
        document[name] = value

    return path, change


def cut(path: str, digits: int) -> tuple[str, Change]:
    """A text shortened."""

    def change(document: dict[str, Any]) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            document = document[parent]
        document[name] = document[name][:-digits]

    return path, change


def signed_anew(document: dict[str, Any], key: SigningKey | None = None) -> None:
    """Seal and sign with a key of one's own, as a forger would."""
    key = SigningKey.new() if key is None else key
    document["seals"] = seals(document["statement"], key.public_text)
    document["signature"] = {"algorithm": "Ed25519", "key": key.public_text, "value": key.sign(signed_text(document))}
