"""What Spark, or code that it runs, raises while a batch is counted tells of no row."""

import asyncio
import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.errors import EngineFailed, InvalidInput
from sfumato.streams.sources import batches, each_batch
from tests.streams.test_sources import totals

QUOTED = "patient 17 has it"
KINDS = (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
BATCH = SimpleNamespace(sparkSession=None, columns=["n"], schema=[])


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "our_settings", lambda _: nullcontext())


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_raised_is_one_failure_without_words_and_the_batch_may_come_again(
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
    assert stream.steps == 0
    monkeypatch.setattr(batches, "_numbers", lambda *_: 5)
    step(BATCH, 0)
    assert stream.steps == 1


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
