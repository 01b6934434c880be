"""Nodes: their names, public or private, and where a name stands among them."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, cast

from sfumato.core.exact import natural
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import MOST_NODES
from sfumato.graphs.projection import mixed

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["Names", "Nodes", "column_of", "nodes_of"]

Names: TypeAlias = "NDArray[np.int64] | pa.Array"  # whole numbers of 64 bits, or texts; no value is missing
LEAST, MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Nodes:
    """``count`` nodes that are called 0, 1, …, or by ``names``: whole numbers or texts, in an order of their own.

    >>> nodes_of(["ward A", "ward B"]).places(column_of(["ward B", "street"])).tolist()
    [1, -1]
    """

    count: int
    names: tuple[int, ...] | tuple[str, ...] | None

    @property
    def kind(self) -> Type:
        """Whether nodes are called by whole numbers or by text."""
        return Type.TEXT if self.names and isinstance(self.names[0], str) else Type.WHOLE

    def places(self, column: Names) -> "NDArray[np.int64]":
        """Where each name stands; −1 for one that no node has. Sensitive."""
        import numpy as np

        if self.kind is Type.TEXT:
            import pyarrow as pa
            import pyarrow.compute as pc

            found = pc.index_in(column, value_set=pa.array(self.names, pa.large_string()))
            return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
        if self.names is None:
            return np.where((column >= 0) & (column < self.count), column, -1)
        names = np.array(self.names, dtype=np.int64)
        order = np.argsort(names, kind="stable")
        place = np.minimum(np.searchsorted(names[order], column), self.count - 1)
        return np.where(names[order][place] == column, order[place], -1)

    def keys(self, secret: bytes) -> "NDArray[np.uint64]":
        """For each node a number that depends on its name and a secret alone: what the projection orders edges by."""
        import numpy as np

        if self.kind is Type.TEXT:
            hashed = (blake2b(str(name).encode(), digest_size=8, key=secret).digest() for name in self.names or ())
            return np.frombuffer(b"".join(hashed), dtype=np.uint64)
        numbers = np.arange(self.count) if self.names is None else np.array(self.names, dtype=np.int64)
        salt = np.frombuffer(blake2b(secret, digest_size=8).digest(), dtype=np.uint64)[0]
        return mixed(mixed(numbers.astype(np.int64).view(np.uint64)) ^ salt)


def nodes_of(given: object) -> Nodes:
    """The nodes that were declared: how many there are, or all their names, each once.

    >>> nodes_of(3).count
    3
    """
    if _whole(given):
        return Nodes(count=natural(int(given), "nodes", most=MOST_NODES), names=None)
    listed = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise InvalidInput(
            f"nodes are a number, or a list of names, and not a {type(given).__name__}; nothing was done."
        )
    names = tuple(listed)
    if not names or len(names) > MOST_NODES:
        raise InvalidInput("a graph needs at least one node; nothing was done. Say nodes=4039, or list their names.")
    whole = all(map(_whole, names))
    if not whole and not all(isinstance(name, str) for name in names):
        raise InvalidInput("names of nodes are all whole numbers or all texts; nothing was done.")
    if whole and not all(LEAST <= name <= MOST for name in names):
        raise InvalidInput("a node is called by a whole number of more than 64 bits; nothing was done. Use texts.")
    if len(set(names)) != len(names):
        raise InvalidInput("two nodes have one name; nothing was done. Name each node once.")
    return Nodes(count=len(names), names=tuple(int(name) for name in names) if whole else tuple(map(str, names)))


def nodes_in(*columns: Names) -> Nodes:
    """The nodes that some columns name, in the order of their names. Sensitive."""
    import numpy as np

    if all(isinstance(column, np.ndarray) for column in columns):
        numbers: list[int] = np.unique(np.concatenate(columns)).tolist()
        return Nodes(count=len(numbers), names=tuple(numbers))
    written = cast("tuple[pa.Array, ...]", columns)
    texts: list[str] = sorted({name for column in written for name in column.unique().to_pylist()})
    return Nodes(count=len(texts), names=tuple(texts))


def column_of(names: Iterable[object]) -> Names:
    """Names from Python as a column: all whole numbers of 64 bits, or all texts; others are refused, and not shown.

    >>> column_of([3, 2**70])
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: a node is called by a whole number of more than 64 bits; nothing was done. Use texts.
    """
    listed = list(names)
    if all(isinstance(name, str) for name in listed) and listed:
        import pyarrow as pa

        return pa.array(listed, pa.large_string())
    if not all(map(_whole, listed)):
        raise InvalidInput("names of nodes are all whole numbers or all texts; nothing was done.")
    whole = cast("list[int]", listed)  # of any library
    if not all(LEAST <= name <= MOST for name in whole):
        raise InvalidInput("a node is called by a whole number of more than 64 bits; nothing was done. Use texts.")
    import numpy as np

    return np.array([int(name) for name in whole], dtype=np.int64)


def _whole(name: object) -> TypeGuard[Integral]:
    """Whether something is a whole number, of Python or of NumPy; a truth value is not."""
    return not isinstance(name, bool) and isinstance(name, Integral)
