"""The server's side: how many reports support each value, and what that says of the shares, with intervals.

Two intervals, and the result says which it is:

- ``exact``: Clopper and Pearson's for the share of supporting reports, turned into one for the share of the value, and
  never closer to what was seen than one report. It covers for every number of reports, both the share among those who
  reported (a fixed population) and, where they were drawn independently, that of the population they came from.
- ``normal``: all shares that are within a multiple of their own standard error of the estimate, for a fixed population.
  Widened by half a report, and for the skewness of what is added up, it misses no more often than stated. It is
  refused where few of the reports are expected to err (below 30, and more for many values at once).

Reports that no honest population would have sent, but for one case in a million, are named (``unfit``, ``fits``) and
warned of: an interval that is cut to what is possible would hide them.

Both take the reports for independent, so each of them for that of another person: one round of a collection at a time.

Proof: docs/proofs/local_oracles.md
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any  # reports of any oracle: numbers or bitmaps, each checked

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Exact, probability
from sfumato.errors import InvalidInput
from sfumato.local.bitmaps import BLOCK, loops
from sfumato.local.draws import IntArray
from sfumato.local.fields import field, point
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.inbox import listed
from sfumato.local.kary import KaryResponse
from sfumato.local.local_hash import LocalHash
from sfumato.local.means import DuchiMean, HybridMean, Mean, PiecewiseMean
from sfumato.local.oracle import Oracle
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.simulate import TABLE, bits_set, bucket_table, buckets
from sfumato.local.subset import SubsetSelection

__all__ = ["MeanEstimate", "Shares", "UnfitReports", "counts", "estimate_mean", "estimate_shares"]

FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]
_CELLS = 1 << 22  # of a table that is worked on at a time
UNLIKELY = 1e-6  # how often honest reports may be called unfit
_SLACK = 1e-9  # by which limits are widened for the rounding of the special functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Estimated shares of all values with their intervals; estimates are unbiased and may lie outside 0 to 1.

    ``unfit`` names the values whose number of reports no share from 0 to 1 explains: whatever the population, reports
    that were drawn as asked come out like this in less than one case in a million. Then the intervals, which are cut to
    0 to 1, mean nothing.
    """

    reports: int
    estimates: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    method: str
    joint: bool
    unfit: tuple[int, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether some honest population explains the reports."""
        return not self.unfit


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """An estimated mean of values in [−1, 1] with its interval.

    ``fits`` says whether some honest population explains the reports: where it does not, reports that were drawn as
    asked come out like this in less than one case in a million, and the interval means nothing.
    """

    reports: int
    estimate: float
    low: float
    high: float
    confidence: float
    method: str
    fits: bool = True


class UnfitReports(UserWarning):
    """No honest population explains these reports."""


def counts(oracle: Oracle, reports: object, *, values: Sequence[int] | None = None) -> IntArray:
    """Count for each value (or for those named) the reports that support it.

    ``reports`` is what ``simulate.reports`` gives, or a list of reports of clients in any order. A report that no
    client can have sent is refused, and so is a mapping or a set. Public: all of it.

    >>> from sfumato.local import KaryResponse
    >>> counts(KaryResponse(epsilon=1, values=3), [0, 2, 2]).tolist()
    [1, 0, 2]
    """
    asked = np.arange(oracle.values) if values is None else np.asarray(values)
    if (
        asked.ndim != 1
        or asked.dtype.kind not in "iu"
        or (asked.size and not 0 <= asked.min() <= asked.max() < oracle.values)
    ):
        raise InvalidInput(f"values must be whole numbers from 0 to {oracle.values - 1}; nothing was counted.")
    return _supported(oracle, _packed(oracle, reports), asked.astype(np.int64, copy=False))


def _supported(oracle: Oracle, given: NDArray[Any], asked: IntArray) -> IntArray:
    match oracle:
        case KaryResponse():
            return np.bincount(given, minlength=oracle.values)[asked]
        case HadamardResponse():
            signed = _walsh(np.bincount(given, minlength=oracle.columns))
            return ((len(given) + signed[asked + 1]) // 2).astype(np.int64)
        case LocalHash():
            return _hashed(oracle, given, asked)
        case ProjectiveResponse():
            return _on_hyperplanes(oracle, given, asked)
    return _columns(given)[asked]


def estimate_shares(
    oracle: Oracle, reports: object, *, confidence: Exact = "0.95", method: str = "exact", joint: bool = False
) -> Shares:
    """Estimate the share of every value, with intervals; ``joint`` makes all of them hold at once.

    Assumes: one report a person, and each drawn independently of the others. Several reports of the same persons are
    not: whoever pools the rounds of a collection, memoised or not, gets intervals that are too narrow. Estimate each
    round by itself, with ``Inbox.reports_of(round)``.

    ``exact`` holds for every number of reports. ``normal`` is refused where n·min(p(1 − p), q(1 − q)) is below 30 or
    z⁶/13, for p = hit, q = stray and the normal quantile z of one interval.

    >>> from sfumato.local import KaryResponse
    >>> shares = estimate_shares(KaryResponse(epsilon=3, values=2), [0] * 400 + [1] * 600)
    >>> [round(float(share), 3) for share in (shares.low[1], shares.estimates[1], shares.high[1])]
    [0.576, 0.61, 0.644]
    """
    given = _packed(oracle, reports)
    n = len(given)
    if not n:
        raise InvalidInput("there are no reports; nothing was estimated.")
    supported = _supported(oracle, given, np.arange(oracle.values))
    sure = probability(confidence, "confidence")
    miss = float(1 - sure)
    each = miss / oracle.values if joint else miss
    p, q = float(oracle.hit), float(oracle.stray)
    estimates = (supported / n - q) / (p - q)
    match method:
        case "exact":
            low, high = ((end - q) / (p - q) for end in _binomial_ends(supported, n, each))
        case "normal":
            erring = n * min(p * (1 - p), q * (1 - q))
            _enough(erring, each, "exact")
            low, high = _normal_ends(estimates, n, p, q, _skewed(each, erring))
        case _:
            raise InvalidInput(f"method = {method!r} is unknown; nothing was estimated. Give 'exact' or 'normal'.")
    far = [(end - q) / (p - q) for end in _binomial_ends(supported, n, UNLIKELY / oracle.values)]
    unfit = tuple(np.flatnonzero((far[0] > 1) | (far[1] < 0)).tolist())
    if unfit:
        _warn(f"{len(unfit):,} of {oracle.values:,} values")
    return Shares(
        reports=n,
        estimates=estimates,
        low=np.clip(low, 0, 1),
        high=np.clip(high, 0, 1),
        confidence=float(sure),
        method=method,
        joint=joint,
        unfit=unfit,
    )


def estimate_mean(
    asked: Mean, reports: object, *, confidence: Exact = "0.95", method: str | None = None
) -> MeanEstimate:
    """Estimate the mean among those who reported, with an interval from the worst variance V, which is public.

    Assumes: one report a person, and each drawn independently of the others; estimate each round of a collection by
    itself.

    ``bernstein`` holds for every number of reports. ``normal`` is narrower and refused where n·V/(reach + 1)² is below
    30 or z⁶/13, z its normal quantile: for ``HybridMean`` below 181 reports at ε = 1, 5,000 at ε = 8 and 270,000 at
    ε = 16, where few of them err. Left out, it is ``normal`` where that is not refused, else ``bernstein``; the result
    says which. Both allow for the rounding of values to points.

    >>> from sfumato.local import DuchiMean
    >>> mean = estimate_mean(DuchiMean(epsilon=1), [1] * 5500 + [0] * 4500)
    >>> round(mean.estimate, 3), round(mean.high - mean.estimate, 3), mean.method
    (0.216, 0.043, 'normal')
    """
    given = _numbered(asked, reports)
    if not given.size:
        raise InvalidInput("there are no reports; nothing was estimated.")
    sure = probability(confidence, "confidence")
    n, miss = given.size, float(1 - sure)
    if not miss:
        raise InvalidInput("no interval of a mean is certain; nothing was estimated. Give a confidence below 1.")
    variance, reach = float(asked.worst_variance), float(asked.reach)
    erring = n * variance / (reach + 1) ** 2
    if method is None:
        method = "normal" if erring >= _erring_needed(miss) else "bernstein"
    match method:
        case "normal":
            _enough(erring, miss, "bernstein")
            margin = _quantile(_skewed(miss, erring)) * np.sqrt(variance / n) + reach / n  # half a report
        case "bernstein":
            margin = _bernstein(n, variance, reach, miss)
        case _:
            raise InvalidInput(f"method = {method!r} is unknown; nothing was estimated. Give 'normal' or 'bernstein'.")
    middle = float(_numbers(asked, given).mean())
    margin = float(margin) + 1 / asked.steps + _SLACK
    fits = abs(middle) - _bernstein(n, variance, reach, UNLIKELY) - 1 / asked.steps - _SLACK <= 1
    if not fits:
        _warn("the mean")
    return MeanEstimate(
        reports=n,
        estimate=middle,
        low=max(-1.0, min(1.0, middle - margin)),
        high=min(1.0, max(-1.0, middle + margin)),
        confidence=float(sure),
        method=method,
        fits=fits,
    )


def _numbers(asked: Mean, given: IntArray) -> FloatArray:
    match asked:
        case DuchiMean():
            return np.where(given == 1, float(asked.reach), -float(asked.reach))
        case PiecewiseMean():
            return np.asarray(float(asked.unit) * (given - (asked.points - 1) / 2))
        case HybridMean():
            return np.where(given < 2, _numbers(asked.duchi, given), _numbers(asked.piecewise, given - 2))


def _packed(oracle: Oracle, reports: object) -> NDArray[Any]:
    """Reports as one array, each of them possible."""
    if isinstance(oracle, KaryResponse | HadamardResponse | LocalHash | ProjectiveResponse):
        return _numbered(oracle, reports)
    width = -(-oracle.values // 8)
    if isinstance(reports, np.ndarray):
        if reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != width:
            raise InvalidInput(f"these reports are not bitmaps of {width} bytes, one a row; nothing was counted.")
        wrong = np.zeros(len(reports), dtype=np.bool_)
        if oracle.values % 8:
            wrong |= reports[:, -1] >> (oracle.values % 8) != 0
        if isinstance(oracle, SubsetSelection):
            wrong |= bits_set(reports) != oracle.size
        _refuse(int(wrong.sum()), len(reports))
        return reports
    rows: list[Any] = listed(reports)
    _refuse(sum(not oracle.possible(row) for row in rows), len(rows))
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), width)


def _numbered(
    asked: "KaryResponse | HadamardResponse | LocalHash | ProjectiveResponse | Mean", reports: object
) -> IntArray:
    """Reports that are numbers as one array, each of them possible."""
    if isinstance(reports, np.ndarray):
        if reports.ndim != 1 or reports.dtype.kind not in "iu":
            raise InvalidInput("these reports are not whole numbers, one for each; nothing was counted.")
        least = next(asked.outputs())
        if reports.size and not least <= reports.min() <= reports.max() < asked.kinds:
            _refuse(int(((reports < least) | (reports >= asked.kinds)).sum()), len(reports))
        return reports.astype(np.int64, copy=False)
    given: list[Any] = listed(reports)
    _refuse(sum(not asked.possible(report) for report in given), len(given))
    return np.array(given, dtype=np.int64)


def _refuse(wrong: int, of: int) -> None:
    if wrong:
        raise InvalidInput(
            f"{wrong:,} of {of:,} reports are such as no client can have sent; nothing was counted. "
            "Leave them out with sift(…), or let an Inbox take what comes in."
        )


def _columns(bitmaps: NDArray[np.uint8]) -> IntArray:
    """Count the set bits of each column, in words of 64 bits and blocks of rows."""
    rows, width = bitmaps.shape
    padded = -(-width // 8) * 8
    total = np.zeros((8, padded), dtype=np.int64)
    fast = loops(bitmaps.size)
    add = _add_columns if fast is None else fast.columns
    for start in range(0, rows, BLOCK):
        part = bitmaps[start : start + BLOCK]
        if part.shape != (BLOCK, padded):
            whole = np.zeros((-(-len(part) // 8) * 8, padded), dtype=np.uint8)
            whole[: len(part), :width] = part
            part = whole
        add(np.ascontiguousarray(part).view(np.uint64), total)
    return total.T.reshape(-1)


def _add_columns(rows: NDArray[np.uint64], total: IntArray) -> None:
    """Sums of words, of 255 rows at a time so that no byte overflows."""
    mask = np.uint64(0x0101010101010101)
    for start in range(0, len(rows), 255):
        lanes = rows[start : start + 255]
        for bit in range(8):
            sums = (lanes >> np.uint64(bit) & mask).sum(axis=0, dtype=np.uint64)
            total[bit] += sums.view(np.uint8)


def _walsh(column: IntArray) -> IntArray:
    """The fast Walsh–Hadamard transform, in whole numbers."""
    signed, half = column.astype(np.int64), 1
    while half < signed.size:
        pairs = signed.reshape(-1, 2, half)
        signed = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).reshape(-1)
        half *= 2
    return signed


def _hashed(oracle: LocalHash, given: IntArray, asked: IntArray) -> IntArray:
    """For each value, how many reports name its bucket: by a table of all buckets where that is not too large."""
    if oracle.seeds * oracle.values <= TABLE:
        return _by_table(oracle, given)[asked]
    kinds, times = np.unique(given, return_counts=True)
    seeds, own = np.divmod(kinds, oracle.buckets)
    total, rows = np.zeros(asked.size, dtype=np.int64), max(1, _CELLS // max(1, asked.size))
    for start in range(0, kinds.size, rows):
        part = slice(start, start + rows)
        mine = buckets(oracle.buckets, oracle.digits, seeds[part, None], asked[None, :])
        total += times[part] @ (mine == own[part, None])
    return total


def _by_table(oracle: LocalHash, given: IntArray) -> IntArray:
    """Many reports are summed over seeds, by what the buckets of each hold; few are compared one by one."""
    table, total = bucket_table(oracle.buckets, oracle.digits, oracle.values), np.zeros(oracle.values, dtype=np.int64)
    if oracle.kinds <= 4 * given.size:
        held = np.bincount(given, minlength=oracle.kinds).reshape(oracle.seeds, oracle.buckets)
        for start in range(0, oracle.seeds, 256):
            block, places = held[start : start + 256], table[start : start + 256].astype(np.int64)
            total += np.take_along_axis(block, places, axis=1).sum(axis=0)
        return total
    seeds, own = np.divmod(given, oracle.buckets)
    rows = max(1, _CELLS // oracle.values)
    for start in range(0, given.size, rows):
        part = slice(start, start + rows)
        total += np.count_nonzero(table[seeds[part]] == own[part, None].astype(table.dtype), axis=0)
    return total


def _on_hyperplanes(oracle: ProjectiveResponse, given: IntArray, asked: IntArray) -> IntArray:
    """For each value, how many reports lie on its hyperplane; only points that were reported are looked at."""
    size = oracle.dimension
    if oracle.points * oracle.values <= _CELLS:
        every = _incidence(oracle.order, size, oracle.points, oracle.values)
        return (np.bincount(given, minlength=oracle.points) @ every)[asked].astype(np.int64)
    numbers = field(oracle.order)
    kinds, times = np.unique(given, return_counts=True)
    there = np.array([point(int(kind), oracle.order, size) for kind in kinds], dtype=np.int64).reshape(-1, size)
    mine = np.array([point(int(value), oracle.order, size) for value in asked], dtype=np.int64).reshape(-1, size)
    total = np.zeros(asked.size, dtype=np.int64)
    rows = max(1, _CELLS // max(1, asked.size))
    for start in range(0, kinds.size, rows):
        left = [column[:, None] for column in there[start : start + rows].T]
        product = numbers.inner(left, [column[None, :] for column in mine.T])
        total += times[start : start + rows] @ (product == 0)
    return total


@lru_cache(maxsize=4)
def _incidence(order: int, size: int, many: int, values: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    """Whether each point (rows) lies on each value's hyperplane (columns); floats that BLAS adds up exactly."""
    every = np.array([point(index, order, size) for index in range(many)], dtype=np.int64).T
    left, right = [row[:, None] for row in every], [row[None, :values] for row in every]
    table = np.asarray(field(order).inner(left, right) == 0, dtype=np.float32)
    table.setflags(write=False)
    return table


def _binomial_ends(supported: IntArray, n: int, miss: float) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's limits, no closer than one report; widened by the rounding of the special function."""
    from scipy.special import betaincinv

    seen = supported.astype(np.float64)
    with np.errstate(invalid="ignore"):
        low = np.where(seen > 0, betaincinv(np.maximum(seen, 1), n - seen + 1, miss / 2), 0.0)
        high = np.where(seen < n, betaincinv(seen + 1, np.maximum(n - seen, 1), 1 - miss / 2), 1.0)
    low = np.minimum(low, (seen - 1) / n) - _SLACK
    high = np.maximum(high, (seen + 1) / n) + _SLACK
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _normal_ends(estimates: FloatArray, n: int, p: float, q: float, miss: float) -> tuple[FloatArray, FloatArray]:
    """The shares f with (|estimate − f| − c)² ≤ z²(a + bf)/n: their own variance explains the estimate, as Wilson's.

    c is what half a report brings: counts are whole, and the normal distribution between them is not.
    """
    a = q * (1 - q) / (p - q) ** 2
    b = p * (1 - p) / (p - q) ** 2 - a
    unit, half = _quantile(miss) ** 2 / n, 0.5 / (n * (p - q))

    def end(seen: FloatArray, side: int) -> FloatArray:
        root: FloatArray = np.sqrt(np.maximum(unit * (a + b * seen) + (unit * b / 2) ** 2, 0))
        return seen + unit * b / 2 + side * root

    return end(estimates - half, -1), end(estimates + half, 1)


def _bernstein(n: int, variance: float, reach: float, miss: float) -> float:
    """Bernstein's bound of the mean of n reports."""
    log = np.log(2 / miss)
    return float(np.sqrt(2 * variance * log / n) + 2 * (reach + 1) * log / (3 * n))


def _warn(what: str) -> None:
    warnings.warn(
        f"no honest population explains these reports: they put {what} further from what is possible than randomised "
        "answers do in one case in a million. Somebody sent what was not drawn, or they are reports of another "
        "question. The estimates mean nothing.",
        UnfitReports,
        stacklevel=3,
    )


def _enough(erring: float, miss: float, instead: str) -> None:
    if erring < (needed := _erring_needed(miss)):
        raise InvalidInput(
            f"normal intervals would miss more often than stated: their measure of enough reports is {erring:.3g}, and "
            f"{needed:.3g} is needed; nothing was estimated. Give method={instead!r}, which holds for every number."
        )


def _erring_needed(miss: float) -> float:
    """How many erring reports make a sum of coins normal out to its quantile z: the skewness there is z³/(6√count)."""
    return max(30.0, _quantile(miss) ** 6 / 13)


def _skewed(miss: float, erring: float) -> float:
    """The misses to ask the normal distribution for, so that a sum of skewed coins misses no more than stated."""
    return miss / float(np.cosh(_quantile(miss) ** 3 / (6 * np.sqrt(erring))))


def _quantile(miss: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(miss / 2))
