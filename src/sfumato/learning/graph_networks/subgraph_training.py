"""Training on rooted subgraphs: how far one node moves the sum of a step when it lies in many subgraphs."""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.description import Description, Word
from sfumato.core.events import MOST_OCCURRENCES
from sfumato.core.exact import natural
from sfumato.core.limits import Limit
from sfumato.core.query import Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit, User, describe
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.graph_networks.reach import MOST_HOPS, MOST_RECIPIENTS, influenced
from sfumato.learning.training import Training

__all__ = ["SubgraphTraining", "check_one_row_a_name"]


def check_one_row_a_name(unit: Unit) -> None:
    """Refuse a vault in which one name may have several rows that count; reads nothing.

    A node that sends to a name reaches all rows of that name, and each of them is a root: what one node moves is
    bounded by counting names only where no name has a second row. In a vault of users of each name one row counts.

    >>> from sfumato.core.units import user
    >>> check_one_row_a_name(user("name", relation="add/remove"))
    """
    if not isinstance(unit, User):
        raise Refused(
            "rooted subgraphs are bounded by counting names, which needs one row for each name, and only a vault of "
            f"users sees to that; here the unit is {describe(unit)}. Nothing was read and nothing was spent. Open the "
            "vault with unit=sf.user('name', relation='add/remove'), or leave method='subgraphs' out."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphTraining(Training):
    """A model that is trained on nodes, each with what reached it over ``hops`` hops: its rooted subgraph.

    A unit is a root; its gradient, with all that its subgraph brings into it, is cut to ``clip``. Each node sends to at
    most ``recipients`` names of its own list, so it is in the subgraphs of 1 + D + … + D^K roots at most. The other
    fields are those of :class:`~sfumato.learning.Training`.

    Guarantee: :meth:`sensitivity` bounds the move of each step's sum for the one row that counts of a user, and is
    attained. A clip for each subgraph alone does not bound it, and neither does anything here where two rows have one
    name: records as units are refused. Assumes: nothing of the model or the schedule was chosen by looking at the data.
    Public: every field. Proof: docs/proofs/graph_networks.md
    """

    KIND: ClassVar[str] = "query.subgraph_training"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.noisy_sums", "mechanism.noisy_root_sums")
    recipients: int
    hops: int

    def __post_init__(self) -> None:
        Training.__post_init__(self)
        natural(self.recipients, "recipients", most=MOST_RECIPIENTS)
        natural(self.hops, "hops", most=MOST_HOPS)
        if self.units != "record" or self.times != 1 or self.clips is not None or self.canaries is not None:
            raise InvalidInput(
                "nodes are rows, one for each name, and are clipped as a whole, without canaries; nothing was done."
            )

    @property
    def roots(self) -> int:
        """In how many rooted subgraphs one node can be."""
        return influenced(self.recipients, self.hops)

    @property
    def reach(self) -> int:
        """How far one node that comes or goes moves the sum, in clips: 1 for its own root, 2 for each other one.

        The gradient of another root is not taken away: it changes, and from one end of its ball to the other.
        """
        return 1 + 2 * (self.roots - 1)

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this run: roots are sampled, not nodes."""
        problem = Training.mismatch(self, mechanism, unit)
        if problem is None and self.rate < 1 and getattr(mechanism, "roots", None) != self.roots:
            problem = f"must be for samples in which one node is in {self.roots} subgraphs, as the run"
        if problem is None and self.rate == 1 and mechanism.KIND != "mechanism.noisy_sums":
            problem = "must be that of all roots in each step, as the run"
        return problem

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        own: dict[str, Word] = {
            "recipients": f"{self.recipients:,}",
            "hops": f"{self.hops:,}",
            "roots": f"{self.roots:,}",
        }
        return self._described(said, "subgraph", own)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one protected unit moves the sum of a step: :attr:`reach` · clip, and twice that if it is replaced.

        >>> from fractions import Fraction
        >>> from sfumato.core.query import Dataset
        >>> from sfumato.core.units import user
        >>> person = user("name", relation="add/remove")
        >>> run = SubgraphTraining(dataset=Dataset(name="papers", edition="1"), units="record", clip=Fraction(1),
        ...     times=1, records=1, number=100, rate=Fraction(1), steps=10, parameters=7, recipients=10, hops=2)
        >>> run.sensitivity(person, run.limit(person)).l2 == Sensitivity.of(l2_squared=221**2).l2
        True
        """
        check_one_row_a_name(unit)
        self._check_protected(unit, limit)
        if self.rate < 1 and self.roots > MOST_OCCURRENCES:
            raise Refused(
                f"one node lies in up to {self.roots:,} subgraphs, and samples are accounted for up to "
                f"{MOST_OCCURRENCES:,} of them. Nothing was read and nothing was spent. Leave batch out: each step "
                "then takes all roots. Or let nodes send to fewer recipients."
            )
        swap = 1 if unit.relation is Relation.ADD_REMOVE else 2
        return Sensitivity.of(l2_squared=(swap * self.reach * self.clip) ** 2)
