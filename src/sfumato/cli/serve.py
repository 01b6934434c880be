"""The owner process on the command line: one process keeps a ledger, and vaults of other users charge through it."""

import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.ledger import Where
from sfumato.cli.output import AsJson, say_json, say_line
from sfumato.errors import NotDeclared

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.owner.socket_server import SocketServer

__all__ = ["serve", "stopped_by_signals"]


def serve(
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="The database, with --key and --anchor; else the settings say it."),
    ] = None,
    *,
    socket: Annotated[
        Path, typer.Option(metavar="FILE", help="The socket to make, in a folder that nobody else can write to.")
    ],
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="With URL: the key of the ledger.")] = None,
    anchor: Annotated[
        str | None, typer.Option(metavar="PLACE", help="With URL: the anchor of the ledger, a file or URL#NAME.")
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="With URL: the public key of its root, or its file, where it has one."),
    ] = None,
    witness: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="With URL: where its witness is asked, http://HOST:PORT.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USER=ACCOUNT",
            help="A user, by name or number, and an account that it may charge; ACCOUNT/* is all below one.",
        ),
    ] = None,
    release_key: Annotated[
        list[str] | None,
        typer.Option(metavar="USER=KEY", help="A public key, or its file, that signs for a user; else any key may."),
    ] = None,
    connections: Annotated[int, typer.Option(min=1, max=10_000, help="Connections of one user at once.")] = 128,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Keep the ledger in this process alone, and let vaults of other processes and users charge it on a socket.

    Vaults say ledger="unix:/path/to/socket" (sfumato query --ledger unix:/path/to/socket) and sign with keys of their
    own. The kernel says who connects; only this user, and those whom --allow names, may charge. Nothing but charging is
    offered: accounts, datasets and decisions need the ledger itself. It serves until it is stopped (Ctrl-C or
    SIGTERM); what clients left open then counts. On Linux.

    Example: $ sfumato ledger serve --socket /run/sfumato/ledger.sock --allow ada=hospital/oncology
    """
    from sfumato.governance.owner.permissions import Permissions
    from sfumato.governance.owner.server import OwnerServer, ServerLimits
    from sfumato.reports.stored import stored_release

    permissions = Permissions.read(allow or (), release_key or ())
    with closing(_kept(url, key, anchor, root, witness, ledger)) as book:
        server = OwnerServer(
            book,
            socket,
            reader=stored_release,
            permissions=permissions,
            limits=ServerLimits(each_user=connections, in_all=max(512, connections)),
            log=lambda words: say_line(words, error=True),
        )

        def ready() -> None:
            if as_json:
                say_json({"serving": book.identifier, "socket": str(server.place)})
            else:
                say_line(f"serving the ledger {book.identifier} at unix:{server.place}")
            sys.stdout.flush()

        with stopped_by_signals(server):
            server.serve(ready)
    say_json({"stopped": True}) if as_json else say_line("stopped; nothing is served any more.")


def _kept(
    url: str | None, key: Path | None, anchor: str | None, root: str | None, witness: str | None, where: Path | None
) -> "Ledger":
    """The ledger that is served: by its address, key and anchor, or by its settings."""
    from sfumato.governance import settings
    from sfumato.governance.ledger import Ledger

    if all(said is None for said in (url, key, anchor, root, witness)):
        return settings.opened(where)
    if url is None or key is None or anchor is None or where is not None:
        raise NotDeclared(
            "a ledger is served by its settings file (--ledger), or by URL, --key and --anchor together, with --root "
            "and --witness where it has them; nothing was served."
        )
    return Ledger.open(url, key=key, anchor=anchor, root=root, witness=witness)


@contextmanager
def stopped_by_signals(server: "SocketServer") -> Iterator[None]:
    """Stop a server where this process is told to end."""

    def stop(*_: object) -> None:
        server.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
