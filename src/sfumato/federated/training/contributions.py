"""What the people of one site add to a round: who is in it, their updates as whole numbers, and the sum of these."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sfumato.errors import Refused
from sfumato.federated.masks import KeyWords
from sfumato.federated.person_rounding import PersonRounding
from sfumato.federated.training.site_run import RunRound
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.learning.correlated import Cycle
from sfumato.learning.person_updates import PersonUpdates
from sfumato.learning.sampling import poisson_sample
from sfumato.noise import SystemWords
from sfumato.noise.sampler import IntArray

__all__ = ["SiteContributions"]

WEIGHT = np.dtype("<f4")


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class SiteContributions:
    """The people of one site in one run. Sensitive: all that it gives, and who is in a round.

    Guarantee: whoever is in a round adds one vector of whole numbers whose squares add up to at most the declared
    bound, whatever the weights, the model and rounding do; it depends on that person's rows, on the weights and on
    draws of its own. With a mix, who counts in which turn follows from a secret of the site, and stays so for the run.
    """

    updates: PersonUpdates
    proposal: TrainingProposal
    rows_key: bytes
    turns_key: bytes
    _turns: npt.NDArray[np.int64] | None = field(default=None, init=False)

    @property
    def rounding(self) -> PersonRounding:
        """How one update becomes whole numbers."""
        training = self.proposal.training
        return PersonRounding(
            dimensions=training.parameters, norm=training.clip, unit=training.step, slack=training.slack
        )

    def check_ready(self) -> None:
        """Refuse a run whose settings cannot be computed with, before anything is charged or read."""
        _ = self.rounding, float(self.proposal.local_rate)

    def check_weights(self, weights: bytes) -> None:
        """Refuse weights of another number than the model has; whatever else they are, they reveal nothing."""
        if len(weights) != WEIGHT.itemsize * self.proposal.training.parameters:
            raise Refused("these are not the weights of the model of the run; nothing was sent.")

    def numbers(
        self, current: RunRound, last: int, before: Sequence[IntArray]
    ) -> tuple[IntArray, tuple[IntArray, ...]]:
        """Read, add up and mix: what is masked in a round, and the sums that later rounds mix. Called after the charge.

        ``before`` are the sums of the rounds ``last``, last − 1 and so on; rounds without this site had zeros of it.
        """
        mix = self.proposal.mechanism.mix
        own = self.summed(np.frombuffer(current.weights, dtype=WEIGHT), current.number)
        if not mix:
            return own, ()
        gap = [np.zeros_like(own) for _ in range(min(len(mix), current.number - last - 1))] if before else []
        sums = (own, *gap, *before)[: len(mix)]
        mixed = sum((one * part for one, part in zip(mix, sums, strict=False)), np.zeros_like(own))
        return mixed, sums[: len(mix) - 1]

    def summed(self, weights: npt.NDArray[np.float32], number: int) -> IntArray:
        """The sum of whole numbers over those who are in a round."""
        training, rounding = self.proposal.training, self.rounding
        total = np.zeros(training.parameters, dtype=np.int64)
        count = self.updates.read(self.rows_key)
        if training.clients == "sites":
            whole = self.updates.of_all(
                weights, local_steps=max(1, training.local_steps), local_rate=float(self.proposal.local_rate)
            )
            only: IntArray = rounding.whole(whole)[0]
            return only
        places = self._places(count, number)
        for part in self.updates.parts(
            weights,
            places,
            expected=int(training.rate * training.number / len(self.proposal.sites)),
            local_steps=training.local_steps,
            local_rate=float(self.proposal.local_rate),
        ):
            total += rounding.whole(part).sum(axis=0)
        return total

    def _places(self, count: int, number: int) -> npt.NDArray[np.int64]:
        """Who is in a round: a fresh sample, or those whose turn it is."""
        mechanism = self.proposal.mechanism
        if not mechanism.mix:
            return poisson_sample(count, mechanism.rate, SystemWords())
        if self._turns is None:
            cycle = Cycle(steps=mechanism.rounds, buckets=mechanism.cycle)
            self._turns = cycle.drawn(count, KeyWords(self.turns_key))
        return np.flatnonzero(self._turns == (number - 1) % mechanism.cycle)
