"""What a coordinator keeps of a training run between rounds: weights and what its optimizer and its mix need."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.federated.messages import packed, unpacked
from sfumato.federated.server import SumResult
from sfumato.federated.training.server_optimizers import ServerOptimizer
from sfumato.federated.training.training_proposal import TrainingProposal

__all__ = ["RunState"]

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunState:
    """A run after ``number`` rounds, of which ``done`` gave a sum. Public: all of it follows from released sums."""

    proposal: TrainingProposal
    roster: tuple[str, ...]
    weights: Vector
    number: int = 0
    done: int = 0
    kept: tuple[Vector, ...] = ()
    told: tuple[Vector, ...] = ()
    """Of a mix: the sums of the last rounds as they were worked out, the newest first."""

    @property
    def sent_weights(self) -> bytes:
        """The weights as they are sent to sites: single precision."""
        return self.weights.astype("<f4").tobytes()

    def lost(self) -> "RunState":
        """The run after a round that gave no sum."""
        told = (np.zeros_like(self.weights), *self.told) if self.proposal.mechanism.mix else ()
        return replace(self, number=self.number + 1, told=told[: self._bands - 1])

    def learned(self, result: SumResult, optimizer: ServerOptimizer) -> "RunState":
        """The run after a round: the sum over rate · number is the mean update; both are declared, not counted."""
        total, told = self._unmixed(result.total.astype(np.float64))
        update = total * float(self.unit_of(len(result.survivors)))
        weights, kept = optimizer.step(self.weights, update, self.kept, self.done + 1)
        weights = weights.astype(np.float32).astype(np.float64)
        return replace(self, number=self.number + 1, done=self.done + 1, weights=weights, kept=kept, told=told)

    def unit_of(self, survivors: int) -> Fraction:
        """What one step of the lattice in a sum counts in the mean; where sites are missing, fewer clients are."""
        training = self.proposal.training
        clients = training.rate * training.number * Fraction(survivors, len(self.proposal.sites))
        return training.step / clients

    @property
    def _bands(self) -> int:
        return max(1, len(self.proposal.mechanism.mix))

    def _unmixed(self, measured: Vector) -> tuple[Vector, tuple[Vector, ...]]:
        """x̂_t = (y_t − Σ c_k·x̂_(t−k))/c_0: the rows of C⁻¹ one after the other."""
        mix = self.proposal.mechanism.mix
        if not mix:
            return measured, ()
        rest = measured.copy()
        for coefficient, earlier in zip(mix[1:], self.told, strict=False):
            rest -= coefficient * earlier
        found = rest / mix[0]
        return found, (found, *self.told)[: self._bands - 1]

    def to_bytes(self) -> bytes:
        """All of it, to be written down after each round."""
        numbers = f"{self.number} {self.done}".encode()
        return packed(
            [
                self.proposal.to_json().encode(),
                packed([key.encode() for key in self.roster]),
                numbers,
                self.weights.tobytes(),
                packed([one.tobytes() for one in self.kept]),
                packed([one.tobytes() for one in self.told]),
            ]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "RunState":
        """The run that was written down."""
        parts = unpacked(data)
        if len(parts) != 6:
            raise InvalidInput("this is not the state of a training run across sites; nothing was resumed.")
        number, done = parts[2].split()
        return cls(
            proposal=TrainingProposal.from_json(parts[0].decode()),
            roster=tuple(key.decode() for key in unpacked(parts[1])),
            weights=_vector(parts[3]),
            number=int(number),
            done=int(done),
            kept=tuple(map(_vector, unpacked(parts[4]))),
            told=tuple(map(_vector, unpacked(parts[5]))),
        )


def _vector(data: bytes) -> Vector:
    return np.frombuffer(data, dtype=np.float64).copy()
