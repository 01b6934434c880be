"""A training run as one site keeps it: charged once as a whole, and written down before anything leaves."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sfumato.core.documents import Json
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.messages import SumPhase, packed, unpacked
from sfumato.federated.site import SumSite
from sfumato.federated.training.run_exports import ChargedNumbers
from sfumato.gate.checkpoint import Checkpointed
from sfumato.gate.sealed import SealedState
from sfumato.gate.session import Opened, SessionGate
from sfumato.noise.sampler import IntArray

__all__ = ["RunRound", "SiteRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRound:
    """One round of a run: its number, the weights that came with it, and where its secure sum stands. Sensitive."""

    number: int
    weights: bytes
    site: SumSite

    @property
    def has_sent_numbers(self) -> bool:
        """Whether the numbers of this round were masked."""
        return len(self.site.sent) > SumPhase.MASK.order

    def to_bytes(self) -> bytes:
        """The round but for the site's signing key, to be sealed."""
        return packed([str(self.number).encode(), self.weights, self.site.to_bytes()])

    @classmethod
    def from_bytes(cls, data: bytes, key: SigningKey) -> "RunRound":
        """The round that was written down."""
        match unpacked(data):
            case (number, weights, site):
                return cls(number=int(number), weights=weights, site=SumSite.from_bytes(site, key))
        raise InvalidInput("this is not the state of a training run across sites; nothing was resumed.")


class SiteRun(Checkpointed):
    """A charged run of one site. Sensitive: all of it; on disk it is sealed, and of all copies one goes on.

    Guarantee: numbers are made once for each number of a round, in rising order, and no more often than rounds were
    charged for; what is sent for a round is what was written down for it. Sums of earlier rounds are kept where later
    ones measure a mix of them.
    """

    WHAT: ClassVar[str] = "training run across sites"

    def __init__(
        self,
        gate: SessionGate,
        opened: Opened,
        key: SigningKey,
        path: Path | None,
        *,
        rounds: int,
    ) -> None:
        super().__init__(gate, opened, path, ExitStack())
        self._key, self._rounds = key, rounds
        self._last = 0
        self._round: RunRound | None = None
        self._sums: tuple[IntArray, ...] = ()

    @property
    def round(self) -> RunRound | None:
        """The round that the run is in, if it is in one."""
        return self._round

    @property
    def last(self) -> int:
        """The number of the last round that numbers were sent for; 0 before the first."""
        return self._last

    @property
    def sums(self) -> Sequence[IntArray]:
        """Whole numbers of the last rounds, the newest first. Sensitive."""
        return self._sums

    def keep(self, current: RunRound) -> None:
        """Write the round down as it stands now."""
        self._check_usable()
        if current.number <= self._last and (self._round is None or current.number != self._round.number):
            raise Refused("this site has gone on to a later round of the run; nothing was sent.")
        with self._unbroken():
            self._round = current
            self.save()

    def send(self, current: RunRound, sums: tuple[IntArray, ...]) -> ChargedNumbers:
        """Write numbers down, once for each round: from then on they may leave. ``sums`` are kept for later mixes."""
        self._check_usable()
        if not self._last < current.number <= self._rounds or not current.has_sent_numbers:
            raise Refused("this round had its numbers, or was not charged for; nothing was sent.")
        with self._unbroken():
            self._round, self._last = current, current.number
            self._sums = sums
            self.save()
        return self.numbers(current)

    def numbers(self, current: RunRound) -> ChargedNumbers:
        """What was written down for a round."""
        if self._round is None or self._round.site.terms.digest != current.site.terms.digest:
            raise Refused("this site is in another round of the run; nothing was sent.")
        return ChargedNumbers(
            opened=self._opened,
            terms=current.site.terms.digest.hex(),
            message=self._round.site.sent[SumPhase.MASK.order],
        )

    def check(self) -> None:
        """Refuse to go on where the charge does not stand any more, or its data were closed or vetoed."""
        self._check_usable()
        self._gate.check(self._opened)

    def forget(self) -> None:
        """Leave the file to another process; nothing is released."""
        self._end()

    def _state(self) -> dict[str, Json]:
        return {"last": self._last}

    def _restore(self, state: SealedState) -> None:
        self._last = int(state["last"])

    def _body(self) -> bytes:
        current = b"" if self._round is None else self._round.to_bytes()
        return packed([current, packed([one.tobytes() for one in self._sums])])

    def _restore_body(self, body: bytes) -> None:
        first, second = unpacked(body)
        self._round = RunRound.from_bytes(first, self._key) if first else None
        self._sums = tuple(np.frombuffer(one, dtype=np.int64).copy() for one in unpacked(second))
