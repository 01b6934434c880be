"""Small graphs of invented nodes, and the same graphs without one node's record."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.learning import GraphNodes


@dataclass(frozen=True)
class Invented:
    """Records of nodes: name, features, label and list each; the roster is that of all who could be there."""

    names: tuple[int, ...]
    features: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    lists: tuple[tuple[int, ...], ...]
    roster: tuple[int, ...]

    def without(self, name: int) -> "Invented":
        """The graph without the record of one node, or all that have its name; what others' lists say of it stays."""
        return self._of([place for place, each in enumerate(self.names) if each != name])

    def without_row(self, row: int) -> "Invented":
        """The graph without one row; others of the same name stay."""
        return self._of([place for place in range(len(self.names)) if place != row])

    def _of(self, kept: list[int]) -> "Invented":
        return replace(
            self,
            names=tuple(self.names[place] for place in kept),
            features=self.features[kept],
            labels=self.labels[kept],
            lists=tuple(self.lists[place] for place in kept),
        )

    def nodes(self, **more: Any) -> GraphNodes:
        given = {"classes": 2, "n_units": len(self.roster), "name": "papers", "version": "1", **more}
        return GraphNodes(
            self.features, self.labels, names=list(self.names), lists=self.lists, roster=self.roster, **given
        )


def graph(lists: dict[int, tuple[int, ...]], width: int = 2, seed: int = 0) -> Invented:
    """GraphNodes with these lists, and features by a seed."""
    made = np.random.default_rng(seed)
    names = tuple(lists)
    return Invented(
        names=names,
        features=made.normal(size=(len(names), width)).astype(np.float32),
        labels=np.arange(len(names)) % 2,
        lists=tuple(lists[name] for name in names),
        roster=names,
    )


def random_graph(nodes: int, chance: float, seed: int) -> Invented:
    """Each name is in each other one's list with a chance."""
    made = np.random.default_rng(seed)
    listed = made.random((nodes, nodes)) < chance
    return graph({one: tuple(np.flatnonzero(listed[one]).tolist()) for one in range(nodes)}, seed=seed)


def with_many_rows_a_name(rows: int, names: int, chance: float, seed: int) -> Invented:
    """Rows that share a few names: each has features and a list of its own."""
    of = random_graph(rows, chance, seed)
    lists = tuple(tuple(each for each in listed if each < names) for listed in of.lists)
    return replace(of, names=tuple(row % names for row in range(rows)), lists=lists, roster=tuple(range(names)))


def twin(rows: int) -> Invented:
    """One node with a name of its own that sends to another name, of which there are many rows."""
    made = graph({row: (1,) if row == 0 else () for row in range(rows + 1)}, width=1)
    features = np.where(np.arange(rows + 1) == 0, 50, 0)[:, None].astype(np.float32)
    return replace(made, names=(0, *[1] * rows), features=features, roster=(0, 1))


def tree(recipients: int, hops: int) -> Invented:
    """A node that reaches as many others as can be: each sends to ``recipients`` new ones, ``hops`` times over."""
    lists: dict[int, tuple[int, ...]] = {}
    level, following = [0], 1
    for _ in range(hops):
        coming: list[int] = []
        for one in level:
            lists[one] = tuple(range(following, following + recipients))
            coming.extend(lists[one])
            following += recipients
        level = coming
    lists.update(dict.fromkeys(level, ()))
    return graph(lists)


def star(leaves: int) -> Invented:
    """A hub that all leaves name, beside one other each: the graph on which a choice that refills is unbounded."""
    lists: dict[int, tuple[int, ...]] = {0: (1,)}
    lists.update({leaf: (0, leaf % leaves + 1) for leaf in range(1, leaves + 1)})
    return graph(lists)
