"""The tree of entries is the one of RFC 9162, its proofs hold, and no other leaf, place, root or path is believed."""

import hashlib
from collections.abc import Sequence

import pytest

from sfumato.errors import LedgerError
from sfumato.governance.entry_tree import (
    EMPTY_LEAF,
    Frontier,
    Node,
    consistency_holds,
    consistency_path,
    inclusion_holds,
    inclusion_path,
    leaf_hash,
    node_hash,
    nothing,
)

MOST = 70
LEAVES = [leaf_hash(hashlib.sha256(str(number).encode()).hexdigest()) for number in range(MOST)]


def split(size: int) -> int:
    half = 1
    while half * 2 < size:
        half *= 2
    return half


def defined_root(leaves: Sequence[bytes]) -> bytes:
    """The hash of a list as section 2.1.1 defines it."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    half = split(len(leaves))
    return hashlib.sha256(b"\x01" + defined_root(leaves[:half]) + defined_root(leaves[half:])).digest()


def defined_path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PATH of section 2.1.3.1."""
    if len(leaves) == 1:
        return []
    half = split(len(leaves))
    if index < half:
        return [*defined_path(index, leaves[:half]), defined_root(leaves[half:])]
    return [*defined_path(index - half, leaves[half:]), defined_root(leaves[:half])]


def defined_proof(old: int, leaves: Sequence[bytes], *, known: bool = True) -> list[bytes]:
    """SUBPROOF of section 2.1.4.1."""
    if old == len(leaves):
        return [] if known else [defined_root(leaves)]
    half = split(len(leaves))
    if old <= half:
        return [*defined_proof(old, leaves[:half], known=known), defined_root(leaves[half:])]
    return [*defined_proof(old - half, leaves[half:], known=False), defined_root(leaves[:half])]


def nodes(leaves: Sequence[bytes]) -> Node:
    """The complete subtrees of some leaves; one that is not complete is not there to be read."""
    rows = [list(leaves)]
    while len(rows[-1]) > 1:
        below = rows[-1]
        rows.append([node_hash(below[place], below[place + 1]) for place in range(0, len(below) - 1, 2)])
    return lambda level, index: rows[level][index]


def test_the_leaves_and_nodes_are_those_of_the_rfc() -> None:
    digest = "5f" * 32
    assert leaf_hash(digest) == hashlib.sha256(b"\x00" + b"\x5f" * 32).digest()
    assert hashlib.sha256(b"\x00").digest() == EMPTY_LEAF
    assert node_hash(LEAVES[0], LEAVES[1]) == hashlib.sha256(b"\x01" + LEAVES[0] + LEAVES[1]).digest()


def test_a_frontier_has_the_root_of_every_size_and_says_which_subtrees_a_leaf_completes() -> None:
    frontier, node = Frontier(), nodes(LEAVES)
    for size in range(MOST + 1):
        assert frontier.size == size
        assert frontier.root() == defined_root(LEAVES[:size])
        assert Frontier.read(frontier.text) == frontier
        if size < MOST:
            after, completed = frontier.grown(LEAVES[size])
            assert after == frontier.after(LEAVES[size])
            trailing = ((size + 1) & -(size + 1)).bit_length() - 1
            assert completed == tuple(node(level, size >> level) for level in range(1, trailing + 1))
            frontier = after


def test_lost_entries_are_empty_leaves() -> None:
    for before in range(20):
        start = Frontier()
        for leaf in LEAVES[:before]:
            start = start.after(leaf)
        one_by_one = start
        for lost in range(MOST):
            assert start.without(lost) == one_by_one
            one_by_one = one_by_one.after(EMPTY_LEAF)
    assert nothing(3) == defined_root([EMPTY_LEAF] * 8)
    assert Frontier().without(10**15).size == 10**15  # not one by one


def altered(path: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Paths that somebody changed: one hash by a bit, one left out, one too many, two exchanged, bytes moved over."""
    made = [(*path, EMPTY_LEAF), (EMPTY_LEAF, *path)]
    for place, each in enumerate(path):
        before, after = path[:place], path[place + 1 :]
        made.append((*before, bytes([each[0] ^ 1]) + each[1:], *after))
        made.append((*before, *after))
        made.append((*before, each[:-1], *after))
        if after:
            made.append((*before, after[0], each, *after[1:]))
            made.append((*before, each + after[0][:1], after[0][1:], *after[1:]))
    return made


def test_every_inclusion_has_its_path_and_no_other_leaf_place_or_root_is_believed() -> None:
    for size in range(1, MOST + 1):
        leaves, root = LEAVES[:size], defined_root(LEAVES[:size])
        node = nodes(leaves)
        for index in range(size):
            path = inclusion_path(index, size, node)
            assert list(path) == defined_path(index, leaves)
            assert inclusion_holds(leaves[index], index, size, path, root)
            assert not inclusion_holds(EMPTY_LEAF, index, size, path, root)
            assert not inclusion_holds(leaves[index], index, size, path, EMPTY_LEAF)
            assert not inclusion_holds(root, index, size, path, leaves[index]) or size == 1
            assert not inclusion_holds(leaves[index], size, size, path, root)
            assert not inclusion_holds(leaves[index], -1, size, path, root)
            for place in {0, index - 1, index + 1, size - 1} - {index, -1, size}:
                assert not inclusion_holds(leaves[index], place, size, path, root)
                assert not inclusion_holds(leaves[place], index, size, path, root)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 21])
def test_an_altered_path_of_an_inclusion_is_refused(size: int) -> None:
    leaves, root = LEAVES[:size], defined_root(LEAVES[:size])
    for index in range(size):
        path = inclusion_path(index, size, nodes(leaves))
        for other in altered(path):
            assert not inclusion_holds(leaves[index], index, size, other, root)
        for stated in range(MOST):  # the size is signed with the root; a path must still have its shape
            if inclusion_holds(leaves[index], index, stated, path, root):
                assert len(defined_path(index, LEAVES[:stated])) == len(path)
            for wrong in leaves[:index] + leaves[index + 1 :]:
                assert not inclusion_holds(wrong, index, stated, path, root)


def test_a_later_tree_is_consistent_with_every_earlier_one_and_with_no_other() -> None:
    roots = [defined_root(LEAVES[:size]) for size in range(MOST + 1)]
    for new in range(1, MOST + 1):
        node = nodes(LEAVES[:new])
        for old in range(1, new + 1):
            path = consistency_path(old, new, node)
            assert list(path) == defined_proof(old, LEAVES[:new])
            assert consistency_holds(old, new, roots[old], roots[new], path)
            assert not consistency_holds(old, new, EMPTY_LEAF, roots[new], path)
            assert not consistency_holds(old, new, roots[old], EMPTY_LEAF, path)
            assert not consistency_holds(new, old, roots[new], roots[old], path) or old == new
            assert not consistency_holds(old, new, roots[old - 1], roots[new], path)
            assert not consistency_holds(old, new, roots[old], roots[new - 1], path)
    assert not consistency_holds(0, 1, roots[0], roots[1], ())


@pytest.mark.parametrize("new", [2, 3, 8, 9, 21])
def test_an_altered_path_of_a_consistency_is_refused(new: int) -> None:
    for old in range(1, new + 1):
        roots = defined_root(LEAVES[:old]), defined_root(LEAVES[:new])
        path = consistency_path(old, new, nodes(LEAVES[:new]))
        for other in altered(path):
            assert not consistency_holds(old, new, *roots, other)


def test_a_tree_that_was_changed_in_one_leaf_is_not_consistent_by_any_honest_path() -> None:
    """Whoever rewrites an entry makes another tree; the path of either tree shows nothing about the other."""
    for changed in range(8):
        leaves = [EMPTY_LEAF if place == changed else leaf for place, leaf in enumerate(LEAVES[:21])]
        for made_from in (leaves, LEAVES[:21]):
            path = consistency_path(8, 21, nodes(made_from))
            assert not consistency_holds(8, 21, defined_root(LEAVES[:8]), defined_root(leaves), path)


@pytest.mark.parametrize(
    "text", ["", "1:", "2:00", "3:" + "00" * 32, "1:" + "zz" * 32, " 1:" + "00" * 32, "1:" + "AA" * 32, "-1:", "x:"]
)
def test_a_frontier_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        Frontier.read(text)


def test_what_is_not_in_a_tree_has_no_path() -> None:
    for index in (-1, 3):
        with pytest.raises(LedgerError, match="nothing was proven"):
            inclusion_path(index, 3, nodes(LEAVES[:3]))
    for old in (0, 4):
        with pytest.raises(LedgerError, match="nothing was proven"):
            consistency_path(old, 3, nodes(LEAVES[:3]))
