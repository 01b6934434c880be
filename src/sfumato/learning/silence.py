"""Silence while private data is worked on: what is printed, warned of or logged then can depend on the data."""

import ctypes
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO

__all__ = ["silence"]


@contextmanager
def silence() -> Iterator[None]:
    """Let nothing get out: no text of Python or of a library in C on the two outputs, no warning, no log record.

    Assumes: what runs within opens no way out of its own, such as a file. Meanwhile other threads are silent as well.
    """
    with ExitStack() as stack:
        _flush()
        for output in (1, 2):
            _put_aside(output, stack)
        stack.callback(_flush)  # what is still buffered goes where it was written to
        # logging.disable itself goes through all loggers of the process; these two reach all of them at once
        stack.callback(_allow_again, logging.root.manager.disable)
        for name, instead in (("isEnabledFor", _disabled), ("callHandlers", _unheard)):
            stack.callback(setattr, logging.Logger, name, getattr(logging.Logger, name))
            setattr(logging.Logger, name, instead)
        stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("ignore")
        stack.enter_context(redirect_stdout(StringIO()))
        stack.enter_context(redirect_stderr(StringIO()))
        yield


def _disabled(self: logging.Logger, level: int) -> bool:
    """Say of every level that nobody wants it."""
    return False


def _allow_again(before: int) -> None:
    """Log from the level that was set before, whatever the code has set."""
    if logging.root.manager.disable != before:
        logging.disable(before)


def _unheard(self: logging.Logger, record: logging.LogRecord) -> None:
    """Hand a record to nobody."""


def _put_aside(output: int, stack: ExitStack) -> None:
    """Turn a file descriptor to nowhere until the stack is left; one that is not open stays so."""
    try:
        kept = os.dup(output)
    except OSError:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, output)
    os.close(nowhere)

    def back() -> None:
        os.dup2(kept, output)
        os.close(kept)

    stack.callback(back)


def _flush() -> None:
    """Empty the buffers of Python's outputs and, where its library can be reached, of C's."""
    for output in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if output is not None and not output.closed:
            output.flush()
    if os.name == "posix":
        _c_library().fflush(None)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
