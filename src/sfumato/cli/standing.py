"""How a ledger stands with its witness, on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.governance.leasing import LeaseStanding
    from sfumato.governance.witnessed import WitnessedHead

__all__ = ["standing_json", "standing_words", "witnessed_in"]


def witnessed_in(file: Path) -> "WitnessedHead":
    """The witnessed head in a file."""
    from sfumato.governance.witnessed import WitnessedHead

    try:
        return WitnessedHead.read(file.read_text("utf-8").strip())
    except (SfumatoError, UnicodeDecodeError):
        raise InvalidInput(
            f"{file} is not a witnessed head; nothing was verified. Get one: sfumato witness renew -o FILE"
        ) from None


def standing_words(standing: "LeaseStanding | None", *, apart: bool) -> str:
    """What is said of a witness to a person; that there is none, too. ``apart``: the reader cannot read the anchor."""
    if standing is None:
        return "No witness stands behind this ledger: an old database with its old anchor would not be noticed."
    head = standing.witnessed
    if head is None and apart:
        return (
            f"The witness {standing.named.key} stands behind this ledger. What it has seen lies beside the anchor, "
            "which you cannot read: hold the record to a head that it countersigned, sfumato ledger verify "
            "--witnessed FILE"
        )
    if head is None:
        return f"The witness {standing.named.key} has seen nothing of this record yet: sfumato witness renew"
    return (
        f"The witness {head.witness} has seen entry {head.signed.head.number} at {head.at}; "
        f"{standing.entries:,} {'entry' if standing.entries == 1 else 'entries'} and {standing.charged} came after it, "
        f"of a lease of {head.lease}."
    )


def standing_json(standing: "LeaseStanding") -> dict[str, object]:
    """What is said of a witness to a program."""
    head = standing.witnessed
    after = {"epsilon": str(standing.charged.epsilon), "delta": str(standing.charged.delta)}
    lease = standing.named.lease if head is None else head.lease
    return {
        "key": standing.named.key,
        "entry": None if head is None else head.signed.head.number,
        "at": None if head is None else head.at,
        "lease": {"epsilon": str(lease.epsilon), "delta": str(lease.delta)},
        "entries_after": standing.entries,
        "charged_after": after,
    }
