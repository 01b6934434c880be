"""The leaves of the map of a ledger's state: everything that a charge believes, each by a key and a hash.

Settled charges, idempotency keys and answers stay in it for ever: that there is none can then be shown as well.
"""

from collections.abc import Iterator
from functools import lru_cache

from sfumato.governance.balances import Balance
from sfumato.governance.ledger_state import Charge, Edition, MemoryLedgerState
from sfumato.governance.rows import balance_row, charge_row, edition_row
from sfumato.governance.state_map import StateMap, hashed

__all__ = [
    "Key",
    "about",
    "answer_leaf",
    "balance_leaf",
    "charge_leaf",
    "edition_leaf",
    "leaves_of",
    "map_of",
    "names_leaf",
    "place_of",
    "said",
]

Key = tuple[str | int, ...]
"""What a leaf is about: its kind and its name."""


@lru_cache(maxsize=4096)
def place_of(key: Key) -> bytes:
    """Where a leaf lies in the map."""
    return hashed(*key)


def balance_leaf(balance: Balance) -> bytes:
    """All columns of a balance."""
    return hashed(*balance_row(balance).values())


def edition_leaf(edition: Edition) -> bytes:
    """A version, its people, whether it was closed, and the entry that declared it."""
    return hashed(*edition_row(edition).values())


def charge_leaf(charge: Charge) -> bytes:
    """All columns of a charge."""
    return hashed(*charge_row(charge).values())


def answer_leaf(number: int, digest: str) -> bytes:
    """The entry that answers a question."""
    return hashed(number, digest)


def names_leaf(names: set[str]) -> bytes | None:
    """All datasets about some people; None where there are none."""
    return hashed(*sorted(names)) if names else None


def about(edition: Edition) -> bytes:
    """The people that all versions of a dataset are about."""
    return hashed(edition.population)


def said(key: Key) -> str:
    """A key as messages name it."""
    kind, *names = key
    what = {"about": "the people of dataset", "datasets": "the datasets of population", "key": "the idempotency key"}
    return f"{what.get(str(kind), f'the {kind}')} {' '.join(map(repr, names))}"


def map_of(state: MemoryLedgerState) -> StateMap:
    """The map of a whole state, worked out at once."""
    made = StateMap(lambda _: {})
    for key, leaf in leaves_of(state):
        made.put(hashed(*key), leaf)
    made.root()
    return made


def leaves_of(state: MemoryLedgerState) -> Iterator[tuple[Key, bytes]]:
    """All leaves of a state, by their keys."""
    for balance in state.kept.values():
        yield ("balance", balance.name), balance_leaf(balance)
    names: dict[str, set[str]] = {}
    for edition in state.editions.values():
        yield ("edition", edition.dataset.name, edition.dataset.edition), edition_leaf(edition)
        yield ("about", edition.dataset.name), about(edition)
        names.setdefault(edition.population, set()).add(edition.dataset.name)
    for population, datasets in names.items():
        yield ("datasets", population), names_leaf(datasets) or b""
    for charge in state.charges.values():
        yield ("charge", charge.number), charge_leaf(charge)
        if charge.idempotency is not None:
            yield ("key", charge.idempotency), hashed(charge.number)
    for question, (number, digest) in state.answers.items():
        yield ("answer", question), answer_leaf(number, digest)
