"""What Spark, or code that it runs, raises while a batch is counted tells of no row."""

import asyncio
import os
import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import EngineFailed, InvalidInput, Refused
from sfumato.streams.sources import batches, each_batch
from tests.streams.test_sources import totals

QUOTED = "patient 17 has it"
KINDS = (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
BATCH = SimpleNamespace(sparkSession=None, columns=["n"], schema=[])


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "our_settings", lambda _: nullcontext())


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_raised_is_one_failure_without_words_and_ends_the_stream(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: Any) -> Any:
        raise kind(QUOTED)

    stream = totals(horizon=9)
    step = each_batch(stream)
    with monkeypatch.context() as patched:
        patched.setattr(batches, "_numbers", raises)
        with pytest.raises(EngineFailed, match="Spark could not count a batch") as caught:
            step(BATCH, 0)
    assert QUOTED not in repr(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    monkeypatch.setattr(batches, "_numbers", lambda *_: 5)
    for again in (lambda: step(BATCH, 0), lambda: step(BATCH, 1), lambda: each_batch(stream)(BATCH, 0)):
        with pytest.raises(Refused, match="This stream has ended"):
            again()
    with pytest.raises(Refused, match="could not be read, and that ended it"):
        stream.add(5)
    assert (stream.steps, stream.left, stream.failed) == (0, 0, True)


def test_a_stream_that_failed_is_not_opened_or_resumed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit for each version of the data remains: to ask again, a new one must be declared and paid for."""
    clinic = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=9), name="er")
    state = tmp_path / "er.state"
    question = clinic.stream(name="er", version="1", horizon=6).running_total()
    stream = question.open(epsilon=1, state=state)
    copy = state.read_bytes()
    monkeypatch.setattr(batches, "_numbers", lambda *_: 1 / 0)
    with pytest.raises(EngineFailed, match="the charge counts, and this version of the data is closed"):
        each_batch(stream)(BATCH, 0)
    assert not state.exists()
    assert clinic.spent == sf.Budget(epsilon=1)
    state.write_bytes(copy)
    with pytest.raises(Refused):
        question.resume(epsilon=1, state=state)
    state.unlink(missing_ok=True)
    with pytest.raises(Refused):
        question.open(epsilon=1)
    assert clinic.spent == sf.Budget(epsilon=1)
    assert clinic.stream(name="er", version="2", horizon=6).running_total().open(epsilon=1).left == 6


def test_of_streams_of_the_same_data_one_tells_that_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=9), name="er")
    question = clinic.stream(name="er", version="1", horizon=6).running_total()
    first, second = question.open(epsilon=1), question.open(epsilon=1)
    monkeypatch.setattr(batches, "_numbers", lambda *_: 1 / 0)
    with pytest.raises(EngineFailed):
        each_batch(first)(BATCH, 0)
    with pytest.raises(Refused, match="This stream has ended"):
        each_batch(second)(BATCH, 0)


def test_a_real_ctrl_c_goes_on_and_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: Any) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 5

    monkeypatch.setattr(batches, "_numbers", pressed)
    stream = totals(horizon=9)
    with pytest.raises(KeyboardInterrupt):
        each_batch(stream)(BATCH, 0)
    assert stream.steps == 0


def test_what_is_refused_of_the_columns_is_told() -> None:
    with pytest.raises(InvalidInput, match="have no column 'amount'"):
        each_batch(totals(horizon=9), amount="amount")(BATCH, 0)
