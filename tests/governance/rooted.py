"""A small institution whose keys have roles: a root, and one key each to charge, to sign releases, to administer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.governance.durable import DurableLedger
from sfumato.governance.key_documents import SignedByRoot
from sfumato.governance.ledger import Ledger
from sfumato.governance.recovery import vouched
from tests.governance.homes import PATIENT, VISITS, Home

CAP = Budget(epsilon=10, delta="1/1000")


@dataclass(frozen=True)
class Rooted:
    """The keys of an institution, and where its ledger is."""

    home: Home
    root: SigningKey = field(default_factory=SigningKey.new)
    next_root: SigningKey = field(default_factory=SigningKey.new)
    charge: SigningKey = field(default_factory=SigningKey.new)
    release: SigningKey = field(default_factory=SigningKey.new)
    administer: SigningKey = field(default_factory=SigningKey.new)

    def create(self, clock: Callable[[], datetime] | None = None) -> Ledger:
        return Ledger.create(
            self.home.url,
            key=self.charge,
            anchor=self.home.anchor,
            root=self.root,
            next_root=self.next_root.public_text,
            release=self.release,
            administer=self.administer,
            **({} if clock is None else {"clock": clock}),
        )

    def open(self, **other: Any) -> Ledger:
        given: dict[str, Any] = {"key": self.charge, "root": self.root.public_text, "administer": self.administer}
        given |= other
        return Ledger.open(self.home.url, anchor=self.home.anchor, **given)

    def word(self, documents: int) -> SignedByRoot:
        """The root's word, for a recovery of the ledger as it lies there now, on how many documents it has signed."""
        return vouched(self.home.url, anchor=self.home.anchor, root=self.root, documents=documents)

    def furnished(self, clock: Callable[[], datetime] | None = None) -> Ledger:
        ledger = self.create(clock)
        ledger.open_account("hospital", unit=PATIENT, cap=CAP, reason="decided by the tests")
        ledger.declare_population("patients", unit=PATIENT, cap=CAP, reason="decided by the tests")
        ledger.declare_dataset(VISITS, population="patients", cap=CAP)
        return ledger


def charged(ledger: Ledger, epsilon: str = "1/10") -> None:
    account(ledger).reserve(Budget(epsilon=epsilon), datasets=[VISITS])


def account(ledger: Ledger) -> DurableLedger:
    return ledger.account("hospital", unit=PATIENT)
