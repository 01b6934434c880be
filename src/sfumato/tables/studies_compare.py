"""Comparisons of groups asked of a table: the question that is charged, and the result that its release becomes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.description import Phrase, Word, plain
from sfumato.core.question import Preview
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Expression, Term, col, when, written
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.studies import means
from sfumato.studies.compared import ComparedBlocks, ComparedMeans, ComparedRanks, ComparedShares, GroupComparison
from sfumato.studies.comparison import ContingencyResult, TwoSampleResult
from sfumato.studies.draws import CellNoise, Numbers, multiplier, seeded_by
from sfumato.studies.proportions import TwoByTwo
from sfumato.tables.clamped import clamped
from sfumato.tables.independent_rows import check_independent
from sfumato.tables.keys import KeyValue
from sfumato.tables.statistic_plan import STEPS
from sfumato.tables.study import Study

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["contingency", "two_sample"]

TESTS = ("auto", "chi-square", "exact", "welch", "rank")
ON_SHARES, ON_VALUES = ("chi-square", "exact"), ("welch", "rank")
MET, UNMET = True, False
CLASSES = 20
MOST_CLASSES = 200
POWERED = 1.959964 + 0.841621  # standard errors that a difference must have to be found in 80 of 100 runs at 5%
Outcome = str | Term | Expression


def two_sample(
    table: "Table",
    outcome: Outcome,
    *,
    by: str | Term,
    groups: Sequence[KeyValue] | None,
    test: str,
    bins: int | Sequence[object] | None,
    blocks: str | Term | None,
) -> Study[TwoSampleResult]:
    """The study behind :meth:`sfumato.tables.table.Table.two_sample`."""
    _independent(table, "two_sample(...)")
    if test not in TESTS:
        raise InvalidInput(
            f"test={test!r} is not known; nothing was done. Say {', '.join(map(repr, TESTS))}. More than two groups, "
            f"and a trend over them, are for contingency(...).{did_you_mean(test, TESTS)}"
        )
    counted = test not in ON_VALUES and _is_zero_one(table, outcome)
    truth = counted or _is_truth(table, outcome)
    if test in ON_SHARES and not truth:
        raise InvalidInput(
            f"test={test!r} compares shares, and {_named(outcome)} is a number; nothing was done. Give a condition, "
            "such as sf.col('sbp') >= 140, or test='welch' or 'rank'."
        )
    if test in ON_VALUES and truth:
        known = ", ".join(sorted(table.bounds)) or "none"
        raise InvalidInput(
            f"test={test!r} compares values, and {_named(outcome)} is true or false, or has no declared bounds "
            f"(declared: {known}); nothing was done. Declare bounds of the column, or leave the test out."
            f"{did_you_mean(outcome, table.bounds)}"
        )
    if bins is not None and test != "rank":
        raise InvalidInput("bins=... is for test='rank'; nothing was done.")
    if blocks is not None and (not truth or test == "exact"):
        raise InvalidInput("blocks=... goes with a condition and the test 'auto' or 'chi-square'; nothing was done.")
    if blocks is not None:
        table = table.group_by(blocks) if isinstance(blocks, str) else table.group_by(block=blocks)
    grouped, names = _grouped(table, by, groups)
    if blocks is not None:
        return _within_blocks(grouped, outcome, names, counted=counted)
    if truth:
        return _of_shares(grouped, outcome, names, conditional=test == "exact", counted=counted)
    if isinstance(outcome, Expression):
        raise AssertionError  # a condition is a truth
    return (_of_ranks if test == "rank" else _of_means)(grouped, outcome, names, bins)


def contingency(
    table: "Table", rows: str | Term, columns: str | Term | Expression, *, test: str, scores: Sequence[float] | None
) -> Study[ContingencyResult]:
    """The study behind :meth:`sfumato.tables.table.Table.contingency`."""
    _independent(table, "contingency(...)")
    if test not in ("chi-square", "trend"):
        raise InvalidInput("contingency(...) has the tests 'chi-square' and 'trend'; nothing was done.")
    if scores is not None and test != "trend":
        raise InvalidInput("scores=... is for test='trend'; nothing was done.")
    one = table.group_by(rows) if isinstance(rows, str) else table.group_by(group=rows)
    if isinstance(columns, Expression) or _holds_truth(table, columns):
        both = one.group_by(outcome=_split(columns))  # true comes first
    else:
        both = one.group_by(columns) if isinstance(columns, str) else one.group_by(outcome=columns)
    (first, second) = both.by[-2:]
    groups, categories = tuple(map(_text, first.values)), tuple(map(_text, second.values))
    if len(groups) < 2 or len(categories) < 2:
        raise InvalidInput("contingency(...) needs two groups and two categories at least; nothing was done.")
    if test == "trend" and len(categories) != 2:
        raise InvalidInput(
            f"a trend is one of a share, and {_named(columns)} has {len(categories)} values; nothing was done. Give a "
            "condition, such as sf.col('result') == 'positive'."
        )
    numbers = _scores(first.values, scores) if test == "trend" else None
    said = (Phrase("compare.undecided"),) if isinstance(columns, Expression) else ()

    def made(release: Release) -> ContingencyResult:
        return ContingencyResult(
            cells=_cells(release, len(groups), len(categories)),
            noise=CellNoise.of(release.statement.law),
            groups=groups,
            categories=categories,
            seeded=seeded_by(release),
            outcome=Phrase("compare.outcome_by", {"rows": _named(columns), "columns": _named(rows)}),
            sources=(release,),
            scores=numbers,
            said=said,
        )

    return Study(question=both.count(), made=made, foreseen=_Foreseen("shares"))


def _independent(table: "Table", what: str) -> None:
    if table.by:
        raise InvalidInput(f"{what} groups the table itself; nothing was done. Leave group_by(...) out.")
    check_independent(table, what)


def _grouped(table: "Table", by: str | Term, groups: Sequence[KeyValue] | None) -> tuple["Table", tuple[str, str]]:
    if isinstance(by, str) and groups is not None:
        if len(groups) != 2 or groups[0] == groups[1]:
            raise InvalidInput("groups=... names the two groups, such as ('A', 'B'); nothing was done.")
        known = table.keys.get(by)
        strange = [each for each in groups if known is not None and each not in known.values]
        if known is None or strange:
            group = strange[0] if strange else groups[0]
            there = [str(each) for each in (sorted(table.keys) if known is None else known.values)]
            meant = did_you_mean(by if known is None else group, there)
            raise NotDeclared(
                f"{by!r} has no declared group {group!r} (declared: {', '.join(there) or 'none'}); nothing was done. "
                f"Declare its keys with the table.{meant}"
            )
        table = table.with_keys(**{by: groups})
    elif groups is not None:
        raise InvalidInput("groups=... goes with the name of a column; nothing was done.")
    grouped = table.group_by(by) if isinstance(by, str) else table.group_by(group=by)
    values = grouped.by[-1].values
    if len(values) == 1:
        raise InvalidInput(
            f"two_sample(...) compares two groups, and {_named(by)} has one; nothing was done. Declare both groups as "
            "its keys, or compare by another column."
        )
    if len(values) != 2:
        raise InvalidInput(
            f"two_sample(...) compares two groups, and {_named(by)} has {len(values)}; nothing was done. Say which: "
            f"groups=({values[0]!r}, {values[-1]!r}). All at once are for contingency(...)."
        )
    return grouped, (_text(values[0]), _text(values[1]))


def _is_truth(table: "Table", outcome: Outcome) -> bool:
    """Whether an outcome is true or false: a condition, or a column without bounds and without other keys."""
    if isinstance(outcome, Expression):
        return True
    if not isinstance(outcome, str):
        if not isinstance(outcome, Term):
            raise InvalidInput(
                f"an outcome is a column, a value or a condition and was {type(outcome).__name__}; nothing was done."
            )
        return False
    if outcome in table.bounds:
        return False
    known = table.keys.get(outcome)
    if known is not None and not all(isinstance(value, bool) for value in known.values):
        raise InvalidInput(
            f"{outcome!r} has {len(known.values)} categories; nothing was done. Compare all of them with "
            f"contingency(..., {outcome!r}), or the share of one: sf.col({outcome!r}) == {known.values[0]!r}."
        )
    return True


def _is_zero_one(table: "Table", outcome: Outcome) -> bool:
    """Whether an outcome is a column of whole numbers between 0 and 1: a truth in numbers, and a share is its mean."""
    whole = isinstance(outcome, str) and outcome in table.integers | table.wholes
    return whole and outcome in table.bounds and tuple(table.bounds[str(outcome)]) == (0, 1)


def _holds_truth(table: "Table", column: str | Term) -> bool:
    """Whether a column has no public values but true and false."""
    if not isinstance(column, str) or column in table.bounds:
        return False
    known = table.keys.get(column)
    return known is None or all(isinstance(value, bool) for value in known.values)


def _split(outcome: Outcome, *, counted: bool = False) -> Term:
    """True where the outcome is met and false where it is not; a missing truth value is neither.

    With ``counted`` it is a column of 0 and 1, and values beyond are held to these as bounds hold them.
    """
    if isinstance(outcome, Expression):
        return when(outcome).then(MET).when(~outcome).then(UNMET)
    column = col(outcome) if isinstance(outcome, str) else outcome
    if counted:
        return when(column >= 1).then(MET).when(column < 1).then(UNMET)
    return when(column == MET).then(MET).when(column == UNMET).then(UNMET)


def _of_shares(
    grouped: "Table", outcome: Outcome, names: tuple[str, str], *, conditional: bool, counted: bool
) -> Study[TwoSampleResult]:
    said = _said_of_shares(outcome, counted=counted)

    def made(release: Release) -> TwoSampleResult:
        cells, noise = _cells(release, 2, 2), CellNoise.of(release.statement.law)
        table = TwoByTwo(yes=cells[:, 0], no=cells[:, 1], yes_noise=(noise,) * 2, no_noise=(noise,) * 2)
        return _result(
            release,
            ComparedShares(table=table, seeded=seeded_by(release), conditional=conditional),
            names,
            outcome,
            said,
        )

    question = grouped.group_by(outcome=_split(outcome, counted=counted)).count()
    return Study(question=question, made=made, foreseen=_Foreseen("shares"))


def _said_of_shares(outcome: Outcome, *, counted: bool) -> tuple[Word, ...]:
    if isinstance(outcome, Expression):
        return (Phrase("compare.undecided"),)
    return (Phrase("compare.zero_one"),) if counted else ()


def _within_blocks(
    grouped: "Table", outcome: Outcome, names: tuple[str, str], *, counted: bool
) -> Study[TwoSampleResult]:
    said = _said_of_shares(outcome, counted=counted)
    blocks = len(grouped.by[0].values)

    def made(release: Release) -> TwoSampleResult:
        cells = _cells(release, 2 * blocks, 2).reshape(blocks, 2, 2)
        compared = ComparedBlocks(
            yes=cells[..., 0], no=cells[..., 1], noise=CellNoise.of(release.statement.law), seeded=seeded_by(release)
        )
        return _result(release, compared, names, outcome, said)

    question = grouped.group_by(outcome=_split(outcome, counted=counted)).count()
    return Study(question=question, made=made, foreseen=_Foreseen("shares", blocks=blocks))


def _of_means(grouped: "Table", outcome: str | Term, names: tuple[str, str], bins: object) -> Study[TwoSampleResult]:
    del bins
    of = clamped(outcome, grouped.bounds)
    said: tuple[Word, ...] = (Phrase("compare.maybe_zero_one"),) if of.low == 0 and of.high == 1 else ()

    def made(release: Release) -> TwoSampleResult:
        (one, noise), (two, _) = (means.parts_of(each) for each in release["variance"].moments)
        parts = np.stack([one, two])
        seed = seeded_by(release)
        compared = ComparedMeans(
            means=means.group_means(parts, noise),
            tested=lambda draws: float(means.mean_difference_p_values(parts, noise, seed(), draws)),
            noise_in_rows=(3 * noise.variance,) * 2,
            low=float(of.low),
            width=float(of.width),
            released=(float(one.sum()), float(two.sum())),
        )
        return _result(release, compared, names, outcome, said)

    foreseen = _Foreseen("means", low=of.low, high=of.high)
    return Study(question=grouped.variance(outcome), made=made, foreseen=foreseen, told=foreseen.noise_of_means)


def _of_ranks(
    grouped: "Table", outcome: str | Term, names: tuple[str, str], bins: int | Sequence[object] | None
) -> Study[TwoSampleResult]:
    term = _classes(grouped, outcome, bins)
    asked = grouped.group_by(bin=term)
    classes = len(asked.by[-1].values)

    def made(release: Release) -> TwoSampleResult:
        variance = float(release.statement.law.variance)
        return _result(release, ComparedRanks(cells=_cells(release, 2, classes), variance=variance), names, outcome)

    return Study(question=asked.count(), made=made, foreseen=_Foreseen("ranks", classes=classes))


def _classes(grouped: "Table", outcome: str | Term, bins: int | Sequence[object] | None) -> Term:
    """The class of a value: equal steps between its bounds, or between given edges, open at both ends."""
    value = col(outcome) if isinstance(outcome, str) else outcome
    if bins is None or isinstance(bins, int):
        number = CLASSES if bins is None else bins
        if isinstance(number, bool) or not 2 <= number <= MOST_CLASSES:
            raise InvalidInput(f"bins={number} must be between 2 and {MOST_CLASSES}; nothing was done.")
        of = clamped(outcome, grouped.bounds)
        edges: list[object] = [of.low + of.width * Fraction(step, number) for step in range(1, number)]
        edges = [int(edge) if edge == int(edge) else edge for edge in edges if isinstance(edge, Fraction)]
    else:
        edges = list(bins)
        if not 1 <= len(edges) < MOST_CLASSES:
            raise InvalidInput(f"bins=[...] needs 1 to {MOST_CLASSES - 1} edges; nothing was done.")
    return value.cut(edges, below=True, above=True)


def _cells(release: Release, groups: int, categories: int) -> Numbers:
    """The noisy counts, groups down and categories across."""
    return np.array(release.values, dtype=float).reshape(groups, categories)


def _result(
    release: Release, compared: GroupComparison, names: tuple[str, str], outcome: Outcome, said: tuple[Word, ...] = ()
) -> TwoSampleResult:
    return TwoSampleResult(compared=compared, names=names, outcome=_named(outcome), sources=(release,), said=said)


def _scores(values: Sequence[object], scores: Sequence[float] | None) -> tuple[float, ...]:
    """What ordered groups stand for: given numbers, whole numbers that they are, or their places."""
    if scores is not None:
        if len(scores) != len(values) or len(set(scores)) < 2 or not all(math.isfinite(each) for each in scores):
            raise InvalidInput(f"scores=... needs {len(values)} finite numbers, not all equal; nothing was done.")
        return tuple(float(each) for each in scores)
    if all(type(each) is int for each in values):
        return tuple(float(each) for each in values)  # type: ignore[arg-type]  # whole numbers
    return tuple(map(float, range(1, len(values) + 1)))


def _named(value: Outcome) -> str:
    match value:
        case str():
            return value
        case Term():
            return written(value.node)
    return written(value)


def _text(value: object) -> str:
    return str(getattr(value, "value", value))


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """What a comparison can find at a spend, by a normal approximation with the noise in it."""

    kind: str
    blocks: int = 1
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    classes: int = 1

    def __call__(self, preview: Preview, rows: int | None) -> tuple[str, ...]:
        """Sentences for a preview."""
        deviation = float(preview.mechanism.law.variance) ** 0.5
        parts = {"shares": 2, "means": 3, "ranks": self.classes}[self.kind]
        deviation *= self.blocks**0.5
        if self.kind == "means":
            deviation /= STEPS
        least = math.ceil(2 * deviation * parts**0.5) + 1
        lines = [f"A group needs about {least:,} rows for a verdict at all; with fewer there is no p-value."]
        if rows is None:
            return (*lines, "Say rows=… for the difference that can be found.")
        if rows < least:
            return (*lines, f"With {rows:,} rows in each group no verdict is likely.")
        return (*lines, self._sentence(rows, deviation))

    def noise_of_means(self, preview: Preview, rows: int | None) -> str:
        """How far noise alone moves a mean, in the units of the value; that of the released variances nobody reads."""
        percent = plain(100 * preview.confidence)
        start = f"{preview.numbers} group(s) at {preview.spend}"
        if rows is None:
            depends = "how far noise moves a mean depends on how many rows a group has; say rows=…."
            return f"{start}: {depends} Nothing was read or spent."
        noise = CellNoise.of(preview.mechanism.law, STEPS)
        # The three sums of a value enter its mean with −μ, ½ − μ and 1 − μ: most at a bound.
        size = float(multiplier(noise.fourth * (1 + 0.5**4) / (1.25 * noise.variance) ** 2, float(preview.confidence)))
        margin = float(self.high - self.low) * size * (1.25 * noise.variance) ** 0.5 / max(rows, 1)
        return (
            f"{start}: the noise alone moves each mean by ±{margin:.3g} at the most with {percent}% confidence, in the "
            f"units of the value and with {rows:,} rows in a group. Nothing was read or spent."
        )

    def _sentence(self, rows: int, deviation: float) -> str:
        intro = f"With {rows:,} rows in each group, 80 of 100 such studies find (p < 0.05)"
        match self.kind:
            case "shares":
                found = [_detected(base, rows, deviation) for base in (0.1, 0.5)]
                texts = [
                    f"{base:.0%} against {math.ceil(100 * (base + size))}% or more"
                    if base + size < 1
                    else f"nothing at {base:.0%}"
                    for base, size in zip((0.1, 0.5), found, strict=True)
                ]
                return f"{intro} {texts[0]}, and {texts[1]}."
            case "means":
                width = float(self.high - self.low)
                sizes = [
                    POWERED * (2 * (share**2 / rows + 0.5 * deviation**2 / rows**2)) ** 0.5 * width
                    for share in (0.125, 0.25)
                ]
                return (
                    f"{intro} a difference of means of {sizes[0]:.3g} where the standard deviation is {width / 8:.3g}, "
                    f"and of {sizes[1]:.3g} where it is {width / 4:.3g} (range {plain(self.low)} to "
                    f"{plain(self.high)})."
                )
        noise = deviation**2 * (2 * self.classes * rows**2 / 3 + deviation**2 * self.classes**2) / (4 * rows**4)
        size = POWERED * ((2 * rows + 1) / (12 * rows**2) + noise) ** 0.5
        return f"{intro} a chance of {min(0.5 + size, 1.0):.2f} or more that a value of the first group is the larger."


def _detected(base: float, rows: int, deviation: float) -> float:
    """The least difference above a share that is found in 80 of 100 runs."""
    low, high = 0.0, 1.0 - base
    for _ in range(40):
        size = (low + high) / 2
        variance = sum(p * (1 - p) / rows + deviation**2 * ((1 - p) ** 2 + p**2) / rows**2 for p in (base, base + size))
        low, high = (size, high) if size < POWERED * variance**0.5 else (low, size)
    return high
