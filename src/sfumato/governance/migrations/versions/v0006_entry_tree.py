"""The tree of entries: its frontier beside the head, and beside each row the hashes of the subtrees that it completes.

They follow from the digests of the record alone. The code that runs this replays and verifies the record afterwards in
the same transaction, so that what is filled in here from rows that somebody edited is never committed.
"""

import sqlalchemy as sa
from alembic import op

from sfumato.errors import LedgerError
from sfumato.governance.entry_tree import Frontier, leaf_hash

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

PAGE = 1000  # rows that are read and written at a time
RECORD = sa.table("record", *map(sa.column, ("number", "digest", "subtrees")))


def upgrade() -> None:
    """Add the columns, and fill in the subtrees; the frontier is written with the state that follows from a replay."""
    op.add_column("record", sa.Column("subtrees", sa.Text, nullable=False, server_default=""))
    op.add_column("head", sa.Column("frontier", sa.Text, nullable=False, server_default="0:"))
    connection = op.get_bind()
    forbidden_again = _allowed(connection)
    filled = sa.update(RECORD).where(RECORD.c.number == sa.bindparam("place")).values(subtrees=sa.bindparam("made"))
    frontier, after = Frontier(), 0
    while True:
        page = sa.select(RECORD.c.number, RECORD.c.digest).where(RECORD.c.number > after).order_by(RECORD.c.number)
        found = connection.execute(page.limit(PAGE)).all()
        made = []
        for number, digest in found:
            if type(number) is not int or type(digest) is not str:
                raise LedgerError("a row of the record cannot be read: somebody wrote to it; nothing was changed.")
            frontier = frontier.without(number - 1 - frontier.size).after(leaf_hash(digest))
            if frontier.subtrees:
                made.append({"place": number, "made": frontier.subtrees})
        if made:
            connection.execute(filled, made)
        if len(found) < PAGE:
            break
        after = found[-1][0]
    for statement in forbidden_again:
        op.execute(statement)


def _allowed(connection: sa.Connection) -> list[str]:
    """Let rows of the record be changed, and say how that is forbidden again."""
    if connection.dialect.name != "sqlite":
        op.execute("ALTER TABLE record DISABLE TRIGGER record_kept")
        return ["ALTER TABLE record ENABLE TRIGGER record_kept"]
    words = sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'record'")
    found = connection.execute(words).all()
    for name, _ in found:
        op.execute(f'DROP TRIGGER "{name}"')
    return [statement for _, statement in found]
