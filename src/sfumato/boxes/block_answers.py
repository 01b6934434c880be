"""Sample-and-aggregate: a program over disjoint blocks of persons, and the mean or a quantile of what it says.

Each block gives some numbers, each held to a public range, and one person is in one block: so the aggregate moves
little whatever the program is. Proof: docs/proofs/blocks.md
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.boxes.describe import described
from sfumato.boxes.sealed_program import SealedProgram
from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import Finding, check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, Mechanism, check_name
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Family, Relation, Unit, User, describe
from sfumato.errors import InvalidInput, Unsupported
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms import ADDED_NOISE, ANY_NOISE
from sfumato.mechanisms.advisor import least_noise
from sfumato.mechanisms.quantile import QuantileChoice

__all__ = ["STEPS", "BlockAnswer", "BlockMean", "BlockQuantiles", "BlockTrimmedMean", "blocks_moved"]

STEPS = 2**20
"""Into how many steps the range of an answer is cut."""
MOST_BLOCKS = 100_000
MOST_ANSWERS = 1_000
CONFIDENCE = Fraction(19, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockAnswer:
    """One number that a program gives for each block: its name, its range, and what counts where it gives none."""

    KIND: ClassVar[str] = "program.answer"
    VERSION: ClassVar[int] = 1
    name: str
    low: Fraction
    high: Fraction
    missing: Fraction

    def __post_init__(self) -> None:
        check_name(self.name, "the name of an answer")
        if not self.low <= self.missing <= self.high or self.low == self.high:
            raise InvalidInput(
                "an answer lies between two bounds, the first below the second, and so does what counts where a block "
                "has none; nothing was done."
            )

    @property
    def step(self) -> Fraction:
        """The width of one step."""
        return (self.high - self.low) / STEPS

    def place(self, number: float | None) -> int:
        """The step that a number of a block counts as: 0 to :data:`STEPS`, whatever it is.

        >>> age = BlockAnswer(name="age", low=Fraction(0), high=Fraction(100), missing=Fraction(50))
        >>> age.place(25.0) / STEPS, age.place(1e300) / STEPS, age.place(None) / STEPS
        (0.25, 1.0, 0.5)
        """
        exact = self.missing if number is None else min(max(Fraction(number), self.low), self.high)
        return round((exact - self.low) / self.step)


def blocks_moved(unit: Unit) -> int:
    """How many blocks one unit can change, where all rows of a person lie in the block that the name hashes to.

    Guarantee: whoever comes or goes changes one block. Whoever is replaced leaves one block and may enter another.

    >>> from sfumato.core.units import family, user
    >>> [blocks_moved(user("id", relation=how)) for how in ("add/remove", "replace")]
    [1, 2]
    """
    if not isinstance(unit, User | Family):
        raise Unsupported(
            f"blocks are of persons, and the unit is {describe(unit)}; nothing was done. Open a vault for sf.user(…) "
            "or sf.family(…)."
        )
    persons = unit.size if isinstance(unit, Family) else 1
    return persons * (1 if unit.relation is Relation.ADD_REMOVE else 2)


def _check(query: "BlockMean | BlockQuantiles") -> None:
    natural(query.blocks, "blocks", least=2, most=MOST_BLOCKS)
    natural(len(query.answers), "the number of answers", most=MOST_ANSWERS)
    if len(set(query.names)) != len(query.names):
        raise InvalidInput("two answers of a program have one name; nothing was done.")
    if not query.given or len(set(query.given)) != len(query.given):
        raise InvalidInput("a program is given columns by their names, each once; nothing was done.")


def _no_limit(limit: Limit | None) -> None:
    if limit is not None:
        raise InvalidInput("all rows of a person count in their block; nothing was done. Give no limit.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMean:
    """The mean of what a program says of ``blocks`` disjoint blocks of persons, one for each of its ``answers``.

    What is protected are the sums over all blocks, each answer in steps of its range. ``given`` are the columns that
    the program sees.

    Guarantee: :meth:`sensitivity` is attained: it bounds the move of all sums together, whatever the program is.
    Assumes: a block is decided by the keyed hash of the person, and an answer is a function of the code and its own
    block alone, but for what ``program.not_hidden`` says. Public: every field. Proof: docs/proofs/blocks.md
    """

    KIND: ClassVar[str] = "query.block_mean"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ANY_NOISE
    dataset: Dataset
    program: SealedProgram
    given: tuple[str, ...]
    answers: tuple[BlockAnswer, ...]
    blocks: int

    def __post_init__(self) -> None:
        _check(self)

    @property
    def size(self) -> int:
        """A sum for each answer."""
        return len(self.answers)

    @property
    def measure(self) -> None:
        """None: means are computed from the sums."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the answers."""
        return tuple(answer.name for answer in self.answers)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Nothing is grouped."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the sums: all answers of its blocks, from one end of their range to the other."""
        _no_limit(limit)
        reach = min(blocks_moved(unit), self.kept) * STEPS
        return Sensitivity.of(l0=self.size, l1=self.size * reach, l2_squared=self.size * reach**2, linf=reach)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lowest variance on each sum."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta, among=ADDED_NOISE)

    def columns(self, release: Release) -> Mapping[str, Figure]:
        """The mean of each answer, with the error of its noise."""
        said = release.statement
        return {
            answer.name: Figure(
                forms=(
                    LinearCombination(
                        answer.low + said.values[place] * self._part(answer),
                        {Noise(said.identifier, place, said.law): self._part(answer)},
                    ),
                ),
                labels={},
                measure=answer.name,
                sources=(release,),
            )
            for place, answer in enumerate(self.answers)
        }

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return described(self, said)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of each mean: as far as noise moves it from the mean of the answers of all blocks."""
        margin = law.margin(confidence, numbers=self.size if joint else 1)
        return {answer.name: margin * self._part(answer) for answer in self.answers}

    def expected_mse(self, law: Law, *, rows: int | None) -> Mapping[str, Fraction]:
        """The mean squared error of each mean."""
        return {answer.name: law.variance * self._part(answer) ** 2 for answer in self.answers}

    @property
    def kept(self) -> int:
        """How many blocks count in each sum."""
        return self.blocks

    def _part(self, answer: BlockAnswer) -> Fraction:
        """What one step of a sum is in the mean."""
        return answer.step / self.kept


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTrimmedMean(BlockMean):
    """The mean over blocks without the ``dropped`` lowest and as many of the highest ones, for each answer by itself.

    The other fields are those of :class:`BlockMean`. Blocks that are far off, up to ``dropped`` at each end, count for
    nothing; the noise is wider than that of the mean by blocks / (blocks - 2 dropped).

    Guarantee: :meth:`sensitivity` is attained: a block whose answer goes from one end of its range to the other moves
    the sum of those that are kept by the range at most. Assumes: as :class:`BlockMean`. Public: every field. Proof:
    docs/proofs/blocks.md
    """

    KIND: ClassVar[str] = "query.block_trimmed_mean"
    VERSION: ClassVar[int] = 1
    dropped: int

    def __post_init__(self) -> None:
        _check(self)
        natural(self.dropped, "the number of blocks that are dropped at each end")
        if self.kept < 1:
            raise InvalidInput(
                f"{self.dropped:,} of {self.blocks:,} blocks at each end are all of them; nothing was done. Trim less."
            )

    @property
    def kept(self) -> int:
        """How many blocks count in each sum."""
        return self.blocks - 2 * self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockQuantiles:
    """The quantiles ``levels`` of what a program says of ``blocks`` disjoint blocks of persons: a median, say.

    The other fields are those of :class:`BlockMean`. A quantile is chosen by its rank among the blocks, so that blocks
    where the program fails, or says something far off, move it little.

    Guarantee: :meth:`sensitivity` bounds how far one unit moves the ranks. Assumes: as :class:`BlockMean`. Public:
    every field. Proof: docs/proofs/blocks.md
    """

    KIND: ClassVar[str] = "query.block_quantiles"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.quantile_choice",)
    dataset: Dataset
    program: SealedProgram
    given: tuple[str, ...]
    answers: tuple[BlockAnswer, ...]
    blocks: int
    levels: tuple[Fraction, ...] = (Fraction(1, 2),)

    def __post_init__(self) -> None:
        # The mechanism refuses levels that do not rise, or lie outside of 0 and 1.
        QuantileChoice.moved(quantiles=self.levels, relation=Relation.ADD_REMOVE, groups=None, rows=1)
        _check(self)

    @property
    def size(self) -> int:
        """A place for each quantile of each answer."""
        return len(self.answers) * len(self.levels)

    @property
    def measure(self) -> None:
        """None: values are computed from places."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the answers, each with that of its quantile: ``slope_median``."""
        return tuple(f"{answer.name}_{level_name(level)}" for answer in self.answers for level in self.levels)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Nothing is grouped."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the ranks: the answers of its blocks go from one side of a value to the other.

        How many blocks there are is fixed, so that whoever comes or goes exchanges the answer of a block for another.
        """
        _no_limit(limit)
        return QuantileChoice.moved(
            quantiles=self.levels,
            relation=Relation.REPLACE,
            groups=None if len(self.answers) == 1 else len(self.answers),
            rows=min(blocks_moved(unit), self.blocks),
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """A choice by rank; a δ is not used."""
        return QuantileChoice.calibrated(quantiles=self.levels, steps=STEPS, sensitivity=moved, epsilon=spend.epsilon)

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The quantiles by name."""
        said = release.statement
        answers = [answer for answer in self.answers for _ in self.levels]
        return {
            name: SelectedValues(
                chosen=(float(answer.low + answer.step * place),),
                labels={},
                measure=name,
                sources=(release,),
            )
            for name, answer, place in zip(self.names, answers, said.values, strict=True)
        }

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return described(self, said, rank=self.rank_margin(said.mechanism))

    def rank_margin(self, mechanism: Mechanism) -> int:
        """How many blocks each quantile is at most away from its place, with 95% confidence and whatever they say."""
        assert isinstance(mechanism, QuantileChoice)  # noqa: S101 - ANSWERED_BY
        return mechanism.rank_margin(CONFIDENCE, groups=len(self.answers), rows=self.blocks)

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """Places in the range, which do not fall from one quantile of an answer to the next."""
        yield from check_numbers(self, said)
        many = len(self.levels)
        each = [said.values[at : at + many] for at in range(0, len(said.values), many)]
        if not all(0 <= place <= STEPS for place in said.values):
            yield Finding(field="statement.values", problem="must be steps of the answers' ranges")
        elif not all(list(places) == sorted(places) for places in each):
            yield Finding(field="statement.values", problem="must not fall from one quantile to the next")

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The error of a quantile depends on how densely answers lie; only its rank is bounded beforehand."""
        return {}


def level_name(level: Fraction) -> str:
    """What a quantile is called.

    >>> level_name(Fraction(1, 2)), level_name(Fraction(9, 10))
    ('median', 'p90')
    """
    return "median" if level == Fraction(1, 2) else "p" + format(float(100 * level), ".6g").replace(".", "_")
