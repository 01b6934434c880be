"""A graph network whose links are protected and nothing else: the declaration, and how far one link moves a hop."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.description import Description, Paragraph, Word
from sfumato.core.exact import natural
from sfumato.core.limits import Limit
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Edge, Relation, Unit, describe
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.learning.graph_networks.graph_training import FEWEST_STEPS
from sfumato.learning.graph_networks.reach import MOST_HOPS
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.rounding_error import WIDTH
from sfumato.learning.training import DIGEST, MOST, Training

__all__ = ["EdgeTraining"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTraining(Training):
    """Rows that nodes send along their links, added up for each name of a public roster, ``steps`` times over.

    A link is a pair of names, whether it stands in the list of one of them or of both. In each step, a hop, every node
    sends a row of ``classes`` numbers of l2 norm ``clip`` at most to all names of its list; for each of the
    ``names_listed`` names in the roster, whose SHA-256 is ``roster``, the sum of what was sent to it is told with
    noise. What is sent is computed from features, labels and earlier noisy sums.

    Guarantee: :meth:`sensitivity` bounds the move of all sums of a hop for one link that comes or goes; attained.
    **Features, labels and names of nodes are not protected.** Assumes: no name has two rows. Public: every field.
    Proof: docs/proofs/graph_networks.md
    """

    KIND: ClassVar[str] = "query.edge_training"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.noisy_sums",)
    names_listed: int
    classes: int
    roster: str

    def __post_init__(self) -> None:
        Training.__post_init__(self)
        natural(self.steps, "hops", most=MOST_HOPS)
        natural(self.names_listed, "names_listed", most=MOST)
        natural(self.classes, "classes", least=2, most=2**16)
        whole = self.units == "record" and self.times == 1 and self.rate == 1 and self.clip == 1
        if not whole or self.clips is not None or self.canaries is not None:
            raise InvalidInput("messages are of length 1, and all are sent in each hop; nothing was done.")
        if self.parameters != self.names_listed * self.classes:
            raise InvalidInput("a hop has a number for each name and class; nothing was done.")
        if len(self.roster) != DIGEST or set(self.roster) - set("0123456789abcdef"):
            raise InvalidInput("the roster is identified by 64 hexadecimal digits; nothing was done.")

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        own: dict[str, Word] = {"hops": f"{self.steps:,}", "names": f"{self.names_listed:,}"}
        found = self._described(said, "edges", own)
        alone: tuple[Paragraph, ...] = (("limit.edges",),)
        paragraphs = {
            **found.paragraphs,
            "what": (("what.edges",), ("limit.edges",)),
            "charged": (("lesson.charged_edges",),),
            **dict.fromkeys(("limits", "patient_limit", "manager_limit"), alone),
        }
        return replace(found, paragraphs=paragraphs)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one link moves all sums of a hop: √2 where it comes or goes, √6 where it is replaced by another.

        A link carries a row each way. A pair that is replaced by another with one name in common changes the sum of
        that name by two rows, and those of two other names by one.

        >>> from sfumato.core.query import Dataset
        >>> from sfumato.core.units import edge
        >>> run = EdgeTraining(dataset=Dataset(name="papers", edition="1"), units="record", clip=Fraction(1), times=1,
        ...     records=1, number=9, rate=Fraction(1), steps=1, parameters=27, names_listed=9, classes=3,
        ...     roster="0" * 64)
        >>> [run.sensitivity(edge(relation=how), None).l2.squared for how in ("add/remove", "replace")]
        [Fraction(2, 1), Fraction(6, 1)]
        """
        if not isinstance(unit, Edge) or limit is not None:
            raise Unsupported(f"this protects links (edges), not {describe(unit)}; nothing was read or spent.")
        return Sensitivity.of(l2_squared=2 if unit.relation is Relation.ADD_REMOVE else 6)

    def message_steps(self, mechanism: NoisySums, unit: Unit) -> int:
        """How many steps of the lattice the norm of a message may have, where the noise is 2^20 of them."""
        squared = Fraction(2 if unit.relation is Relation.ADD_REMOVE else 6)
        steps = int(WIDTH / (mechanism.multiplier * enclosures.sqrt(squared).high))
        if steps < FEWEST_STEPS:
            raise Refused(
                "the noise of a hop is so wide that no message would be seen in it; nothing was read and nothing was "
                "spent. Ask for more ε, or for fewer hops."
            )
        return steps
