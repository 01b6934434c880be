"""The Merkle tree over the entries of a record, as RFC 9162 (certificate transparency) defines it: pure functions.

One hash, its root, stands for all entries in their order. That an entry is in the tree, and that a later tree goes on
from an earlier one, is shown with O(log n) hashes. Entry n is the leaf of index n - 1. A leaf is the digest of its row,
which covers the random nonce of the row: who sees the hash of a neighbour in a proof cannot guess what it says.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from sfumato.errors import LedgerError

__all__ = [
    "EMPTY_LEAF",
    "Frontier",
    "Node",
    "consistency_holds",
    "consistency_path",
    "entered",
    "inclusion_holds",
    "inclusion_path",
    "leaf_hash",
    "node_hash",
    "nothing",
    "root_text",
]

SIZE = 32  # bytes of a hash

Node = Callable[[int, int], bytes]
"""The hash of a complete subtree by its level and its index there: (0, i) is leaf i, and (3, 1) are leaves 8 to 15."""

EMPTY_LEAF = hashlib.sha256(b"\x00").digest()
"""The leaf of an entry that was lost: of no data, where every other leaf is of a digest."""


def leaf_hash(digest: str) -> bytes:
    """The leaf of a row, by its digest in hexadecimal digits.

    >>> leaf_hash("00" * 32).hex()[:16]
    '7f9c9e31ac8256ca'
    """
    try:
        return hashlib.sha256(b"\x00" + bytes.fromhex(digest)).digest()
    except ValueError:
        raise LedgerError("the digest of an entry is not one of hexadecimal digits; nothing was done.") from None


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees side by side; no leaf has it, since a leaf begins with another byte.

    >>> node_hash(EMPTY_LEAF, EMPTY_LEAF) == nothing(1)
    True
    """
    return hashlib.sha256(b"\x01" + left + right).digest()


def nothing(level: int) -> bytes:
    """The hash of a complete subtree whose entries were all lost."""
    hashed = EMPTY_LEAF
    for _ in range(level):
        hashed = node_hash(hashed, hashed)
    return hashed


@dataclass(frozen=True, slots=True)
class Frontier:
    """The roots of the largest complete subtrees of a tree, from left to right: all that is needed to go on with it.

    There is one for each binary digit 1 of ``size``. ``completed`` are the subtrees that its last leaf completed,
    smallest first: what has to be stored for proofs, and no part of what a frontier is.

    >>> one = Frontier().after(leaf_hash("aa" * 32))
    >>> three = one.after(EMPTY_LEAF).after(leaf_hash("bb" * 32))
    >>> three.size, len(three.peaks), Frontier.read(three.text) == three
    (3, 2, True)
    >>> three.root() == node_hash(node_hash(one.root(), EMPTY_LEAF), leaf_hash("bb" * 32))
    True
    """

    size: int = 0
    peaks: tuple[bytes, ...] = ()
    completed: tuple[bytes, ...] = field(default=(), compare=False, repr=False)

    def after(self, leaf: bytes) -> "Frontier":
        """The frontier after one more leaf."""
        size, peaks = self.size, self.peaks
        if not size & 1:
            return Frontier(size + 1, (*peaks, leaf))
        made, completed, left = leaf, [], len(peaks)
        while size & 1:
            left, size = left - 1, size >> 1
            made = node_hash(peaks[left], made)
            completed.append(made)
        return Frontier(self.size + 1, (*peaks[:left], made), tuple(completed))

    def without(self, lost: int) -> "Frontier":
        """The frontier after some entries that were lost: each counts as an empty leaf.

        >>> Frontier().without(1000) == Frontier(1000, tuple(nothing(level) for level in (9, 8, 7, 6, 5, 3)))
        True
        """
        made, left = self, lost
        while left > 0:
            # The largest subtree that begins here and is lost as a whole.
            level = left.bit_length() - 1
            if made.size:
                level = min(level, (made.size & -made.size).bit_length() - 1)
            made, left = made._joined(level, nothing(level)), left - (1 << level)
        return made

    def _joined(self, level: int, subtree: bytes) -> "Frontier":
        """The frontier after a complete subtree of this level, where the size is a multiple of its own."""
        peaks, size, made = list(self.peaks), self.size >> level, subtree
        while size & 1:
            made, size = node_hash(peaks.pop(), made), size >> 1
        return Frontier(self.size + (1 << level), (*peaks, made))

    def root(self) -> bytes:
        """The root of the tree.

        >>> Frontier().root() == hashlib.sha256(b"").digest()
        True
        """
        if not self.peaks:
            return hashlib.sha256(b"").digest()
        made, sha256 = self.peaks[-1], hashlib.sha256
        for peak in self.peaks[-2::-1]:
            made = sha256(b"\x01" + peak + made).digest()  # node_hash, without the call: this is done for every row
        return made

    @property
    def subtrees(self) -> str:
        """What the last leaf completed, as a database keeps it."""
        return b"".join(self.completed).hex() if self.completed else ""

    @property
    def text(self) -> str:
        """The size and the hashes, as a database keeps them."""
        return f"{self.size}:{b''.join(self.peaks).hex()}"

    @classmethod
    def read(cls, text: str) -> "Frontier":
        """A frontier from its text; what is not one is refused.

        >>> Frontier.read("2:00")
        Traceback (most recent call last):
        ...
        sfumato.errors.LedgerError: the stored frontier of the tree of entries cannot be read; nothing was done.
        """
        number, _, hashes = text.partition(":")
        try:
            size, joined = int(number), bytes.fromhex(hashes)
        except ValueError:
            size, joined = -1, b""
        made = cls(size, tuple([joined[start : start + SIZE] for start in range(0, len(joined), SIZE)]))
        if size < 0 or len(joined) != SIZE * size.bit_count() or made.text != text:  # one text for one frontier
            raise LedgerError("the stored frontier of the tree of entries cannot be read; nothing was done.")
        return made


def entered(frontier: Frontier, number: int, digest: str) -> Frontier:
    """The frontier after entry ``number``, by its digest; those between are lost.

    >>> entered(Frontier(), 3, "ab" * 32) == Frontier().without(2).after(leaf_hash("ab" * 32))
    True
    """
    if frontier.size != number - 1:
        frontier = frontier.without(number - 1 - frontier.size)
    return frontier.after(leaf_hash(digest))


@lru_cache(maxsize=64)
def root_text(frontier: Frontier) -> str:
    """The root in hexadecimal digits; kept, since the same one is asked for before and after each charge."""
    return frontier.root().hex()


def inclusion_path(index: int, size: int, node: Node) -> tuple[bytes, ...]:
    """The hashes that lead from a leaf to the root of a tree of ``size`` leaves, the lowest first (RFC 9162, 2.1.3.1).

    >>> leaves = [leaf_hash(f"{number:064x}") for number in range(3)]
    >>> inclusion_path(2, 3, lambda level, _: leaves[0] if level == 0 else node_hash(*leaves[:2])) == (
    ...     node_hash(*leaves[:2]),
    ... )
    True
    """
    if not 0 <= index < size:
        raise LedgerError(f"a tree of {size} entries has no leaf of index {index}; nothing was proven.")
    start, end, path = 0, size, []
    while end - start > 1:
        middle = start + _half(end - start)
        if index < middle:
            path.append(_span(middle, end, node))
            end = middle
        else:
            path.append(_span(start, middle, node))
            start = middle
    return tuple(reversed(path))


def consistency_path(old: int, new: int, node: Node) -> tuple[bytes, ...]:
    """The hashes that show that a tree of ``new`` leaves begins with one of ``old`` leaves (RFC 9162, 2.1.4.1).

    There are none where the two are of one size.

    >>> consistency_path(1, 2, lambda level, index: EMPTY_LEAF) == (EMPTY_LEAF,)
    True
    """
    if not 1 <= old <= new:
        raise LedgerError(f"a tree of {new} entries does not go on from one of {old}; nothing was proven.")
    start, end, path = 0, new, []
    while old < end:
        middle = start + _half(end - start)
        if old <= middle:
            path.append(_span(middle, end, node))
            end = middle
        else:
            path.append(_span(start, middle, node))
            start = middle
    if start > 0:  # else the old root itself begins, which the reader knows
        path.append(_span(start, end, node))
    return tuple(reversed(path))


def inclusion_holds(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the path shows that a tree of ``size`` leaves with this root has the leaf there (RFC 9162, 2.1.3.2).

    Guarantee: True only where the leaf of that index is this one. Assumes: SHA-256 has no collisions, and ``size`` is
    the one of ``root``, as a signed head says: a path alone does not tell all sizes apart.

    >>> inclusion_holds(EMPTY_LEAF, 0, 2, [leaf_hash("ab" * 32)], node_hash(EMPTY_LEAF, leaf_hash("ab" * 32)))
    True
    """
    if not 0 <= index < size or any(len(each) != SIZE for each in (leaf, *path)):
        return False
    place, last, made = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            made = node_hash(sibling, made)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            made = node_hash(made, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and made == root


def consistency_holds(old_size: int, new_size: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether the path shows that the new tree begins with all leaves of the old one (RFC 9162, 2.1.4.2).

    Assumes: SHA-256 has no collisions, and each size is the one of its root. A tree without leaves is refused.

    >>> consistency_holds(1, 1, EMPTY_LEAF, EMPTY_LEAF, ()), consistency_holds(1, 2, EMPTY_LEAF, EMPTY_LEAF, ())
    (True, False)
    """
    if not 1 <= old_size <= new_size or any(len(each) != SIZE for each in (old_root, new_root, *path)):
        return False
    if old_size == new_size:
        return not path and old_root == new_root
    hashes = [old_root, *path] if not old_size & (old_size - 1) else list(path)
    if not hashes:
        return False
    place, last = old_size - 1, new_size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = hashes[0]
    for each in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = node_hash(each, old), node_hash(each, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = node_hash(new, each)
        place, last = place >> 1, last >> 1
    return last == 0 and old == old_root and new == new_root


def _half(size: int) -> int:
    """The largest power of two below a size."""
    return 1 << ((size - 1).bit_length() - 1)


def _span(start: int, end: int, node: Node) -> bytes:
    """The hash of the leaves from ``start`` to before ``end``, as the tree splits them."""
    parts = []
    while start < end:
        level = (end - start).bit_length() - 1
        parts.append(node(level, start >> level))
        start += 1 << level
    made = parts[-1]
    for part in parts[-2::-1]:
        made = node_hash(part, made)
    return made
