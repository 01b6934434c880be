"""The count of rows, in all or by group over public keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Family, Record, Relation, Unit, User, describe
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput, NotDeclared, Refused

__all__ = ["Count", "KeyValue", "Keys"]

KeyValue = str | int | bool
MOST_CELLS = 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """A column to group by, with the public list of all values that it may take, empty groups included."""

    KIND: ClassVar[str] = "keys"
    VERSION: ClassVar[int] = 1
    column: str
    values: tuple[KeyValue, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInput(f"the key list of {self.column!r} is empty; nothing was done. Declare its values.")
        kinds = {type(value) for value in self.values}
        if len(kinds) > 1 or not kinds <= {str, int, bool}:
            raise InvalidInput(
                f"keys of {self.column!r} must be all text, all whole numbers or all truth values. Nothing was done."
            )
        if any(not _storable(value) for value in self.values):
            raise InvalidInput(
                f"keys of {self.column!r} must be whole numbers of 64 bits, or text without half a surrogate pair. "
                "Nothing was done."
            )
        if len(set(self.values)) != len(self.values):
            raise InvalidInput(f"the key list of {self.column!r} names a value twice; nothing was done.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many rows meet ``where``, in each cell of the product of ``by`` (one cell if there are no keys).

    Guarantee: :meth:`sensitivity` bounds the move of the whole vector of counts for one unit; brute-forced over
    neighbours, and attained (but for a bare count of all rows under replace, which moves less). Assumes: the limit is
    enforced by the engine for this very grouping; rows whose key is not declared, or whose person is not told, do not
    count. Public: every field. Proof: docs/proofs/bounded_counts.md
    """

    KIND: ClassVar[str] = "query.count"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    where: Expression | None = None
    by: tuple[Keys, ...] = ()

    def __post_init__(self) -> None:
        columns = [keys.column for keys in self.by]
        if len(set(columns)) != len(columns):
            raise InvalidInput("a column can be grouped by once only; nothing was done.")
        if {"low", "high", self.measure} & set(columns):
            raise InvalidInput("a key column must not be called count, low or high: these name the answer's columns.")
        if self.size > MOST_CELLS:
            raise InvalidInput(
                f"the declared keys make {self.size:,} cells, more than {MOST_CELLS:,}; nothing was done. "
                "Group by fewer columns, or declare fewer values."
            )

    @property
    def size(self) -> int:
        """How many cells there are."""
        return prod(len(keys.values) for keys in self.by)

    @property
    def measure(self) -> str:
        """The name of the value column."""
        return "count"

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """The key columns, in the order of the cells."""
        cells = list(product(*(keys.values for keys in self.by)))
        return {keys.column: [cell[place] for cell in cells] for place, keys in enumerate(self.by)}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the counts.

        A record is one row in one cell. A person fills at most ``groups`` cells with ``rows_per_group`` each; a family
        can put all its members into the same cells, and whoever is replaced may leave some cells and enter others.

        >>> from sfumato.core.units import user
        >>> regions = Keys(column="region", values=("north", "south", "west"))
        >>> count = Count(dataset=Dataset(name="visits", edition="1"), by=(regions,))
        >>> count.sensitivity(user("id", relation="replace"), Limit(groups=1, rows_per_group=1)).l1
        L1(value=Fraction(2, 1))
        """
        match unit, limit:
            case Record(), None:
                cells, height = 1, 1
            case User(), Limit():
                cells, height = limit.groups, limit.rows_per_group
            case Family(), Limit():
                cells, height = limit.groups, limit.rows_per_group * unit.size
            case Record(), Limit():
                raise Refused("a limit means nothing for single rows: under the record unit each row counts once.")
            case User() | Family(), None:
                raise NotDeclared(
                    f"{describe(unit)} needs a limit: how much of each person counts. Nothing was read and nothing was "
                    "spent. Declare limit=sf.Limit(groups=…, rows_per_group=…)."
                )
            case _:
                raise Refused(f"rows of a table are not protected under {describe(unit)}; nothing was done.")
        members = unit.size if isinstance(unit, Family) else 1
        spread = cells * members
        match unit.relation:
            case Relation.ADD_REMOVE:
                full, touched = min(cells, self.size), min(spread, self.size)
            case Relation.REPLACE:
                full, touched = min(2 * cells, self.size), min(2 * spread, self.size)
        return Sensitivity.of(l0=touched, l1=full * height, l2_squared=full * height**2, linf=height)


def _storable(value: KeyValue) -> bool:
    """Whether a column can hold a key, so that nothing can go wrong with it after the charge."""
    if isinstance(value, str):
        return not any("\ud800" <= sign <= "\udfff" for sign in value)
    return -(2**63) <= value < 2**63
