"""Units of training: rows as they are, the rows of each person together, or groups of rows with one loss."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.deprecation import renamed
from sfumato.core.exact import natural
from sfumato.core.foreign import Array
from sfumato.core.query import Dataset
from sfumato.core.units import Record, Unit, User
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.learning.given import GivenRows
from sfumato.learning.given_rows import given_tensor, kept_rows, listed_ids, typed
from sfumato.learning.laid import Laid, LateRows, OpenedRows
from sfumato.learning.paradigms.persons import canonical_ids, whose
from sfumato.learning.paradigms.placed_groups import PlacedGroups, members, seated
from sfumato.learning.training import KINDS

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.learning.item_rows import Key
    from sfumato.learning.laid import ReadRows
    from sfumato.tables.table import Table

__all__ = ["Laid", "Units", "kept_rows", "listed_ids", "typed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seating:
    """Groups of places, and how rows come to places."""

    groups: PlacedGroups
    roster: tuple[object, ...] | None
    persons: bool

    def found(self, ids: GivenRows, key: bytes) -> list[tuple[int, ...]]:
        """The rows of each group whose places are all taken. Sensitive."""
        if self.roster is None:
            seats = seated(ids, places=self.groups.places, key=key, persons=self.persons)
        else:
            seats = seated(ids, roster=self.roster, persons=self.persons)
        return [rows for rows in members(self.groups, seats) if rows is not None]


@renamed(number="n_units", records="max_records_per_unit")
class Units:
    """Private data to train on, and the public facts about it. Nothing of it is read before a run was charged.

    ``inputs`` is one array, tensor or data frame, or a tuple of several, whose rows go together; ``targets`` another.
    Of arrays that are mapped from a file (``numpy.load(…, mmap_mode="r")``) rows are read step by step.
    :meth:`of_dataset` takes datasets, :meth:`of_table` a table of the vault.
    ``n_units`` is how many units there are, as far as the public knows: what is learned is divided by it, never by how
    many there really are. ``name`` and ``version`` are what certificates state.

    With ``ids`` the rows of one id are one person. In a vault of users they are one unit together: at most
    ``max_records_per_unit`` of each count, chosen by a secret key and that person's rows alone. With ``times`` rows
    stay units of their own, and at most that many rows of each person count; the person then counts as often.

    A unit of ``kind`` *group* is a row whose members lie along the second axis of ``inputs``, with one loss together;
    its id is that of the one person whom all of it belongs to. Groups without ids have to say ``times``: in how many of
    them whoever is protected can be, 1 if they share nobody. For groups of several persons use :meth:`of_groups`.

    An id is text, bytes or a whole number, each as it is by itself; rows whose id is null, or none of these, count for
    nobody. Inputs, targets and ids have as many rows: where they have not, the caller's code is wrong, and that is said
    at once. How many there are is not.

    Guarantee: a person is in at most one unit, or in ``times``, and changes nobody else's. Assumes: ids tell persons
    apart. Public: the shape of a row, the types, and what was declared. Sensitive: the rest.

    >>> import numpy as np
    >>> Units(np.zeros((3, 2)), np.zeros(3), ids=["a", "a", "b"], max_records_per_unit=2, n_units=2,
    ...       name="visits", version="1")
    <units 'visits': users, declared 2>
    """

    def __init__(
        self,
        inputs: GivenRows,
        targets: GivenRows,
        *,
        n_units: int | None = None,
        name: str | None = None,
        version: str | None = None,
        ids: GivenRows = None,
        max_records_per_unit: int | None = None,
        times: int | None = None,
        kind: str | None = None,
    ) -> None:
        if name is None or n_units is None:
            missing = "name='visits', which is stated" if name is None else "n_units=…, how many units there are"
            raise NotDeclared(f"units need public facts: say {missing}. Nothing was read and nothing was spent.")
        self.dataset = Dataset(name=name, edition=secrets.token_hex(8) if version is None else version)
        self.n_units = natural(n_units, "n_units")
        self.kind = kind or ("user" if ids is not None and times is None else "record")
        if self.kind not in KINDS:
            raise InvalidInput(f"the kind of a unit is one of {', '.join(KINDS)}; nothing was done.")
        if self.kind == "user" and (ids is None or max_records_per_unit is None or times is not None):
            raise NotDeclared(
                "units of persons need ids=… and max_records_per_unit=…, how many rows of each count; nothing was read "
                "and nothing was spent."
            )
        if self.kind != "user" and max_records_per_unit is not None:
            raise InvalidInput(
                "max_records_per_unit is how many rows of a person count; nothing was done. Say ids=… as well."
            )
        if self.kind == "group" and ids is None and times is None:
            raise NotDeclared(
                "groups need times=…, in how many of them one record or person can be; nothing was read or "
                "spent. times=1 says that they share nobody; Units.of_groups counts groups of places itself."
            )
        self.max_records_per_unit = (
            1 if max_records_per_unit is None else natural(max_records_per_unit, "max_records_per_unit")
        )
        self.times = 1 if times is None else natural(times, "times")
        parts = (*(inputs if isinstance(inputs, tuple) else (inputs,)), targets)
        *found, self._targets = (given_tensor(part) for part in parts)
        self._inputs, self._ids = tuple(found), None if ids is None else listed_ids(ids)
        self._source = _stored(parts, (*self._inputs, self._targets))
        self._seating: _Seating | None = None
        self._rows: LateRows | None = None
        self._check_rows()

    @classmethod
    @renamed(number="n_units")
    def of_groups(
        cls,
        inputs: GivenRows,
        targets: GivenRows,
        *,
        ids: GivenRows,
        groups: PlacedGroups,
        roster: Iterable[object] | None = None,
        persons: bool = False,
        n_units: int | None = None,
        name: str | None = None,
        version: str | None = None,
    ) -> "Units":
        """Groups of rows of several persons, who are seated at places as :func:`~sfumato.learning.seated` does it.

        ``inputs`` and ``targets`` have one row for each of ``ids``; a unit has the rows, and the targets, of one group
        of places. ``times`` is what the groups say (``groups.affected``), and ``n_units`` how many groups there are, if
        nothing else is said. Seats are in a public ``roster``, or by a hash under the vault's secret key. They are for
        vaults of records and of users; with ``persons``, where one of a person's rows sits, for users alone.

        Guarantee: a record or person who comes or goes makes at most ``times`` groups come or go and changes no other.
        Proof: docs/proofs/paradigms.md

        >>> import numpy as np
        >>> from sfumato.learning import triplets
        >>> Units.of_groups(np.zeros((3, 2)), np.zeros(3), ids=["a", "b", "c"], groups=triplets(9), name="scans")
        <units 'scans': groups, declared 9>
        """
        if not isinstance(groups, PlacedGroups):
            raise InvalidInput("groups are PlacedGroups, such as learning.triplets(…) makes them; nothing was done.")
        n_units = len(groups.groups) if n_units is None else n_units
        made = cls(inputs, targets, n_units=n_units, name=name, version=version, kind="group", times=groups.affected)
        made._ids = listed_ids([whose(each) for each in listed_ids(ids)])
        made._check_rows()
        listed = None if roster is None else tuple(canonical_ids(roster))
        if listed is not None and (len(listed) != groups.places or None in listed or len(set(listed)) != len(listed)):
            raise InvalidInput(
                f"the roster needs a different name for each of {groups.places} places; nothing was done."
            )
        made._seating = _Seating(groups=groups, roster=listed, persons=persons)
        return made

    @classmethod
    def of_dataset(
        cls,
        dataset: object,
        *,
        like: object = None,
        inputs: "Key | Sequence[Key] | None" = None,
        targets: "Key | None" = None,
        ids: GivenRows = None,
        batched: bool = False,
        n_units: int | None = None,
        name: str | None = None,
        version: str | None = None,
        max_records_per_unit: int | None = None,
        times: int | None = None,
    ) -> "Units":
        """Units whose rows are items of a dataset: a map-style one of torch, or one of Hugging Face.

        ``like`` is one invented item, a tuple or a dictionary, of the shapes and types that items have; a TensorDataset
        says these itself. ``inputs`` and ``targets`` are where they lie in an item: names, or places in a tuple, whose
        last part is the target if nothing else is said. ``ids`` is an array with an id for each item, or where the id
        lies in an item: a column of Hugging Face is read by itself, of other datasets all items are read once for it.
        The rest is as for :class:`Units`.

        Items are made when a step has drawn them, one by one, and what they draw is seeded by the step and the row. An
        item that raises, has another shape or type, or is not finite counts for nothing; of a person the other items
        count. With ``batched`` the dataset's ``__getitems__`` makes many at once: then you vouch that it makes each of
        its own row, and pads or scales nothing by the others.

        Guarantee: that of :class:`Units`; before the charge neither an item nor the length is asked for, and how many
        there are is told by nothing. Ids beyond the last item, and items beyond the last id, are nobody's. Assumes: an
        item is made of its own row; code of the dataset that itself holds the data can carry it anywhere, and is
        outside of the guarantee.

        >>> import torch
        >>> from torch.utils.data import TensorDataset
        >>> Units.of_dataset(TensorDataset(torch.zeros(3, 2), torch.zeros(3)), n_units=3, name="visits", version="1")
        <units 'visits': records, declared 3>
        """
        from sfumato.learning.dataset_rows import DatasetRows

        rows = DatasetRows.of(dataset, like=like, inputs=inputs, targets=targets, ids=ids, batched=batched)
        return cls._late(
            rows,
            n_units=n_units,
            name=name,
            version=version,
            max_records_per_unit=max_records_per_unit,
            times=times,
        )

    @classmethod
    def of_table(
        cls,
        table: "Table",
        *,
        inputs: "Sequence[str]",
        targets: str,
        n_units: int | None = None,
        max_records_per_unit: int | None = None,
        times: int | None = None,
    ) -> "Units":
        """Units whose rows are those of a table of the vault, by its columns.

        Columns of ``inputs`` become numbers by what was declared with the table: those with ``bounds`` are held to
        them and scaled to −1 to 1, with 0 for a missing one; those with ``keys`` become a place for each key. The
        column of ``targets`` is the number of its key, from 0, or a number held to its bounds; rows without one do not
        count. In a vault of users the column of the unit says whose rows they are, and ``max_records_per_unit`` is that
        of the table's limit if nothing else is said. Rows are read at once, after the charge, and kept in memory.

        Guarantee: that of :class:`Units`. Which rows of a person count depends on that person's rows alone, in whatever
        order the engine gives them. Assumes: what was declared with the table is public.

        >>> import pyarrow as pa, sfumato as sf
        >>> budget = sf.Budget(epsilon=1, delta=1e-6)
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="trial")
        >>> table = vault.table(pa.table({"age": [40, 60], "died": [False, True]}), name="stays", version="1",
        ...                     bounds={"age": (0, 100)}, keys={"died": [False, True]})
        >>> Units.of_table(table, inputs=["age"], targets="died", n_units=2)
        <units 'stays': records, declared 2>
        """
        from sfumato.learning.vault_tables import VaultRows

        rows = VaultRows(table, inputs=inputs, targets=targets)
        most = rows.most_rows if times is None and max_records_per_unit is None else max_records_per_unit
        return cls._late(
            rows,
            n_units=rows.n_units if n_units is None else n_units,
            name=table.dataset.name,
            version=table.dataset.edition,
            max_records_per_unit=most,
            times=times,
        )

    @classmethod
    def _late(
        cls,
        rows: LateRows,
        *,
        n_units: int | None,
        name: str | None,
        version: str | None,
        max_records_per_unit: int | None,
        times: int | None,
    ) -> "Units":
        """Units of which nothing is known before the charge but one invented row and what was declared."""
        none = [like.new_empty((0, *like.shape)) for like in rows.like]
        made = cls(
            tuple(none[:-1]),
            none[-1],
            n_units=n_units,
            name=name,
            version=version,
            ids=[] if rows.named else None,
            max_records_per_unit=max_records_per_unit,
            times=times,
        )
        made._rows = rows
        return made

    def _check_rows(self) -> None:
        """Refuse parts that cannot go together; whether their lengths are equal is all that this tells."""
        parts = (*self._inputs, self._targets)
        if any(part.ndim == 0 for part in parts) or any(len(part) != len(parts[0]) for part in parts):
            raise InvalidInput("inputs and targets must have as many rows; nothing was read and nothing was spent.")
        if self._ids is not None and len(self._ids) != len(parts[0]):
            raise InvalidInput("ids must be one for each row of the inputs; nothing was read and nothing was spent.")

    def __repr__(self) -> str:
        return f"<units {self.dataset.name!r}: {self.kind}s, declared {self.n_units:,}>"

    @property
    def named(self) -> bool:
        """Whether ids tell persons apart. Public."""
        return self._ids is not None

    def check_home(self, notary: object) -> None:
        """Refuse data that another vault holds."""
        if self._rows is not None:
            self._rows.check_home(notary)

    def check(self, unit: Unit) -> None:
        """Refuse data whose units are not those that a vault protects; reads nothing."""
        if isinstance(unit, User) and not self.named:
            raise Refused(
                f"the vault protects users ({unit.column}) and these units do not say whose they are: a person could "
                "be in many. Nothing was read and nothing was spent. Say ids=…, with max_records_per_unit=… or times=…."
            )
        placed = self._seating is not None and not self._seating.persons
        if isinstance(unit, Record) and (self.kind == "user" or (self.named and not placed)):
            raise Refused(
                "the vault protects records, and these units are persons'. Nothing was read and nothing was spent. "
                "Leave ids out, or protect users: unit=sf.user('id', relation='add/remove')."
            )

    def example(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Made-up units of the same shapes and types, for checks before anything is read: inputs, targets, present.

        Values are ordinary numbers for inputs; targets are zeros, which are a class, a label and a number alike.
        """
        import torch

        from sfumato.learning.stored_rows import invented

        middle = (size, self.max_records_per_unit) if self.kind == "user" else (size,)
        if self._seating is not None:
            middle = (size, len(self._seating.groups.groups[0]))
        inputs = tuple(invented(part[:0].new_empty(part.shape[1:]), middle) for part in self._inputs)
        targets = torch.zeros((*middle, *self._targets.shape[1:]), dtype=self._targets.dtype)
        return inputs, targets, torch.ones(middle if self.kind == "user" else (size,), dtype=torch.bool)

    def laid(self, key: bytes) -> Laid:
        """Read the data and lay it out, after the charge; ``key`` is secret, 64 bytes at most. Sensitive: all."""
        if self._rows is None:
            given = OpenedRows(self._inputs, self._targets, len(self._targets), self._ids, self._source)
        else:
            given = self._rows.opened()
        places, present = self._laid_places(given.ids, key)
        number = given.number if places is None else len(places)
        if given.source is not None:
            return Laid.read_from(given.source, number, places, present)
        if places is None or present is not None:
            return Laid(given.inputs, given.targets, number, places, present)
        return Laid(tuple(part[places] for part in given.inputs), given.targets[places], number)

    def _laid_places(self, ids: "Array | None", key: bytes) -> "tuple[Tensor | None, Tensor | None]":
        """The rows of each unit, and which of them count: None where each row is a unit, and where all count."""
        import torch

        if ids is None:
            return None, None
        if self._seating is not None:
            found = self._seating.found(ids, key)
            members_of = len(self._seating.groups.groups[0])
            return torch.tensor(found, dtype=torch.int64).reshape(len(found), members_of), None
        kept = kept_rows(ids, self.max_records_per_unit if self.kind == "user" else self.times, key)
        if self.kind != "user":
            return torch.from_numpy(kept[kept >= 0]), None
        present = kept >= 0
        kept[~present] = 0
        return torch.from_numpy(kept), torch.from_numpy(present)


def _stored(parts: tuple[GivenRows, ...], like: "tuple[Tensor, ...]") -> "ReadRows | None":
    """What reads the rows some at a time where one of the parts is a mapped file; None where memory holds all."""
    from sfumato.learning.stored_rows import StoredRows, is_mapped

    if not any(is_mapped(part) for part in parts):
        return None
    held = [part if is_mapped(part) else tensor for part, tensor in zip(parts, like, strict=True)]
    return StoredRows(held, [tensor.new_empty(tensor.shape[1:]) for tensor in like])
