"""Units of training: rows as they are, the rows of each person together, or groups of rows with one loss."""

import hashlib
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
from sfumato.learning.laid import Laid
from sfumato.learning.paradigms.persons import Id, canonical_ids, whose
from sfumato.learning.paradigms.placed_groups import PlacedGroups, members, seated
from sfumato.learning.training import KINDS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from sfumato.learning.item_rows import Key
    from sfumato.learning.laid import ReadRows
    from sfumato.tables.table import Table

__all__ = ["Laid", "Units", "listed_ids", "model_number", "typed"]


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
        *found, self._targets = (_tensor(part) for part in parts)
        self._inputs, self._ids = tuple(found), None if ids is None else listed_ids(ids)
        self._source = _stored(parts, (*self._inputs, self._targets))
        self._seating: _Seating | None = None
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
        from sfumato.learning.dataset_units import units_of_dataset

        return units_of_dataset(
            dataset,
            like=like,
            inputs=inputs,
            targets=targets,
            ids=ids,
            batched=batched,
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
        from sfumato.learning.vault_tables import VaultTableUnits

        return VaultTableUnits(
            table,
            inputs=inputs,
            targets=targets,
            n_units=n_units,
            max_records_per_unit=max_records_per_unit,
            times=times,
        )

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
        """Refuse data that another vault holds; what a user hands over has no home of its own."""

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
        inputs, targets, source = self._inputs, self._targets, self._source
        places, present = self._laid_places(self._ids, key)
        number = len(targets) if places is None else len(places)
        if source is not None:
            return Laid.read_from(source, number, places, present)
        if places is None or present is not None:
            return Laid(inputs, targets, number, places, present)
        return Laid(tuple(part[places] for part in inputs), targets[places], number)

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


def typed(rows: GivenRows) -> GivenRows:
    """Rows whose type is stated, as they are; a list is refused, for its type would depend on every value in it.

    >>> import numpy as np
    >>> typed(np.zeros(2)).dtype
    dtype('float64')
    """
    if isinstance(rows, list | tuple) or not (hasattr(rows, "dtype") or hasattr(rows, "__array__")):
        raise InvalidInput(
            "inputs and targets are arrays, tensors or data frames, whose type is stated: that of a list depends on "
            "every value in it. Nothing was read and nothing was spent. Say np.array(rows, dtype=...)."
        )
    return rows


def listed_ids(ids: GivenRows) -> "Array":
    """Ids as one array with a place for each row, none of them changed; refused by type and shape alone.

    Numbers and text that came as an array of their type stay one; anything else is an array of objects, since a common
    type of all ids would depend on all of them.

    >>> listed_ids([1, 2.0, None, "x"]).tolist()
    [1, 2.0, None, 'x']
    """
    import numpy as np

    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    if not isinstance(ids, np.ndarray) and isinstance(getattr(ids, "dtype", None), np.dtype):
        ids = np.asarray(ids)  # a column of pandas
    if isinstance(ids, np.ndarray) and not isinstance(ids, np.ma.MaskedArray):
        if ids.ndim != 1 or ids.dtype.kind not in "biufUSO" or ids.dtype in (np.float16, np.float32):
            raise InvalidInput(
                "ids are text, bytes or whole numbers in one column, and these are not; nothing was read or spent. "
                "Write them as text first."
            )
        return ids
    if isinstance(ids, str | bytes | dict) or len(getattr(ids, "shape", (0,))) != 1:
        raise InvalidInput("ids are one for each row; nothing was read or spent. Give one column or list of them.")
    items = next((getattr(ids, name)() for name in ("to_pylist", "to_list", "tolist") if hasattr(ids, name)), None)
    items = list(ids) if items is None else items
    found = np.empty(len(items), dtype=object)
    for place, each in enumerate(items):
        found[place] = each
    return found


def kept_rows(ids: GivenRows, most: int, key: bytes) -> "npt.NDArray[np.int64]":
    """For each person up to ``most`` of their rows, −1 beyond; chosen by a secret key from their own rows alone.

    Of a person's rows those with the least keyed hash of (id, which of their rows it is) are kept, so that no other
    person's rows decide anything. Rows without an id are nobody's, and none of them is kept. Sensitive: the result.
    """
    import numpy as np

    people, owner = _owners(listed_ids(ids))
    order = np.argsort(owner, kind="stable")[int((owner < 0).sum()) :]
    counts = np.bincount(owner[owner >= 0], minlength=len(people))
    starts = np.cumsum(counts) - counts
    kept = np.full((len(people), most), -1, dtype=np.int64)
    for person, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        own = order[start : start + count]
        if count > most:
            about = _written(people[person])
            lots = [_lot(about + b"\0%d" % place, key) for place in range(count)]
            own = own[sorted(sorted(range(count), key=lots.__getitem__)[:most])]
        kept[person, : len(own)] = own
    return kept


def _owners(ids: "Array") -> "tuple[list[Id], npt.NDArray[np.int64]]":
    """All persons, whole numbers first, then text, then bytes, each in order; and whose each row is, −1 for nobody's.

    Each id is read by itself and never refused: this is after the charge.
    """
    import numpy as np

    values, place = np.unique(ids, return_inverse=True) if ids.dtype != object else _distinct(ids)
    found = [whose(each) for each in values.tolist()]
    people = sorted({each for each in found if each is not None}, key=_order)
    number: dict[Id | None, int] = {each: person for person, each in enumerate(people)}
    owners = np.array([number.get(each, -1) for each in found], dtype=np.int64)
    return people, owners[place]


def _distinct(ids: "Array") -> "tuple[Array, npt.NDArray[np.int64]]":
    """Ids of any type as whoever they are, each once, and which of these each row has."""
    import numpy as np

    seen: dict[Id | None, int] = {}
    place = np.array([seen.setdefault(whose(each), len(seen)) for each in ids], dtype=np.int64)
    values = np.empty(len(seen), dtype=object)
    for each, spot in seen.items():
        values[spot] = each
    return values, place


def _order(who: Id) -> tuple[int, Id]:
    return (0, who) if isinstance(who, int) else (1, who) if isinstance(who, str) else (2, who)


def _written(who: Id) -> bytes:
    """An id as bytes; those of two persons differ."""
    if isinstance(who, bytes):
        return b"b" + who
    return b"i%d" % who if isinstance(who, int) else b"s" + who.encode("utf-8", "surrogatepass")


def _lot(about: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(about, key=key, digest_size=16).digest()


def _tensor(part: GivenRows) -> "Tensor":
    """A column, an array, a frame or a tensor as a tensor of the numbers that models take.

    Of a mapped file it is a made-up one of the same shape, which takes no memory: its rows are read step by step.
    """
    import numpy as np
    import torch

    from sfumato.learning.stored_rows import is_mapped

    if isinstance(part, torch.Tensor):
        found = part.detach()
    else:
        array = np.asarray(typed(part))
        if array.dtype.kind not in "biuf":
            raise InvalidInput("units to train on are numbers; nothing was read. Encode text and dates first.")
        if not array.dtype.isnative:
            raise InvalidInput(
                "these numbers have the bytes of another machine; nothing was read. Say array.astype(array.dtype."
                "newbyteorder('='))."
            )
        if is_mapped(part) and array.ndim:
            like = model_number(torch.from_numpy(np.zeros(1, array.dtype)), flat=array.ndim == 1)
            return like[0].expand(array.shape)
        found = torch.from_numpy(np.ascontiguousarray(array if array.flags.writeable else array.copy()))
    return model_number(found, flat=found.ndim == 1)


def model_number(found: "Tensor", *, flat: bool) -> "Tensor":
    """Numbers of the types that models take: no double precision, and in a column (``flat``) no short integers."""
    import torch

    if found.dtype == torch.float64:
        return found.float()
    if flat and found.dtype in (torch.int8, torch.int16, torch.int32, torch.uint8, torch.bool):
        return found.long()
    return found


def _stored(parts: tuple[GivenRows, ...], like: "tuple[Tensor, ...]") -> "ReadRows | None":
    """What reads the rows some at a time where one of the parts is a mapped file; None where memory holds all."""
    from sfumato.learning.stored_rows import StoredRows, is_mapped

    if not any(is_mapped(part) for part in parts):
        return None
    held = [part if is_mapped(part) else tensor for part, tensor in zip(parts, like, strict=True)]
    return StoredRows(held, [tensor.new_empty(tensor.shape[1:]) for tensor in like])
