"""The minimiser of a regularised logistic loss, with a gradient that is proven to be small.

Newton steps in floating point find it, and count for nothing: what counts is an upper bound of the gradient where they
end, rounded outward. Where that bound is too large, gradient steps in exact arithmetic go on until it is not, and they
always get there. So the residual holds for every data set, and none is refused. Proof: docs/proofs/paradigms.md
"""

from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from sfumato.core import enclosures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["gradient_bound", "held_to_one", "minimiser"]

Floats: TypeAlias = "NDArray[np.float64]"

ROUND = 2.0**-53
CHUNK = 4096
NEWTON = 60
SHRINK = 1 + 2.0**-28
LARGEST = 1e100


def held_to_one(rows: Floats) -> Floats:
    """Rows scaled down, where they must be, to a Euclidean norm of at most 1; values that are not numbers become 0.

    Guarantee: the norms are at most 1 exactly, for up to 2^20 features: a computed norm errs by a factor of at most
    1 + 2^-32, the division by 1 + 2^-52, and rows are shrunk by 1 + 2^-28 more.

    >>> import numpy as np
    >>> held_to_one([[3.0, 4.0], [0.3, np.nan]]).round(6).tolist()
    [[0.6, 0.8], [0.3, 0.0]]
    """
    import numpy as np

    given = np.array(rows, dtype=np.float64)
    given = np.clip(np.where(np.isfinite(given), given, 0.0), -LARGEST, LARGEST)
    norms = np.sqrt((given * given).sum(axis=1, keepdims=True))
    return given / np.maximum(1.0, norms * SHRINK) if len(given) else given


def minimiser(
    rows: Floats, signs: "ArrayLike", *, number: int, regularisation: Fraction, residual: Fraction
) -> list[Fraction]:
    """Weights at which the gradient is at most ``residual``, whatever the data. Sensitive.

    ``rows`` have norms of at most 1, ``signs`` are 1 and −1, and the mean is over the public ``number``.

    >>> half, small = Fraction(1, 2), Fraction(1, 10**9)
    >>> found = minimiser([[1.0], [1.0]], [1, 1], number=2, regularisation=half, residual=small)
    >>> [round(float(weight), 6) for weight in found]  # w/2 = 1/(1 + e^w)
    [0.674832]
    """
    import numpy as np

    pulls = np.asarray(rows, dtype=np.float64) * np.asarray(signs, dtype=np.float64)[:, None]
    weights = _newton(pulls, number, float(regularisation))
    bound = gradient_bound(pulls, weights, number=number, regularisation=regularisation)
    if bound <= residual:
        return [Fraction(float(weight)) for weight in weights]
    return _descent(pulls, weights, number, regularisation, residual)


def gradient_bound(pulls: Floats, weights: Floats, *, number: int, regularisation: Fraction) -> Fraction:
    """An upper bound of the norm of the gradient at ``weights``; infinity is a large number.

    Guarantee: at least the exact norm, for ``pulls`` = y·x of norm at most 1. Assumes: IEEE doubles, sums in any order,
    and an exponential within 4 units in the last place.
    """
    import numpy as np

    count, width = pulls.shape
    length = float(np.sqrt((weights * weights).sum())) * (1 + 2.0**-30)
    if not np.isfinite(length):
        return Fraction(2**200)
    total = np.zeros(width)
    for at in range(0, count, CHUNK):
        part = pulls[at : at + CHUNK]
        total += part.T @ _pushed(part @ weights)
    found = float(regularisation) * weights - total / number
    norm = float(np.sqrt((found * found).sum())) * (1 + 2.0**-30)
    # Of one row: its product with the weights errs by γ(width)·length, which the slope 1/4 of the logistic function
    # passes on; the function itself by 16 units; of the sum: γ(CHUNK + chunks + 4) times the norms that are added up.
    terms = _gamma(width) * length / 4 + 16 * ROUND + _gamma(CHUNK + count // CHUNK + 5)
    error = count / number * terms * 2 + 8 * ROUND * float(regularisation) * length + width * 2.0**-500
    return Fraction(norm + error) * (1 + Fraction(1, 2**40))


def _pushed(products: Floats) -> Floats:
    """1/(1 + e^z), the size of the gradient of one row, without overflow."""
    import numpy as np

    small = np.exp(-np.abs(products))
    return np.where(products >= 0, small / (1 + small), 1 / (1 + small))


def _gamma(terms: int) -> float:
    return terms * ROUND / (1 - terms * ROUND)


def _newton(pulls: Floats, number: int, regularisation: float) -> Floats:
    """Damped Newton steps in floating point; a start, nothing more."""
    import numpy as np

    width = pulls.shape[1]
    weights = np.zeros(width)
    with np.errstate(all="ignore"):
        value = _objective(pulls, weights, number, regularisation)
        for _ in range(NEWTON):
            push = _pushed(pulls @ weights)
            gradient = regularisation * weights - pulls.T @ push / number
            curved = (pulls * (push * (1 - push))[:, None]).T @ pulls / number + regularisation * np.eye(width)
            try:
                step = np.linalg.solve(curved, gradient)
            except np.linalg.LinAlgError:
                break
            share, there = 1.0, weights - step
            while (reached := _objective(pulls, there, number, regularisation)) > value and share > 1e-9:
                share /= 2
                there = weights - share * step
            if not reached <= value or not np.isfinite(there).all():
                break
            small = np.abs(there - weights).max() <= 1e-10 * max(1.0, np.abs(weights).max())
            weights, value = there, reached
            if small:  # the next one would be smaller by as much again
                break
    return weights


def _objective(pulls: Floats, weights: Floats, number: int, regularisation: float) -> float:
    import numpy as np

    return float(np.logaddexp(0, -(pulls @ weights)).sum() / number + regularisation / 2 * (weights @ weights))


def _descent(
    pulls: Floats, start: Floats, number: int, regularisation: Fraction, residual: Fraction, *, bits: int = 64
) -> list[Fraction]:
    """Gradient steps in exact arithmetic until the gradient is small enough; they end for every data set.

    A step without rounding shrinks the gradient by at least 1 − regularisation/smooth. Where one shrinks it by less
    than half of that, rounding is to blame, and the next one has more bits.
    """
    exact = [[Fraction(value) for value in row] for row in pulls.tolist()]
    weights = [Fraction(value) for value in start.tolist()]
    smooth = Fraction(len(exact), 4 * number) + regularisation
    before: Fraction | None = None
    while True:
        gradient = [regularisation * weight for weight in weights]
        for row in exact:
            push = _exact_push(sum((a * b for a, b in zip(row, weights, strict=True)), Fraction(0)), bits)
            gradient = [g - push * a / number for g, a in zip(gradient, row, strict=True)]
        norm = enclosures.sqrt(sum((g * g for g in gradient), Fraction(0))).high
        if norm + Fraction(len(exact) * 2, number * 2**bits) <= residual:
            return weights
        if before is not None and norm > before * (1 - regularisation / (2 * smooth)):
            bits += 64
        before = norm
        weights = [_dyadic(w - g / smooth, bits) for w, g in zip(weights, gradient, strict=True)]


def _exact_push(product: Fraction, bits: int) -> Fraction:
    """1/(1 + e^z) within 2·2^-bits: rounding z moves it by a quarter of that rounding at most."""
    if abs(product) >= bits:  # e^-bits is less than 2^-bits
        return Fraction(0 if product > 0 else 1)
    return _dyadic(1 / (1 + enclosures.exp(_dyadic(product, bits), bits=bits + 8).high), bits)


def _dyadic(value: Fraction, bits: int) -> Fraction:
    return Fraction(round(value * 2**bits), 2**bits)
