"""The way out of a site in a training run: votes, keys, and numbers that belong to a run that was charged."""

from dataclasses import dataclass

from sfumato.errors import Refused
from sfumato.federated.export_gate import ExportGate
from sfumato.federated.messages import SumMessage
from sfumato.federated.terms import RoundTerms
from sfumato.gate.session import Opened, SessionGate

__all__ = ["ChargedNumbers", "RunExports"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ChargedNumbers:
    """The message with numbers that a run wrote down for a round, and the charge that the run belongs to."""

    opened: Opened
    terms: str
    message: bytes


class RunExports(ExportGate):
    """Lets out what a site may send in a training run, and nothing else.

    Guarantee: as of :class:`~sfumato.federated.export_gate.ExportGate`; numbers leave only as the message that was
    written down for their round, of a run whose charge stands in this site's ledger at that moment.
    """

    def __init__(self, key: str, gate: SessionGate) -> None:
        super().__init__(key)
        self._gate = gate

    def _check_charged(self, found: SumMessage, terms: RoundTerms, release: object) -> None:
        """Refuse numbers that are not those of a charged run for this round."""
        kept = release if type(release) is ChargedNumbers else None
        if kept is None or kept.terms != terms.digest.hex() or kept.message != found.raw:
            raise Refused(
                f"{type(release).__name__} does not leave this site: numbers do that were charged, noised and masked "
                "for a round of a training run. Nothing was sent."
            )
        self._gate.check(kept.opened)
