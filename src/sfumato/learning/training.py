"""A training run: the declaration of what is learned from whom, and how far one unit can move a step of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.description import Description, Word
from sfumato.core.documents import LEFT_OUT
from sfumato.core.exact import natural, positive, probability
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Record, Relation, Unit, User, describe
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.inference.figure import Figure
from sfumato.learning.clip_groups import Clips, squared_clip
from sfumato.learning.describe import trained

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["KINDS", "STEPS", "Training"]

KINDS = ("record", "user", "group")
MOST, STEPS = 2**40, 10**7  # steps are accounted for, by whoever verifies a certificate too
DIGEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A model of ``parameters`` numbers, trained in ``steps`` steps on the clipped gradients of units.

    Of its ``units`` a *record* is one row, a *user* all rows of one person that count (at most ``records``), a
    *group* a few rows that have one loss together. Each step draws every unit with probability ``rate``, clips the
    gradient of each that was drawn to ``clip`` in l2 norm, sums, and adds noise; what is learned from is that sum over
    rate · ``number``, the declared number of units. Whoever is protected occurs in at most ``times`` units.
    ``weights`` is the SHA-256 of what was trained, empty until that is known, and ``done`` how many steps it took.
    With ``clips`` the gradients of groups of layers were clipped each by itself, and ``clip`` is at least √Σ clip².

    Guarantee: :meth:`sensitivity` bounds the move of each step's sum for one protected unit; attained by adversarial
    neighbours. Assumes: nothing of the model, the loss or the schedule was chosen by looking at the data. Public: every
    field. Proof: docs/proofs/training.md
    """

    KIND: ClassVar[str] = "query.training"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = (
        "mechanism.noisy_sums",
        "mechanism.adaptive_sums",
        "mechanism.correlated_sums",
        "mechanism.banded_sums",
    )
    dataset: Dataset
    units: str
    clip: Fraction
    times: int
    records: int
    number: int
    rate: Fraction
    steps: int
    parameters: int
    weights: str = ""
    done: int = 0
    clips: Clips | None = field(default=None, metadata={LEFT_OUT: True})
    """The clip of each group of layers, by the beginning of their names, where there are such groups."""
    canaries: tuple[int, str] | None = field(default=None, metadata={LEFT_OUT: True})
    """How many invented units there were for an audit, and the hash of their coins, where there were any."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", positive(self.clip, "clip"))
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        if self.units not in KINDS:
            raise InvalidInput(f"units are one of {', '.join(KINDS)}; nothing was done.")
        for name in ("times", "records", "number", "steps", "parameters"):
            natural(getattr(self, name), name, most=STEPS if name == "steps" else MOST)
        natural(self.done, "done", least=0, most=self.steps)
        self._check_clips()
        self._check_canaries()
        if self.units == "user" and self.times != 1:
            raise InvalidInput("a person is one unit where units are users; nothing was done. Leave times out.")
        if self.units != "user" and self.records != 1:
            raise InvalidInput("records is how many rows of a person count, and 1 where units are not users.")
        if self.weights and not _is_digest(self.weights):
            raise InvalidInput("weights are identified by 64 hexadecimal digits; nothing was done.")

    @property
    def size(self) -> int:
        """0: a model is no list of numbers that have an error each."""
        return 0

    @property
    def measure(self) -> None:
        """None: there are no columns."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """No columns."""
        return ()

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """No rows."""
        return {}

    def columns(self, release: "Release") -> Mapping[str, Figure]:
        """No columns: the certificate identifies the weights by their digest."""
        return {}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return self._described(said)

    def _described(self, said: Statement, method: str = "method", own: Mapping[str, Word] | None = None) -> Description:
        noise = said.mechanism
        if noise.KIND not in self.ANSWERED_BY:
            raise Unsupported(f"a {self.KIND} by a {noise.KIND} is not a training run; no text was made.")
        ways = {"mechanism.correlated_sums": "cycle", "mechanism.banded_sums": "turns"}
        return trained(
            said,
            units=self.units,
            number=self.number,
            batch=self.rate * self.number,
            steps=self.steps,
            done=self.done,
            parameters=self.parameters,
            clip=self.clip,
            multiplier=noise.multiplier,  # type: ignore[attr-defined]  # each of ANSWERED_BY has one
            weights=self.weights,
            way=ways.get(noise.KIND, "all" if self.rate == 1 else "sampled"),
            groups=getattr(noise, "groups", 1),
            clips=self.clips,
            canaries=0 if self.canaries is None else self.canaries[0],
            follows=noise.KIND == "mechanism.adaptive_sums",
            method=method,
            own=own,
        )

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """How good a model will be is not known beforehand."""
        return {}

    def limit(self, unit: Unit) -> Limit | None:
        """How much of each person counts: their rows in their one unit, or the units that they are in."""
        if not isinstance(unit, User):
            return None
        if self.units == "user":
            return Limit(groups=1, rows_per_group=self.records)
        return Limit(groups=self.times, rows_per_group=1)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one protected unit moves the sum of a step: times · clip, and twice that where it is replaced.

        >>> from sfumato.core.units import record
        >>> run = Training(dataset=Dataset(name="visits", edition="1"), units="record", clip=Fraction(3), times=1,
        ...                records=1, number=100, rate=Fraction(1), steps=10, parameters=7)
        >>> run.sensitivity(record(relation="add/remove"), None).l2
        L2(squared=Fraction(9, 1))
        >>> run.sensitivity(record(relation="replace"), None).l2
        L2(squared=Fraction(36, 1))
        """
        self._check_protected(unit, limit)
        swap = 1 if unit.relation is Relation.ADD_REMOVE else 2
        return Sensitivity.of(l2_squared=(swap * self.times * self.clip) ** 2)

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this run, if anything."""
        if mechanism.KIND not in self.ANSWERED_BY:
            return f"must be one of {', '.join(self.ANSWERED_BY)}"
        for name in ("steps", "rate", "parameters"):
            if getattr(mechanism, name) != getattr(self, name):
                return f"must be for {name} = {getattr(self, name)}, as the run"
        if self.clips is not None and mechanism.KIND != "mechanism.noisy_sums":
            return "must be that of a clip for the whole gradient, and this run clips groups of layers"
        if getattr(mechanism, "clip", self.clip) != self.clip:
            return f"must begin with a clip of {self.clip}, as the run"
        return None

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with a finished run, if anything."""
        problem = self.mismatch(mechanism, unit)
        if problem is None and not self.weights:
            problem = "must have trained weights, identified by their digest"
        return problem

    def _check_clips(self) -> None:
        if self.clips is None:
            return
        groups = tuple((name, positive(one, "the clip of a group")) for name, one in self.clips)
        if squared_clip(groups) > self.clip**2:
            raise InvalidInput("the clips of groups are together longer than the clip; nothing was done.")
        object.__setattr__(self, "clips", groups)

    def _check_canaries(self) -> None:
        if self.canaries is None:
            return
        natural(self.canaries[0], "the number of canaries", most=MOST)
        if len(self.canaries) != 2 or not _is_digest(self.canaries[1]):
            raise InvalidInput("the coins of canaries are identified by 64 hexadecimal digits; nothing was done.")

    def _check_protected(self, unit: Unit, limit: Limit | None) -> None:
        """Refuse whom this run does not protect, and sampling that would be claimed for others than are sampled."""
        if not isinstance(unit, Record | User):
            raise Unsupported(f"training protects records or users, not {describe(unit)}; nothing was read or spent.")
        if isinstance(unit, Record) and self.units == "user":
            raise Refused(
                "the units of this data are users and the vault protects records; nothing was read or spent. "
                "Leave ids out, or protect users: unit=sf.user('id', relation='add/remove')."
            )
        if limit != self.limit(unit):
            raise Refused(f"the limit of this training must be {self.limit(unit)}; nothing was read and nothing spent.")
        if self.rate < 1 and unit.relation is Relation.REPLACE:
            raise Refused(
                "parts of the units, be they samples or buckets of a cycle, are of a secret size and accounted for "
                "under add/remove alone, and this vault's relation is replace. "
                "Nothing was read and nothing was spent. Train on all units in each step (batch = n_units), or protect "
                "units under add/remove."
            )
        if self.rate < 1 and self.times > 1:
            raise Refused(
                f"what is sampled are {self.units}s, and whoever is protected may be in {self.times} of them: a step "
                f"has at least one of these up to {_at_least_one(self.rate, self.times)} of the time, not "
                f"{self.rate}. Nothing was read and nothing was spent. Sample persons (ids=…, "
                "max_records_per_unit=…), or train on all units in each step (batch = n_units)."
            )


def _is_digest(text: str) -> bool:
    return len(text) == DIGEST and not set(text) - set("0123456789abcdef")


def _at_least_one(rate: Fraction, times: int) -> str:
    """The chance that at least one of ``times`` units is in a sample, to three digits.

    >>> _at_least_one(Fraction(1, 100), 100)
    '0.634'
    """
    return f"{1 - (1 - float(rate)) ** times:.3f}"
