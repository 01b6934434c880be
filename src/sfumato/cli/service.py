"""The service on the command line: pages and an API, from one folder."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from sfumato.cli.output import AsJson, counted, say, say_json, say_line
from sfumato.core.extras import need
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.server.service import Service

__all__ = ["listening", "run", "serve"]

DEMO, LOOPBACK, FIRST = "sfumato-service", "127.0.0.1", 8400
INSTALL = "python -m pip install 'sfumato[server]'"


class _FolderOrCommand(TyperGroup):
    """Takes a folder, or the name of one of its commands; a folder of that name is written ./backup."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # typer's own
        named = bool(args) and args[0] in self.commands
        ctx.allow_interspersed_args = not named
        return super().parse_args(ctx, ["", *args] if named else args)


serve = typer.Typer(cls=_FolderOrCommand, invoke_without_command=True)


@serve.callback()
def served(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="The folder of the service.")] = None,
    *,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve an invented hospital network, and open it in a browser.")
    ] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="With --demo: open a browser.")] = True,
    new: Annotated[
        bool, typer.Option("--new", help="Make the service in FOLDER first; its administrator is asked for.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen, if not as the settings say.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="The port, if not as the settings say.")] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append one line of JSON for each request; no data is in them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve pages and an API over everything that is built, until it is stopped (Ctrl-C or SIGTERM).

    The process keeps the ledger, its key and its anchor. It listens on this machine alone unless the settings name a
    certificate for TLS; a proxy in front of it speaks TLS for it (proxied = true). Settings: service.toml in FOLDER.

    With --demo it makes, in FOLDER or in ./sfumato-service, an invented hospital network with people of every role and
    a month of releases, and prints a link that signs its reader in once. It is for this machine alone.

    Example: $ sfumato serve --demo
    """
    if context.invoked_subcommand is not None:
        return
    for module in ("fastapi", "uvicorn", "python_multipart", "argon2"):
        need(module, INSTALL)
    if demo:
        _demo(folder or Path(DEMO), port=port, log=log, browser=browser, as_json=as_json)
        return
    if folder is None:
        raise NotDeclared(
            "say which folder the service has: sfumato serve FOLDER, or sfumato serve --demo. Nothing was started."
        )
    from sfumato.server.service import Service

    if new:
        _made(folder)
    service = Service.open(folder, host=host, port=port)
    try:
        with listening(service.settings.host, service.settings.port) as place:
            if as_json:
                say_json({"serving": service.settings.address})
            else:
                say_line(f"serving at {service.settings.address} (Ctrl-C stops it)")
            run(service, place, log=log)
    finally:
        service.close()
    say_json({"stopped": True}) if as_json else say("stopped; nothing is served any more.")


def _demo(folder: Path, *, port: int | None, log: Path | None, browser: bool, as_json: bool) -> None:
    """Serve the demonstration, at the first port that is free."""
    from sfumato.server.demo import opened_demo

    with listening(LOOPBACK, *((port,) if port is not None else range(FIRST, FIRST + 20))) as place:
        made = opened_demo(
            folder, port=place.getsockname()[1], say=lambda words: say_line(f"  {words} …", error=as_json)
        )
        try:
            address = made.service.settings.address
            if as_json:
                say_json({"serving": address, "link": made.link, "password": made.password})
            else:
                say_line(f"serving the demonstration at {address} (Ctrl-C stops it)")
                say_line(f"  sign in once with this link: {made.link}")
                say_line(f"  everybody in it has the password: {made.password}")
            if browser and sys.stdout.isatty():
                import webbrowser

                webbrowser.open(made.link)  # it waits until the service answers: the socket listens already
            run(made.service, place, log=log)
        finally:
            made.service.close()
    if as_json:
        say_json({"stopped": True, "folder": str(folder)})
    else:
        say_line(f"stopped. What was made stands in {folder}; sfumato serve --demo {folder} goes on with it.")


@contextmanager
def listening(host: str, *ports: int) -> Iterator[socket.socket]:
    """A socket at the first of several ports that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in ports:
        place = socket.socket(family)
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((host, port))
            place.listen(2048)
        except OSError as wrong:
            place.close()
            why = wrong.strerror
            continue
        with place:
            yield place
        return
    raise InvalidInput(
        f"{host}:{ports[0]} cannot be listened at: {why}. Nothing was started. Name another with --port."
    )


def run(service: "Service", place: socket.socket, *, log: Path | None = None) -> None:
    """Answer until this process is told to stop; requests that are under way are finished."""
    import uvicorn

    from sfumato.server.app import make_app
    from sfumato.server.watching import LOGGER, RequestLines

    if log is not None:
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = logging.FileHandler(log, encoding="utf-8")
        handler.setFormatter(RequestLines())
        LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.INFO)
    settings = service.settings
    config = uvicorn.Config(
        make_app(service),
        ssl_certfile=None if settings.certificate is None else str(settings.certificate),
        ssl_keyfile=None if settings.private_key is None else str(settings.private_key),
        proxy_headers=False,  # who asks is never read from a header
        server_header=False,
        access_log=False,
        log_level="critical",  # tracebacks could quote a row; what happened is told by the service's own log
        timeout_graceful_shutdown=20,
        limit_concurrency=500,
        lifespan="on",
    )
    sys.stdout.flush()

    class Stopped(uvicorn.Server):
        """Ends at a signal; uvicorn's own raises it again at the end, and the ledger would stay open."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    Stopped(config).run(sockets=[place])


def _made(folder: Path) -> None:
    """Make a service, and its administrator with a password that is typed in."""
    from sfumato.server.identity.passwords import LEAST
    from sfumato.server.roles import ServiceRole
    from sfumato.server.service import Service

    login = typer.prompt("Sign-in name of the administrator")
    password = typer.prompt(f"Password ({LEAST} characters or more)", hide_input=True, confirmation_prompt=True)
    service = Service.create(folder)
    try:
        service.people.add(login, shown=login, roles=[ServiceRole.ADMIN], password=password)
    finally:
        service.close()


@serve.command()
def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the service.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, which only its owner can read.")],
    *,
    data: Annotated[bool, typer.Option("--data", help="Take the files of declared datasets too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a backup of a service while it runs: its tables, its ledger and, if asked for, the files of its datasets.

    It holds password hashes, and neither key nor anchor nor settings: keep copies of keys and settings elsewhere, and
    the anchor in no backup at all. Sessions and tokens stay out, and so does the state of streams.

    Example: $ sfumato serve backup hospital sunday.tar
    """
    need("fastapi", INSTALL)
    from sfumato.server.backup import backup as written

    made = written(folder, file, data=data)
    if as_json:
        say_json({"written": str(file), "entries": made.entries, "rows": made.rows, "files": made.files})
        return
    held = f"{made.entries:,} entries of the ledger, {counted(made.rows, 'row')}, {counted(made.files, 'file')}"
    say_line(f"written: {file} ({held})")


@serve.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What sfumato serve backup wrote.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the service, with settings and keys.")],
    *,
    older: Annotated[
        bool, typer.Option("--older", help="Also where the anchor is newer: a recovery then charges what is lost.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a service back from a backup into its folder, whose databases were moved aside.

    No budget is refilled by it: where the anchor is newer than the backup it is refused, and with --older the ledger
    stays shut until sfumato ledger recover has charged what was lost. What was closed since then nobody knows: all
    publications are withdrawn, all datasets closed, all people but administrators shut out, until you decide anew.

    Example: $ sfumato serve restore sunday.tar hospital
    """
    need("fastapi", INSTALL)
    from sfumato.server.backup import restore as brought_back

    done = brought_back(folder, file, older=older)
    if as_json:
        say_json(
            {
                "entries": done.ledger.entries,
                "anchored": done.ledger.anchored,
                "lost": done.ledger.lost,
                "rows": done.rows,
                "files": done.files,
                "administrators": list(done.administrators),
                "feeds": list(done.feeds),
                "without": [{"dataset": name, "version": version} for name, version in done.without],
            }
        )
        return
    say(f"restored: {done.ledger.entries:,} entries of the ledger, {counted(done.rows, 'row')}")
    say("Nobody is signed in, and no token opens anything. What was closed since then is not known, so all is shut:")
    say_line(f"  people: shut out, but for the administrators: {', '.join(done.administrators) or 'none'}")
    say("    An administrator lets in whoever should be; shut out administrators whom you shut out since then.")
    say("  datasets: closed, until a steward opens each of them again")
    say("  publications: withdrawn, until a steward puts each of them on record again")
    for name in done.feeds:
        say_line(f"  the feed {name} waits for its address: declare it again, with the same words")
    for name, version in done.without:
        say_line(f"its file is not there: {name} version {version}")
    if done.ledger.lost:
        say("The anchor is newer or lost: nobody can charge. Go on by a decision: sfumato ledger recover --reason …")
    else:
        say("The ledger holds all that was anchored. Verify it: sfumato ledger verify")
