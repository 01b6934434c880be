"""Survival of groups over time: what a count of exits by step of time says, with sampling and noise in its errors."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from sfumato.core.description import Phrase, Word, plain
from sfumato.core.exact import Exact, confidence_level, decimal_down, rational
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.laws.discrete_gaussian import DiscreteGaussian
from sfumato.laws.rounded_gaussian import RoundedGaussian
from sfumato.studies.draws import seeded_by
from sfumato.studies.exit_cells import ExitNoise, Floats
from sfumato.studies.grouped_cox import hazard_ratios
from sfumato.studies.log_rank import clear_of_noise, log_rank_score
from sfumato.studies.result import Cell, ResultTable, StudyResult, percent_of
from sfumato.studies.result_table import finding
from sfumato.studies.survival_curve import (
    SurvivalCurve,
    difference_limits,
    falling,
    hazard_limits,
    limits,
    restricted_mean,
    rising,
    survival_curve,
    uniform_factor,
)

__all__ = ["LogRankResult", "SurvivalEstimates", "SurvivalLayout", "SurvivalResult"]

USUAL = Fraction(19, 20)
RISE = 0.0005  # of survival from one step to the next: what shows in a table
EVENTS = 30  # of a group; with fewer, mean times cover less than they say


@dataclass(frozen=True, kw_only=True)
class SurvivalLayout:
    """What the numbers of a release are: groups × (event, censored) × steps of time, level by level. Public."""

    time: str
    """What the axis of time is called."""
    times: tuple[Fraction, ...]
    """The end of each step."""
    groups: tuple[str, ...] = ()
    by: str = ""
    widths: tuple[int, ...] = (1,)
    rounded: bool = False
    """Whether times were rounded up to the end of a step that is wider than they are exact."""

    def noise(self, variance: float, tails: float = 0.0) -> ExitNoise:
        """The noise in cells of which each measured number has this variance."""
        return ExitNoise(variance=variance, steps=len(self.times), widths=self.widths, tails=tails)


@dataclass(frozen=True, kw_only=True, repr=False)
class SurvivalEstimates(StudyResult):
    """Figures that were read off survival curves, such as medians or differences: one table, with intervals."""

    sources: tuple[Release, ...]
    named: Word
    made: Callable[[float], ResultTable] = field(repr=False)
    facts: tuple[tuple[Word, Word], ...] = ()
    notes: tuple[Word, ...] = ()

    @property
    def title(self) -> Word:
        """What was estimated."""
        return self.named

    def tables(self, confidence: Exact = USUAL) -> tuple[ResultTable, ...]:
        """The estimates with their intervals."""
        return (self.made(_level(confidence)),)

    @property
    def estimate(self) -> float:
        """The estimate of the only row, or of the first."""
        return float(self.table().columns["estimate"][0])  # type: ignore[arg-type]  # a column of numbers

    def interval(self, confidence: Exact = USUAL) -> tuple[float, float]:
        """The confidence interval of the only row, or of the first; an end may be infinite."""
        shown = self.table(confidence=confidence).columns
        return float(shown["low"][0]), float(shown["high"][0])  # type: ignore[arg-type]  # columns of numbers


@dataclass(frozen=True, kw_only=True, repr=False)
class LogRankResult(StudyResult):
    """A test whether groups share one hazard; without a verdict p is 1.

    Guarantee: rejects equal groups in 5% of cases at the 5% level, and in fewer where the noise is large. Where steps
    were taken in blocks this also assumes that hazards change little inside a block; a note says so.
    """

    sources: tuple[Release, ...]
    statistic: float
    degrees: int
    p_value: float
    verdict: bool
    """Whether the numbers at risk stand out of the noise, so that the test could be made."""
    until: str
    """The last time that the test could use."""
    blocks: int = 0
    """How many steps of time were taken together; 0 where each was taken by itself."""

    @property
    def title(self) -> Word:
        """The name of the test."""
        return Phrase("survival.log_rank")

    def tables(self, confidence: Exact = USUAL) -> tuple[ResultTable, ...]:
        """One row: χ², its degrees of freedom and the p-value."""
        del confidence
        columns: dict[str, Sequence[Cell]] = {
            "chi2": [self.statistic if self.verdict else float("nan")],
            "df": [self.degrees],
            "p": [self.p_value],
        }
        return (ResultTable(name="log-rank", columns=columns),)

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """What was used."""
        return ((Phrase("survival.used"), self.until),)

    @property
    def notes(self) -> tuple[Word, ...]:
        """Whether there is a verdict, and what the p-value covers."""
        return (Phrase("survival.tested" if self.verdict else "survival.no_verdict"), *_in_blocks(self.blocks))


@dataclass(frozen=True, repr=False)
class SurvivalResult(StudyResult):
    """Kaplan–Meier curves by group, and what follows from them, all from one release.

    Guarantee: costs nothing beyond the release. Pointwise intervals cover the survival of the population with at least
    the stated confidence, uniform bands the whole curve; sampling and noise are in both. Where the number at risk is
    lost in noise the curve stops, and its interval from there on goes from 0 to the last upper limit.
    Assumes: rows are independent persons, and censoring does not depend on what would have happened.
    Proof: docs/proofs/survival.md
    """

    release: Release
    layout: SurvivalLayout

    @property
    def sources(self) -> tuple[Release, ...]:
        """The one release."""
        return (self.release,)

    @cached_property
    def noise(self) -> ExitNoise:
        """The noise in the cells, from the law that the release states."""
        law = self.release.statement.law
        variance = float(law.variance)
        normal = isinstance(law, DiscreteGaussian | RoundedGaussian)
        return self.layout.noise(variance, 0.0 if normal or variance == 0 else 3 + 1 / variance)

    @cached_property
    def cells(self) -> Floats:
        """The noisy cells: groups × (event, censored) × steps; they are not rounded and may be negative."""
        steps, groups = len(self.layout.times), max(1, len(self.layout.groups))
        values, levels = np.asarray(self.release.values, dtype=np.float64), []
        for width in self.layout.widths:
            blocks = -(-steps // width)
            levels.append(values[: 2 * groups * blocks].reshape(groups, 2, blocks))
            values = values[2 * groups * blocks :]
        return self.noise.cells_of(np.concatenate(levels, axis=-1))

    @cached_property
    def curves(self) -> tuple[SurvivalCurve, ...]:
        """One curve for each group, as computed: not yet made to fall."""
        return tuple(survival_curve(cells, self.noise) for cells in self.cells)

    @property
    def title(self) -> Word:
        """What it is."""
        return Phrase("survival.title", {"time": self.layout.time})

    def tables(self, confidence: Exact = USUAL) -> tuple[ResultTable, ...]:
        """``survival``, ``hazard`` (Nelson–Aalen), ``band`` (uniform) and ``median``."""
        level = _level(confidence)
        return tuple(made(level) for made in self._parts.values())

    def table(self, name: str | None = None, confidence: Exact = USUAL) -> ResultTable:
        """One of the tables by its name, or the curves; the others are not worked out."""
        if name is None or name in self._parts:
            return self._parts[name or "survival"](_level(confidence))
        return super().table(name, confidence)

    @property
    def _parts(self) -> dict[str, Callable[[float], ResultTable]]:
        return {"survival": self._main, "hazard": self._hazard, "band": self._band, "median": self._median}

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """The method, how many there are, how many events, and until when the curves go."""
        number = ", ".join(f"{self._named(place)}{curve.number:,.0f}" for place, curve in enumerate(self.curves))
        events = ", ".join(f"{self._named(place)}{cells[0].sum():,.0f}" for place, cells in enumerate(self.cells))
        return (
            (Phrase("survival.method"), Phrase("survival.kaplan_meier")),
            (Phrase("survival.number"), number),
            (Phrase("survival.events"), events),
            (Phrase("survival.until"), _shown_time(self.layout.times[-1])),
        )

    @property
    def notes(self) -> tuple[Word, ...]:
        """What intervals cover, that counts carry noise, and where a curve stops."""
        notes: list[Word] = [Phrase("survival.covers"), Phrase("survival.noisy")]
        if self.layout.rounded:
            notes.append(Phrase("survival.rounded"))
        for place, curve in enumerate(self.curves):
            if curve.stop < len(self.layout.times):
                time = _shown_time(self.layout.times[int(curve.stop)])
                notes.append(Phrase("survival.stops", {"group": self._named(place), "time": time}))
        if self._evened:
            notes.append(Phrase("survival.evened"))
        return (*notes, *self._few)

    @property
    def _evened(self) -> bool:
        """Whether noise made some curve or limit rise, so that times next to each other were given one value."""
        usual = _factor(float(USUAL))
        raw = [part for curve in self.curves for part in (curve.survival[: int(curve.stop)], *limits(curve, usual))]
        return any((np.diff(part) > RISE).any() for part in raw)

    @property
    def _few(self) -> tuple[Word, ...]:
        """Said where intervals of what is read off the curves may cover less than they say."""
        rows = any(curve.number < 200 or _few_beside(curve, self.noise.at_risk) for curve in self.curves)
        return (Phrase("survival.few"),) if rows or any(cells[0].sum() < EVENTS for cells in self.cells) else ()

    @property
    def _blocks(self) -> int:
        """How many steps tests take together; 0 where they take single ones."""
        if self.noise.widths == (1,) or bool(clear_of_noise(self.cells, self.noise)):
            return 0
        return self.noise.widths[-1]

    def picture(self, confidence: Exact = USUAL) -> Picture:
        """The curves as steps, by group, with pointwise intervals."""
        level = _level(confidence)
        rows = []
        for place, curve in enumerate(self.curves):
            group = f"{self.layout.by} {self.layout.groups[place]}" if self.layout.groups else ""
            rows.append(PictureRow(at=0.0, value=1.0, low=1.0, high=1.0, group=group))
            for time, value, low, high in zip(self.layout.times, *self._shown(curve, _factor(level)), strict=True):
                rows.append(
                    PictureRow(at=float(time), value=float(value), low=float(low), high=float(high), group=group)
                )
        percent = decimal_down(100 * Fraction(level).limit_denominator(10**6))
        return Picture(
            kind="steps",
            rows=rows,
            title=Phrase("survival.title", {"time": self.layout.time}),
            across=self.layout.time,
            upward=Phrase("survival.share"),
            lines=(Phrase("study.covers", {"percent": percent}),),
            within=(0.0, 1.0),
        )

    def at(self, time: Exact) -> SurvivalEstimates:
        """The survival at a time, in each group, with its confidence interval."""
        step, words = self._step(time)

        def made(level: float) -> ResultTable:
            ends = [self._point(curve, step, level) for curve in self.curves]
            return self._rows("survival at", ends)

        return self._estimates(Phrase("survival.at", {"time": words}), made)

    def median(self) -> SurvivalEstimates:
        """The median survival time of each group; an end that the curve does not reach is infinite."""
        return self._estimates(Phrase("survival.median"), self._median)

    def rmst(self, time: Exact | None = None) -> SurvivalEstimates:
        """The restricted mean survival time until a time, or until the end of the curves, in each group."""
        horizon, words = self._horizon(time)

        def made(level: float) -> ResultTable:
            return self._rows("rmst", [self._restricted(cells, horizon, level) for cells in self.cells], error=True)

        return self._estimates(Phrase("survival.rmst", {"time": words}), made)

    def rmst_difference(self, time: Exact | None = None) -> SurvivalEstimates:
        """The restricted mean survival time of each group less that of the first one."""
        self._several()
        horizon, words = self._horizon(time)

        def made(level: float) -> ResultTable:
            found = [self._restricted(cells, horizon, level) for cells in self.cells]
            return self._less_first("rmst difference", found)

        return self._estimates(Phrase("survival.rmst_difference", {"time": words}), made)

    def difference(self, time: Exact) -> SurvivalEstimates:
        """The survival of each group at a time less that of the first one."""
        self._several()
        step, words = self._step(time)

        def made(level: float) -> ResultTable:
            return self._less_first("difference", [self._point(curve, step, level) for curve in self.curves])

        return self._estimates(Phrase("survival.difference", {"time": words}), made)

    def log_rank(self) -> LogRankResult:
        """Test whether all groups have one hazard; where the noise is too large for it, p is 1 and a note says so."""
        self._several()
        found = log_rank_score(self.cells, self.noise)
        last = min(int(found.used), len(self.layout.times))
        return LogRankResult(
            sources=self.sources,
            statistic=float(found.statistic),
            degrees=found.freedom,
            p_value=float(found.p),
            verdict=bool(found.verdict),
            until=_shown_time(self.layout.times[last - 1]) if last else "0",
            blocks=self._blocks,
        )

    def hazard_ratio(self) -> SurvivalEstimates:
        """The hazard of each group over that of the first one, if hazards are proportional: Cox on grouped time."""
        self._several()

        def made(level: float) -> ResultTable:
            ends = []
            for other in self.cells[1:]:
                found = hazard_ratios(np.stack([other, self.cells[0]]), self.noise, _factor(level))
                ratio = [float(np.exp(value)) for value in (found.log, found.low, found.high)]
                ends.append((*ratio, float(found.error), float(found.p)))
            columns: dict[str, Sequence[Cell]] = {
                self.layout.by: list(self.layout.groups[1:]),
                "estimate": [each[0] for each in ends],
                "low": [each[1] for each in ends],
                "high": [each[2] for each in ends],
                "log_standard_error": [each[3] for each in ends],
                "p": [each[4] for each in ends],
            }
            return ResultTable(name="hazard ratio", columns=columns)

        named = Phrase("survival.hazard_ratio", {"group": self.layout.groups[0]})
        return self._estimates(named, made, Phrase("survival.proportional"), *_in_blocks(self._blocks))

    def _named(self, place: int) -> str:
        return f"{self.layout.by} {self.layout.groups[place]}: " if self.layout.groups else ""

    def _estimates(self, named: Word, made: Callable[[float], ResultTable], *notes: Word) -> SurvivalEstimates:
        said = [Phrase("survival.covers"), *([Phrase("survival.rounded")] if self.layout.rounded else []), *self._few]
        return SurvivalEstimates(sources=self.sources, named=named, made=made, notes=(*said, *notes))

    def _several(self) -> None:
        if len(self.layout.groups) < 2:
            raise InvalidInput(
                "groups are compared where there are several; ask survival(..., by='arm'). Nothing was done."
            )

    def _step(self, time: Exact) -> tuple[int, str]:
        """The last step that ends by a time."""
        asked = _time(time)
        if not 0 <= asked <= self.layout.times[-1]:
            raise InvalidInput(
                f"the curves go from 0 to {plain(self.layout.times[-1])}; nothing was done. Ask in there."
            )
        return int(np.searchsorted([float(each) for each in self.layout.times], float(asked), side="right")) - 1, plain(
            asked
        )

    def _horizon(self, time: Exact | None) -> tuple[float, str]:
        asked = self.layout.times[-1] if time is None else _time(time)
        if not 0 < asked <= self.layout.times[-1]:
            raise InvalidInput(
                f"a mean time is restricted to some time up to {plain(self.layout.times[-1])}; nothing was done."
            )
        return float(asked), plain(asked)

    def _shown(self, curve: SurvivalCurve, factor: float) -> tuple[Floats, Floats, Floats]:
        """The curve and its limits as they are shown: the nearest ones that never rise."""
        low, high = limits(curve, factor) if np.isfinite(factor) else (0 * curve.noise, 0 * curve.noise + 1)
        value = np.full(len(self.layout.times), np.nan)
        stop = int(curve.stop)
        if stop:
            value[:stop] = np.clip(falling(curve.survival[:stop]), 0.0, 1.0)
        return value, falling(low), falling(high)

    def _point(self, curve: SurvivalCurve, step: int, level: float) -> tuple[float, float, float, float]:
        if step < 0:
            return 1.0, 1.0, 1.0, 0.0
        value, low, high = (float(part[step]) for part in self._shown(curve, _factor(level)))
        return value, low, high, float("nan")

    def _restricted(self, cells: Floats, horizon: float, level: float) -> tuple[float, float, float, float]:
        times = np.array([float(each) for each in self.layout.times])
        if self.layout.rounded:
            lengths, before = _sloped(times, horizon)
        else:
            ends = np.minimum(np.append(times[1:], np.inf), horizon)
            lengths, before = np.clip(ends - times, 0.0, None), min(times[0], horizon)
        estimate, error, low, high = restricted_mean(cells, self.noise, lengths, before, _factor(level))
        return float(estimate), float(low), float(high), float(error)

    def _less_first(self, name: str, found: Sequence[tuple[float, float, float, float]]) -> ResultTable:
        """Differences from the first group."""
        ends = [difference_limits(each[:3], found[0][:3]) for each in found[1:]]
        columns: dict[str, Sequence[Cell]] = {self.layout.by: list(self.layout.groups[1:])}
        columns |= {
            part: [float(each[place]) for each in ends] for place, part in enumerate(("estimate", "low", "high"))
        }
        return ResultTable(name=name, columns=columns)

    def _rows(
        self, name: str, ends: Sequence[tuple[float, float, float, float]], *, error: bool = False
    ) -> ResultTable:
        columns: dict[str, Sequence[Cell]] = {self.layout.by: list(self.layout.groups)} if self.layout.groups else {}
        columns |= {part: [each[place] for each in ends] for place, part in enumerate(("estimate", "low", "high"))}
        if error:
            columns["standard_error"] = [each[3] for each in ends]
        return ResultTable(name=name, columns=columns)

    def _labels(self) -> dict[str, Sequence[Cell]]:
        times = [_number(each) for each in self.layout.times]
        columns: dict[str, Sequence[Cell]] = {}
        if self.layout.groups:
            columns[self.layout.by] = [group for group in self.layout.groups for _ in times]
        return columns | {self.layout.time: times * len(self.curves)}

    def _main(self, level: float) -> ResultTable:
        shown = [self._shown(curve, _factor(level)) for curve in self.curves]
        columns = self._labels() | {
            "at_risk": _joined([curve.at_risk for curve in self.curves]),
            "events": _joined([curve.events for curve in self.curves]),
            "survival": _joined([value for value, _, _ in shown]),
            "low": _joined([low for _, low, _ in shown]),
            "high": _joined([high for _, _, high in shown]),
        }
        return ResultTable(name="survival", columns=columns)

    def _hazard(self, level: float) -> ResultTable:
        ends = [tuple(map(rising, hazard_limits(curve, _factor(level)))) for curve in self.curves]
        values = [np.where(curve.estimable, rising(curve.hazard), np.nan) for curve in self.curves]
        columns = self._labels() | {
            "hazard": _joined([np.maximum(value, 0.0) for value in values]),
            "low": _joined([low for low, _ in ends]),
            "high": _joined([high for _, high in ends]),
        }
        return ResultTable(name="hazard", columns=columns)

    def findings(self, confidence: Exact = USUAL) -> tuple[Word, ...]:
        """What was found, in words: median and survival at the end of each group, and the log-rank test of several."""
        main, steps = self.table("survival", confidence), len(self.layout.times)
        last = {name: list(column[steps - 1 :: steps]) for name, column in main.columns.items()}
        percent = percent_of(confidence)
        ends = finding(ResultTable(name="survival", columns=last), percent)
        medians = [
            Phrase("survival.median_of", {"found": each}) for each in finding(self.table("median", confidence), percent)
        ]
        return (*medians, *ends, *self._tested)

    @property
    def _tested(self) -> tuple[Word, ...]:
        """The log-rank test in words, where there are groups and it has a verdict."""
        test = self.log_rank() if len(self.layout.groups) > 1 else None
        if test is None:
            return ()
        if not test.verdict:
            return (Phrase("survival.no_log_rank"),)
        chance = "<0.001" if test.p_value < 0.001 else f"{test.p_value:.3f}"
        return (Phrase("study.chance", {"name": Phrase("survival.log_rank"), "chance": chance}),)

    def _band(self, level: float) -> ResultTable:
        generator = seeded_by(self.release)()  # so that a band is the same each time it is shown
        factors = [uniform_factor(curve, self.noise, level, generator) for curve in self.curves]
        shown = [self._shown(curve, factor) for curve, factor in zip(self.curves, factors, strict=True)]
        columns = self._labels() | {
            "survival": _joined([value for value, _, _ in shown]),
            "low": _joined([low for _, low, _ in shown]),
            "high": _joined([high for _, _, high in shown]),
        }
        return ResultTable(name="band", columns=columns)

    def _median(self, level: float) -> ResultTable:
        found = []
        for curve in self.curves:
            value, low, high = self._shown(curve, _factor(level))
            middle, least, most = (self._first(part <= 0.5) for part in (value, low, high))
            if math.isinf(middle) and curve.stop < len(self.layout.times):
                middle = math.nan  # the curve stops in noise: whether it would have reached a half is not known
            found.append((middle, min(least, float(self.layout.times[-1])), most, 0.0))  # it may lie behind the end
        whole = all(time.denominator == 1 for time in self.layout.times)
        return replace(self._rows("median", found), whole=whole)

    def _first(self, reached: npt.NDArray[np.bool_]) -> float:
        places = np.flatnonzero(reached)
        return float(self.layout.times[places[0]]) if len(places) else float("inf")


def _sloped(times: Floats, horizon: float) -> tuple[Floats, float]:
    """How much each step counts in a mean time, and the time before, where curves fall in straight lines inside steps.

    Times that were rounded up to the end of a step lie on average in its middle: a curve that falls at the end alone
    would make means too long by half a step.

    >>> _sloped(np.array([100.0, 200.0]), 200.0)
    (array([100.,  50.]), 50.0)
    """
    wide = np.diff(times, prepend=2 * times[0] - times[1] if len(times) > 1 else 0.0)
    used = np.clip(horizon - (times - wide), 0.0, wide)
    after = used**2 / (2 * wide)
    lengths = after + np.append((used - after)[1:], 0.0)
    return lengths, float(min(times[0] - wide[0], horizon) + (used - after)[0])


def _level(confidence: Exact) -> float:
    return float(confidence_level(confidence))


def _few_beside(curve: SurvivalCurve, noise: Floats) -> bool:
    """Whether at some step that has an estimate fewer than 30 are at risk, or few beside the noise."""
    at_risk = curve.at_risk[: int(curve.stop)]
    return bool(((at_risk < EVENTS) | (at_risk < 6 * np.sqrt(noise[: len(at_risk)]))).any())


def _factor(level: float) -> float:
    return float(ndtri((1 + level) / 2))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _in_blocks(width: int) -> tuple[Word, ...]:
    return (Phrase("survival.blocks", {"width": str(width)}),) if width else ()


def _time(value: Exact) -> Fraction:
    plainly = value.item() if isinstance(value, np.generic) else value
    return rational(plainly, "time").limit_denominator(10**9)


def _shown_time(value: Fraction) -> str:
    """The end of a step as it stands in the tables: no fraction such as 2750/3."""
    return plain(value) if value.denominator == 1 else f"{float(value):,.1f}" if value >= 10 else f"{float(value):.3g}"


def _joined(parts: Sequence[Floats]) -> list[Cell]:
    return [float(value) for value in np.concatenate(parts)]
