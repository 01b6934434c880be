"""Loops over bitmaps: as they are, compiled, and in array code; and a single step of bringing a set to its size."""

from itertools import permutations

import numpy as np
import pytest

from sfumato.errors import MissingExtra
from sfumato.local import OptimisedUnary, SubsetSelection, aggregate, bitmaps, counts, draws, reports, simulate
from sfumato.noise import SystemWords

pytest.importorskip("numba")

PLAIN = bitmaps.Loops(look_up=bitmaps._look_up, place=bitmaps._place, resize=bitmaps._resize, columns=bitmaps._columns)


@pytest.fixture(params=["plain", "compiled"])
def loop(request: pytest.FixtureRequest) -> bitmaps.Loops:
    return PLAIN if request.param == "plain" else bitmaps._compiled()


def fresh(*shape: int) -> np.ndarray:
    """Random words."""
    out = np.empty(int(np.prod(shape)), dtype=np.uint64)
    SystemWords().fill(out)
    return out.reshape(shape)


def by_hand(rows: np.ndarray) -> np.ndarray:
    return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").sum(axis=0)


@pytest.mark.few(1)
@pytest.mark.parametrize("add", [bitmaps._columns, "compiled", aggregate._add_columns])
def test_columns_are_added_up(add) -> None:
    job = bitmaps._compiled().columns if add == "compiled" else add
    for size, width in ((8, 1), (24, 2), (48, 3)):
        rows = fresh(size, width)
        total = np.ones((8, 8 * width), dtype=np.int64)  # what was counted before stays
        job(rows, total)
        assert (total.T.reshape(-1) == by_hand(rows) + 1).all()


def test_a_block_of_ones_does_not_overflow_and_a_larger_one_would() -> None:
    for size, right in ((bitmaps.BLOCK, True), (bitmaps.BLOCK + 8, False)):
        total = np.zeros((8, 8), dtype=np.int64)
        bitmaps._compiled().columns(np.full((size, 1), ~np.uint64(0)), total)
        assert (total == size).all() == right


def test_tables_are_looked_up(loop: bitmaps.Loops) -> None:
    table = (np.arange(1 << 16) % 251).astype(np.uint8)
    words = fresh(80)
    out, again = np.empty(40, dtype=np.uint64), np.full(320, -1)
    words[:40] |= np.uint64(0xFFF0) << np.uint64(16)  # some from where the left ones begin
    left_over = 0xFFF8
    found = loop.look_up(table, left_over, words, out, again)
    pairs = words.view(np.uint16)
    assert (out.view(np.uint8) == table[pairs]).all()
    assert again[:found].tolist() == (pairs >= left_over).nonzero()[0].tolist()


def test_one_bit_of_each_row_is_set(loop: bitmaps.Loops) -> None:
    rows = fresh(32, 1).view(np.uint8)
    before = np.unpackbits(rows, axis=1, bitorder="little")
    places, heads = np.arange(32) * 2, np.arange(32) % 3 == 0
    loop.place(rows, places, heads)
    before[np.arange(32), places] = heads
    assert (np.unpackbits(rows, axis=1, bitorder="little") == before).all()


@pytest.mark.few(6)
@pytest.mark.parametrize(("start", "missing"), [(0b0000_1010, 2), (0b0000_0010, 1), (0b0101_1010, -2), (0, 0)])
@pytest.mark.parametrize("kind", ["plain", "compiled", "arrays"])
def test_bringing_a_set_to_its_size_reaches_every_set_equally(kind: str, start: int, missing: int) -> None:
    """All ways to draw so many places, those left out that do not fit: each set of the right size comes as often.

    Seven values of which value 2 is the truth: it is never put in.
    """
    truth, values = 2, 7
    reached: dict[int, int] = {}
    for places in np.ndindex(*(values,) * abs(missing)):
        bitmap, left = np.array([[start]], dtype=np.uint8), np.array([missing])
        job = PLAIN.resize if kind == "plain" else bitmaps._compiled().resize
        if kind == "arrays":
            try:
                simulate._resized(bitmap, np.array([truth]), left, values, Given(places))
            except IndexError:
                continue
        else:
            job(bitmap, np.array([truth]), left, 0, np.array(places, dtype=np.int64))
        if not left[0]:
            reached[int(bitmap[0, 0])] = reached.get(int(bitmap[0, 0]), 0) + 1
    others = [value for value in range(values) if value != truth and bool(start >> value & 1) == (missing < 0)]
    wanted: dict[int, int] = {}
    for moved in permutations(others, abs(missing)):
        bitmap = start ^ sum(1 << value for value in moved)
        wanted[bitmap] = wanted.get(bitmap, 0) + 1
    assert reached == wanted


class Given:
    """A source of words of three bits that runs dry."""

    width = 3

    def __init__(self, places: tuple[int, ...]) -> None:
        self.places = list(places)

    def fill(self, out: np.ndarray) -> None:
        for i in range(out.size):
            out[i] = self.places.pop(0)


@pytest.mark.parametrize(
    "oracle", [OptimisedUnary(epsilon=1, values=40), SubsetSelection(epsilon=1, values=40, size=9)]
)
@pytest.mark.alpha(1e-9)
def test_compiled_reports_support_as_stated(oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 reports of one value: all counts within 7 standard deviations, α below 1e-8. The twin: another value."""
    monkeypatch.setattr(bitmaps, "_MUCH", 0)
    monkeypatch.setattr(draws, "_CHUNK", 1 << 10)
    n, truth = 20_000, 5
    drawn = reports(oracle, np.full(n, truth))
    supported = counts(oracle, drawn)
    assert (supported == np.unpackbits(drawn, axis=1, bitorder="little").sum(axis=0)).all()

    def off(true: int) -> float:
        chances = np.array([float(oracle.hit if value == true else oracle.stray) for value in range(oracle.values)])
        return float((np.abs(supported - n * chances) / np.sqrt(n * chances * (1 - chances))).max())

    assert off(truth) < 7 < off(6)
    if isinstance(oracle, SubsetSelection):
        assert (simulate.bits_set(drawn) == oracle.size).all()


def test_without_numba_array_code_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: str) -> None:
        raise MissingExtra("there is none")

    monkeypatch.setattr(bitmaps, "need", absent)
    monkeypatch.setattr(bitmaps, "_MUCH", 0)
    bitmaps._compiled.cache_clear()
    try:
        assert bitmaps.loops(10**9) is None
        oracle = OptimisedUnary(epsilon=1, values=16)
        drawn = reports(oracle, np.zeros(100, dtype=np.int64))
        assert counts(oracle, drawn).tolist() == np.unpackbits(drawn, axis=1, bitorder="little").sum(axis=0).tolist()
    finally:
        bitmaps._compiled.cache_clear()


def test_few_bitmaps_do_not_wait_for_the_compiler() -> None:
    assert bitmaps.loops(1000) is None
