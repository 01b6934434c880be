"""Tests lose nothing by what is made light for them."""

import logging
import sys
from pathlib import Path

import _pytest.logging as logs
import pytest
from hypothesis.internal import charmap

from tests import lighter


def test_utf_8_has_every_character_but_halves_of_pairs() -> None:
    every = [chr(point) for low, high in lighter.UTF_8 for point in range(low, high + 1)]
    text = "".join(every)
    assert text.encode("utf-8").decode("utf-8") == text
    others = set(map(chr, range(sys.maxunicode + 1))) - set(every)
    for character in others:
        with pytest.raises(UnicodeEncodeError):
            character.encode("utf-8")


def test_other_codecs_are_tried_out() -> None:
    assert charmap.intervals_from_codec is lighter.known
    assert charmap.intervals_from_codec("ascii") == lighter.tried_out("ascii")


@pytest.mark.long
def test_hypothesis_finds_the_same_by_trying() -> None:
    assert lighter.known("utf-8") == lighter.tried_out.__wrapped__("utf-8")


def test_folders_lie_in_memory_only_where_there_is_room(tmp_path: Path) -> None:
    assert lighter.in_memory(tmp_path, enough=1)
    assert not lighter.in_memory(tmp_path, enough=1 << 60)
    assert not lighter.in_memory(tmp_path / "gone", enough=1)


@pytest.fixture
def apart() -> logging.Logger:
    """A logger that does not propagate."""
    made = logging.getLogger("tests.apart")
    made.propagate = False
    return made


def test_who_reads_the_log_reads_that_of_every_logger(apart: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    with logs.catching_logs(caplog.handler):
        apart.warning("heard")
    assert caplog.messages == ["heard"]


def test_what_reaches_the_root_is_in_the_report_of_every_test(apart: logging.Logger) -> None:
    held = logs.LogCaptureHandler()
    with logs.catching_logs(held):
        apart.handlers.append(logging.NullHandler())
        apart.warning("not heard")
        logging.getLogger("tests.near").warning("heard")
    assert [record.getMessage() for record in held.records] == ["heard"]
    assert held not in logging.getLogger().handlers
