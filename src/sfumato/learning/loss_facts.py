"""What a loss is made of: a lambda within a loop is made anew each time round, and computes the same."""

from collections.abc import Callable
from types import CellType, FunctionType

from torch import Tensor

from sfumato.learning.unchanged import ATOMS, cell_content, global_names

__all__ = ["LossFacts"]


class LossFacts:
    """The code of a function and all that it sees by name, as they were when it was looked at; others are themselves.

    >>> first, again = (LossFacts(lambda x: x + 1) for _ in range(2))
    >>> first.same(again), first.same(LossFacts(len))
    (True, False)
    """

    __slots__ = ("_seen",)

    def __init__(self, loss: Callable[..., Tensor]) -> None:
        self._seen = _seen(loss)

    def same(self, other: "LossFacts") -> bool:
        """Whether both would compute the same: same code, and the same objects or equal plain values."""
        one, two = self._seen, other._seen
        return len(one) == len(two) and all(_same(*pair) for pair in zip(one, two, strict=True))


def _seen(loss: Callable[..., Tensor]) -> tuple[object, ...]:
    if type(loss) is not FunctionType:
        return (loss,)
    named, given = loss.__kwdefaults__ or {}, loss.__defaults__ or ()
    cells: tuple[CellType, ...] = loss.__closure__ or ()
    outside = (loss.__globals__.get(name) for name in global_names(loss.__code__))
    return (
        loss.__code__,
        loss.__globals__,
        len(given),
        *given,
        *named,
        *named.values(),
        *(cell_content(cell) for cell in cells),
        *outside,
    )


def _same(one: object, other: object) -> bool:
    return one is other or (type(one) is type(other) and type(one) in ATOMS and one == other)
