"""What a step on a device needs of chance, drawn there one step before: who is in it, and its noise.

Nothing waits for the device: while it computes one step, the host sees the count of the next one, and that nothing of
it was left open. Proofs: docs/proofs/training.md, docs/proofs/fine_gaussian.md
"""

import os
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
import torch
from torch import Tensor

from sfumato.learning.device_noise import DeviceDraws, DeviceNoise
from sfumato.learning.replayed import Replayed
from sfumato.noise.words import SystemWords, WordBits

__all__ = ["MOST", "DeviceAhead", "DeviceSample", "StepDraws"]

MOST = 2**24
"""The most units of which a device draws samples: each takes some 40 bytes there."""
SPREAD = 12
"""This many standard deviations more than expected fit in; more are drawn on the host."""
LAST = torch.iinfo(torch.int64).max


@dataclass(frozen=True, slots=True)
class StepDraws:
    """What was drawn for one step. ``places`` has ``count`` places of units first, then places without meaning.

    ``near`` are the same places in the machine's memory.
    """

    places: Tensor
    near: Tensor
    count: int
    noise: Tensor


class DeviceSample:
    """Poisson samples of units in a uniformly random order, drawn on a device.

    Each unit has a uniform number of 64 bits, and is in where that is below the rate; those that are in lie in the
    order of their numbers. Where numbers are equal, or one begins as the rate does, further bits decide on the host.

    Guarantee: the law of :func:`~sfumato.learning.sampling.shuffled_sample`, exactly, for uniform words. Assumes: what
    DeviceWords and SystemWords assume. Sensitive: the places, and how many there are.
    """

    def __init__(self, number: int, rate: Fraction, room: int) -> None:
        scaled = rate * 2**64
        self.number, self.room = number, room
        self._whole, self._rest = int(scaled), scaled - int(scaled)

    @classmethod
    def room_for(cls, number: int, rate: Fraction) -> int:
        """For how many places there is room."""
        expected = float(rate * number)
        return min(number, int(expected + SPREAD * sqrt(expected * float(1 - rate))) + 64)

    def drawn(self, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The places of a sample, (count, doubt), and all numbers, from two words of 32 bits a unit; nothing waits."""
        numbers = (words[: self.number].long() << 32) | (words[self.number :].long() & 0xFFFFFFFF)
        limit = self._whole - 2**63
        inside = numbers < limit
        rank = inside.cumsum(0, dtype=torch.int64) - 1
        count = rank[-1] + 1
        at = torch.where(inside & (rank < self.room), rank, self.room)
        units = torch.arange(self.number, device=words.device)
        places = torch.zeros(self.room + 1, dtype=torch.int64, device=words.device).scatter(0, at, units)[:-1]
        there = torch.arange(self.room, device=words.device) < count
        order = torch.where(there, numbers[places], LAST)
        order, turn = order.sort()
        alike = ((order[1:] == order[:-1]) & there[1:]).any()
        doubt = alike | (count > self.room)
        if self._rest:
            doubt = doubt | (numbers == limit).any()
        return places[turn], torch.stack((count, doubt.long())), numbers

    def settled(self, numbers: Tensor) -> tuple[Tensor, int]:
        """The places of the same sample where something was open, with further bits of the system."""
        held = numbers.cpu().numpy()
        bits = WordBits(SystemWords())
        limit = self._whole - 2**63
        chosen = [int(at) for at in np.flatnonzero(held < limit)]
        if self._rest:
            begun = (int(at) for at in np.flatnonzero(held == limit))
            chosen += [at for at in begun if bits.below(self._rest.denominator) < self._rest.numerator]
        # Equal numbers go on with further bits until none are alike; that two are is next to never.
        longer = {at: (int(held[at]), *(bits.below(2**64) for _ in range(4))) for at in chosen}
        ordered = sorted(chosen, key=longer.__getitem__)
        return torch.tensor(ordered, dtype=torch.int64, device=numbers.device), len(ordered)


@dataclass(slots=True)
class _Slot:
    """One of two places that draws go to in turn, with what the host will see of them."""

    step: Replayed[tuple[Tensor, Tensor, Tensor, DeviceDraws]]
    told: Tensor
    near: Tensor
    event: "torch.cuda.Event | None"
    result: tuple[Tensor, Tensor, Tensor, DeviceDraws] | None = None


class DeviceAhead:
    """Samples and noise of a run, each drawn on the device before the step that comes before its own.

    Guarantee: samples as :class:`DeviceSample`, noise as :class:`~sfumato.learning.device_noise.DeviceNoise`; each is
    handed out once. What :meth:`next` gives is overwritten two steps later. Sensitive: all of it.

    >>> ahead = DeviceAhead(torch.device("cpu"), number=10, rate=Fraction(1, 2), size=3)
    >>> drawn = ahead.next()
    >>> drawn.count <= 10, drawn.noise.shape
    (True, torch.Size([3]))
    """

    def __init__(self, device: torch.device, *, number: int, rate: Fraction, size: int) -> None:
        self._noise, self._size = DeviceNoise(device), size
        self._sample = DeviceSample(number, rate, DeviceSample.room_for(number, rate))
        on_device = device.type == "cuda"
        self._slots = [
            _Slot(
                step=Replayed(self._drawn),
                told=torch.empty(3, dtype=torch.int64, pin_memory=on_device),
                near=torch.empty(self._sample.room, dtype=torch.int64, pin_memory=on_device),
                event=torch.cuda.Event() if on_device else None,  # type: ignore[no-untyped-call]  # torch states none
            )
            for _ in range(2)
        ]
        self._turn, self._process = 0, os.getpid()
        # chance is drawn beside the step that is computed, which leaves parts of a device idle
        self._beside = torch.cuda.Stream(device) if on_device else None  # type: ignore[no-untyped-call]  # torch states none
        self._launch(self._slots[0])

    def next(self) -> StepDraws:
        """The draws of the next step; those of the one after it are begun."""
        if self._process != os.getpid():  # a process that was forked off draws its own: these are its parent's
            self._process = os.getpid()
            self._launch(self._slots[self._turn])
        now = self._slots[self._turn]
        self._turn = 1 - self._turn
        self._launch(self._slots[self._turn])
        if now.event is not None:
            now.event.synchronize()  # it was begun before the last step: there is hardly ever anything to wait for
        count, open_sample, open_noise = now.told.tolist()
        places, _, numbers, noise = _result(now)
        near = now.near
        if open_sample:
            places, count = self._sample.settled(numbers)
            near = places.cpu()
        values = self._noise.settled(noise) if open_noise else noise.values
        return StepDraws(places, near, count, values)

    def _launch(self, slot: _Slot) -> None:
        self._noise.words.owned()
        if self._beside is None:
            self._begin(slot)
            return
        self._beside.wait_stream(
            torch.cuda.current_stream(self._beside.device)
        )  # what was drawn there two steps before is still used
        with torch.cuda.stream(self._beside):
            self._begin(slot)

    def _begin(self, slot: _Slot) -> None:
        slot.result = slot.step(self._noise.words.key)
        slot.near.copy_(slot.result[0], non_blocking=True)
        slot.told.copy_(slot.result[1], non_blocking=True)
        if slot.event is not None:
            slot.event.record()

    def _drawn(self, _key: Tensor) -> tuple[Tensor, Tensor, Tensor, DeviceDraws]:
        places, told, numbers = self._sample.drawn(self._noise.words.step(2 * self._sample.number))
        noise = self._noise.step(self._size)
        return places, torch.cat((told, noise.undecided.any().long()[None])), numbers, noise


def _result(slot: _Slot) -> tuple[Tensor, Tensor, Tensor, DeviceDraws]:
    if slot.result is None:
        raise AssertionError("a slot is begun before it is asked")
    return slot.result
