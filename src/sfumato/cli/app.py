"""The application: its commands, and what becomes of an error.

Exit codes: 0 done; 1 refused or failed, and the message says why; 2 the command was typed wrongly; 3 ``verify`` found
something wrong with a certificate; 4 ``audit`` refuted a claim, or a broken twin got away.
"""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sfumato.cli import account, audit, certificate, demo, keys
from sfumato.cli.output import say
from sfumato.errors import SfumatoError
from sfumato.version import __version__

__all__ = ["app", "main"]

HELP = """Statistics about people, with a guarantee that can be checked and error bars that are honest.

Exit codes: 0 done; 1 refused or failed, with the reason; 2 wrong usage; 3 a certificate does not verify; 4 an audit
refuted a claim.

Example: $ sfumato --version
"""


class _PlainWords(TyperGroup):
    """Turns what Sfumato raises on purpose into its message and exit code 1; anything else is a bug and shows."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except SfumatoError as wrong:
            say(f"sfumato: {wrong}", error=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    name="sfumato",
    cls=_PlainWords,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    # A pretty traceback can print local variables, and those can hold rows.
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("verify")(certificate.verify)
app.command("explain")(certificate.explain)
app.command("report")(certificate.report)
app.command("audit")(audit.audit)
app.add_typer(account.account, name="account")
app.add_typer(keys.keys, name="key")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - Typer hands the value in by position
    if wanted:
        say(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that belong to no command; the callback of each does its work."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show ε gets a question mark and not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()
