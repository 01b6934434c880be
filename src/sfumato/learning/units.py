"""Units of training: rows as they are, the rows of each person together, or groups of rows with one loss."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.core.deprecation import renamed
from sfumato.core.exact import natural
from sfumato.core.foreign import Array
from sfumato.core.query import Dataset
from sfumato.core.units import Record, Unit, User
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.learning.given import GivenRows
from sfumato.learning.paradigms.persons import Id, canonical_ids, whose
from sfumato.learning.paradigms.placed_groups import PlacedGroups, members, seated
from sfumato.learning.training import KINDS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from torch import Tensor

__all__ = ["Laid", "Units", "listed_ids", "typed"]


@dataclass(frozen=True, slots=True)
class Laid:
    """Units laid out for training, one a place of the first axis. Sensitive: all of it, and how many there are.

    ``places`` are the rows of each unit (units, records), and ``present`` says which of them count; without them a unit
    is one row.
    """

    inputs: "tuple[Tensor, ...]"
    targets: "Tensor"
    number: int
    places: "Tensor | None" = None
    present: "Tensor | None" = None

    def near(self, device: "torch.device") -> "Laid":
        """The same units on a device, if all of them take less than a quarter of its free memory."""
        import torch

        if device.type != "cuda":
            return self
        wanted = sum(part.nbytes for part in (*self.inputs, self.targets))
        if 4 * wanted > torch.cuda.mem_get_info(device)[0]:
            return self
        there = None if self.places is None else self.places.to(device)
        present = None if self.present is None else self.present.to(device)
        inputs = tuple(part.to(device) for part in self.inputs)
        return replace(self, inputs=inputs, targets=self.targets.to(device), places=there, present=present)


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
        self._inputs = tuple(_tensor(part) for part in (inputs if isinstance(inputs, tuple) else (inputs,)))
        self._targets, self._ids = _tensor(targets), None if ids is None else listed_ids(ids)
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

        middle = (size, self.max_records_per_unit) if self.kind == "user" else (size,)
        if self._seating is not None:
            middle = (size, len(self._seating.groups.groups[0]))
        inputs = tuple(_made(part, middle) for part in self._inputs)
        targets = torch.zeros((*middle, *self._targets.shape[1:]), dtype=self._targets.dtype)
        return inputs, targets, torch.ones(middle if self.kind == "user" else (size,), dtype=torch.bool)

    def laid(self, key: bytes) -> Laid:
        """Read the data and lay it out, after the charge; ``key`` is secret, 64 bytes at most. Sensitive: all."""
        import torch

        inputs, targets = self._inputs, self._targets
        if self._ids is None:
            return Laid(inputs, targets, len(targets))
        if self._seating is not None:
            found = self._seating.found(self._ids, key)
            there = torch.tensor(found, dtype=torch.int64).reshape(len(found), len(self._seating.groups.groups[0]))
            return Laid(tuple(part[there] for part in inputs), targets[there], len(found))
        kept = kept_rows(self._ids, self.max_records_per_unit if self.kind == "user" else self.times, key)
        if self.kind != "user":
            chosen = torch.from_numpy(kept[kept >= 0])
            return Laid(tuple(part[chosen] for part in inputs), targets[chosen], len(chosen))
        present = kept >= 0
        kept[~present] = 0
        return Laid(inputs, targets, len(kept), torch.from_numpy(kept), torch.from_numpy(present))


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
    """A column, an array, a frame or a tensor as a tensor of the numbers that models take."""
    import numpy as np
    import torch

    if isinstance(part, torch.Tensor):
        found = part.detach()
    else:
        array = np.asarray(typed(part))
        if array.dtype.kind not in "biuf":
            raise InvalidInput("units to train on are numbers; nothing was read. Encode text and dates first.")
        found = torch.from_numpy(np.ascontiguousarray(array if array.flags.writeable else array.copy()))
    if found.dtype == torch.float64:
        found = found.float()
    if found.dtype in (torch.int8, torch.int16, torch.int32, torch.uint8, torch.bool) and found.ndim == 1:
        found = found.long()
    return found


def _made(part: "Tensor", middle: tuple[int, ...]) -> "Tensor":
    import torch

    shape = (*middle, *part.shape[1:])
    if part.dtype.is_floating_point:
        count = int(torch.tensor(shape).prod())
        return torch.sin(torch.arange(count) * 0.7853981 + 0.3).reshape(shape).to(part.dtype)
    return torch.zeros(shape, dtype=part.dtype)
