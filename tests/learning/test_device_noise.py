"""Noise in tensor operations: ChaCha20 bit for bit, and the numbers of the code for the CPU from the same words."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from sfumato.errors import InvalidInput
from sfumato.noise import fine_loops as loops
from sfumato.noise.fine import SIGMA
from sfumato.noise.fine_table import FINE, FineTable, fine
from tests.noise.replayed import fresh
from tests.noise.test_fine_gaussian import test_at_the_threshold_itself_proposals_are_judged_right as at_the_threshold
from tests.noise.test_fine_gaussian import test_the_tail_is_left_open_and_words_left_over_are_refused as left_over
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

from sfumato.learning.device_noise import DeviceNoise, shared_noise  # noqa: E402
from sfumato.learning.device_words import DeviceWords, chacha20  # noqa: E402
from sfumato.learning.lattice import NoisyLattice  # noqa: E402

CPU = torch.device("cpu")


def keystream(key: bytes, counter: int, blocks: int) -> list[int]:
    cipher = Cipher(ChaCha20(key, counter.to_bytes(8, "little") + bytes(8)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(64 * blocks)), dtype="<i4").tolist()


@pytest.mark.parametrize("counter", [0, 1, 2**31 - 1, 2**31, 2**32 - 5, 2**32, 7 * 2**32 + 3])
def test_the_words_are_those_of_chacha20(counter: int) -> None:
    key = os.urandom(32)
    words = torch.tensor(np.frombuffer(key, dtype="<i4").copy())
    assert chacha20(words, torch.tensor(counter), 5).tolist() == keystream(key, counter, 5)
    assert chacha20(words, torch.tensor(counter), 5).tolist() != keystream(os.urandom(32), counter, 5)


def test_the_counter_carries_into_its_upper_word() -> None:
    key = os.urandom(32)
    words = torch.tensor(np.frombuffer(key, dtype="<i4").copy())
    both = chacha20(words, torch.tensor(2**32 - 1), 2).tolist()
    assert both == keystream(key, 2**32 - 1, 1) + keystream(key, 2**32, 1)


def test_words_come_from_the_systems_key_and_no_block_is_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    given = os.urandom(32)
    asked = []
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or given)
    words = DeviceWords(CPU)
    drawn = words.draw(20).tolist() + words.draw(16).tolist() + words.draw(1).tolist()
    stream = keystream(given, 0, 4)
    assert drawn == stream[:20] + stream[32:48] + stream[48:49]
    assert words.draw(0).tolist() == []
    assert asked == [32]
    monkeypatch.setattr(os, "getpid", lambda: -5)  # as after a fork
    given = bytes(32)
    assert words.draw(16).tolist() == keystream(bytes(32), 0, 1)
    assert asked == [32, 32]


def as_words(lanes: torch.Tensor) -> np.ndarray:
    """Pairs of 32-bit words as words of 64, the first above."""
    halves = lanes.numpy().view(np.uint32).astype(np.uint64)
    return halves[0::2] << np.uint64(32) | halves[1::2]


def random_lanes(size: int) -> torch.Tensor:
    return torch.from_numpy(fresh(size // 2).view(np.int32).copy())


def decided(noise: DeviceNoise, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Words that leave no number open. Those that do have a probability below 2^-20; three times, below 2^-60."""
    for _ in range(3):
        lanes, pairs = random_lanes(size), random_lanes(4 * noise.proposals(size))
        if not noise.drawn(lanes, pairs).undecided.any():
            break
    return lanes, pairs


def by_the_cpu(lanes: torch.Tensor, pairs: torch.Tensor) -> np.ndarray:
    table = fine()
    out, again = np.empty(len(lanes), dtype=np.int64), np.empty(len(lanes) + 1, dtype=np.int64)
    found = loops.look_up(table, as_words(lanes), out, again)
    both = as_words(pairs)
    values, verdicts = np.empty(len(both) // 2, dtype=np.int64), np.empty(len(both) // 2, dtype=np.int8)
    loops.judge(table, both[0::2].copy(), both[1::2].copy(), values, verdicts)
    assert (verdicts != loops.OPEN).all()
    out[again[:found]] = values[verdicts == loops.ACCEPTED][:found]
    return out


@pytest.mark.alpha(1e-12)
def test_the_same_words_are_the_same_numbers_as_on_the_cpu() -> None:
    noise = DeviceNoise(CPU)
    size = 40_000
    lanes, pairs = decided(noise, size)
    drawn = noise.drawn(lanes, pairs)
    assert not drawn.undecided.any()
    assert drawn.values.tolist() == by_the_cpu(lanes, pairs).tolist()
    assert noise.settled(drawn) is drawn.values


@pytest.mark.alpha(4e-8)
def test_the_last_words_of_all_are_the_same_too() -> None:
    """Every corner of a word: all bits, none, signs alone."""
    corners = [0, -1, 1, -(2**31), 2**31 - 1, 1 << 14, (1 << 14) - 1, 1 << 15, 1 << 17, (1 << 17) - 1, 12345 << 17]
    noise = DeviceNoise(CPU)
    lanes = torch.tensor([*corners, 0], dtype=torch.int32)
    pairs = torch.cat([torch.tensor([[a, b, a, b] for a in corners for b in corners], dtype=torch.int32).reshape(-1)])
    pairs = torch.cat([pairs, random_lanes(400)])
    assert noise.drawn(lanes, pairs).values.tolist() == by_the_cpu(lanes, pairs).tolist()


def in_lanes(first: np.ndarray, second: np.ndarray) -> torch.Tensor:
    """Pairs of words as four of 32 bits each, the upper halves first."""
    low = np.uint64(2**32 - 1)
    lanes = np.stack([first >> np.uint64(32), first & low, second >> np.uint64(32), second & low], axis=1)
    return torch.from_numpy(lanes.astype(np.uint32).view(np.int32).reshape(-1))


def test_proposals_are_judged_right_at_the_threshold_itself_in_the_tail_and_beyond() -> None:
    """The tests of the code for the CPU, asked of the device."""
    noise = DeviceNoise(CPU)

    def judge(
        table: FineTable, first: np.ndarray, second: np.ndarray, values: np.ndarray, verdicts: np.ndarray
    ) -> None:
        number, yes, no = (it.numpy() for it in noise.judged(in_lanes(first, second)))
        assert not (yes & no).any()
        values[:] = number
        verdicts[:] = np.where(yes, loops.ACCEPTED, np.where(no, loops.REFUSED, loops.OPEN))
        other = np.empty_like(values)
        loops.judge_arrays(table, first, second, other, np.empty_like(verdicts))
        assert values.tolist() == other.tolist()

    at_the_threshold(judge)
    left_over(judge)


def opened(noise: DeviceNoise) -> DeviceNoise:
    """The same device with floats that are trusted nowhere in the first columns."""
    *others, slack = noise._tables
    slack = slack.clone()
    slack[:20] = math.inf
    noise._tables = (*others, slack)
    return noise


@pytest.mark.alpha(1e-12)
def test_what_the_device_leaves_open_is_settled_with_the_words_that_it_had() -> None:
    size = 20_000
    trusted, doubtful = DeviceNoise(CPU), opened(DeviceNoise(CPU))
    lanes, pairs = decided(trusted, size)
    right, drawn = trusted.drawn(lanes, pairs), doubtful.drawn(lanes, pairs)
    assert drawn.undecided.sum() > 50
    sure = ~drawn.undecided
    assert (drawn.values[sure] == right.values[sure]).all()
    assert doubtful.settled(drawn).tolist() == right.values.tolist()


@pytest.mark.alpha(1e-9)
def test_too_few_proposals_leave_places_that_the_cpu_draws() -> None:
    size = 20_000
    noise = DeviceNoise(CPU)
    lanes, pairs = random_lanes(size), random_lanes(4 * 100)
    drawn = noise.drawn(lanes, pairs)
    taken = int(drawn.certain)
    missing = drawn.undecided.sum() + taken
    assert 30 < taken < 95
    settled = noise.settled(drawn)
    sure = ~drawn.undecided
    assert (settled[sure] == drawn.values[sure]).all()
    assert (settled[drawn.undecided] != 0).double().mean() > 0.9  # each is 0 with probability below 1e-6
    assert missing < 300


def test_there_are_proposals_enough() -> None:
    noise = DeviceNoise(CPU)
    table = fine()
    for size in (1, 100, 10_000, 203_530, 10**8):
        needed, accepted = size * (1 - sum(table.given) / 2**15), noise.proposals(size) * table.accepted
        assert accepted - needed > 6.5 * math.sqrt(needed + accepted * 0.381)
    assert noise.proposals(10**8) < 2 * 10**6


@pytest.mark.alpha(1e-9)
def test_fresh_draws_follow_the_law_and_another_scale_would_be_seen() -> None:
    """Limits of 7 standard errors: α below 1e-9 for four moments, the fourth of which has a skewness of 0.02; a scale
    5% off is 31 of them away."""
    size = 200_000
    draws = DeviceNoise("cpu").draw(size)
    assert (draws.dtype, draws.shape) == (torch.int64, (size,))
    scaled = draws.double() / SIGMA
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(scaled.pow(power).mean() - mean) < 7 * math.sqrt(variance / size)
    assert abs((0.95 * scaled).square().mean() - 1) > 7 * math.sqrt(2 / size)


def test_two_draws_differ_and_steps_advance_the_counter_alone() -> None:
    noise = DeviceNoise(CPU)
    key = noise.words.key.tolist()
    first, second = noise.step(1000), noise.step(1000)
    assert (first.values == second.values).float().mean() < 0.01
    assert noise.words.key.tolist() == key
    assert int(noise.words.counter) == 2 * -(-(1000 + 4 * noise.proposals(1000)) // 16)
    assert noise.draw(0).shape == (0,)


def test_the_tables_are_those_of_the_cpu_and_other_devices_are_refused() -> None:
    noise, table = DeviceNoise(CPU), fine()
    assert noise._tables[0].tolist() == table.starts.tolist()
    assert noise._left == pytest.approx(1 - sum(table.given) / 2**FINE.index)
    with pytest.raises(InvalidInput, match="64-bit floats"):
        DeviceNoise("meta")
    with pytest.raises(InvalidInput):
        noise.draw(-1)


def test_a_lattice_off_the_cpu_takes_the_noise_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no other device here: the lattice is told so, and the tensors stay where they are."""
    size = 500
    lattice = NoisyLattice(pitch=Fraction(1, 4), size=size)
    noise = shared_noise(CPU)
    assert shared_noise(CPU) is noise
    kept = torch.arange(size)
    monkeypatch.setattr(noise, "draw", lambda size: kept)
    total = torch.linspace(-3, 3, size, dtype=torch.float64)
    total[0], total[1], total[2] = math.nan, math.inf, -1e300
    released = lattice._on_device(total, 4.0, 0.25)
    steps = (total * 4).round()
    steps[0], steps[1], steps[2] = 0, 2.0**46, -(2.0**46)
    assert released.tolist() == ((steps + kept) / 4).tolist()


class Watched(TorchFunctionMode):
    """The names of all torch functions that are called inside."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.add(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_step_never_waits_for_the_device_and_a_draw_does() -> None:
    """What reads a tensor's content on the host, or has a shape that depends on it, cannot be in a graph."""
    waits = {"item", "tolist", "numpy", "cpu", "nonzero", "any", "all", "__bool__", "__int__", "__float__", "__index__"}
    noise = DeviceNoise(CPU)
    with Watched() as step:
        noise.step(1000)
    with Watched() as draw:
        noise.draw(1000)
    assert len(step.seen) > 15
    assert not step.seen & waits
    assert draw.seen & waits
