"""What a reader of laboratory files gives: the rows it could read, and how many it refused and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["LaboratoryRows"]

Rows = TypeVar("Rows")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LaboratoryRows(Generic[Rows]):
    """Rows that were read, and beside them numbers of refused rows by the reason.

    No refused row is quoted anywhere, and each row is judged by itself. Sensitive: ``rows`` and ``refused``, which are
    for the steward's eyes; to publish how many rows were refused is a release like any other.

    >>> LaboratoryRows(rows=[1, 2], refused={"malformed": 1})
    LaboratoryRows(rows and refused are for the steward's eyes)
    """

    rows: Rows
    refused: Mapping[str, int]

    def __repr__(self) -> str:
        return "LaboratoryRows(rows and refused are for the steward's eyes)"
