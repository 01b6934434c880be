"""Sums on a lattice: rounded as the bound says, met by the exact noise, and never by the same noise twice."""

import copy
import math
import os
import pickle
import threading
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.learning.rounding_error import FARTHEST, ROUNDING, WIDTH
from sfumato.noise import fine_gaussian, fine_loops
from tests.noise.replayed import ReplayedWordsForTests, fresh
from tests.parts import package

package("torch")

import torch  # noqa: E402

from sfumato.learning import lattice as lattices  # noqa: E402
from sfumato.learning.lattice import NoisyLattice  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_from_the_first_number")
PITCHES = [Fraction(1), Fraction(1, 3), Fraction(10, 7) ** 30, Fraction(1, 10**9 + 7), Fraction(3, 2) ** -700]


@pytest.fixture
def compiled_from_the_first_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_loops, "MANY", 0)


def rounded(values: "list[float] | torch.Tensor", pitch: Fraction) -> list[int]:
    """The whole steps that a sum is rounded to: what is released less the noise, whose words are replayed."""
    total = torch.as_tensor(values, dtype=torch.float64)
    words = fresh(total.numel() + 2000)
    out = NoisyLattice(pitch=pitch, size=total.numel(), words=ReplayedWordsForTests(words)).release(total)
    noise = fine_gaussian(total.numel(), ReplayedWordsForTests(words))
    return [round(Fraction(it) / pitch) - int(z) for it, z in zip(out.tolist(), noise, strict=True)]


@pytest.mark.parametrize("pitch", PITCHES, ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_every_sum_is_rounded_within_the_bound_that_is_charged(
    pitch: Fraction, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(lattices, "_rounded", lambda **_: lattices._round_and_add_arrays)
    steps = np.concatenate(
        [np.random.default_rng().normal(0, 2.0**power, 60) for power in (-3, 0, 10, 20, 40, 46)]
        + [np.arange(-20, 21) / 2, [FARTHEST - 0.5, FARTHEST, -FARTHEST, FARTHEST + 1.0]]
    )
    sums = [float(it) * float(pitch) for it in steps]
    for total, k in zip(sums, rounded(sums, pitch), strict=True):
        quotient = max(-FARTHEST, min(FARTHEST, Fraction(total) / pitch))
        assert abs(k - quotient) <= ROUNDING


@pytest.mark.alpha(1e-60)
def test_a_coarser_rounding_would_be_seen() -> None:
    """The broken twin: rounding down instead of to the nearest leaves the bound."""
    sums = np.random.default_rng().normal(0, 100, 500)
    assert max(abs(k - it) for k, it in zip(rounded(sums.tolist(), Fraction(1)), sums, strict=True)) <= 0.5
    assert max(abs(math.floor(it) - it) for it in sums) > ROUNDING


@pytest.mark.parametrize("compiled", [True, False])
def test_halves_go_to_the_even_number_and_what_is_no_number_to_zero(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(lattices, "_rounded", lambda **_: lattices._round_and_add_arrays)
    inf, nan = math.inf, math.nan
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49, nan, inf, -inf, 1e300, -1e300, 5e-324, -0.0, float(FARTHEST) + 1]
    far = FARTHEST
    assert rounded(values, Fraction(1)) == [0, 2, 2, 0, -2, 0, 0, far, -far, far, -far, 0, 0, far]
    tiny = Fraction(1, 2**400)
    assert rounded([1e300, -1e300, nan, 1.0], tiny) == [far, -far, 0, far]  # the quotient may overflow


def test_the_loop_as_it_is_written_is_what_is_compiled() -> None:
    total, noise = np.array([0.5, -1.5, math.nan, 1e9, math.inf, 2.5]), np.array([1, -2, 3, -4, 5, 0])
    plain, arrays = np.empty(6), np.empty(6)
    lattices._round_and_add(total, noise.copy(), 3.0, 1 / 3, 2.0**46, plain)
    lattices._round_and_add_arrays(total, noise, 3.0, 1 / 3, 2.0**46, arrays)
    assert plain.tolist() == arrays.tolist()
    near = total[[0, 1, 3, 5]]
    loop = lattices._rounded(same=True)  # numba multiplies floats of both kinds in double precision, Python does not
    for some in (total, near, total.astype(np.float32), near.astype(np.float32)):
        within, beside, left = some.copy(), some.copy(), np.arange(some.size)
        loop(within, left, 3.0, 1 / 3, 2.0**46, within)
        lattices._round_and_add_arrays(some, np.arange(some.size), 3.0, 1 / 3, 2.0**46, beside)
        assert within.tolist() == beside.tolist()
        assert not left.any()
    for some in (total, near):
        within, beside = some.copy(), some.copy()
        lattices._round_in_place(within, np.arange(some.size), 3.0, 1 / 3, 2.0**46)
        lattices._round_and_add_arrays(some, np.arange(some.size), 3.0, 1 / 3, 2.0**46, beside)
        assert within.tolist() == beside.tolist()


def test_no_two_neighbours_are_driven_apart_further_than_the_slack() -> None:
    """Brute force in two dimensions: every pair of sums on a grid, and the rounded pair beside the bound."""
    pitch = Fraction(1, 3)
    grid = [float(Fraction(i, 7)) for i in range(-6, 7)]
    places = torch.tensor(list(product(grid, grid)), dtype=torch.float64)
    steps = np.array(rounded(places.reshape(-1), pitch)).reshape(-1, 2)
    largest = 0.0
    for i in range(len(places)):
        moved = torch.linalg.vector_norm(places - places[i], dim=1).numpy()
        apart = np.linalg.norm(steps - steps[i], axis=1) * float(pitch)
        assert (apart <= moved + 2 * float(ROUNDING) * math.sqrt(2) * float(pitch) + 1e-12).all()
        largest = max(largest, float((apart - moved).max()))
    assert largest > 0.4 * math.sqrt(2) * float(pitch)  # and much of the slack is needed


@pytest.mark.alpha(1e-9)
def test_released_sums_have_the_noise_that_is_stated_and_another_scale_would_be_seen() -> None:
    """Limits of 6.5 standard errors, α below 1e-9 for the two; a scale 5% off is 31 of them away."""
    size = 200_000
    lattice = NoisyLattice(pitch=Fraction(3, WIDTH), size=size)
    assert lattice.sigma == 3
    noise = (lattice.release(torch.full((size,), 7.0)) - 7.0) / 3
    assert noise.dtype == torch.float64
    assert abs(noise.mean()) < 6.5 / math.sqrt(size)
    assert abs(noise.square().mean() - 1) < 6.5 * math.sqrt(2 / size)
    assert abs(0.95**2 * noise.square().mean() - 1) > 6.5 * math.sqrt(2 / size)


@pytest.mark.parametrize("ahead", [False, True])
def test_no_noise_is_used_twice_and_the_thread_ends(ahead: bool) -> None:
    size, before = 5000, threading.active_count()
    with NoisyLattice(pitch=1, size=size, ahead=ahead) as lattice:
        seen = [lattice.release(torch.zeros(size)) for _ in range(4)]
        for i, j in ((0, 1), (1, 2), (2, 3), (0, 3)):
            assert (seen[i] == seen[j]).float().mean() < 0.01
        assert threading.active_count() == before + ahead
    assert threading.active_count() == before


def test_the_noise_drawn_ahead_is_the_next_in_order() -> None:
    size = 1000
    words = fresh(20 * size)
    drawn = []
    for ahead in (False, True):
        with NoisyLattice(pitch=1, size=size, ahead=ahead, words=ReplayedWordsForTests(words)) as lattice:
            drawn.append([lattice.release(torch.zeros(size)).tolist() for _ in range(3)])
    assert drawn[0] == drawn[1]


def test_a_process_that_was_forked_off_draws_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1000
    with NoisyLattice(pitch=1, size=size, ahead=True) as lattice:
        assert lattice._ahead is not None
        before, thread = lattice._ahead._coming.result().copy(), lattice._ahead._thread
        monkeypatch.setattr(os, "getpid", lambda: -1)
        released = lattice.release(torch.zeros(size))
        assert (released.numpy() == before).mean() < 0.01
        thread.shutdown()


@pytest.mark.parametrize("store", [pickle.dumps, copy.deepcopy, copy.copy])
def test_a_lattice_cannot_be_stored_or_copied_with_its_noise(store) -> None:
    with pytest.raises(InvalidInput, match="Make a new one"):
        store(NoisyLattice(pitch=1, size=3))


def test_wrong_shapes_and_pitches_are_refused() -> None:
    lattice = NoisyLattice(pitch=1, size=3)
    for wrong in (torch.zeros(4), torch.zeros(3, 1), torch.zeros(())):
        with pytest.raises(InvalidInput, match="nothing was released"):
            lattice.release(wrong)
    for pitch in (0, -1, Fraction(1, 2**501), 2**501):
        with pytest.raises(InvalidInput):
            NoisyLattice(pitch=pitch, size=3)
    with pytest.raises(InvalidInput):
        NoisyLattice(pitch=1, size=0)


def test_what_was_given_is_not_changed_and_needs_no_gradient() -> None:
    total = torch.arange(6.0, dtype=torch.float64, requires_grad=True)
    released = NoisyLattice(pitch=1, size=3).release(total[::2])
    assert total.tolist() == [0, 1, 2, 3, 4, 5]
    assert not released.requires_grad


def test_a_sum_can_be_released_into_its_own_memory_and_into_no_other_shape() -> None:
    size = 400
    words = fresh(4 * size + 500)
    plain = NoisyLattice(pitch="1/8", size=size, words=ReplayedWordsForTests(words))
    total = torch.linspace(-5, 5, size, dtype=torch.float64)
    kept = [plain.release(total).tolist() for _ in range(2)]
    again = NoisyLattice(pitch="1/8", size=size, words=ReplayedWordsForTests(words))
    place = total.clone()
    assert again.release(place, out=place) is place
    assert place.tolist() == kept[0]
    assert again.release(total, out=place).tolist() == kept[1]
    short = NoisyLattice(pitch="1/8", size=size, words=ReplayedWordsForTests(words)).release(
        total, out=torch.empty(size)
    )
    assert short.tolist() == torch.tensor(kept[0], dtype=torch.float64).float().tolist()
    exact = total.float().double()
    one, other = (
        NoisyLattice(pitch="1/8", size=size, words=ReplayedWordsForTests(words)).release(sum_).tolist()
        for sum_ in (total.float(), exact)
    )
    assert one == other
    wrong_ones = (torch.zeros(size).half(), torch.zeros(size + 1, dtype=torch.float64), place.clone().requires_grad_())
    for wrong in wrong_ones:
        with pytest.raises(InvalidInput, match="nothing was released"):
            again.release(total, out=wrong)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("compiled", [True, False])
def test_noise_that_was_used_is_overwritten(ahead: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(lattices, "_rounded", lambda **_: lattices._round_and_add_arrays)
    with NoisyLattice(pitch=1, size=300, ahead=ahead) as lattice:
        lattice.release(torch.zeros(300))
        assert lattice._noise is not None
        assert not lattice._noise.any()


def test_threads_that_release_at_once_get_noise_of_their_own() -> None:
    size, results = 4000, []
    with NoisyLattice(pitch=1, size=size) as lattice:
        zeros = torch.zeros(size)
        workers = [threading.Thread(target=lambda: results.append(lattice.release(zeros))) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for i in range(8):
        assert (results[i] == 0).float().mean() < 0.01
        for j in range(i):
            assert (results[i] == results[j]).float().mean() < 0.01


def test_large_lattices_draw_in_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def drawing(size: int, words: object, *, threads: int, out: object) -> np.ndarray:
        asked.append((size, threads))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(lattices, "fine_gaussian", drawing)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    block, many = lattices._BLOCK, lattices._MANY
    for size in (2 * block + 1, many):
        NoisyLattice(pitch=1, size=size).release(torch.zeros(size))
    NoisyLattice(pitch=1, size=many, words=ReplayedWordsForTests([])).release(torch.zeros(many))
    assert asked == [(block, 1), (block, 1), (1, 1), (many, 2), (many, 1)]


def test_an_interrupted_release_hands_no_memory_on_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that draws ahead would write to the memory that is read: parts of the next sums had no noise."""
    lattice = NoisyLattice(pitch=Fraction(1, 2**20), size=1000, ahead=True)
    total = torch.zeros(1000, dtype=torch.float64)
    lattice.release(total)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.learning.lattice._rounded", lambda **_: interrupted)
        with pytest.raises(KeyboardInterrupt):
            lattice.release(total)
    handed: list[object] = []
    ahead = lattice._ahead
    assert ahead is not None
    following = ahead.next
    monkeypatch.setattr(ahead, "next", lambda used: (handed.append(used), following(used))[1])
    found = [lattice.release(total) for _ in range(3)]
    assert handed[0] is None
    assert all(int((each == 0).sum()) < 20 for each in found)
    lattice.close()
