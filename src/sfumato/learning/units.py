"""Units of training: rows as they are, the rows of each person together, or groups of rows with one loss."""

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.core.exact import natural
from sfumato.core.query import Dataset
from sfumato.core.units import Record, Unit, User
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.learning.training import KINDS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from torch import Tensor

__all__ = ["Laid", "Units"]


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
        return replace(self, inputs=tuple(part.to(device) for part in self.inputs), targets=self.targets.to(device))


class Units:
    """Private data to train on, and the public facts about it. Nothing of it is read before a run was charged.

    ``inputs`` is one array, tensor or data frame, or a tuple of several, whose rows go together; ``targets`` another.
    ``number`` is how many units there are, as far as the public knows: what is learned is divided by it, never by how
    many there really are. ``name`` and ``version`` are what certificates state.

    With ``ids`` the rows of one id are one person. In a vault of users they are one unit together: at most ``records``
    of each count, chosen by a secret key and that person's rows alone. With ``times`` rows stay units of their own, and
    at most so many of each person count; the person then counts as often.

    A unit of ``kind`` *group* is a row whose members lie along the second axis of ``inputs``, with one loss together;
    its id is that of the one person whom all of it belongs to. Groups of several persons are for vaults of records.

    Guarantee: a person is in at most one unit, or in ``times``. Assumes: ids tell persons apart. Public: the shape of a
    row, and what was declared. Sensitive: the rest.

    >>> import numpy as np
    >>> Units(np.zeros((3, 2)), np.zeros(3), ids=["a", "a", "b"], records=2, number=2, name="visits", version="1")
    <units 'visits': users, declared 2>
    """

    def __init__(
        self,
        inputs: Any,
        targets: Any,
        *,
        number: int | None = None,
        name: str | None = None,
        version: str | None = None,
        ids: Any = None,
        records: int | None = None,
        times: int | None = None,
        kind: str | None = None,
    ) -> None:
        if name is None or number is None:
            missing = "name='visits', which is stated" if name is None else "number=…, how many units there are"
            raise NotDeclared(f"units need public facts: say {missing}. Nothing was read and nothing was spent.")
        self.dataset = Dataset(name=name, edition=secrets.token_hex(8) if version is None else version)
        self.number = natural(number, "number")
        self.kind = kind or ("user" if ids is not None and times is None else "record")
        if self.kind not in KINDS:
            raise InvalidInput(f"the kind of a unit is one of {', '.join(KINDS)}; nothing was done.")
        if self.kind == "user" and (ids is None or records is None or times is not None):
            raise NotDeclared(
                "units of persons need ids=… and records=…, how many rows of each count; nothing was read and nothing "
                "was spent."
            )
        if self.kind != "user" and records is not None:
            raise InvalidInput("records is how many rows of a person count; nothing was done. Say ids=… as well.")
        self.records = 1 if records is None else natural(records, "records")
        self.times = 1 if times is None else natural(times, "times")
        self._inputs = tuple(_tensor(part) for part in (inputs if isinstance(inputs, tuple) else (inputs,)))
        self._targets, self._ids = _tensor(targets), ids

    def __repr__(self) -> str:
        return f"<units {self.dataset.name!r}: {self.kind}s, declared {self.number:,}>"

    @property
    def named(self) -> bool:
        """Whether ids tell persons apart. Public."""
        return self._ids is not None

    def check(self, unit: Unit) -> None:
        """Refuse data whose units are not those that a vault protects; reads nothing."""
        if isinstance(unit, User) and not self.named:
            raise Refused(
                f"the vault protects users ({unit.column}) and these units do not say whose they are: a person could "
                "be in many. Nothing was read and nothing was spent. Say ids=…, with records=… or times=…."
            )
        if isinstance(unit, Record) and (self.kind == "user" or self.named):
            raise Refused(
                "the vault protects records, and these units are persons'. Nothing was read and nothing was spent. "
                "Leave ids out, or protect users: unit=sf.user('id', relation='add/remove')."
            )

    def example(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Made-up units of the same shapes and types, for checks before anything is read: inputs, targets, present.

        Values are ordinary numbers for inputs; targets are zeros, which are a class, a label and a number alike.
        """
        import torch

        middle = (size, self.records) if self.kind == "user" else (size,)
        inputs = tuple(_made(part, middle) for part in self._inputs)
        targets = torch.zeros((*middle, *self._targets.shape[1:]), dtype=self._targets.dtype)
        return inputs, targets, torch.ones(middle, dtype=torch.bool)

    def laid(self, key: bytes) -> Laid:
        """Read the data and lay it out, after the charge; ``key`` is secret, 64 bytes at most. Sensitive: all."""
        import torch

        inputs, targets = self._inputs, self._targets
        rows = len(targets)
        if any(len(part) != rows for part in inputs) or (self._ids is not None and len(self._ids) != rows):
            raise InvalidInput("inputs, targets and ids must have as many rows")
        if self._ids is None:
            return Laid(inputs, targets, rows)
        kept = kept_rows(self._ids, self.records if self.kind == "user" else self.times, key)
        if self.kind != "user":
            chosen = torch.from_numpy(kept[kept >= 0])
            return Laid(tuple(part[chosen] for part in inputs), targets[chosen], len(chosen))
        present = kept >= 0
        kept[~present] = 0
        return Laid(inputs, targets, len(kept), torch.from_numpy(kept), torch.from_numpy(present))


def kept_rows(ids: Any, most: int, key: bytes) -> "npt.NDArray[np.int64]":
    """For each person up to ``most`` of their rows, −1 beyond; chosen by a secret key from their own rows alone.

    Of a person's rows those with the least keyed hash of (id, which of their rows it is) are kept, so that no other
    person's rows decide anything. Sensitive: the result.
    """
    import numpy as np

    names = np.asarray(ids).astype(str)
    people, owner = np.unique(names, return_inverse=True)
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=len(people))
    starts = np.cumsum(counts) - counts
    kept = np.full((len(people), most), -1, dtype=np.int64)
    for person, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        own = order[start : start + count]
        if count > most:
            about = str(people[person]).encode()
            lots = [_lot(about + b"\0%d" % place, key) for place in range(count)]
            own = own[sorted(sorted(range(count), key=lots.__getitem__)[:most])]
        kept[person, : len(own)] = own
    return kept


def _lot(about: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(about, key=key, digest_size=16).digest()


def _tensor(part: Any) -> "Tensor":
    """A column, an array, a frame or a tensor as a tensor of the numbers that models take."""
    import numpy as np
    import torch

    if isinstance(part, torch.Tensor):
        found = part.detach()
    else:
        array = np.asarray(part)
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
