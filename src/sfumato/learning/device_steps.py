"""Steps that stay on a device: sampled, gathered, summed and noised there, by what was recorded before rows were read.

No code of the user runs for a step, so that nothing has to be silenced or put back; and the host waits for nothing but
what was drawn a step before. Rows are gathered into the place that was recorded, in parts of one fixed shape.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from sfumato.learning.course import SampledCourse
from sfumato.learning.device_ahead import DeviceAhead
from sfumato.learning.engine import ClippedSum
from sfumato.learning.laid import Laid
from sfumato.learning.replayed import Replayed

__all__ = ["DeviceSteps"]


class DeviceSteps:
    """The noisy sums of a run whose samples are Poisson and whose model draws nothing.

    Guarantee: that of the sums and of the noise; the sample is that of
    :class:`~sfumato.learning.device_ahead.DeviceSample`, in parts as the host would make them. How many parts a step
    has shows in its time, as it does on the host. Sensitive: all of it but what ``noisy`` returns.
    """

    def __init__(self, course: SampledCourse, sums: Replayed[ClippedSum], like: tuple[Tensor, ...]) -> None:
        self._course = course
        self._places, self._run = sums.recorded(*like)
        self._physical = len(like[-1])
        self._spots = torch.arange(self._physical, device=like[-1].device)
        self._pointers: tuple[int, ...] | None = None
        self._ahead: DeviceAhead | None = None
        self._buffers = _Pinned()

    def as_recorded(self, trained: Iterable[Tensor]) -> bool:
        """Whether the weights still lie where they were when they were recorded."""
        pointers = tuple(one.data_ptr() for one in trained)
        if self._pointers is None:
            self._pointers = pointers
        return pointers == self._pointers

    def noisy(self, laid: Laid, step: int = 0) -> Tensor:
        """The noisy sum of the next step, which is the one of this number."""
        device = self._spots.device
        if self._ahead is None:
            self._ahead = self._course.on_device(device, laid.number)
        if self._ahead is None:
            near = torch.from_numpy(self._course.places(laid.number, 0))
            return self._course.release(self._summed(laid, near.to(device), near, len(near), step))
        drawn = self._ahead.next()
        total = self._summed(laid, drawn.places, drawn.near, drawn.count, step)
        return self._course.release(total, noise=drawn.noise)

    def _summed(self, laid: Laid, places: Tensor, near: Tensor, count: int, step: int = 0) -> Tensor:
        total = torch.zeros(self._course.size, dtype=torch.float64, device=self._spots.device)
        there = laid.source is None and laid.targets.device == total.device
        for start in range(0, count, self._physical):
            self._gather(laid, _some(places if there else near, start, self._physical), count - start, step)
            total += self._run().flat
        return total

    def _gather(self, laid: Laid, units: Tensor, left: int, step: int = 0) -> None:
        """Write the rows of some units to the recorded place; what is left of it is filled up and absent.

        Rows in the machine's memory are gathered there while the device still computes the step before.
        """
        *inputs, targets, present = self._places
        if laid.source is not None:
            self._read(laid, units, left, step)
            return
        rows, here = laid.rows_of(units, self._spots < left)
        present.copy_(here)
        parts = [
            (part, place.view(-1, *part.shape[1:]))
            for part, place in zip((*laid.inputs, laid.targets), (*inputs, targets), strict=True)
        ]
        if laid.targets.device == present.device:
            for part, place in parts:
                torch.index_select(part, 0, rows.flatten(), out=place)
            return
        buffers = self._buffers.next([place for _, place in parts])
        for (part, place), buffer in zip(parts, buffers, strict=True):
            torch.index_select(part, 0, rows.flatten(), out=buffer)
            place.copy_(buffer, non_blocking=True)
        self._buffers.sent()

    def _read(self, laid: Laid, units: Tensor, left: int, step: int) -> None:
        """The same for rows that are read when they are asked for: the host reads while the device computes."""
        found, targets, here = laid.gathered(*laid.rows_of(units, torch.arange(self._physical) < left), step)
        buffers = self._buffers.next(list(self._places))
        for part, buffer, place in zip((*found, targets, here), buffers, self._places, strict=True):
            buffer.copy_(part)
            place.copy_(buffer, non_blocking=True)
        self._buffers.sent()


class _Pinned:
    """Memory of the machine that a device copies from by itself, in two parts that take turns."""

    def __init__(self) -> None:
        self._parts: list[list[Tensor]] = []
        self._events: list[torch.cuda.Event] = []
        self._turn = 0

    def next(self, like: list[Tensor]) -> list[Tensor]:
        """Buffers that nothing is copied from any more."""
        self._turn = 1 - self._turn
        if not self._parts:
            self._parts = [
                [torch.empty(one.shape, dtype=one.dtype, pin_memory=one.is_cuda) for one in like] for _ in range(2)
            ]
            self._events = [torch.cuda.Event() for _ in range(2)]  # type: ignore[no-untyped-call]  # torch states none
        self._events[self._turn].synchronize()  # at once if nothing was recorded yet
        return self._parts[self._turn]

    def sent(self) -> None:
        """The copies of these buffers were begun."""
        self._events[self._turn].record()


def _some(places: Tensor, start: int, number: int) -> Tensor:
    """This many places from one on; beyond the end it is the first unit, which does not count there."""
    found = places[start : start + number]
    return found if len(found) == number else torch.cat((found, found.new_zeros(number - len(found))))
