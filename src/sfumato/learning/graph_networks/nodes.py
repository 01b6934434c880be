"""Nodes as private data: features, labels and lists, one record for each, and a public roster of names."""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.core.interrupts import attempt
from sfumato.core.query import Dataset
from sfumato.core.units import Node, Record, Unit, User, describe
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.learning.given import GivenRows
from sfumato.learning.given_rows import kept_rows, listed_ids, whole_tensor, written_id
from sfumato.learning.graph_networks.recipients import Sent, sent_by
from sfumato.learning.laid import Laid
from sfumato.learning.paradigms.persons import Id, canonical_ids, whose

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["GraphNodes", "NodeRows", "given_lists", "linear_scores"]


class NodeRows:
    """Nodes once they may be read: what is known of all that count, and who sends to whom. Sensitive."""

    def __init__(self, features: "Tensor", labels: "Tensor", names: Sequence[Id | None], sent: Sent) -> None:
        self.features, self.labels, self.names, self.sent = features, labels, names, sent


class GraphNodes:
    """Nodes of a graph to learn from, and the public facts about them. Nothing is read before a run was charged.

    ``features`` has one row for each node, ``labels`` its class from 0 (a node with −1, or any other number, has none:
    it is not learned from, and sends as all others do), ``names`` who it is, and ``lists`` to whom it sends: a list of
    names each. ``roster`` are the names that sums are made for, whether or not somebody of that name is there; rows
    with another name do not count. ``classes`` is how many classes there are, and ``n_units`` how many nodes have one,
    as far as the public knows. ``name`` and ``version`` are what certificates state.

    A node owns its record: its features, its label, and its list. That another one's list names it is in the record of
    that other one, and stays when the node goes. A tie that two nodes have in common stands in both lists; each list is
    protected with its owner.

    Guarantee: what a node sends, and to whom, depends on its own record, on public facts, and on a secret key. Of a
    person one row counts in a vault of users. Public: the shape of a row, and what was declared. Sensitive: the rest.

    >>> import numpy as np
    >>> GraphNodes(np.zeros((3, 2)), np.array([0, 1, -1]), names=["a", "b", "c"], lists=[["b"], [], ["a", "b"]],
    ...       roster=["a", "b", "c", "d"], classes=2, n_units=2, name="papers", version="1")
    <nodes 'papers': 4 names, 2 classes, declared 2>
    """

    kind, times, max_records_per_unit = "record", 1, 1

    def __init__(
        self,
        features: GivenRows,
        labels: GivenRows,
        *,
        names: GivenRows,
        lists: Sequence[object],
        roster: Iterable[object] | None = None,
        classes: int | None = None,
        n_units: int | None = None,
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        if name is None or n_units is None or classes is None or roster is None:
            raise NotDeclared(
                "nodes need public facts: say roster=…, the names that there can be, classes=…, n_units=…, how many "
                "nodes have a label, and name=…. Nothing was read and nothing was spent."
            )
        self.dataset = Dataset(name=name, edition=secrets.token_hex(8) if version is None else version)
        self.n_units, self.classes = natural(n_units, "n_units"), natural(classes, "classes", least=2)
        self._features, self._labels = whole_tensor(features), whole_tensor(labels)
        self._names, self._lists = listed_ids(names), given_lists(lists)
        self._check_rows()
        listed = canonical_ids(roster)
        self.places: dict[Id, int] = {each: place for place, each in enumerate(listed) if each is not None}
        if len(self.places) != len(listed) or not listed:
            raise InvalidInput("the roster needs a different name in each place; nothing was read or spent.")
        written = b"".join(hashlib.sha256(written_id(each)).digest() for each in self.places)
        self.roster_digest = hashlib.sha256(written).hexdigest()
        self._users = False

    def __repr__(self) -> str:
        known = f"{len(self.places):,} names, {self.classes:,} classes, declared {self.n_units:,}"
        return f"<nodes {self.dataset.name!r}: {known}>"

    @property
    def width(self) -> int:
        """How many features a node has. Public."""
        return int(self._features.shape[1])

    def check_home(self, notary: object) -> None:
        """Nodes belong to whoever has them."""

    def within(self, unit: Unit) -> "GraphNodes":
        """The same nodes for a vault of this unit, apart from those for others; reads nothing."""
        self.check(unit)
        found = copy(self)
        found._users = isinstance(unit, User)
        return found

    def check(self, unit: Unit) -> None:
        """Refuse a vault that protects something else than the records of nodes; reads nothing."""
        if isinstance(unit, Node):
            raise Refused(
                "a unit of nodes with a bound on degrees takes all edges of a node away with it, those in the lists of "
                "others too, and nothing bounds how many these are. Nothing was read and nothing was spent. Protect "
                "what a node owns, its features, its label and its list: unit=sf.record(relation='add/remove')."
            )
        if not isinstance(unit, Record | User):
            raise Refused(
                f"a graph network protects the records of nodes, and the unit is {describe(unit)}; nothing was read "
                "or spent. Say unit=sf.record(relation='add/remove'), or sf.user(…) where a name is a person; "
                "unit=sf.edge(relation='add/remove') protects links alone."
            )

    def example(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Made-up nodes, for checks before anything is read: inputs, targets, present. Public."""
        import torch

        from sfumato.learning.stored_rows import invented

        features = invented(self._features[:0].new_empty(self._features.shape[1:]), (size,))
        return (features,), torch.zeros(size, dtype=torch.int64), torch.ones(size, dtype=torch.bool)

    def laid(self, key: bytes) -> Laid:
        """The nodes to learn from: those that count and have a label. Called after the charge. Sensitive: all."""
        rows = self._counted(key)
        labels = self._labels[rows].long()
        known = (labels >= 0) & (labels < self.classes)
        return Laid((self._features[rows][known],), labels[known], int(known.sum()))

    def read(self, key: bytes, *, recipients: int) -> NodeRows:
        """All nodes that count, and who sends to whom. Called after the charge. Sensitive: all."""
        rows = self._counted(key).tolist()
        names = [whose(self._names[row]) for row in rows]
        lists = [attempt(partial(self._lists.__getitem__, row)) for row in rows]  # what fails is no list
        sent = sent_by(names, lists, self.places, most=recipients, key=key)
        return NodeRows(self._features[rows], self._labels[rows].long(), names, sent)

    def unlisted(self) -> NodeRows:
        """All rows with a name of the roster, without who sends to whom: for vaults where lists alone are private."""
        rows = self._counted(b"").tolist()
        names = [whose(self._names[row]) for row in rows]
        return NodeRows(self._features[rows], self._labels[rows].long(), names, sent_by([], [], {}, most=1, key=b""))

    def check_names(self) -> None:
        """Refuse two rows of one name, where names are public: a link of theirs would be sent along more than once."""
        named = [each for each in map(whose, self._names) if each in self.places]
        if len(set(named)) != len(named):
            raise InvalidInput("where links are protected each name has one row; nothing was read or spent.")

    def _counted(self, key: bytes) -> "Tensor":
        """The rows that count: those with a name of the roster, and of each person one where users are protected."""
        import torch

        rows = kept_rows(self._names, 1, key)[:, 0] if self._users else range(len(self._names))
        return torch.tensor([int(row) for row in rows if whose(self._names[row]) in self.places], dtype=torch.int64)

    def _check_rows(self) -> None:
        """Refuse parts that cannot go together; whether their lengths are equal is all that this tells."""
        if self._features.ndim != 2 or not self._features.is_floating_point():
            raise InvalidInput("features are rows of floats, one row for each node; nothing was read or spent.")
        if self._labels.ndim != 1 or self._labels.is_floating_point():
            raise InvalidInput(
                "labels are whole numbers, one for each node, and −1 for none; nothing was read or spent."
            )
        if len({len(self._features), len(self._labels), len(self._names), len(self._lists)}) != 1:
            raise InvalidInput("features, labels, names and lists must have as many rows; nothing was read or spent.")


def given_lists(lists: object) -> Sequence[object]:
    """The lists as a sequence with one place for each row; what is in a place is looked at after the charge."""
    listing = getattr(lists, "to_pylist", None) or (getattr(lists, "tolist", None) if hasattr(lists, "iloc") else None)
    given = lists if listing is None else listing()
    if isinstance(given, str | bytes | dict) or not isinstance(given, Sequence):
        raise InvalidInput(
            "lists are one list of names for each node, such as [['b'], [], ['a', 'b']]; nothing was read or spent."
        )
    return given


def linear_scores(width: int, classes: int) -> "nn.Module":
    """One layer from features to scores of classes, which begins at zero."""
    from torch import nn

    layer = nn.Linear(width, classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
