"""Prints a page to PDF with the browser that is there: Chromium, Chrome or Edge, without a window and offline."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from sfumato.errors import InvalidInput, MissingExtra

__all__ = ["NAMED", "find", "print_pdf"]

NAMED = "SFUMATO_BROWSER"
COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
QUIET = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the page asks for nothing, and this makes sure
    "--no-pdf-header-footer",
)
PATIENCE = 120


def find() -> Path:
    """The browser to print with: the one that ``SFUMATO_BROWSER`` names, or the first that is installed."""
    named = os.environ.get(NAMED)
    if named:
        found = shutil.which(named)
        if found is None:
            raise MissingExtra(f"{NAMED} names {named}, which is not a program here; nothing was written. Correct it.")
        return Path(found)
    for candidate in (*COMMANDS, *PLACES):
        found = shutil.which(candidate)
        if found is not None:
            return Path(found)
    raise MissingExtra(
        "a PDF needs Chromium, Chrome or Edge, and none was found; nothing was written. Install one, or name it in "
        f"{NAMED}, or write .html, which any browser can print."
    )


def print_pdf(page: str, path: str | Path) -> Path:
    """Print a page that needs nothing else, and return the path of the PDF.

    The browser gets a profile of its own that is thrown away, and no network.
    """
    program, target = find(), Path(path)
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        source, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        command = [str(program), *QUIET, *_unconfined(), f"--user-data-dir={folder}/profile"]
        try:
            # What runs is a browser that the user installed or named; the page is a file of ours.
            done = subprocess.run(  # noqa: S603
                [*command, f"--print-to-pdf={printed}", source.as_uri()],
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as wrong:
            raise MissingExtra(f"{program} did not print: {type(wrong).__name__}. {_ELSE}") from None
        if not printed.is_file() or not printed.read_bytes().startswith(b"%PDF"):
            raise MissingExtra(f"{program} ended with {done.returncode} and printed nothing. {_ELSE}")
        try:
            shutil.copyfile(printed, target)
        except OSError as wrong:
            raise InvalidInput(
                f"{target} cannot be written: {wrong.strerror or wrong}. Nothing was written. Choose another path."
            ) from None
    return target


_ELSE = f"Nothing was written. Name another browser in {NAMED}, or write .html, which any browser can print."


def _unconfined() -> tuple[str, ...]:
    """Chromium refuses to start its sandbox as root; for everyone else it stays on."""
    return ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
