"""What ``ledger verify`` remembers from one time to the next, and the bar that it shows while it works."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.output import counted, one_line, say, say_json
from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.governance.anchor import SignedHead
    from sfumato.governance.checkpoint import SignedCheckpoint
    from sfumato.governance.entries import Row
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.verification import LedgerVerification, Watch

__all__ = ["How", "read_checkpoint", "verified", "verify_export"]

MANY = 20_000  # entries that take some seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How a ledger is verified: since which checkpoint, signed by whom, and how much of it."""

    checkpoint: Path | None
    verifier: Path | None
    whole: bool
    chain_only: bool
    every_signature: bool

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.checkpoint is None and (self.verifier is not None or self.whole):
            raise InvalidInput("--verifier-key and --whole go with --checkpoint; nothing was verified.")
        if self.chain_only and (self.checkpoint is not None or self.every_signature):
            raise InvalidInput("--chain-only replays nothing, so it goes with no checkpoint; nothing was verified.")


def verified(book: "Ledger", heads: "list[SignedHead]", how: How) -> "LedgerVerification":
    """Verify a ledger since its checkpoint, if there is one, and remember how far it held."""
    from sfumato.core.signature import SigningKey
    from sfumato.governance.signed_record import system_clock

    key = None if how.verifier is None else SigningKey.load(how.verifier)
    there = how.checkpoint is not None and how.checkpoint.exists()
    known = read_checkpoint(how.checkpoint, key.public_text) if how.checkpoint is not None and key and there else None
    with _bar() as watch:
        done = book.verification(
            *heads,
            since=None if known is None or how.whole else known.checkpoint,
            chain_only=how.chain_only,
            every_signature=how.every_signature,
            watch=watch,
        )
    if how.checkpoint is not None and key is not None and not done.findings:
        _remember(how.checkpoint, done.checkpoint(key, system_clock()).text)
    return done


def read_checkpoint(file: Path, key: str) -> "SignedCheckpoint":
    """A checkpoint that the owner of a public key signed; any other is refused."""
    from sfumato.governance.checkpoint import SignedCheckpoint

    try:
        known = SignedCheckpoint.read(file.read_text("utf-8"))
    except (SfumatoError, UnicodeDecodeError):
        raise InvalidInput(f"{file} is not a checkpoint of a ledger; nothing was verified.") from None
    if not known.holds(key):
        raise InvalidInput(
            f"{file} is not signed with the key of the verifier, so that anybody may have written it; nothing was "
            "verified. Give the key that signed it with --verifier-key, or remove the file and verify the whole record."
        )
    return known


def _remember(file: Path, text: str) -> None:
    """Write a checkpoint in place of the one before, whole or not at all."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write(text + "\n")
            written.flush()
            os.fsync(written.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _bar() -> "Iterator[Watch | None]":
    """A bar for a long record, where somebody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("verifying entries", visible=False)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=total >= MANY)

        yield watch


def verify_export(file: Path, heads: "list[SignedHead]", key: str | None, *, as_json: bool) -> None:
    """Hold an export to itself, to the heads and to the key, and say what follows and what does not."""
    from sfumato.core.signature import read_public_key
    from sfumato.governance.exported import rows_of
    from sfumato.governance.verify import check_record

    trusted = None if key is None else read_public_key(key)
    end = 0

    def rows() -> "Iterator[Row]":
        nonlocal end
        for row in rows_of(file):
            end = row.number
            yield row

    try:
        with file.open(encoding="utf-8") as lines:
            unsigned = '"nonce":' not in lines.readline()  # written before rows were signed
        found = tuple(check_record(rows(), heads=tuple(heads), key=trusted, unsigned=unsigned))
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not an export of a ledger; nothing was verified.") from None
    if end == 0:
        raise InvalidInput(f"{file} holds no entry; nothing was verified.")
    if as_json:
        findings = [{"entry": each.entry, "problem": each.problem} for each in found]
        say_json({"holds": not found, "heads": len(heads), "trusted": trusted is not None, "findings": findings})
    elif found:
        say("\n".join(one_line(str(each)) for each in found))
        say(f"This export does not hold: {counted(len(found), 'finding')}.")
    else:
        say(f"{counted(end, 'entry', 'entries')}: each is in its place, unchanged, and follows from those before.")
        if not heads or trusted is None:
            say("Nothing outside the file was asked: give a published head and the key that you trust.")
        else:
            say(f"{counted(len(heads), 'published head')} and the trusted key agree.")
    if found:
        raise typer.Exit(Exit.FOUND_WRONG)
