"""Words in bulk: new ones for every thread, every process and every key, and from the operating system alone."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from sfumato.noise import SystemWords, words
from sfumato.noise.words import WordBits
from tests.noise.replayed import ReplayedWordsForTests, enumerated


def some(source: SystemWords, size: int = 80) -> list[int]:
    out = np.zeros(size, dtype=np.uint64)
    source.fill(out)
    return out.tolist()


def test_the_words_are_the_keystream_of_a_key_that_the_system_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"\x17" * size)
    cipher = Cipher(AES256(b"\x17" * 32), CTR(bytes(16))).encryptor()
    stream = np.frombuffer(cipher.update(bytes(165 * 8)), dtype=np.uint64).tolist()
    source = SystemWords()
    assert some(source, 65) + some(source, 35 + 65) == stream  # nothing is skipped and nothing is used twice


def test_few_words_are_the_systems_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(
        os, "urandom", lambda size: given.append(size) or bytes(range(size % 256)) + bytes(size - size % 256)
    )
    source = SystemWords()
    assert some(source, 2) == np.frombuffer(bytes(range(16)), dtype=np.uint64).tolist()
    some(source, 64)
    assert given == [16, 512]  # no key was taken
    some(source, 65)
    assert given == [16, 512, 32]


def test_no_words_are_drawn_for_nothing() -> None:
    assert some(SystemWords(), 0) == []


@pytest.mark.alpha(1e-10)
def test_a_new_source_and_a_new_thread_have_keys_of_their_own() -> None:
    shared = SystemWords()
    with ThreadPoolExecutor(8) as pool:
        drawn = [word for part in pool.map(lambda _: some(shared, 500), range(64)) for word in part]
    drawn += [word for _ in range(10) for word in some(SystemWords(), 500)]
    assert len(set(drawn)) == len(drawn)  # two equal words have probability below 1e-10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.alpha(1e-14)
def test_a_forked_process_has_a_key_of_its_own() -> None:
    source = SystemWords()
    before = some(source)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover
        os.write(writer, np.array(some(source), dtype=np.uint64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    there = np.frombuffer(os.read(reader, 640), dtype=np.uint64).tolist()
    here = some(source)
    assert len({*before, *there, *here}) == 240


@pytest.mark.alpha(1e-14)
def test_a_spawned_process_has_a_key_of_its_own() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(_spawned)
    assert not set(there) & set(_spawned())


def _spawned() -> list[int]:
    return some(SystemWords())


def test_the_key_is_replaced_when_it_has_served(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []

    def given(size: int) -> bytes:
        keys.append(size)
        return bytes([len(keys)]) * size

    monkeypatch.setattr(os, "urandom", given)
    monkeypatch.setattr(words, "_REKEY", 1_024)
    source = SystemWords()
    first = some(source, 128)
    assert keys == [32]
    assert some(source, 128) != first
    assert keys == [32, 32]


@pytest.mark.alpha(1e-9)
def test_a_request_longer_than_a_block_is_served_in_parts() -> None:
    drawn = some(SystemWords(), 100_000)
    assert len(set(drawn)) == 100_000  # two equal words have probability below 1e-9


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 16, 17, 100])
def test_whole_numbers_from_words_are_uniform_below_any_bound(bound: int) -> None:
    masses, unresolved = enumerated(lambda source: WordBits(source).below(bound), width=4, depth=3)
    shares = {masses[value] for value in range(bound)}
    assert len(shares) == 1
    assert set(masses) == set(range(bound))
    assert unresolved < 1 / 2


def test_a_number_of_several_words_holds_the_first_bits() -> None:
    assert WordBits(ReplayedWordsForTests([0xAB, 0xCD], width=8)).number(12) == 0xABC
    assert WordBits(ReplayedWordsForTests([], width=8)).number(0) == 0
