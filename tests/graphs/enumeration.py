"""All small graphs side by side, as bits, with all their neighbours; computed apart from the shipped code.

A *world* is one graph on n nodes: one row of bits, one for each pair (or arc, in directed graphs). Everything is
computed for all worlds at once; that it agrees with the shipped code is a test of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from math import comb

import numpy as np
import numpy.typing as npt

from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.projection import mixed, order_of

Bits = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Worlds:
    """All graphs on n nodes."""

    n: int
    directed: bool = False
    salt: int = 0

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        return list(permutations(range(self.n), 2) if self.directed else combinations(range(self.n), 2))

    @cached_property
    def head(self) -> Numbers:
        return np.array([i for i, _ in self.pairs], dtype=np.int64)

    @cached_property
    def tail(self) -> Numbers:
        return np.array([j for _, j in self.pairs], dtype=np.int64)

    @cached_property
    def bits(self) -> Bits:
        every = np.arange(2 ** len(self.pairs))
        return (every[:, None] >> np.arange(len(self.pairs))[None, :] & 1).astype(bool)

    @cached_property
    def keys(self) -> npt.NDArray[np.uint64]:
        return mixed(np.arange(self.n, dtype=np.uint64) + np.uint64(1000 * self.salt))

    @cached_property
    def order(self) -> list[int]:
        """The order in which the projection goes through all pairs; the shipped one."""
        return [int(place) for place in order_of(self.head, self.tail, self.keys, directed=self.directed)]

    def projected(self, bits: Bits, cap: int | None) -> Bits:
        """Edges taken one by one, each if both its ends have room: by the definition."""
        if cap is None:
            return bits
        room, taken = np.full((len(bits), self.n), cap), np.zeros_like(bits)
        for place in self.order:
            i, j = self.pairs[place]
            taken[:, place] = bits[:, place] & (room[:, i] > 0) & (room[:, j] > 0)
            room[:, i] -= taken[:, place]
            room[:, j] -= taken[:, place]
        return taken

    def degrees(self, bits: Bits, direction: str = "total") -> Numbers:
        out = np.zeros((len(bits), self.n), dtype=np.int64)
        for place, (i, j) in enumerate(self.pairs):
            if direction in ("total", "out"):
                out[:, i] += bits[:, place]
            if direction in ("total", "in"):
                out[:, j] += bits[:, place]
        return out

    def adjacency(self, world: int) -> Adjacency:
        """One world as the shipped code sees it."""
        there = self.bits[world]
        return Adjacency.of_pairs(self.n, self.head[there], self.tail[there], directed=self.directed)

    def at(self, node: int) -> Bits:
        """Which pairs a node is in."""
        return (self.head == node) | (self.tail == node)

    def number(self, bits: Bits) -> Numbers:
        """Which world some bits are."""
        return bits @ (1 << np.arange(len(self.pairs), dtype=np.int64))


def edges(degrees: Numbers, n: int) -> Numbers:
    return degrees.sum(axis=1, keepdims=True) // 2


def sorted_degrees(degrees: Numbers, n: int) -> Numbers:
    return np.sort(degrees, axis=1)


def histogram(degrees: Numbers, top: int) -> Numbers:
    return np.stack([(degrees == degree).sum(axis=1) for degree in range(top + 1)], axis=1)


def stars(degrees: Numbers, leaves: int) -> Numbers:
    table = np.array([comb(degree, leaves) for degree in range(degrees.max(initial=0) + 1)])
    return table[degrees].sum(axis=1, keepdims=True)


def moved(one: Numbers, other: Numbers) -> tuple[int, int, int, int]:
    """The largest l0, l1, l2² and linf of the difference of rows."""
    apart = np.abs(one - other)
    return (
        int((apart > 0).sum(axis=-1).max(initial=0)),
        int(apart.sum(axis=-1).max(initial=0)),
        int((apart * apart).sum(axis=-1).max(initial=0)),
        int(apart.max(initial=0)),
    )


def largest(several: Sequence[tuple[int, int, int, int]]) -> tuple[int, int, int, int]:
    l0, l1, l2_squared, linf = (max(norm) for norm in zip(*several, strict=True))
    return l0, l1, l2_squared, linf


def edge_neighbours(worlds: Worlds) -> Iterator[tuple[Numbers, Numbers]]:
    """Worlds without a pair, and the same worlds with it."""
    every = np.arange(len(worlds.bits))
    for place in range(len(worlds.pairs)):
        without = every[~worlds.bits[:, place]]
        yield without, without | 1 << place


def replaced_edges(worlds: Worlds) -> Iterator[tuple[Numbers, Numbers]]:
    """Worlds with one pair and without another, and the same worlds the other way round."""
    every = np.arange(len(worlds.bits))
    for one, other in combinations(range(len(worlds.pairs)), 2):
        some = every[worlds.bits[:, one] & ~worlds.bits[:, other]]
        yield some, some ^ (1 << one) ^ (1 << other)


def rewired(worlds: Worlds, node: int) -> Numbers:
    """For every graph without a node's edges (rows), the worlds with each choice of these edges (columns)."""
    at = worlds.at(node)
    rests = worlds.number(worlds.bits[~(worlds.bits & at).any(axis=1)])
    choices = worlds.number(worlds.bits[~(worlds.bits & ~at).any(axis=1)])
    return rests[:, None] | choices[None, :]
