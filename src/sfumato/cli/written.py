"""Files that a command writes at its end: what could not be written is found before the work."""

import os
from collections.abc import Callable
from pathlib import Path

from sfumato.cli.output import say
from sfumato.errors import InvalidInput, SfumatoError

__all__ = ["PAGES", "PICTURES", "check_file", "say_written", "written_last"]

PICTURES = (".svg", ".png", ".pdf", ".html", ".htm")
PAGES = (".html", ".htm")


def check_file(file: Path | None, endings: tuple[str, ...]) -> None:
    """Refuse a file that could not be written, before anything is computed; none is fine."""
    if file is None:
        return
    if file.suffix.lower() not in endings:
        raise InvalidInput(
            f"{file.name} would be a {file.suffix or 'file without an ending'}; choose an ending of "
            f"{', '.join(endings)}. Nothing was computed."
        )
    if not file.parent.is_dir():
        raise InvalidInput(f"there is no folder {file.parent}; nothing was computed. Make it.")
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InvalidInput(f"{file} cannot be written; nothing was computed. Choose another path.")


def say_written(file: Path, language: str = "en") -> None:
    """Say where a file was written, in the language of the other words."""
    from sfumato.reports.catalogue import message

    say(message(language, "command.written", file=file))


def written_last(
    write: Callable[[], Path] | None, *, language: str = "en", quiet: bool = False, ending: int = 0
) -> int:
    """Write a file after the figures were printed, and hand back the code to exit with.

    ``ending`` is that of the command itself. Where it is not 0, a file that fails is said to have failed and the code
    is kept: what an audit refuted stays refuted.
    """
    if write is None:
        return ending
    try:
        file = write()
    except (SfumatoError, OSError) as wrong:
        if not ending:
            raise
        say(f"sfumato: {wrong}", error=True)
        return ending
    if not quiet:
        say_written(file, language)
    return ending
