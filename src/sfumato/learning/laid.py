"""Units laid out for training: which rows each has, and how the rows of some of them are gathered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from sfumato.core.foreign import Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Laid", "LateRows", "OpenedRows", "ReadRows", "UnitRows", "fits_on"]


class ReadRows(Protocol):
    """Rows that are read when a step asks for them, and not kept. Sensitive: all of it."""

    @property
    def runs_code(self) -> bool:
        """Whether code of the user runs when rows are read: then no other thread reads them, and silence is kept."""
        ...

    def blank(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor]":
        """This many invented rows, inputs and targets, for places that do not count. Public."""
        ...

    def read(self, rows: "Tensor", step: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Inputs and targets of some rows, in memory of their own, and which of them could be read."""
        ...

    def near(self, device: "torch.device") -> "tuple[tuple[Tensor, ...], Tensor] | None":
        """All rows on a device, if it has the memory for that; None where they are better read step by step."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedRows:
    """Rows once they may be read: how many there are, whose they are, and the rows or what reads them. Sensitive."""

    inputs: "tuple[Tensor, ...]"
    targets: "Tensor"
    number: int
    ids: "Array | None"
    source: ReadRows | None = None


class LateRows(Protocol):
    """Rows of which nothing is known before the charge but what was declared."""

    @property
    def like(self) -> "Sequence[Tensor]":
        """One invented row: the inputs, and last the target. Public."""
        ...

    @property
    def named(self) -> bool:
        """Whether ids tell persons apart. Public."""
        ...

    def check_home(self, notary: object) -> None:
        """Refuse rows of another vault than that with this notary; reads nothing."""
        ...

    def opened(self) -> OpenedRows:
        """Read what is needed to lay out units; called after the charge."""
        ...


class UnitRows(Protocol):
    """Units as a run needs them: made-up ones before the charge, and the rows after it."""

    def example(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Made-up units: inputs, targets, present. Public."""
        ...

    def laid(self, key: bytes) -> "Laid":
        """Read the data and lay it out, after the charge. Sensitive: all."""
        ...


@dataclass(frozen=True, slots=True)
class Laid:
    """Units laid out for training, one a place of the first axis. Sensitive: all of it, and how many there are.

    ``places`` are the rows of each unit, one number each or (units, records), and ``present`` says which records count;
    without ``places`` a unit is the row of its number. ``source`` reads rows that are not held in memory; ``inputs``
    and ``targets`` have none then.
    """

    inputs: "tuple[Tensor, ...]"
    targets: "Tensor"
    number: int
    places: "Tensor | None" = None
    present: "Tensor | None" = None
    source: ReadRows | None = None

    @classmethod
    def read_from(
        cls, source: ReadRows, number: int, places: "Tensor | None" = None, present: "Tensor | None" = None
    ) -> "Laid":
        """Units whose rows are read when they are asked for."""
        import torch

        return cls((), torch.empty(0), number, places, present, source)

    @property
    def runs_code(self) -> bool:
        """Whether code of the user runs when rows are gathered."""
        return self.source is not None and self.source.runs_code

    def near(self, device: "torch.device") -> "Laid":
        """The same units on a device, if all of them take less than a quarter of its free memory."""
        if device.type != "cuda":
            return self
        inputs, targets = self.inputs, self.targets
        if self.source is None:
            if not fits_on(device, sum(part.nbytes for part in (*inputs, targets))):
                return self
            inputs, targets = tuple(part.to(device) for part in inputs), targets.to(device)
        else:
            moved = self.source.near(device)
            if moved is None:
                return self
            inputs, targets = moved
        there = None if self.places is None else self.places.to(device)
        present = None if self.present is None else self.present.to(device)
        return replace(self, inputs=inputs, targets=targets, places=there, present=present, source=None)

    def rows_of(self, units: "Tensor", here: "Tensor") -> "tuple[Tensor, Tensor]":
        """The rows of some units, and which of them count where ``here`` says which units do."""
        if self.places is None:
            return units, here
        units = units.to(self.places.device)
        if self.present is None:
            return self.places[units], here
        return self.places[units], self.present[units].to(here.device) & here[:, None]

    def gathered(self, rows: "Tensor", here: "Tensor", step: int = 0) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Rows of the data, copied: whatever is written to them, the data stays what it is.

        Those that are read are read where they count; one that cannot be read does not count, and in its place, as in
        those that do not count, is an invented one.
        """
        if self.source is None:
            at = rows.to(self.targets.device)
            return tuple(part[at] for part in self.inputs), self.targets[at], here.clone()
        wanted = rows[here]
        *found, fine = _flat(self.source.read(wanted.flatten(), step))
        if here.all() and fine.all():
            return (
                tuple(part.reshape(*rows.shape, *part.shape[1:]) for part in found[:-1]),
                found[-1].reshape(*rows.shape, *found[-1].shape[1:]),
                here.clone(),
            )
        blank = (*(inputs := self.source.blank(rows.numel()))[0], inputs[1])
        full = [part.reshape(*rows.shape, *part.shape[1:]) for part in blank]
        for part, some in zip(full, found, strict=True):
            part[here] = some.reshape(*wanted.shape, *some.shape[1:])
        counted = here.clone()
        counted[here] = fine if wanted.ndim == 1 else fine.reshape(wanted.shape).flatten(1).all(1)
        return tuple(full[:-1]), full[-1], counted


def fits_on(device: "torch.device", size: int) -> bool:
    """Whether this many bytes are less than a quarter of what is free on a device."""
    import torch

    return 4 * size <= torch.cuda.mem_get_info(device)[0]


def _flat(read: "tuple[tuple[Tensor, ...], Tensor, Tensor]") -> "tuple[Tensor, ...]":
    inputs, targets, fine = read
    return *inputs, targets, fine
