"""Attention of private records on public keys, as a vault releases it: the mean logits, or the key with the largest.

A public model gives each record a logit for each of K keys, as a query that meets K keys does. What a record adds is
held to a public length, so that the sensitivity is enforced and nobody has to assume it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description, OneLine, Word, phrase
from sfumato.core.exact import Exact, decimal_up, fraction_text, natural, positive
from sfumato.core.finding import check_fit, check_numbers
from sfumato.core.foreign import Array
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, Mechanism, check_name
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput, WrongNorm
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.selected_values import SelectedValues
from sfumato.learning.describe import examined
from sfumato.learning.paradigms.attention_logits import lost_by_gaussian, lost_by_laplace
from sfumato.learning.paradigms.persons import persons
from sfumato.mechanisms.advisor import least_noise
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.noisy_max import NoisyMax

__all__ = ["PARTS_OF_A_CLIP", "AttentionKey", "AttentionLogits", "held_logits"]

PARTS_OF_A_CLIP = 2**20
"""Logits are whole numbers of this part of what they are held to."""

KEYS = 2**16
LEAST = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLogits:
    """The mean over ``number`` persons of the logits that a public model gives one record of each for ``keys`` keys.

    The logits of a record are cut to the l2 norm ``clip`` together and rounded toward 0 to whole steps of
    clip/PARTS_OF_A_CLIP; what is protected is the vector of their sums. ``model`` is the public name of the model, and
    ``content`` its digest.

    Guarantee: :meth:`sensitivity` is attained in l2 and linf: one record moves the sums by clip, or by twice as much if
    it is replaced, whatever the model says. Assumes: the model was made without the records. Public: every field.
    Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.attention_logits"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    model: str
    keys: int
    clip: Fraction
    number: int
    content: str

    def __post_init__(self) -> None:
        _check(self.model, self.keys, self.number)
        object.__setattr__(self, "clip", _within(self.clip, "clip"))

    @property
    def size(self) -> int:
        """A sum for each key."""
        return self.keys

    @property
    def measure(self) -> None:
        """None: means are computed from the sums."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("logit",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """The keys, from 0 on."""
        return {"key": tuple(range(self.keys))}

    def columns(self, release: Release) -> Mapping[str, Figure]:
        """The mean logit of each key, with the error of its noise."""
        said, part = release.statement, self._part
        forms = tuple(
            LinearCombination(value * part, {Noise(said.identifier, place, said.law): part})
            for place, value in enumerate(said.values)
        )
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"logit": Figure(forms=forms, labels=labels, measure="logit", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return examined(self, said, figures={"clip": fraction_text(self.clip), "model": OneLine(self.model)})

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of each mean logit, or of all of them at once."""
        return {"logit": law.margin(confidence, numbers=self.keys if joint else 1) * self._part}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the sums, in steps.

        >>> from sfumato.core.units import record
        >>> asked = AttentionLogits(dataset=Dataset(name="visits", edition="1"), model="head", keys=4, clip=Fraction(2),
        ...                         number=100, content="")
        >>> asked.sensitivity(record(relation="replace"), None).l2 == Sensitivity.of(l2_squared=4 * 2**40).l2
        True
        """
        records = _records(unit, limit)
        reach = records * PARTS_OF_A_CLIP
        along = records * math.isqrt(self.keys * PARTS_OF_A_CLIP**2)  # whole numbers, so the root is rounded down
        return Sensitivity.of(l0=self.keys, l1=along, l2_squared=reach**2, linf=reach)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lower variance on each sum."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def error(self, mechanism: Mechanism, margin: Exact) -> Fraction:
        """At least the chance that a key which leads all others by the margin has not the largest noisy logit.

        The margin is one of the means as they are held and rounded; ``mechanism`` is that of a release.
        """
        lead = math.floor(positive(margin, "margin") / self._part)
        match mechanism:
            case Gaussian():
                return lost_by_gaussian(lead, sigma=mechanism.sigma, keys=self.keys)
            case Laplace():
                return lost_by_laplace(lead, scale=mechanism.scale, keys=self.keys)
        raise WrongNorm(f"the error of the top key is not known for {mechanism.KIND}; nothing was done.")

    def weights(self, release: Release) -> list[float]:
        """The attention that the noisy logits give to each key: their softmax. Post-processing."""
        logits = [float(value * self._part) for value in release.statement.values]
        shares = [math.exp(logit - max(logits)) for logit in logits]
        return [share / sum(shares) for share in shares]

    @property
    def _part(self) -> Fraction:
        """What one step of a sum is in a mean."""
        return self.clip / (PARTS_OF_A_CLIP * self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKey:
    """Which of ``keys`` keys has the largest mean logit over ``number`` persons; nothing else is told.

    Each logit of a record is held within ±``bound`` by itself and rounded toward 0 to whole steps of
    bound/PARTS_OF_A_CLIP. The other fields are those of :class:`AttentionLogits`.

    Guarantee: :meth:`sensitivity` is attained: one record moves each sum by bound, or by twice as much if it is
    replaced. Assumes: the model was made without the records. Public: every field. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.attention_key"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.noisy_max",)
    dataset: Dataset
    model: str
    keys: int
    bound: Fraction
    number: int
    content: str

    def __post_init__(self) -> None:
        _check(self.model, self.keys, self.number)
        object.__setattr__(self, "bound", _within(self.bound, "bound"))

    @property
    def size(self) -> int:
        """The place of one key."""
        return 1

    @property
    def measure(self) -> None:
        """None: a key is chosen."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("key",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """None: there is one key."""
        return {}

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The key as it was chosen."""
        return {"key": SelectedValues(chosen=release.statement.values, labels={}, measure="key", sources=(release,))}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        facts: dict[str, Word] = {}
        if isinstance(said.mechanism, NoisyMax):
            facts["noise"] = phrase("fact.noise_attention_key", scale=decimal_up(said.mechanism.scale))
        figures: dict[str, Word] = {"bound": fraction_text(self.bound), "model": OneLine(self.model)}
        return examined(self, said, figures=figures, named="accuracy.noisy_key", facts=facts)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A key has no margin."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the sum of each key, in steps."""
        return Sensitivity.of(linf=_records(unit, limit) * PARTS_OF_A_CLIP)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> NoisyMax:
        """Report noisy max: pure, whatever δ there is."""
        if moved.linf is None:
            raise WrongNorm("the choice of a key needs the linf bound of the sums; nothing was done.")
        return NoisyMax.calibrated(sensitivity=int(moved.linf.value), epsilon=spend.epsilon)

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with an answer, if anything."""
        if type(mechanism) is not NoisyMax:
            return "must be noisy max"
        if mechanism.monotone:
            return "must be noisy max for sums that a unit moves up and down"
        if not all(0 <= value < self.keys for value in values):
            return "must have chosen a key of the query"
        return None

    def error(self, mechanism: Mechanism, margin: Exact) -> Fraction:
        """At least the chance that a key which leads all others by the margin is not named."""
        if not isinstance(mechanism, NoisyMax):
            raise WrongNorm(f"the error of the top key is not known for {mechanism.KIND}; nothing was done.")
        lead = math.floor(positive(margin, "margin") * PARTS_OF_A_CLIP * self.number / self.bound)
        return lost_by_laplace(lead, scale=mechanism.scale, keys=self.keys)


def held_logits(said: Array, *, keys: int, limit: Fraction, together: bool) -> list[int]:
    """The logits of one record in whole steps: cut to the l2 norm ``limit`` together, or each held within ±``limit``.

    Guarantee: ``keys`` whole numbers whose l2 norm, or each of which, is at most PARTS_OF_A_CLIP, whatever was said.
    What is not a number counts as 0, and what is endless as the largest float; something of another shape is all 0.

    >>> held_logits([3.0, 4.0], keys=2, limit=Fraction(10), together=True)
    [314572, 419430]
    >>> held_logits([3.0, -40.0], keys=2, limit=Fraction(10), together=False)
    [314572, -1048576]
    """
    import numpy as np

    nothing = [0] * keys
    logits = np.asarray(said, dtype=np.float64)
    if logits.shape != (keys,):
        return nothing
    logits = np.nan_to_num(logits)
    largest = float(np.abs(logits).max())
    if largest == 0:
        return nothing
    if together:
        whole = logits / largest  # so that no square overflows
        length = float(np.sqrt(np.square(whole).sum()))  # from 1 to √keys
        part = min(1.0, largest * length / float(limit))
        scaled = whole / length * part * PARTS_OF_A_CLIP
    else:
        scaled = np.clip(logits, -float(limit), float(limit)) / float(limit) * PARTS_OF_A_CLIP
    steps = [int(each) for each in np.trunc(scaled)]
    # held to exactly: a float that came out too long by its rounding is made a little shorter
    for _ in range(2):
        if _fits(steps, together=together):
            return steps
        steps = [each - (each > 0) + (each < 0) for each in steps]
    return nothing


def _fits(steps: list[int], *, together: bool) -> bool:
    if together:
        return sum(each * each for each in steps) <= PARTS_OF_A_CLIP**2
    return max(map(abs, steps)) <= PARTS_OF_A_CLIP


def _records(unit: Unit, limit: Limit | None) -> int:
    """How many records come or go at once: of each person one counts, and one that is replaced goes and comes."""
    return persons(unit, limit) * (1 if unit.relation is Relation.ADD_REMOVE else 2)


def _within(given: Fraction, what: str) -> Fraction:
    """What logits are held to, within the precision of floats."""
    limit = positive(given, what)
    if not LEAST <= limit <= 1 / LEAST:
        raise InvalidInput(f"{what} must lie between {LEAST} and {1 / LEAST}; nothing was done.")
    return limit


def _check(model: str, keys: int, number: int) -> None:
    check_name(model, "the name of a model")
    natural(keys, "keys", least=2, most=KEYS)
    natural(number, "number", most=2**40)
