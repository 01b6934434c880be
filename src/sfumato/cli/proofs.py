"""Signed heads, receipts and documents of a root, as files that readers bring."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.governance.anchor import SignedHead
    from sfumato.governance.key_documents import SignedByRoot
    from sfumato.governance.receipts import Receipt, ReceiptCheck

__all__ = ["as_document", "certificate_of", "checked", "read_head", "read_receipt"]


def certificate_of(file: Path) -> "SignedByRoot":
    """A document that a root signed, in a file."""
    from sfumato.governance.key_documents import SignedByRoot

    try:
        return SignedByRoot.read(file.read_text("utf-8").strip())
    except (SfumatoError, UnicodeDecodeError, OSError):
        raise InvalidInput(
            f"{file} is not a document that a root key signed; nothing was done. Get one: sfumato key certify"
        ) from None


def read_head(file: Path) -> "SignedHead":
    """A signed head from a file."""
    from sfumato.governance.anchor import SignedHead

    try:
        return SignedHead.read(file.read_text("utf-8").strip())
    except (SfumatoError, UnicodeDecodeError):
        raise InvalidInput(f"{file} is not a signed head; nothing was verified. Get one: sfumato ledger head") from None


def read_receipt(file: Path) -> "Receipt":
    """A receipt from a file."""
    from sfumato.governance.receipts import Receipt

    try:
        return Receipt.read(file.read_text("utf-8"))
    except (SfumatoError, ValueError, RecursionError):
        raise InvalidInput(
            f"{file} is not a receipt; nothing was verified. Get one: sfumato receipt CERTIFICATE"
        ) from None


def checked(
    certificate: str, receipt: Path, heads: Sequence[Path], key: str | None, root: str | None = None
) -> "ReceiptCheck":
    """What a receipt and published heads show of a certificate, by its text, to who trusts a key or a root."""
    from sfumato.core.signature import read_public_key
    from sfumato.governance.receipts import check_receipt

    return check_receipt(
        certificate,
        read_receipt(receipt),
        key=None if key is None else read_public_key(key),
        root=None if root is None else read_public_key(root),
        heads=[read_head(each) for each in heads],
    )


def as_document(found: "ReceiptCheck") -> dict[str, object]:
    """The same for programs."""
    return {
        "holds": found.holds,
        "problems": list(found.problems),
        "entry": found.number,
        "ledger": found.head.ledger,
        "as_of": found.head.number,
        "head_authenticated": found.signed,
        "published": list(found.published),
        "final_by": None if found.final is None else found.final.number,
    }
