"""Stratified designs: what a population is like by what its strata are like, with public sizes as weights.

Direct standardisation is the same calculation with the weights of a standard population. Both are made of one release
of a table by group, and cost nothing more. Proof: docs/proofs/population.md
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import Listed, OneLine, Phrase, Word, phrase
from sfumato.core.exact import Exact, rational
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.release import Release, only_release
from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.inference.derived import Derived, Label
from sfumato.inference.population import Residuals, SampleDesign, design_of
from sfumato.inference.stratified import Strata
from sfumato.laws.margins import level_of
from sfumato.studies.design_result import Facts
from sfumato.studies.result import Cell, ResultTable, StudyResult

if TYPE_CHECKING:
    from sfumato.inference.stratified import StrataLimits

__all__ = ["StratifiedResult", "standardised", "stratified"]

Found = TypeVar("Found")
Stratum = Label | tuple[Label, ...]
Array = NDArray[np.float64]
Kind = Literal["mean", "share", "ratio"]
UNNAMED = frozenset({"mean", "proportion", "ratio"})
"""What a measure is called to which nobody gave a name: each language has its own word for it."""
BEYOND = 4.0  # standard deviations of its noise by which a counted number is above a size, or noise may explain it
CAUTIOUS = 1.2816  # standard deviations by which the sampled rows are lowered before they shrink a variance


def stratified(
    column: Release | Derived,
    sizes: Mapping[Stratum, Exact],
    *,
    by: str | Sequence[str] | None = None,
    finite_population: bool = False,
) -> "StratifiedResult":
    """The mean, the share or the ratio of a population from a release by stratum, and the total where there is one.

    ``column`` is a mean, a proportion or a ratio by group, as ``release["sbp"]``; ``sizes`` says how many people of the
    population each stratum has, which is public. ``by`` names the columns of the strata where there are more labels:
    each of the other groups gets an estimate of its own. With ``finite_population`` the estimand is the people
    themselves, and the sampling variance shrinks by the share of them that is in the data.

    Guarantee: costs nothing; the interval holds sampling and noise. Assumes: people were drawn at random within each
    stratum; the sizes are right. Where the numbers drawn were not fixed beforehand this is post-stratification, with
    the same interval. Proof: docs/proofs/population.md

    >>> import pyarrow as pa, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="survey")
    >>> rows = pa.table({"region": ["north", "south"] * 400, "smokes": [True, False, False, False] * 200})
    >>> survey = vault.table(rows, name="survey", version="1", keys={"region": ["north", "south"]})
    >>> release = survey.group_by("region").proportion("smokes").release(epsilon=8)
    >>> found = sf.stratified(release["proportion"], {"north": 30_000, "south": 10_000})
    >>> round(found.estimate, 1), found.interval()[0] < 0.375 < found.interval()[1]
    (0.4, True)
    """
    return _made(column, sizes, by, what="sizes", standard=False, finite=finite_population)


def standardised(
    column: Release | Derived, weights: Mapping[Stratum, Exact], *, by: str | Sequence[str] | None = None
) -> "StratifiedResult":
    """Direct standardisation: a mean, a share or a rate as it would be with the strata of a standard population.

    ``weights`` are those of the standard population, such as people by age group; only their proportions count. With
    labels beside the strata, as in ``group_by("hospital", "age")`` and ``by="age"``, each hospital gets its
    age-standardised figure.

    Guarantee and assumptions: as for :func:`stratified`.

    >>> import pyarrow as pa, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="deaths")
    >>> rows = pa.table({"age": ["young", "old"] * 400, "died": [False, True, False, False] * 200})
    >>> table = vault.table(rows, name="deaths", version="1", keys={"age": ["young", "old"]})
    >>> release = table.group_by("age").proportion("died").release(epsilon=8)
    >>> round(sf.standardised(release["proportion"], {"young": 60, "old": 40}).estimate, 1)
    0.2
    """
    return _made(column, weights, by, what="weights", standard=True, finite=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StratifiedResult(StudyResult):
    """A weighted mean over strata, for each of several groups where there are some.

    Guarantee: costs nothing; sampling and noise are both in the intervals. How often they cover was simulated:
    tests/inference/test_stratified_coverage.py. Assumes: what :func:`stratified` assumes.
    """

    members_apart: ClassVar[bool] = False
    strata: Strata
    kind: Kind
    measure: str
    names: tuple[str, ...]
    """Of the columns that the strata are by."""
    keys: tuple[tuple[Label, ...], ...]
    groups: Mapping[str, tuple[Label, ...]]
    """Labels of the groups; none where all of it is one."""
    sizes: tuple[Fraction, ...]
    sources: tuple[Release, ...]
    standard: bool
    finite: bool

    @property
    def estimates(self) -> tuple[float, ...]:
        """The estimate of each group; not a number where there is none."""
        return tuple(float(each) for each in self._limits(0.95).estimate)

    @property
    def estimate(self) -> float:
        """The estimate, where there is one group."""
        return self._only(self.estimates)

    @property
    def standard_error(self) -> float:
        """The standard error, of sampling and noise, where there is one group."""
        return self._only(tuple(float(each) for each in self._limits(0.95).error))

    def intervals(self, confidence: Exact = Fraction(19, 20)) -> tuple[tuple[float, float], ...]:
        """Low and high of each group, each with this confidence by itself."""
        found = self._limits(float(level_of(confidence)))
        return tuple((float(low), float(high)) for low, high in zip(found.low, found.high, strict=True))

    def interval(self, confidence: Exact = Fraction(19, 20)) -> tuple[float, float]:
        """Low and high, where there is one group."""
        return self._only(self.intervals(confidence))

    @property
    def total(self) -> float:
        """The total of the population: the estimate times how many people it has."""
        return self._people * self.estimate

    def total_interval(self, confidence: Exact = Fraction(19, 20)) -> tuple[float, float]:
        """Low and high of the total."""
        low, high = self.interval(confidence)
        return self._people * low, self._people * high

    @property
    def title(self) -> Word:
        """What was estimated, by which strata."""
        key = "strata.title_standard" if self.standard else "strata.title"
        outcome = Phrase(f"study_column.{self.measure}") if self.measure in UNNAMED else self.measure
        return phrase(key, outcome=OneLine(outcome), by=OneLine(Listed(self.names)))

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """The estimates with intervals, and the strata: their weights, rows, estimates and intervals."""
        found = self._limits(float(level_of(confidence)))
        kinds: list[tuple[str, float]] = [(self.kind, 1.0)]
        if not self.standard and self.kind != "ratio":
            kinds.append(("total", self._people))
        rows = [(place, name, times) for place in range(len(found.estimate)) for name, times in kinds]
        columns: dict[str, Sequence[Cell]] = {
            name: [labels[place] for place, _, _ in rows] for name, labels in self.groups.items()
        }
        columns["quantity"] = [name for _, name, _ in rows]
        for name, values in (
            ("estimate", found.estimate),
            ("standard_error", found.error),
            ("low", found.low),
            ("high", found.high),
        ):
            columns[name] = [times * float(values[place]) for place, _, times in rows]
        return ResultTable(name="estimates", columns=columns), self._strata_table(confidence)

    def _strata_table(self, confidence: Exact) -> ResultTable:
        of, groups = self.strata.residuals, self.strata.lost.shape[0]
        low, high = of.limits(float(level_of(confidence)))
        with np.errstate(all="ignore"):
            under = of.sums @ of.under
            value = of.origin + of.scale * np.clip((of.sums @ of.over) / under, *of.within)
        lost = self.strata.lost.ravel()
        columns: dict[str, Sequence[Cell]] = {
            name: [label for label in labels for _ in self.keys] for name, labels in self.groups.items()
        }
        columns |= {name: [key[at] for key in self.keys] * groups for at, name in enumerate(self.names)}
        columns["weight" if self.standard else "size"] = [float(size) for size in self.sizes] * groups
        columns["n"] = [float(each) for each in of.sums @ of.number]
        columns["estimate"] = [math.nan if gone else float(each) for each, gone in zip(value, lost, strict=True)]
        columns["low"], columns["high"] = low.tolist(), high.tolist()
        return ResultTable(name="strata", columns=columns)

    @property
    def facts(self) -> Facts:
        """How many strata there are, by what, and how many people."""
        about: Facts = (
            (phrase("strata.strata"), f"{len(self.keys):,}"),
            (phrase("strata.by"), OneLine(Listed(self.names))),
        )
        return about if self.standard else (*about, (phrase("strata.people"), f"{self._people:,.15g}"))

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the intervals hold, where the weights come from, and which strata are lost in their noise."""
        found: list[Word] = [phrase("strata.holds"), phrase("strata.standard" if self.standard else "strata.sizes")]
        if not self.standard:
            found.append(phrase("strata.finite" if self.finite else "strata.large"))
        if self.too_small:
            found.append(phrase("strata.too_small", names=OneLine(Listed(self.too_small))))
        found.append(phrase("strata.simulated_ratio" if self.kind == "ratio" else "strata.simulated"))
        if self.strata.residuals.within != (-math.inf, math.inf) and self.kind == "mean":
            found.append(phrase("compare.clipped"))
        if self.strata.residuals.quality == "population.skewed":
            found.append(phrase("strata.skewed"))
        if self.strata.residuals.design.rows > 1:
            found.append(phrase(self.strata.residuals.design.quality))
        lost = np.atleast_1d(self.strata.lost.any(axis=0))
        names = tuple(" · ".join(map(str, key)) for key, gone in zip(self.keys, lost, strict=True) if gone)
        if names:
            found.append(phrase("strata.lost", names=OneLine(Listed(names))))
        if not self.strata.told.all():
            found.append(phrase("strata.no_estimate"))
        return tuple(found)

    @property
    def too_small(self) -> tuple[str, ...]:
        """The strata whose declared size is smaller than the people counted in them, by more than noise explains."""
        if self.standard:
            return ()  # weights of a standard population are of other people
        of = self.strata.residuals
        counted = (of.sums @ of.number).reshape(-1, len(self.keys))
        doubt = math.sqrt(len(counted) * float((of.noise**2) @ (of.number**2)))
        least = (counted.sum(axis=0) - BEYOND * doubt) / of.design.rows
        return tuple(
            " · ".join(map(str, key))
            for key, size, people in zip(self.keys, self.sizes, least, strict=True)
            if 0 < float(size) < people  # 0 says that a stratum is not in the population
        )

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture:
        """A forest plot: the strata and the whole, or the estimates of all groups."""
        level = float(level_of(confidence))
        found = self._limits(level)
        whole = [
            PictureRow(at=name, value=float(value), low=float(low), high=float(high))
            for name, value, low, high in zip(self._group_names, found.estimate, found.low, found.high, strict=True)
            if math.isfinite(value)
        ]
        if not self.groups:
            table = self._strata_table(confidence).columns
            cells = zip(*(table[name] for name in (*self.names, "estimate", "low", "high")), strict=True)
            whole = [
                *(
                    PictureRow(at=" · ".join(map(str, key)), value=float(value), low=float(low), high=float(high))
                    for *key, value, low, high in cells
                    if isinstance(value, float) and math.isfinite(value)
                ),
                *whole,
            ]
        return Picture(
            kind="forest",
            rows=whole,
            title=self.title,
            across=phrase("compare.estimate"),
            lines=(phrase("study.covers", percent=f"{100 * level:g}"),),
        )

    @property
    def drawn_names(self) -> Mapping[str, Word]:
        """What the whole is called."""
        return {} if self.groups else {name: phrase("strata.all") for name in self._group_names}

    @property
    def _group_names(self) -> list[str]:
        if not self.groups:
            return [self.word(phrase("strata.all"))]
        return [" · ".join(map(str, each)) for each in zip(*self.groups.values(), strict=True)]

    @property
    def _people(self) -> float:
        if self.standard or self.kind == "ratio":
            raise InvalidInput(
                "a total needs how many people each stratum has, and a mean or a share of them: "
                "sf.stratified(column, sizes={...}). Nothing was computed."
            )
        return float(sum(self.sizes))

    def _limits(self, level: float) -> "StrataLimits":
        return self.strata.limits(level)

    def _only(self, found: tuple[Found, ...]) -> Found:
        if len(found) != 1:
            raise InvalidInput(
                f"there are {len(found)} groups, and this is for one; nothing was computed. Use estimates, intervals() "
                "or table()."
            )
        return found[0]


def _made(
    given: object,
    sizes: Mapping[Stratum, Exact],
    by: str | Sequence[str] | None,
    *,
    what: str,
    standard: bool,
    finite: bool,
) -> StratifiedResult:
    column = _column(given)
    source = column.population
    if not isinstance(source, Residuals):
        raise Unsupported(
            f"{column.measure!r} is neither a mean, nor a share, nor a ratio as it was released; nothing was computed. "
            "Ask for sf.mean(...), sf.proportion(...) or sf.ratio(...) by stratum."
        )
    names = _strata_names(column, by, sizes)
    places, keys, groups = _arranged(column, names)
    weights = _weights(keys, sizes, what)
    unit, limit = column.sources[0].statement.unit, column.sources[0].statement.limit
    # Whoever is in several strata makes them depend on each other: all rows of a person count as of one.
    design = design_of(unit, limit, across=True)
    source = replace(source.at(places), design=design)
    unsampled = _unsampled(source, weights, design, groups=len(places) // len(keys)) if finite else None
    share = np.array([float(each / sum(weights)) for each in weights])
    return StratifiedResult(
        strata=Strata(residuals=source, weights=share, unsampled=unsampled),
        kind=_kind(source),
        measure=column.measure,
        names=names,
        keys=keys,
        groups=groups,
        sizes=weights,
        sources=column.sources,
        standard=standard,
        finite=finite,
    )


def _column(given: object) -> Derived:
    """One column of one release, by group."""
    if isinstance(given, Derived):
        column = given
    else:
        release = only_release(given)
        found = [each for each in release.columns.values() if isinstance(each, Derived) and each.estimates_population]
        if len(found) != 1:
            raise InvalidInput(
                f"this release has {len(found)} columns that estimate something of a population; nothing was computed. "
                "Pick one with release['name']."
            )
        column = found[0]
    if not column.labels or len(column.sources) != 1:
        raise InvalidInput(
            f"{column.measure!r} is not by group, and strata are groups of one release; nothing was computed. Ask "
            "table.group_by('region') for it."
        )
    return column


def _kind(source: Residuals) -> Kind:
    if source.exact_variance:
        return "share"
    return "mean" if bool((source.under == source.number).all()) else "ratio"


def _strata_names(column: Derived, by: str | Sequence[str] | None, sizes: Mapping[Stratum, Exact]) -> tuple[str, ...]:
    """The columns that the strata are by: the only one, all that the keys have, or those that were named."""
    labels = tuple(column.labels)
    if by is not None:
        named = (by,) if isinstance(by, str) else tuple(by)
        for name in named:
            if name not in labels:
                raise InvalidInput(
                    f"no stratum is by {name!r}; the labels are {', '.join(labels)}.{did_you_mean(name, labels)} "
                    "Nothing was computed."
                )
        if not named or len(set(named)) < len(named):
            raise InvalidInput("by=... names columns, each once; nothing was computed.")
        return named
    if not isinstance(sizes, Mapping) or not sizes:
        raise InvalidInput("sizes or weights are given by stratum, as {'north': 30_000, ...}; nothing was computed.")
    if len(labels) == 1 or all(isinstance(key, tuple) and len(key) == len(labels) for key in sizes):
        return labels
    raise InvalidInput(
        f"there are several labels ({', '.join(labels)}): say which are strata, as by={labels[-1]!r}; the others are "
        "groups with an estimate each. Nothing was computed."
    )


def _arranged(
    column: Derived, names: tuple[str, ...]
) -> tuple[list[int], tuple[tuple[Label, ...], ...], dict[str, tuple[Label, ...]]]:
    """The places of the numbers, group by group and stratum by stratum; the strata; the labels of the groups."""
    others = [name for name in column.labels if name not in names]
    own = list(zip(*(column.labels[name] for name in names), strict=True))
    rest = list(zip(*(column.labels[name] for name in others), strict=True)) if others else [()] * len(own)
    keys, groups = list(dict.fromkeys(own)), list(dict.fromkeys(rest))
    found = {pair: place for place, pair in enumerate(zip(rest, own, strict=True))}
    if len(found) < len(own) or len(found) < len(keys) * len(groups):
        raise InvalidInput(
            "not every group has every stratum once: a part of the answer was left out. Nothing was computed. Ask by "
            "declared keys, without HAVING or LIMIT."
        )
    places = [found[group, key] for group in groups for key in keys]
    labels = {name: tuple(group[at] for group in groups) for at, name in enumerate(others)}
    return places, tuple(keys), labels


def _weights(keys: tuple[tuple[Label, ...], ...], sizes: Mapping[Stratum, Exact], what: str) -> tuple[Fraction, ...]:
    """What each stratum counts; every stratum has one, and no other is named."""
    given = {key if isinstance(key, tuple) else (key,): value for key, value in sizes.items()}
    missing = [" · ".join(map(str, key)) for key in keys if key not in given]
    unknown = [" · ".join(map(str, key)) for key in given if key not in keys]
    if missing or unknown:
        texts = [" · ".join(map(str, key)) for key in keys]
        meant = did_you_mean(unknown[0], texts) if unknown else ""
        raise InvalidInput(
            f"{what} must name every stratum of the release and no other: missing are {', '.join(missing) or 'none'}, "
            f"unknown are {', '.join(unknown) or 'none'}.{meant} Nothing was computed. A stratum that is not in the "
            "population has 0."
        )
    found = tuple(rational(given[key], what) for key in keys)
    if any(each < 0 for each in found) or not any(found):
        raise InvalidInput(f"{what} are 0 or more, and not all 0; nothing was computed.")
    return found


def _unsampled(source: Residuals, sizes: tuple[Fraction, ...], design: SampleDesign, *, groups: int) -> Array:
    """The share of each stratum's people who are not in the data, at the least number of rows that noise leaves."""
    if design.rows > 1:
        raise Refused(
            "a person can have several rows, so rows do not say how many of the people are in the data; nothing was "
            "computed. Leave finite_population out, or ask of one row a person: table.per_person(...)."
        )
    if groups > 1:
        raise Refused(
            "the sizes are those of the population and not of single groups, so no finite population correction "
            "follows; nothing was computed. Pick one group with at(...), with its own sizes."
        )
    doubt = math.sqrt(float((source.noise**2) @ (source.number**2)))
    rows = np.maximum(source.sums @ source.number - CAUTIOUS * doubt, 0.0)
    people = np.array([float(each) for each in sizes])
    sampled = np.divide(rows, people, out=np.zeros(len(rows)), where=people > 0)
    return np.asarray(np.clip(1 - sampled, 0.0, 1.0), dtype=np.float64)
