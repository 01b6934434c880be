"""The books: what follows from the record. One reducer keeps them in the database and replays them in memory.

:func:`admit` decides whether a charge may be entered; :func:`apply` enters what was decided. Both work on exact
rationals and on any :class:`Books`, so that a replay of the record gives the same books bit for bit.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.core.query import Dataset
from sfumato.errors import LedgerError
from sfumato.governance.balances import Balance
from sfumato.governance.entries import (
    AccountOpened,
    Committed,
    DatasetClosed,
    DatasetDeclared,
    Entry,
    Expired,
    LedgerOpened,
    PopulationDeclared,
    Recovered,
    Released,
    Reserved,
    Row,
    Started,
)
from sfumato.governance.memory import MOST_PARTS, State

__all__ = [
    "Books",
    "Charge",
    "Edition",
    "MemoryBooks",
    "Totals",
    "account_line",
    "admit",
    "apply",
    "dataset_line",
    "population_line",
    "question_key",
    "replay",
    "request_of",
]


def account_line(path: str) -> str:
    """The name of an account's balance."""
    return f"account {path}"


def dataset_line(name: str) -> str:
    """The name of a dataset's balance; its versions share it."""
    return f"dataset {name}"


def population_line(name: str) -> str:
    """The name of a population's balance."""
    return f"population {name}"


def question_key(question: str) -> str:
    """What a canonical question is looked up by: a digest, since questions are longer than an index takes."""
    return hashlib.sha256(question.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A declared version of a dataset, the people it is about, and whether it was closed."""

    dataset: Dataset
    population: str
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge and what became of it; ``number`` is that of its entry."""

    number: int
    state: State
    cost: Budget
    rho: Fraction | None
    lines: tuple[str, ...]
    idempotency: str | None
    request: str
    queued: bool
    started: bool
    expires: str | None
    answer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The head of the record, and all that was ever charged: the most that any balance can have lost in a gap."""

    number: int
    digest: str
    at: str
    epsilon: Fraction
    delta: Fraction


class Books(Protocol):
    """Where balances, charges and answers are kept."""

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        ...

    def balances(self) -> Iterable[Balance]:
        """All balances, by name."""
        ...

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name."""
        ...

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        ...

    def put_edition(self, edition: Edition) -> None:
        """Keep a version."""
        ...

    def charge(self, number: int) -> Charge | None:
        """A charge by its number."""
        ...

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        ...

    def put_answer(self, key: str, number: int) -> None:
        """Remember the entry that answers a question."""
        ...

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        ...

    def put_totals(self, totals: Totals) -> None:
        """Move the head."""
        ...


@dataclass(slots=True)
class MemoryBooks:
    """Books in dictionaries, for a replay; equal books are equal values."""

    kept: dict[str, Balance] = field(default_factory=dict)
    editions: dict[Dataset, Edition] = field(default_factory=dict)
    charges: dict[int, Charge] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    head: Totals | None = None

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        return self.kept.get(name)

    def balances(self) -> Iterable[Balance]:
        """All balances, by name."""
        return [self.kept[name] for name in sorted(self.kept)]

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name."""
        self.kept[balance.name] = balance

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        return self.editions.get(dataset)

    def put_edition(self, edition: Edition) -> None:
        """Keep a version."""
        self.editions[edition.dataset] = edition

    def charge(self, number: int) -> Charge | None:
        """A charge by its number."""
        return self.charges.get(number)

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        self.charges[charge.number] = charge

    def put_answer(self, key: str, number: int) -> None:
        """Remember the entry that answers a question."""
        self.answers[key] = number

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        return self.head

    def put_totals(self, totals: Totals) -> None:
        """Move the head."""
        self.head = totals


def admit(books: Books, lines: Sequence[str], cost: Budget, rho: Fraction | None) -> None:
    """Refuse a charge that any of its balances cannot bear; changes nothing.

    Guarantee: if every charge that counts was admitted in the order of the record, then the releases behind each
    balance are together within its cap, however adaptively they were chosen (docs/proofs/filters.md).
    """
    for line in lines:
        balance = _known(books, line)
        balance.admit(cost, rho)
        after = balance.moved(cost, rho, times=1, charges=1)
        parts = (after.epsilon_spent, after.delta_spent, after.rho_spent)
        if max(part.denominator for part in parts) > MOST_PARTS:
            raise LedgerError(
                f"the charges of {line!r} have so many different denominators that their sum could not be written "
                "down any more. Nothing was read and nothing was spent. Ask with fewer digits."
            )


def apply(books: Books, row: Row, entry: Entry) -> None:
    """Enter what an entry says into the books."""
    totals = books.totals()
    epsilon, delta = (Fraction(0), Fraction(0)) if totals is None else (totals.epsilon, totals.delta)
    match entry:
        case LedgerOpened():
            pass
        case AccountOpened():
            books.put_balance(_opened(account_line(entry.path), entry))
        case PopulationDeclared():
            books.put_balance(_opened(population_line(entry.name), entry))
        case DatasetDeclared():
            line = dataset_line(entry.dataset.name)
            if books.balance(line) is None:
                people = _known(books, population_line(entry.population))
                books.put_balance(Balance(name=line, unit=people.unit, cap=entry.cap, rho=None))
            books.put_edition(Edition(dataset=entry.dataset, population=entry.population))
        case DatasetClosed():
            edition = books.edition(entry.dataset)
            if edition is None:
                raise LedgerError(f"the ledger has no version {entry.dataset.edition!r} of {entry.dataset.name!r}.")
            books.put_edition(replace(edition, closed=True))
        case Reserved():
            _move(books, entry.lines, entry.cost, entry.rho, times=1)
            books.put_charge(_charge(row.number, entry))
            epsilon, delta = epsilon + entry.cost.epsilon, delta + entry.cost.delta
        case Started():
            books.put_charge(replace(_open(books, entry.charge), started=True))
        case Committed():
            books.put_charge(replace(_open(books, entry.charge), state=State.COMMITTED, answer=row.number))
            books.put_answer(question_key(entry.question), row.number)
        case Released():
            _give_back(books, entry.charge, State.RELEASED)
        case Expired(counted=False):
            _give_back(books, entry.charge, State.RELEASED)
        case Expired():
            books.put_charge(replace(_open(books, entry.charge), state=State.EXPIRED))
        case Recovered():
            for balance in books.balances():
                # A gap has no ρ of its own: a balance kept by a zCDP filter is used up.
                rho = None if balance.rho is None else max(Fraction(0), balance.rho - balance.rho_spent)
                books.put_balance(balance.moved(entry.gap, rho, times=1, charges=0))
            epsilon, delta = epsilon + entry.gap.epsilon, delta + entry.gap.delta
    books.put_totals(Totals(number=row.number, digest=row.digest, at=entry.at, epsilon=epsilon, delta=delta))


def replay(rows: Iterable[Row]) -> MemoryBooks:
    """Work the books out again from the record alone."""
    books = MemoryBooks()
    for row in rows:
        apply(books, row, row.entry)
    return books


def request_of(entry: Reserved) -> str:
    """A digest of what was asked for, to tell a retry from another request under the same key."""
    parts = (entry.account.name, entry.unit, entry.datasets, entry.cost, entry.rho, entry.queued)
    return hashlib.sha256(canonical([encode(part) for part in parts]).encode()).hexdigest()


def _opened(name: str, entry: AccountOpened | PopulationDeclared) -> Balance:
    return Balance(name=name, unit=entry.unit, cap=entry.cap, rho=entry.rho)


def _charge(number: int, entry: Reserved) -> Charge:
    return Charge(
        number=number,
        state=State.RESERVED,
        cost=entry.cost,
        rho=entry.rho,
        lines=entry.lines,
        idempotency=entry.idempotency,
        request=request_of(entry),
        queued=entry.queued,
        started=not entry.queued,
        expires=entry.expires,
    )


def _give_back(books: Books, number: int, state: State) -> None:
    charge = _open(books, number)
    _move(books, charge.lines, charge.cost, charge.rho, times=-1)
    books.put_charge(replace(charge, state=state))


def _move(books: Books, lines: Sequence[str], cost: Budget, rho: Fraction | None, *, times: int) -> None:
    for line in lines:
        books.put_balance(_known(books, line).moved(cost, rho, times=times, charges=times))


def _known(books: Books, name: str) -> Balance:
    balance = books.balance(name)
    if balance is None:
        raise LedgerError(f"the ledger has no balance {name!r}; nothing was changed.")
    return balance


def _open(books: Books, number: int) -> Charge:
    charge = books.charge(number)
    if charge is None or charge.state is not State.RESERVED:
        raise LedgerError(f"charge {number} is unknown or settled already; nothing was changed.")
    return charge
