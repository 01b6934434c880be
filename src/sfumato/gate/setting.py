"""What a vault gives to the store of each kind of data."""

from dataclasses import dataclass
from weakref import ReferenceType

from sfumato.core.budget import Budget
from sfumato.core.documents import Registry
from sfumato.core.question import Gate
from sfumato.core.units import Unit
from sfumato.errors import Refused
from sfumato.gate.notary import Notary
from sfumato.gate.sealed import derived_secret
from sfumato.gate.session import SessionGate

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Setting:
    """The vault that a store belongs to: who is protected, what it is called, how sessions are opened.

    The vault itself is held weakly: what it holds is let go together with it, and not when garbage is collected.
    """

    name: str
    vault: "ReferenceType[Gate]"
    notary: Notary
    declarations: Registry
    population: int | None = None
    """A public bound on how many units there are, where one was declared."""

    @property
    def gate(self) -> Gate:
        """The vault, which questions are handed to; for as long as there is one."""
        vault = self.vault()
        if vault is None:
            raise Refused("the vault of this store is gone; nothing was done. Make another one.")
        return vault

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.notary.unit

    @property
    def budget(self) -> Budget:
        """What was allowed in all."""
        return self.notary.ledger.budget

    def secret(self, purpose: str) -> bytes:
        """32 bytes for one purpose that only the holder of the vault's signing key can work out."""
        return derived_secret(self.notary.key, purpose)

    def sessions(self, queries: tuple[type, ...], *, what: str) -> SessionGate:
        """Where sessions of these queries are opened; ``what`` they are called in messages."""
        return SessionGate(notary=self.notary, declarations=self.declarations, queries=queries, what=what)
