"""Rows of a table as units of training, made numbers of when a run was charged and not before."""

from collections.abc import Callable

from torch import Tensor

from sfumato.learning.given import GivenRows
from sfumato.learning.units import Laid, Units, listed_ids

__all__ = ["TableUnits"]


class TableUnits(Units):
    """Units whose rows are encoded by ``encode()`` after the charge: inputs, targets, and which rows count.

    ``inputs`` and ``targets`` are one made-up row each, of the shapes and types that there will be, and ``rows`` is how
    many rows there are. The rest is as for :class:`~sfumato.learning.units.Units`.

    Guarantee: nothing of a row is looked at before :meth:`laid`, which a run calls once it was charged. Assumes:
    ``encode`` makes numbers of each row by itself and refuses none. Sensitive: all that it gives.

    >>> import torch
    >>> made = TableUnits(lambda: (torch.ones(3, 2), torch.zeros(3), torch.tensor([True, False, True])), rows=3,
    ...                   inputs=torch.zeros(2), targets=torch.tensor(0.0), n_units=3, name="visits", version="1")
    >>> made.laid(b"key").number
    2
    """

    def __init__(
        self,
        encode: Callable[[], tuple[Tensor, Tensor, Tensor]],
        *,
        rows: int,
        inputs: Tensor,
        targets: Tensor,
        n_units: int,
        name: str,
        version: str | None,
        ids: GivenRows = None,
        max_records_per_unit: int | None = None,
    ) -> None:
        ids = None if ids is None else listed_ids(ids)
        super().__init__(
            inputs.expand(rows, *inputs.shape),
            targets.expand(rows, *targets.shape),
            ids=ids,
            max_records_per_unit=max_records_per_unit,
            n_units=n_units,
            name=name,
            version=version,
        )
        self._encode, self._whose = encode, ids

    def laid(self, key: bytes) -> Laid:
        """Encode the rows, drop those that do not count, and lay out the others. Sensitive: all."""
        inputs, targets, counted = self._encode()
        ids = None if self._whose is None else self._whose[counted.numpy()]
        return Units(
            inputs[counted],
            targets[counted],
            ids=ids,
            max_records_per_unit=None if ids is None else self.max_records_per_unit,
            n_units=self.n_units,
            name=self.dataset.name,
            version=self.dataset.edition,
        ).laid(key)
