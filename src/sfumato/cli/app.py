"""The application: its commands, and what becomes of an error. Exit codes: :mod:`sfumato.cli.exits`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from sfumato.cli import (
    account,
    audit,
    audit_membership,
    audit_model,
    audit_plans,
    audit_ways,
    ballot,
    budget,
    certificate,
    consortium,
    demo,
    demo_attacks,
    doctor,
    evidence,
    genomics,
    graph,
    keys,
    ledger,
    operation,
    pictures,
    plan,
    publish,
    query,
    receipt,
    research,
    schema,
    serve,
    service,
    site,
    stream,
    suggest_limit,
    synthesize,
    units,
    witness,
)
from sfumato.cli.exits import Exit, in_words
from sfumato.cli.output import say
from sfumato.errors import SfumatoError
from sfumato.version import __version__

__all__ = ["app", "main"]

HELP = f"""Statistics about people under differential privacy, with a checkable guarantee and honest error bars.

Exit codes: {in_words()}.

Example: $ sfumato --version
"""


class _PlainWords(TyperGroup):
    """Turns what Sfumato raises on purpose, and what the system refuses, into a message and an exit code.

    Anything else is a bug of ours and shows.
    """

    def __init__(self, **settings: object) -> None:
        """Put the demonstration first: typer puts groups last, and it is where people begin."""
        super().__init__(**settings)  # type: ignore[arg-type]  # whatever typer hands over
        self.commands = dict(sorted(self.commands.items(), key=lambda each: each[0] != "demo"))

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # typer hands over a context of its own
        try:
            return super().invoke(ctx)
        except SfumatoError as wrong:
            say(f"sfumato: {wrong}", error=True)
            raise typer.Exit(Exit.REFUSED) from None
        except KeyboardInterrupt:
            say("sfumato: stopped. What was printed or written so far stands; nothing more was done.", error=True)
            raise typer.Exit(Exit.INTERRUPTED) from None
        except BrokenPipeError:
            raise typer.Exit(Exit.NOT_READ) from None
        except OSError as wrong:
            where = f"{wrong.filename}: " if wrong.filename is not None else ""
            say(f"sfumato: {where}{wrong.strerror or wrong}. The command was not finished.", error=True)
            raise typer.Exit(Exit.REFUSED) from None


app = typer.Typer(
    name="sfumato",
    cls=_PlainWords,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    # A pretty traceback can print local variables, and those can hold rows.
    pretty_exceptions_enable=False,
)
demo.demo.command("attacks")(demo_attacks.attacks)
app.add_typer(demo.demo, name="demo")
app.command("doctor")(doctor.doctor)
app.command("query")(query.query)
app.command("suggest-limit")(suggest_limit.suggest_limit)
app.command("synthesize")(synthesize.synthesize)
app.command("graph")(graph.graph)
app.command("verify")(certificate.verify)
app.command("receipt")(receipt.receipt)
app.command("explain")(certificate.explain)
app.command("report")(certificate.report)
app.command("plot")(pictures.plot)
app.command("units")(units.units)
audit.audit.command("membership")(audit_membership.membership)
audit.audit.command("model")(audit_model.model)
audit.audit.command("plans")(audit_plans.plans)
app.add_typer(audit_ways.audit, name="audit")
app.command("releases")(evidence.releases)
app.command("evidence")(evidence.evidence)
app.command("publish")(publish.publish)
ledger.ledger.command("health")(operation.health)
ledger.ledger.command("backup")(operation.backup)
ledger.ledger.command("restore")(operation.restore)
ledger.ledger.command("grants")(operation.grants)
app.add_typer(stream.stream, name="stream")
app.add_typer(schema.schema, name="schema")
ledger.ledger.command("serve")(serve.serve)
app.add_typer(ledger.ledger, name="ledger")
app.add_typer(account.account, name="account")
app.add_typer(budget.budget, name="budget")
app.add_typer(ballot.ballot, name="ballot")
app.add_typer(plan.plan, name="plan")
app.add_typer(witness.witness, name="witness")
app.add_typer(keys.keys, name="key")
app.add_typer(consortium.consortium, name="consortium")
app.add_typer(genomics.genomics, name="genomics")
app.add_typer(site.site, name="site")
app.add_typer(research.research, name="research")
app.add_typer(service.serve, name="serve")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - Typer hands the value in by position
    if wanted:
        say(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="SFUMATO_LOG",
            help="Append what happens to the ledger as lines of JSON; no value of anybody's data is in them.",
        ),
    ] = None,
) -> None:
    """Take the options that belong to no command; the callback of each does its work."""
    if log is not None:
        from sfumato.governance.log import log_to

        context.with_resource(log_to(log))


def main() -> None:
    """Run the command line."""
    for pipe in (sys.stdout, sys.stderr):
        # A terminal that cannot show ε gets a question mark and not a traceback.
        if hasattr(pipe, "reconfigure"):
            pipe.reconfigure(errors="replace")
    try:
        app()
    except SystemExit as ended:
        code = _delivered()
        raise SystemExit(ended.code or code) from None


def _delivered() -> Exit:
    """Hand over what is still in the buffer, and say whether it arrived; Python would complain of it at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        code = Exit.NOT_READ
    except OSError as wrong:
        say(f"sfumato: the output was not written: {wrong.strerror}.", error=True)
        code = Exit.REFUSED
    else:
        return Exit.DONE
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
