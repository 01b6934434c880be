"""A training run with in-batch negatives: how far one pair moves the sum of a step, however many pairs there are."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.description import Description, Word
from sfumato.core.exact import decimal_up, fraction_text, natural, positive
from sfumato.core.limits import Limit
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput
from sfumato.learning.paradigms.logit_clipping import ClippedLogits
from sfumato.learning.training import Training

__all__ = ["MOST_PAIRS", "ContrastiveTraining", "most_pairs"]

MOST_PAIRS = 2**12
"""How many pairs a step may have at the most: up to here the proof bounds all that floats round."""

SPREAD = 5  # standard deviations of the size of a sample that a step has room for
LANES = 16
DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastiveTraining(Training):
    """A model that is trained with in-batch negatives: each row is a pair of two views, an anchor and its positive.

    A step draws every pair with probability ``rate`` and keeps ``most`` of them at the most, chosen by chance alone.
    The gradient of each similarity of two of them is cut to ``clip`` in l2 norm, and all are added up with the weights
    of a softmax at ``temperature`` (over anchors, or with ``both`` over anchors and positives). The other fields are
    those of :class:`~sfumato.learning.Training`.

    Guarantee: :meth:`sensitivity` bounds the move of each step's sum for one protected unit, whether it comes, goes or
    is replaced, and however many pairs the data have: of more than ``most`` one that comes takes the place of another,
    so every relation has the bound of a replacement. Assumes: what a model gives for one input depends on that input
    alone; nothing was chosen by looking at the data. Public: every field. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.contrastive_training"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.noisy_sums",)
    temperature: Fraction
    both: bool
    most: int

    def __post_init__(self) -> None:
        Training.__post_init__(self)
        object.__setattr__(self, "temperature", positive(self.temperature, "temperature"))
        natural(self.most, "most", least=2, most=MOST_PAIRS)
        if self.units != "record":
            raise InvalidInput("pairs are rows, each with two views of one person; nothing was done.")
        self.similarities  # noqa: B018 - refuses a temperature that bounds nothing

    @property
    def similarities(self) -> ClippedLogits:
        """The bound that a step has."""
        return ClippedLogits(clip=self.clip, temperature=self.temperature, batch=self.most)

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        own: dict[str, Word] = {"temperature": fraction_text(self.temperature), "most": f"{self.most:,}"}
        return self._described(said, "contrast", own)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one protected unit moves the sum of a step: times · 2C(h + 2c), under every relation.

        >>> from sfumato.core.query import Dataset
        >>> from sfumato.core.units import record
        >>> run = ContrastiveTraining(dataset=Dataset(name="scans", edition="1"), units="record", clip=Fraction(1),
        ...     times=1, records=1, number=64, rate=Fraction(1), steps=10, parameters=7, temperature=Fraction(1),
        ...     both=False, most=64)
        >>> [round(float(run.sensitivity(record(relation=how), None).l2.squared) ** 0.5, 2)
        ...  for how in ("add/remove", "replace")]
        [17.22, 17.22]
        """
        self._check_protected(unit, limit)
        return Sensitivity.of(l2_squared=(self.times * self.reach) ** 2)

    @property
    def reach(self) -> Fraction:
        """How far one pair moves the sum of a step, rounded up."""
        return Fraction(decimal_up(self.similarities.moved(Relation.REPLACE), DIGITS))


def most_pairs(batch: int, *, sampled: bool) -> int:
    """Room for a step that expects ``batch`` pairs: all of nearly every sample, in whole lanes.

    >>> most_pairs(256, sampled=True), most_pairs(256, sampled=False), most_pairs(4000, sampled=True)
    (336, 256, 4096)
    """
    if batch > MOST_PAIRS:
        raise InvalidInput(
            f"a step of pairs has at most {MOST_PAIRS} of them; nothing was read and nothing was spent. Say a smaller "
            "batch=…."
        )
    room = batch + (SPREAD * int(batch**0.5) if sampled else 0)
    return min(MOST_PAIRS, -(-room // LANES) * LANES)
