"""The statement of a release: everything that is published about it, and everything that is signed."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.documents import LEFT_OUT
from sfumato.core.events import PrivacyEvent
from sfumato.core.guarantees import Guarantee
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism, Query
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit

__all__ = ["OWNER_PROCESS", "Account", "Statement"]

OWNER_PROCESS = "owner process"
"""The custody of a ledger that another process kept than the one that read the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Where the release was charged, and how the account stood right after the charge.

    ``method`` is the filter that decides what still fits: ``basic`` (sums of ε and δ), ``zcdp`` (the sum of ρ) or
    ``rdp`` (the sum of Rényi losses at ``order``). The latter two have a cap of their own and what counts against it;
    ``spent`` is then read off ``filter_spent`` at the budget's δ.
    """

    KIND: ClassVar[str] = "account"
    VERSION: ClassVar[int] = 2
    name: str
    ledger: str
    budget: Budget
    spent: Budget
    releases: int
    method: str = "basic"
    order: Fraction | None = None
    filter_cap: Fraction | None = None
    filter_spent: Fraction | None = None
    custody: str | None = field(default=None, metadata={LEFT_OUT: True})
    """Who kept the ledger, where that was not the process that read the data: :data:`OWNER_PROCESS`."""
    witness: str | None = field(default=None, metadata={LEFT_OUT: True})
    """The public key of the witness that the ledger named at the charge: it notices an old copy of the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a release says of itself.

    Public: every field. ``values`` are the noisy numbers; nothing exact, and nothing whose value or presence depends
    on the data in another way, may ever become a field.
    """

    KIND: ClassVar[str] = "statement"
    VERSION: ClassVar[int] = 3
    identifier: str
    issued: str
    code: str
    dataset: Dataset
    unit: Unit
    limit: Limit | None
    query: Query
    sensitivity: Sensitivity
    mechanism: Mechanism
    law: Law
    event: PrivacyEvent
    guarantee: Guarantee
    spend: Budget
    account: Account
    values: tuple[int, ...]
    found: tuple[tuple[str | int | bool, ...], ...] = ()
    """Keys that the mechanism selected (private key discovery); one for each row of the answer."""
    derived: tuple[Dataset, ...] = ()
    """Private datasets of which the steward vouches that each row depends on the rows of one unit only."""
    reads: tuple[str, str] | None = field(default=None, metadata={LEFT_OUT: True})
    """The first and the last day of the data, where they were declared: what windows of time were charged by."""
