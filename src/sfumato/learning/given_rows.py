"""Rows and ids as users hand them over: as tensors, and as persons, each id by itself."""

import hashlib
from typing import TYPE_CHECKING

from sfumato.core.foreign import Array
from sfumato.errors import InvalidInput
from sfumato.learning.given import GivenRows
from sfumato.learning.paradigms.persons import Id, whose

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

__all__ = ["given_tensor", "kept_rows", "listed_ids", "model_number", "typed", "whole_tensor", "written_id"]


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
            about = written_id(people[person])
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


def written_id(who: Id) -> bytes:
    """An id as bytes; those of two persons differ. Numbers are hexadecimal: as decimals, long ones are refused.

    >>> written_id(255), written_id(-255), written_id("ff"), len(written_id(10**5000))
    (b'iff', b'i-ff', b'sff', 4154)
    """
    if isinstance(who, bytes):
        return b"b" + who
    return b"i%x" % who if isinstance(who, int) else b"s" + who.encode("utf-8", "surrogatepass")


def _lot(about: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(about, key=key, digest_size=16).digest()


def given_tensor(part: GivenRows) -> "Tensor":
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


def whole_tensor(part: GivenRows) -> "Tensor":
    """As :func:`given_tensor`, and a mapped file is read into memory: for rows that are all needed at once."""
    import numpy as np

    from sfumato.learning.stored_rows import is_mapped

    return given_tensor(np.array(part) if is_mapped(part) else part)


def model_number(found: "Tensor", *, flat: bool) -> "Tensor":
    """Numbers of the types that models take: no double precision, and in a column (``flat``) no short integers."""
    import torch

    if found.dtype == torch.float64:
        return found.float()
    if flat and found.dtype in (torch.int8, torch.int16, torch.int32, torch.uint8, torch.bool):
        return found.long()
    return found
