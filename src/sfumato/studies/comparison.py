"""Results of comparisons: two groups, or a table of groups by categories, with a p-value, intervals and a picture."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.core.description import OneLine, Phrase, Word
from sfumato.core.exact import Exact
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.release import Release
from sfumato.laws.margins import level_of
from sfumato.studies import contingency
from sfumato.studies.compared import LEAST, GroupComparison, outward
from sfumato.studies.draws import REPLICATES, CellNoise, Numbers
from sfumato.studies.result import ResultTable, StudyResult
from sfumato.studies.result_table import value_word

__all__ = ["ContingencyResult", "TwoSampleResult", "p_text"]


def p_text(p_value: float, replicates: int | None) -> str:
    """A p-value as people write it; the least that a bootstrap can give is said as a bound.

    >>> p_text(0.0312, 9999), p_text(0.0001, 9999), p_text(float("nan"), 9999), p_text(0.0001, None)
    ('0.031', '≤ 0.0001', '–', '≤ 0.0001')
    """
    if math.isnan(p_value):
        return "–"
    if replicates is not None and p_value <= 1.5 / (replicates + 1):
        return f"≤ {1 / (replicates + 1):.2g}"
    if p_value <= 0.0001:
        return "≤ 0.0001"
    return f"{p_value:.2g}" if p_value < 0.995 else "1"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoSampleResult(StudyResult):
    """Two groups compared: a difference (and ratios) with intervals, and the p-value of no difference.

    Guarantee: costs nothing; sampling and noise are both in the intervals and in the p-value. How often each test
    rejects equal groups, and each interval covers, was simulated: docs/proofs/comparisons.md. Assumes: rows are
    independent persons, and nobody is in both groups.
    """

    compared: GroupComparison
    names: tuple[str, str]
    outcome: Word
    sources: tuple[Release, ...]
    said: tuple[Word, ...] = ()
    """Further notes, of how the numbers were asked for."""

    @property
    def p_value(self) -> float:
        """The p-value of no difference, on both sides; not a number where there is no verdict."""
        return self.compared.p_value

    @property
    def replicates(self) -> int | None:
        """How often the bootstrap drew, so that ``p_value`` is at least 1/(replicates + 1); None without one."""
        return self.compared.replicates

    @property
    def statistic(self) -> float:
        """The statistic of the test: the difference in standard errors, with noise."""
        return self.compared.statistic

    @property
    def estimate(self) -> float:
        """The main estimate: the difference, or the chance that a value of the first group is the larger one."""
        return self.compared.quantities(0.95)[0].value

    def interval(self, confidence: Exact = Fraction(19, 20)) -> tuple[float, float]:
        """Low and high of the main estimate."""
        found = self.compared.quantities(float(level_of(confidence)))[0]
        return found.low, found.high

    @property
    def title(self) -> Word:
        """Which groups are compared by what."""
        first, second = map(OneLine, self.names)
        return Phrase("compare.title", {"outcome": OneLine(self.outcome), "first": first, "second": second})

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """The estimates with intervals, the test, and what is known of each group."""
        found = self.compared.quantities(float(level_of(confidence)))
        return (
            ResultTable(
                name="estimates",
                columns={
                    "quantity": [each.name for each in found],
                    "estimate": [each.value for each in found],
                    "low": [each.low for each in found],
                    "high": [each.high for each in found],
                },
            ),
            _test_table(self.compared.test, self.statistic, self.p_value, self.replicates),
            ResultTable(name="groups", columns={"group": list(self.names), **self.compared.groups()}),
        )

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """The test and its p-value."""
        return _facts(self.compared.test, self.p_value, self.replicates)

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the intervals and the p-value hold, what is assumed, and what is conservative."""
        return (*_notes(self.replicates), *self.compared.notes, *self.said)

    def findings(self, confidence: Exact = Fraction(19, 20)) -> tuple[Word, ...]:
        """The estimates in words, and the test with its p-value."""
        return (*super().findings(confidence), *_tested(self.compared.test, self.p_value, self.replicates))

    @property
    def drawn_names(self) -> Mapping[str, Word]:
        """What the quantities are called."""
        return {each.name: value_word("quantity", each.name) for each in self.compared.quantities(0.95)}

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture:
        """The estimates as a forest plot: the ratios on a logarithmic axis where there are any, else the difference."""
        found = self.compared.quantities(float(level_of(confidence)))
        ratios = [each for each in found if each.equal == 1.0 and each.value > 0]
        drawn = ratios or list(found[:1])
        return Picture(
            kind="forest",
            rows=[PictureRow(at=each.name, value=each.value, low=each.low, high=each.high) for each in drawn],
            title=self.title,
            across=Phrase("compare.estimate"),
            lines=(Phrase("study.covers", {"percent": f"{100 * float(level_of(confidence)):g}"}),),
            reference=drawn[0].equal,
            log=bool(ratios),
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ContingencyResult(StudyResult):
    """A table of groups by categories: χ² of independence, or the trend of a share over ordered groups.

    Guarantee: costs nothing; sampling and noise are both in the p-value. Assumes: rows are independent persons.
    """

    cells: Numbers
    noise: CellNoise
    groups: tuple[str, ...]
    categories: tuple[str, ...]
    seeded: Callable[[], np.random.Generator]
    outcome: Word
    sources: tuple[Release, ...]
    scores: Sequence[float] | None = None
    """The numbers that the groups stand for, where a trend over them is tested; the first category is then the one."""
    replicates: int = REPLICATES
    said: tuple[Word, ...] = ()

    @property
    def _test(self) -> str:
        return "chi_square" if self.scores is None else "trend"

    @cached_property
    def statistic(self) -> float:
        """χ² with noise in its variances, or the studentised trend."""
        if self.scores is None:
            return float(contingency.chi_square_statistic(self.cells, self.noise.variance))
        return float(contingency.trend_statistic(*self._split, np.asarray(self.scores, float), self.noise.variance))

    @cached_property
    def p_value(self) -> float:
        """By the bootstrap; not a number where a group is not larger than its noise."""
        if not self._verdict:
            return math.nan
        generator = self.seeded()
        if self.scores is None:
            return float(contingency.chi_square_p_values(self.cells, self.noise, generator, self.replicates))
        yes, no = self._split
        scores = np.asarray(self.scores, float)
        return float(contingency.trend_p_values(yes, no, scores, self.noise, generator, self.replicates))

    @property
    def _split(self) -> tuple[Numbers, Numbers]:
        return self.cells[:, 0], self.cells[:, 1]

    @property
    def _verdict(self) -> bool:
        deviation = (self.noise.variance * self.cells.shape[-1]) ** 0.5
        return bool((self.cells.sum(axis=-1) > max(LEAST * deviation, 1.0)).all())

    @property
    def title(self) -> Word:
        """What is tested against what."""
        return Phrase(f"compare.title_{self._test}", {"outcome": OneLine(self.outcome)})

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """The trend with its interval where there is one, the test, and the noisy counts."""
        test = _test_table(self._test, self.statistic, self.p_value, self.replicates)
        counts = ResultTable(
            name="counts",
            columns={
                "group": list(self.groups),
                **{name: [float(each) for each in self.cells[:, at]] for at, name in enumerate(self.categories)},
            },
        )
        if self.scores is None:
            return test, counts
        level = float(level_of(confidence))
        value, *ends = contingency.slope(*self._split, np.asarray(self.scores, float), self.noise, level)
        low, high = outward(float(value), *ends) if self._verdict else (-math.inf, math.inf)
        shown = float(value) if self._verdict else math.nan
        slope = ResultTable(
            name="estimates",
            columns={"quantity": ["slope"], "estimate": [shown], "low": [low], "high": [high]},
        )
        return slope, test, counts

    def findings(self, confidence: Exact = Fraction(19, 20)) -> tuple[Word, ...]:
        """The slope in words where there is one, and the test with its p-value."""
        sloped = () if self.scores is None else super().findings(confidence)
        return (*sloped, *_tested(self._test, self.p_value, self.replicates))

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """The test and its p-value."""
        return _facts(self._test, self.p_value, self.replicates)

    @property
    def notes(self) -> tuple[Word, ...]:
        """What is in the p-value, and where there is no verdict."""
        alone = "_p" if self.scores is None else ""
        kept = () if self._verdict else (Phrase(f"compare.no_verdict{alone}"),)
        sloped = () if self.scores is None else (self._sloped(self.scores),)
        return (*_notes(self.replicates, alone), *sloped, Phrase(f"compare.size_{self._test}"), *kept, *self.said)

    def _sloped(self, scores: Sequence[float]) -> Word:
        """Of which share the slope is, and what the groups stand for."""
        steps = ", ".join(f"{group} = {score:g}" for group, score in zip(self.groups, scores, strict=True))
        return Phrase("compare.sloped", {"category": OneLine(self.categories[0]), "steps": OneLine(steps)})


def _test_table(test: str, statistic: float, p_value: float, replicates: int | None) -> ResultTable:
    return ResultTable(
        name="test",
        columns={
            "test": [test.replace("_", "-")],
            "statistic": [statistic],
            "p_value": [p_value],
            "replicates": [replicates],
        },
    )


def _facts(test: str, p_value: float, replicates: int | None) -> tuple[tuple[Word, Word], ...]:
    return (
        (Phrase("compare.test"), Phrase(f"compare.test_{test}")),
        (Phrase("compare.p_value"), p_text(p_value, replicates)),
    )


def _tested(test: str, p_value: float, replicates: int | None) -> tuple[Word, ...]:
    """The test and its p-value in words; none where there is no verdict, which a note says."""
    if math.isnan(p_value):
        return ()
    return (Phrase("study.chance", {"name": Phrase(f"compare.test_{test}"), "chance": p_text(p_value, replicates)}),)


def _notes(replicates: int | None, alone: str = "") -> tuple[Word, ...]:
    """What the figures are of; ``alone`` is "_p" where there is a p-value and no interval."""
    way = () if replicates is None else (Phrase("compare.bootstrap", {"replicates": f"{replicates:,}"}),)
    return (Phrase(f"compare.holds{alone}"), *way, Phrase("compare.independent"))
