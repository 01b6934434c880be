"""Certificates: a statement, a seal for each of its fields, and a signature over all of it.

The seals make a change attributable: a verifier names the field that was touched and does not only say that the
signature fails. A certificate proves who signed what; it cannot prove which noise was drawn.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.documents import Json, canonical, encode
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Statement

__all__ = ["KIND", "VERSION", "Certificate", "seals", "signed_text"]

KIND = "certificate"
VERSION = 1


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """A signed statement as canonical JSON text; it cannot be changed once it is made."""

    text: str

    @classmethod
    def sign(cls, statement: Statement, key: SigningKey) -> "Certificate":
        """Seal and sign a statement."""
        body = encode(statement)
        document: dict[str, Json] = {
            "kind": KIND,
            "version": VERSION,
            "statement": body,
            "seals": seals(body, key.public_text),
        }
        signature = key.sign(signed_text(document))
        signed = document | {"signature": {"algorithm": "Ed25519", "key": key.public_text, "value": signature}}
        return cls(canonical(signed))

    @property
    def document(self) -> dict[str, Json]:
        """The certificate as plain JSON values: a copy each time."""
        document: dict[str, Json] = json.loads(self.text)
        return document

    def to_json(self) -> str:
        """Write the certificate so that people can read it too: indented, keys sorted."""
        return json.dumps(self.document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write the certificate to a file and return its path."""
        target = Path(path)
        target.write_text(self.to_json(), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"Certificate {_about(self.text)}. to_json() shows all of it, save(path) writes it."


def seals(body: Json, signer: Json) -> dict[str, Json]:
    """Hash the signer's key, each field of a statement, and each field of the objects in it, under dotted names."""
    found: dict[str, Json] = {"signature.key": _digest(signer)}
    for name, part in body.items() if isinstance(body, dict) else ():
        if isinstance(part, dict):
            found |= {f"statement.{name}.{inner}": _digest(value) for inner, value in part.items()}
        else:
            found[f"statement.{name}"] = _digest(part)
    return found


def signed_text(document: dict[str, Json]) -> bytes:
    """The bytes that the signature covers: everything but the signature itself."""
    return canonical({name: part for name, part in document.items() if name != "signature"}).encode()


def _about(text: str) -> str:
    """Which release a certificate is about and who signed it, as far as its text says so."""
    try:
        document = json.loads(text)
        said, key = document["statement"], document["signature"]["key"]
        return f"of release {said['identifier']} about {said['dataset']['name']}, signed by key {str(key)[:16]}…"
    except (ValueError, KeyError, TypeError):
        return "which is not a whole one"


def _digest(part: Json) -> str:
    return hashlib.sha256(canonical(part).encode()).hexdigest()
