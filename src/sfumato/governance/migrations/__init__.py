"""Migrations of the ledger's tables: each one is kept as it was released, and all run in order on an old ledger."""

from functools import cache

from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, RevisionStep, StampStep
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection

from sfumato.errors import LedgerError

__all__ = ["migrate", "newest", "present"]


def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", "sfumato.governance:migrations")
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


@cache
def newest() -> str:
    """The revision that this code works with."""
    return str(_scripts().get_current_head())


def present(connection: Connection) -> str | None:
    """The revision that a database is at; None where it holds no ledger."""
    try:
        return MigrationContext.configure(connection).get_current_revision()
    except CommandError:
        raise LedgerError(
            "the database states two versions of its tables: somebody wrote to it. Nothing was read and nothing was "
            "spent."
        ) from None


def migrate(connection: Connection, to: str = "head") -> None:
    """Bring a database to a revision, inside the transaction that the caller has open."""
    scripts = _scripts()

    def steps(revision: str, _: MigrationContext) -> list[StampStep | RevisionStep]:
        return list(scripts._upgrade_revs(to, revision))

    context = MigrationContext.configure(connection, opts={"fn": steps})
    with Operations.context(context):
        context.run_migrations()
