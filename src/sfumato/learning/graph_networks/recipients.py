"""To whom a node sends: at most D names of its own list, chosen before anyone looks who exists, and none refilled.

Proof: docs/proofs/graph_networks.md
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.interrupts import FAILED, attempt
from sfumato.learning.given_rows import written_id
from sfumato.learning.paradigms.persons import Id, whose

__all__ = ["Sent", "recipients_of", "sent_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Who sends to whom: the row of each sender, and the place of its recipient in the roster. Sensitive."""

    rows: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]


def recipients_of(name: Id, listed: object, places: Mapping[Id, int], most: int, key: bytes) -> list[int]:
    """The places of at most ``most`` recipients of one node: those of its list with the least keyed hash.

    Names that are not in the roster, the node's own, and any that are listed again are left out first. A list that is
    none, or that raises while it is read, sends to nobody: this is after the charge, and nothing is refused.

    Guarantee: a function of the node's own record, the public roster and the key; whoever else exists, or does not,
    changes nothing. Sensitive: the result.

    >>> recipients_of("a", ["b", "a", "c", "b", "z"], {"a": 0, "b": 1, "c": 2}, 5, b"key")
    [1, 2]
    >>> recipients_of("a", None, {"a": 0, "b": 1}, 5, b"key")
    []
    """

    def read() -> set[Id]:
        if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
            return set()
        return {each for each in map(whose, listed) if each is not None and each != name and each in places}

    outcome = attempt(read)
    found = set() if outcome is FAILED else outcome
    if len(found) > most:
        lots = {each: _lot(name, each, key) for each in found}
        found = set(sorted(found, key=lots.__getitem__)[:most])
    return sorted(places[each] for each in found)


def sent_by(
    names: Sequence[Id | None], lists: Sequence[object], places: Mapping[Id, int], *, most: int, key: bytes
) -> Sent:
    """Who sends to whom, over all rows; a row whose name is not in the roster sends to nobody. Sensitive."""
    found = [
        recipients_of(name, listed, places, most, key) if name is not None and name in places else []
        for name, listed in zip(names, lists, strict=True)
    ]
    counts = [len(one) for one in found]
    return Sent(
        rows=np.repeat(np.arange(len(found)), counts),
        places=np.array([place for one in found for place in one], dtype=np.int64),
    )


def _lot(sender: Id, recipient: Id, key: bytes) -> bytes:
    """A hash of the pair under the key; the sender is hashed first, so that no two pairs are written alike."""
    first = hashlib.blake2b(written_id(sender), key=key, digest_size=16).digest()
    return hashlib.blake2b(first + written_id(recipient), key=key, digest_size=16).digest()
