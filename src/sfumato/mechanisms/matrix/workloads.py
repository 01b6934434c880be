"""Workloads: what is asked of a vector of counts, as matrices of whole numbers with their Gram matrices."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.declaration import Form, nodes_of

__all__ = ["Floats", "Integers", "Workload", "all_range", "degrees", "given", "identity", "named", "prefix", "whole"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LARGEST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """W: ``rows`` linear questions with whole coefficients about a vector x; public, holds no data.

    ``form`` is the name by which a declaration knows the questions, "given" where it writes them out. ``gram`` is WᵀW.
    ``build`` makes W itself, which may be far larger than its Gram matrix, and ``apply`` is W·x.

    >>> prefix(3).matrix.tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """

    name: str
    form: Form
    rows: int
    gram: Integers
    build: Callable[[], Integers]
    apply: Callable[[Floats], Floats]

    @property
    def columns(self) -> int:
        """How many counts the questions are about."""
        return int(self.gram.shape[0])

    @property
    def matrix(self) -> Integers:
        """W, made anew at each call."""
        return self.build()


def prefix(n: int) -> Workload:
    """All running totals x₁ + … + x_t, t = 1, …, n.

    >>> prefix(4).gram[0].tolist()
    [4, 3, 2, 1]
    """
    place = np.arange(natural(n, "n"))
    return Workload(
        name=f"prefix-{n}",
        form="prefix",
        rows=n,
        gram=n - np.maximum.outer(place, place),
        build=lambda: np.tril(np.ones((n, n), dtype=np.int64)),
        apply=lambda x: np.cumsum(x),
    )


def all_range(n: int) -> Workload:
    """All sums over ranges x_i + … + x_j, i ≤ j: n(n + 1)/2 questions.

    >>> all_range(2).matrix.tolist(), all_range(2).gram.tolist()
    ([[1, 0], [1, 1], [0, 1]], [[2, 1], [1, 2]])
    """
    place = np.arange(natural(n, "n"))
    first, last = np.triu_indices(n)

    def apply(x: Floats) -> Floats:
        totals = np.concatenate([[0.0], np.cumsum(x)])
        return np.asarray(totals[last + 1] - totals[first], dtype=np.float64)

    return Workload(
        name=f"all-range-{n}",
        form="all range",
        rows=n * (n + 1) // 2,
        gram=(np.minimum.outer(place, place) + 1) * (n - np.maximum.outer(place, place)),
        build=lambda: ((first[:, None] <= place) & (place <= last[:, None])).astype(np.int64),
        apply=apply,
    )


def identity(n: int) -> Workload:
    """Each count by itself.

    >>> identity(2).matrix.tolist()
    [[1, 0], [0, 1]]
    """
    unit = np.eye(natural(n, "n"), dtype=np.int64)
    return Workload(name=f"identity-{n}", form="identity", rows=n, gram=unit, build=unit.copy, apply=lambda x: x)


def degrees(n: int) -> Workload:
    """The degrees of a graph of ``n`` nodes, asked of its n(n − 1)/2 edge indicators.

    >>> degrees(3).matrix.tolist()
    [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    """
    one, other = np.triu_indices(natural(n, "n", least=2), 1)
    node = np.arange(n)[:, None]
    return replace(given((node == one) | (node == other), name=f"degrees-{n}"), form="degrees")


def given(matrix: npt.ArrayLike, *, name: str = "given") -> Workload:
    """A workload written out by the caller.

    >>> given([[1, 1], [1, -1]]).gram.tolist()
    [[2, 0], [0, 2]]
    """
    table = whole(matrix, "workload")
    return Workload(
        name=name,
        form="given",
        rows=table.shape[0],
        gram=table.T @ table,
        build=table.copy,
        apply=lambda x: np.asarray(table @ x, dtype=np.float64),
    )


def named(form: str, columns: int) -> Workload:
    """The workload of this name for a number of counts.

    >>> named("degrees", 3).name
    'degrees-3'
    """
    known = {"prefix": prefix, "all range": all_range, "identity": identity}
    if form in known:
        return known[form](columns)
    nodes = nodes_of(columns)
    if form != "degrees" or nodes is None:
        raise InvalidInput(f"there is no workload {form!r} of {columns} counts; nothing was done.")
    return degrees(nodes)


def whole(matrix: npt.ArrayLike, name: str) -> Integers:
    """Read a matrix of whole numbers whose column norms fit 64 bits.

    >>> whole([[1.5]], "workload")
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: the workload must be a non-empty matrix of whole numbers; nothing was done.
    """
    table = np.asarray(matrix)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "bui":
        raise InvalidInput(f"the {name} must be a non-empty matrix of whole numbers; nothing was done.")
    largest = max(abs(int(table.max())), abs(int(table.min())))
    if 4 * largest**2 * table.shape[0] >= LARGEST:
        raise InvalidInput(
            f"the {name} has entries up to {largest}: its column norms do not fit 64 bits; use fewer bits."
        )
    return table.astype(np.int64)
