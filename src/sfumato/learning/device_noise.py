"""The fine Gaussian on the device that trains: the tables and steps of ``sfumato.noise.fine``, in tensor operations.

Proof: docs/proofs/fine_gaussian.md
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from math import sqrt
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.learning import device_kernels
from sfumato.learning.device_words import DeviceWords
from sfumato.learning.replayed import Replayed
from sfumato.noise.fine import accepted_proposals, fill_by_proposals
from sfumato.noise.fine_loops import LARGEST_Q
from sfumato.noise.fine_table import FINE, fine
from sfumato.noise.words import SystemWords, WordArray

__all__ = ["DeviceDraws", "DeviceNoise", "shared_noise"]

_MASK = 0xFFFFFFFF
_COEFFICIENTS = (-1 / 362880, 1 / 40320, -1 / 5040, 1 / 720, -1 / 120, 1 / 24, -1 / 6, 1 / 2, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class DeviceDraws:
    """Numbers as the device has drawn them.

    ``undecided`` says which places it could not draw: floats left a proposal open, or there were too few of them. This
    has probability below 2^−15 for a million numbers. ``pairs`` are the words of the proposals, which decide them, and
    ``certain`` says how many accepted ones there are before the first that is open.
    """

    values: Tensor
    undecided: Tensor
    certain: Tensor
    pairs: Tensor


@lru_cache
def shared_noise(device: torch.device) -> "DeviceNoise":
    """The one source of noise on a device: its tables are large, and what is recorded and compiled is used again."""
    return DeviceNoise(device)


class DeviceNoise:
    """Independent draws of the whole number nearest to N(0, (2^20)²) on a device, exactly.

    Guarantee: for uniform words, that of :func:`sfumato.noise.fine_gaussian`. Proposals that the device's floats leave
    open are settled in exact arithmetic on the CPU with the words that they had, and further ones of the system.
    Assumes: float64 operations on the device err by less than 2^−50 relatively each; what DeviceWords and SystemWords
    assume. Public: how many are drawn. Sensitive: the draws.

    >>> DeviceNoise(torch.device("cpu")).draw(5).dtype
    torch.int64
    """

    def __init__(self, device: torch.device | str, words: DeviceWords | None = None) -> None:
        self.device = torch.device(device)
        if self.device.type not in ("cpu", "cuda"):
            raise InvalidInput(f"noise needs 64-bit floats, which {self.device.type!r} lacks; nothing was drawn.")
        self.words = DeviceWords(self.device) if words is None else words
        table = fine()
        self._tables = tuple(
            torch.from_numpy(part).to(self.device)
            for part in (
                table.starts,
                table.choice.steps.view(np.int64),
                table.outcomes,
                *(np.ascontiguousarray(column) for column in table.floats.T),
            )
        )
        self._shift, self._left = table.choice.shift, 1 - sum(table.given) / 2**FINE.index
        self._accepted = table.accepted
        self._alone = Lock()  # what is recorded writes to the same memory each time
        self._steps: dict[int, Replayed[tuple[DeviceDraws, Tensor]]] = {}

    def draw(self, size: int) -> Tensor:
        """Draw ``size`` numbers; waits for the device, to see that all of them are decided."""
        with self._alone:
            self.words.owned()
            if size not in self._steps:
                self._steps[natural(size, "size", least=0)] = Replayed(partial(self._step_and_doubt, size))
            drawn, doubt = self._steps[size](self.words.key)
            found = self.settled(drawn) if doubt else drawn.values.clone()
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).synchronize()  # another stream may overwrite what was read
            return found

    def _step_and_doubt(self, size: int, _key: Tensor) -> tuple[DeviceDraws, Tensor]:
        drawn = self.step(size)
        return drawn, drawn.undecided.any()

    def step(self, size: int) -> DeviceDraws:
        """Draw without waiting: tensor operations alone, for a graph or a compiler.

        No value may be released before it is known that none is ``undecided``: let the device hold the whole step back
        where one is (``values`` times ``~undecided.any()`` is not enough: the sum must be held back as well), and take
        ``settled`` then, before a recorded graph overwrites ``pairs``. In a process that was forked off, call
        ``words.owned()`` first.
        """
        pairs = self.proposals(size)
        lanes = self.words.step(size + 4 * pairs)
        return self.drawn(lanes[:size], lanes[size:])

    def proposals(self, size: int) -> int:
        """How many proposals are made for ``size`` numbers: ten standard deviations more than they need."""
        need = size * self._left
        return int((need + 10 * sqrt(need) + 60) / self._accepted)

    def drawn(self, lanes: Tensor, pairs: Tensor) -> DeviceDraws:
        """The numbers that words stand for: one word of 32 bits a number, four a proposal.

        They are the numbers of the code for the CPU: the places that need a proposal take the accepted ones in order.
        """
        values, open_places = self.looked_up(lanes)
        missing = open_places.bool()
        number, yes, no = self.judged(pairs)
        accepted = yes.long().cumsum(0)
        count = yes.numel()
        taken = torch.zeros(count + 1, dtype=torch.int64, device=lanes.device)
        taken = taken.scatter(0, torch.where(yes, accepted - 1, count), number)
        certain = torch.where(yes | no, count, accepted).min()  # accepted before the first that is open
        certain = torch.minimum(certain, accepted[-1])
        rank = open_places.cumsum(0, dtype=torch.int64) - 1
        values = torch.where(missing, torch.take(taken, rank.clamp(0, count)), values)
        return DeviceDraws(values, missing & (rank >= certain), certain, pairs)

    def looked_up(self, lanes: Tensor) -> tuple[Tensor, Tensor]:
        """What the first table gives for one word a number, and 1 where it gives nothing (else 0)."""
        starts = self._tables[0]
        if device_kernels.at_hand(self.device):
            return device_kernels.look_up(lanes, starts, index=FINE.index, place=FINE.place)
        low = 32 - FINE.place - 1
        start = torch.take(starts, ((lanes >> (32 - FINE.index)) & ((1 << FINE.index) - 1)).long())
        return (start ^ ((lanes << low) >> low)).long(), (start < 0).int()

    def judged(self, pairs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The number of each proposal, whether it is surely accepted, and whether surely refused."""
        if device_kernels.at_hand(self.device):
            return device_kernels.judge(
                pairs,
                self._tables[1:],
                shift=self._shift,
                place=FINE.place,
                sigma=FINE.sigma,
                columns=FINE.columns,
                largest=LARGEST_Q,
            )
        _, steps, outcomes, nearest, share, given, height, slack = self._tables
        top, u_bits, high, rest = ((pairs[i::4]).long() & _MASK for i in range(4))
        slots = (top + torch.take(steps, top >> self._shift)) >> self._shift
        column = torch.take(outcomes, slots)
        within = (high >> (31 - FINE.place)) & ((1 << FINE.place) - 1)
        number = ((column << FINE.place) | within) ^ -(high >> 31)
        inside = (high & ((1 << (31 - FINE.place)) - 1)).double() * 2.0 ** (FINE.place - 31)
        inside = inside + rest.double() * 2.0 ** (FINE.place - 63)
        far = (number.double() + inside - 0.5).abs()
        near = torch.take(nearest, column)
        q = (far - near) * (far + near) * 2.0 ** -(2 * FINE.sigma + 1)
        small = q <= LARGEST_Q
        q = torch.where(small, q, 0.0)
        e = torch.full_like(q, _COEFFICIENTS[0])
        for coefficient in _COEFFICIENTS[1:]:
            e = e * q + coefficient
        level = torch.take(share, column) * e - torch.take(given, column)
        u, tall, err = u_bits.double() * 2.0**-32, torch.take(height, column), torch.take(slack, column)
        yes = ((u + 2.0**-32) * tall <= level - err) & small
        no = ((u * tall >= level + err) & small) | (column > FINE.columns)
        return number, yes, no

    def settled(self, drawn: DeviceDraws) -> Tensor:
        """The same numbers with the undecided ones decided, in exact arithmetic on the CPU."""
        places = drawn.undecided.nonzero()[:, 0].cpu()
        if not len(places):
            return drawn.values
        # The places that were decided took the first accepted proposals; these take the following ones, in order.
        words, table = SystemWords(), fine()
        lanes = drawn.pairs.cpu().numpy().view(np.uint32).astype(np.uint64).reshape(-1, 4)
        pairs: WordArray = np.concatenate([lanes[:, i] << np.uint64(32) | lanes[:, i + 1] for i in (0, 2)])
        taken = accepted_proposals(table, pairs, words)
        rest = np.empty(len(places), dtype=np.int64)
        following = taken[int(drawn.certain) :][: len(places)]
        rest[: following.size] = following
        fill_by_proposals(table, rest, np.arange(following.size, rest.size), words)
        return drawn.values.index_put((places.to(self.device),), torch.from_numpy(rest).to(self.device))
