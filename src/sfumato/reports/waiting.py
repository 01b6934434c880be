"""A sign that work goes on, for runs that take longer than two seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["PATIENCE", "waiting"]

PATIENCE = 2.0


@contextmanager
def waiting(text: str, *, console: "Console | None" = None, patience: float = PATIENCE) -> Iterator[None]:
    """Turn a sign beside the text once ``patience`` seconds are over; nothing where nobody looks.

    It tells how long the work takes and nothing else, to whoever sits at the machine that holds the data.
    """
    if console is None and sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
    if console is None or not console.is_terminal:
        yield
        return
    done = Event()

    def turn() -> None:
        if not done.wait(patience):
            with console.status(text):
                done.wait()

    thread = Thread(target=turn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
