"""A network that is trained on nodes and passes their predictions on: the declaration, and the noise of both parts."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.accounting.calibrate import calibrate_sigma, plan
from sfumato.accounting.gaussian import gaussian_sigma
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.description import Description, Word
from sfumato.core.events import Composed, Gaussian, PrivacyEvent, Repeated
from sfumato.core.exact import decimal_up, natural, positive
from sfumato.core.query import Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.graph_networks.reach import MOST_HOPS, MOST_RECIPIENTS
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.rounding_error import WIDTH
from sfumato.learning.training import DIGEST, MOST, Training
from sfumato.mechanisms.norms import known

__all__ = ["FEWEST_STEPS", "GraphTraining", "NoisyGraphSums"]

FEWEST_STEPS = 64
"""A message has at least this many steps of the lattice along its length; with fewer, rounding would eat it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTraining(Training):
    """A model that is trained on the features of nodes, whose predictions are then passed on over ``hops`` hops.

    Each node owns its record: features, a label, and a list of names. In a hop each sends a row of ``classes`` numbers
    of l2 norm 1 at most to at most ``recipients`` names of its list; for each of the ``names`` in the public roster,
    whose SHA-256 is ``roster``, the sum of what was sent to it is told with noise. The other fields are those of
    :class:`~sfumato.learning.Training`.

    Guarantee: :meth:`sensitivity` bounds the move of each step's sum, and :attr:`reach_squared` that of all sums of a
    hop together, for one node's record that comes or goes. What others' lists say of a node is their record. Assumes:
    nothing of the model or the schedule was chosen by looking at the data. Public: every field.
    Proof: docs/proofs/graph_networks.md
    """

    KIND: ClassVar[str] = "query.graph_training"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.noisy_graph_sums",)
    recipients: int
    hops: int
    names_listed: int
    classes: int
    roster: str

    def __post_init__(self) -> None:
        Training.__post_init__(self)
        natural(self.recipients, "recipients", most=MOST_RECIPIENTS)
        natural(self.hops, "hops", most=MOST_HOPS)
        natural(self.names_listed, "names_listed", most=MOST)
        natural(self.classes, "classes", least=2, most=2**16)
        if self.units != "record" or self.times != 1 or self.clips is not None or self.canaries is not None:
            raise InvalidInput(
                "nodes are rows, each counted once, and are clipped as a whole, without canaries; nothing was done."
            )
        if len(self.roster) != DIGEST or set(self.roster) - set("0123456789abcdef"):
            raise InvalidInput("the roster is identified by 64 hexadecimal digits; nothing was done.")

    def reach_squared(self, unit: Unit) -> int:
        """The square of how far one node moves all sums of a hop together, in lengths of a message.

        A record that comes or goes changes ``recipients`` sums by a message each. One that is replaced can change each
        of these sums by twice a message.
        """
        return self.recipients * (1 if unit.relation is Relation.ADD_REMOVE else 4)

    def message_steps(self, mechanism: "NoisyGraphSums", unit: Unit) -> int:
        """How many steps of the lattice the norm of a message may have, where the noise is 2^20 of them.

        >>> from sfumato.core.units import record
        >>> query = _example()
        >>> noise = NoisyGraphSums(multiplier=Fraction(2), steps=10, rate=Fraction(1), parameters=7, hops=2,
        ...                        hop_multiplier=Fraction(2))
        >>> query.message_steps(noise, record(relation="add/remove")), 2**20 // 4
        (262144, 262144)
        """
        reach = enclosures.sqrt(Fraction(self.reach_squared(unit))).high
        steps = int(WIDTH / (mechanism.hop_multiplier * reach))
        if steps < FEWEST_STEPS:
            raise Refused(
                "the noise of a hop is so wide that no message would be seen in it; nothing was read and nothing was "
                "spent. Ask for more ε, give hops a larger share, or let each node send to fewer recipients."
            )
        return steps

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this run, if anything."""
        problem = Training.mismatch(self, mechanism, unit)
        if problem is None and getattr(mechanism, "hops", None) != self.hops:
            problem = f"must be for hops = {self.hops}, as the run"
        return problem

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        own: dict[str, Word] = {
            "recipients": f"{self.recipients:,}",
            "hops": f"{self.hops:,}",
            "names": f"{self.names_listed:,}",
        }
        if isinstance(said.mechanism, NoisyGraphSums):
            own["hop_noise"] = decimal_up(said.mechanism.hop_multiplier)
        return self._described(said, "graph", own)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyGraphSums(NoisySums):
    """The noise of a graph network: on the sums of its training steps, and on the sums of its hops.

    In a hop, each number gets Gaussian noise of ``hop_multiplier`` times as far as one node moves all sums of the hop,
    rounded to whole steps of which the noise has 2^20; messages are whole numbers of such steps.

    Guarantee: that of :class:`~sfumato.learning.NoisySums` for the steps, composed with ``hops`` Gaussian mechanisms.
    Public: every field. Proof: docs/proofs/graph_networks.md

    >>> noise = NoisyGraphSums(multiplier=Fraction(2), steps=10, rate=Fraction(1, 4), parameters=100, hops=1,
    ...                        hop_multiplier=Fraction(3))
    >>> noise.loss(Sensitivity.of(l2_squared=9)).events[1]
    Repeated(event=Gaussian(l2_squared=Fraction(1, 1), sigma_squared=Fraction(9, 1)), times=1)
    """

    KIND: ClassVar[str] = "mechanism.noisy_graph_sums"
    VERSION: ClassVar[int] = 1
    hops: int
    hop_multiplier: Fraction

    def __post_init__(self) -> None:
        NoisySums.__post_init__(self)
        natural(self.hops, "hops", most=MOST_HOPS)
        object.__setattr__(self, "hop_multiplier", positive(self.hop_multiplier, "hop_multiplier"))

    @classmethod
    def shared(cls, run: GraphTraining, spend: Budget, share: Fraction) -> "NoisyGraphSums":
        """The noise with which steps and hops together keep a spend; hops have ``share`` of what Gaussian noise allows.

        That is of 1/σ², where σ is the noise of a single sum that would keep the spend. The noise of the steps is the
        least, to about four digits, with which the whole is accounted to be within the spend.
        """
        if spend.delta == 0:
            raise InvalidInput("the noise of training is Gaussian and needs a delta above 0; nothing was done.")
        whole = gaussian_sigma(l2=Fraction(1), epsilon=spend.epsilon, delta=spend.delta)
        exact = whole * enclosures.sqrt(run.hops / share).high
        hop = Fraction(decimal_up(exact, 6))
        beside = Repeated(event=Gaussian(l2_squared=Fraction(1), sigma_squared=hop**2), times=run.hops)
        if run.rate == 1:  # all of it is Gaussian noise, of which 1/σ² adds up
            z = Fraction(decimal_up(whole * enclosures.sqrt(run.steps / (1 - share)).high, 6))
        else:
            z = calibrate_sigma(
                epsilon=spend.epsilon, delta=spend.delta, steps=run.steps, sampling=run.rate, beside=beside
            )
        return cls(
            multiplier=z,
            steps=run.steps,
            rate=run.rate,
            parameters=run.parameters,
            hops=run.hops,
            hop_multiplier=hop,
        )

    def loss(self, moved: Sensitivity) -> PrivacyEvent:
        """The event of the whole run for a unit that moves each sum by at most l2."""
        known(moved.l2, "l2")
        hop = Gaussian(l2_squared=Fraction(1), sigma_squared=self.hop_multiplier**2)
        steps = plan(sigma=self.multiplier, steps=self.steps, sampling=self.rate)
        return Composed(events=(steps, Repeated(event=hop, times=self.hops)))


def _example() -> GraphTraining:
    from sfumato.core.query import Dataset

    return GraphTraining(
        dataset=Dataset(name="papers", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=100,
        rate=Fraction(1),
        steps=10,
        parameters=7,
        recipients=4,
        hops=2,
        names_listed=100,
        classes=3,
        roster="0" * DIGEST,
    )
