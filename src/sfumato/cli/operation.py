"""Running a ledger day by day: its health, its backups, and who may do what in its database."""

from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.ledger import Where
from sfumato.cli.output import AsJson, say, say_json, say_line
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.cli.verifying import read_checkpoint
from sfumato.errors import SfumatoError

__all__ = ["backup", "grants", "health", "restore"]


def health(
    *,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The checkpoint of sfumato ledger verify: when that was.")
    ] = None,
    verifier_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The public key that signed it, or its file; else the ledger's.")
    ] = None,
    near: Annotated[float, typer.Option(min=0, max=100, help="Budgets used to this percentage need attention.")] = 80,
    open_hours: Annotated[int, typer.Option(min=0, help="So do charges that were open for longer.")] = 24,
    verified_days: Annotated[int, typer.Option(min=0, help="So does a verification that is older.")] = 7,
    metrics: Annotated[bool, typer.Option("--metrics", help="Print OpenMetrics text, for a monitor.")] = False,
    key: Trusted = None,
    head: Published = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Say how the ledger is: open charges, anchor, last verification, budgets near their end, closed data, vetoes.

    Ends with 5 if something needs attention, and with 1 if the ledger cannot be opened; --metrics then says that it is
    down. No value of anybody's data is printed.

    Example: $ sfumato ledger health
    """
    from sfumato.core.signature import read_public_key
    from sfumato.governance import health as looked
    from sfumato.governance import settings

    limits = looked.Limits(
        near=Fraction(str(near)) / 100,
        open_for=timedelta(hours=open_hours),
        unverified=timedelta(days=verified_days),
    )
    try:
        with reading(ledger, key, head) as book:
            known = None
            if checkpoint is not None and checkpoint.exists():
                own = f"{settings.found(ledger).key}.pub" if verifier_key is None else verifier_key
                known = read_checkpoint(checkpoint, read_public_key(own)).checkpoint
            found = looked.health(book, checkpoint=known, asked=checkpoint is not None, limits=limits)
    except SfumatoError:
        if metrics:
            typer.echo(looked.metrics(None), nl=False)
        raise
    wanted = found.attention()
    if metrics:
        typer.echo(looked.metrics(found), nl=False)
    elif as_json:
        say_json(
            {
                "entries": found.entries,
                "open_charges": found.open_charges,
                "oldest_open_seconds": found.oldest_open,
                "stale_charges": found.stale,
                "last_entry_seconds": found.last_entry,
                "unanchored_entries": found.unanchored,
                "verified_seconds": found.verified,
                "verified_whole_seconds": found.verified_whole,
                "near": [{"kind": kind, "name": name, "used": str(share)} for kind, name, share in found.near],
                "closed": [{"dataset": name, "version": version} for name, version in found.closed],
                "vetoes": [{"dataset": name, "community": community} for name, community in found.vetoes],
                "lease_used": None if found.lease is None else str(found.lease),
                "attention": list(wanted),
            }
        )
    else:
        say(f"entries:       {found.entries:,}; {found.unanchored:,} after the anchored one")
        say(f"open charges:  {found.open_charges:,}")
        say(f"last verified: {_ago(found.verified)}; the whole record {_ago(found.verified_whole)}")
        for name, version in found.closed:
            say_line(f"closed:        {name} version {version}")
        for name, community in found.vetoes:
            say_line(f"vetoed:        {name} by {community}")
        for sentence in wanted:
            say_line(f"attention:     {sentence}")
        if not wanted:
            say("nothing needs attention")
    if wanted:
        raise typer.Exit(Exit.ATTENTION)


def _ago(seconds: int | None) -> str:
    if seconds is None:
        return "not asked (--checkpoint FILE)"
    return "never" if seconds < 0 else f"{timedelta(seconds=seconds)} ago"


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; lines of JSON if it ends with .jsonl.")],
    *,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write a backup of the record while others go on charging; of PostgreSQL as lines of JSON.

    It holds neither the key nor the anchor: keep a copy of the key elsewhere, and the anchor in no backup at all, since
    one that is restored together with its database detects nothing.

    Example: $ sfumato ledger backup ledger-backup.db
    """
    from sfumato.governance import backup as kept

    with reading(ledger, None, None) as book:
        end = kept.backup(book, file)
    if as_json:
        say_json({"written": str(file), "entries": end.number, "digest": end.digest, "at": end.at})
    else:
        say(f"written: {file} ({end.number:,} entries, the last of {end.at})")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What sfumato ledger backup or export wrote.")],
    *,
    older: Annotated[
        bool, typer.Option("--older", help="Also where the anchor is newer: a recovery then charges what is lost.")
    ] = False,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write a backup into the empty database that the settings name; every row of it is checked first.

    No budget is refilled by it: where the anchor is newer than the backup it is refused, and with --older it is written
    and stays shut until sfumato ledger recover has charged what was lost. Move the damaged database aside before.

    Example: $ sfumato ledger restore record.jsonl
    """
    from sfumato.governance import backup as kept
    from sfumato.governance import settings

    where = settings.found(ledger)
    done = kept.restore(where.url, key=where.key, anchor=where.anchor, root=where.root, file=file, older=older)
    if as_json:
        say_json({"entries": done.entries, "anchored": done.anchored, "lost": done.lost})
        return
    say(f"restored: {done.entries:,} entries, and the balances that follow from them")
    if done.lost:
        say("The anchor is newer or lost: nobody can charge. Go on by a decision: sfumato ledger recover --reason …")
    else:
        say("It holds all that was anchored. Verify it: sfumato ledger verify")


def grants(
    *,
    charger: Annotated[str, typer.Option(metavar="ROLE", help="Who charges.")] = "sfumato_charger",
    reader: Annotated[str, typer.Option(metavar="ROLE", help="Who only reads and verifies.")] = "sfumato_reader",
    as_json: AsJson = False,
) -> None:
    """Print the SQL that gives PostgreSQL roles what they need and no more; run it as the owner of the tables.

    A reader may select. A charger may also insert into the record and keep the stored state; it can neither change nor
    delete a row of the record, and neither of them can drop the triggers that forbid it.

    Example: $ sfumato ledger grants
    """
    from sfumato.governance.grants import statements

    lines = statements(charger=charger, reader=reader)
    say_json({"statements": lines}) if as_json else say("\n".join(lines))
