"""The record, which no statement may change or remove, and the books that follow from it."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEPT = "the record of a ledger is never changed"


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "record",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    op.create_table(
        "head",
        sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("epsilon", sa.Text, nullable=False),
        sa.Column("delta", sa.Text, nullable=False),
    )
    op.create_table(
        "balance",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("cap_epsilon", sa.Text, nullable=False),
        sa.Column("cap_delta", sa.Text, nullable=False),
        sa.Column("cap_rho", sa.Text),
        sa.Column("epsilon_spent", sa.Text, nullable=False),
        sa.Column("delta_spent", sa.Text, nullable=False),
        sa.Column("rho_spent", sa.Text, nullable=False),
        sa.Column("charges", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "edition",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("edition", sa.Text, primary_key=True),
        sa.Column("population", sa.Text, nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
    )
    op.create_table(
        "charge",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("epsilon", sa.Text, nullable=False),
        sa.Column("delta", sa.Text, nullable=False),
        sa.Column("rho", sa.Text),
        sa.Column("lines", sa.Text, nullable=False),
        sa.Column("idempotency", sa.Text, unique=True),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("queued", sa.Boolean, nullable=False),
        sa.Column("started", sa.Boolean, nullable=False),
        sa.Column("expires", sa.Text),
        sa.Column("answer", sa.BigInteger),
    )
    op.create_index("charge_open", "charge", ["state", "expires"])
    op.create_table(
        "answer",
        sa.Column("question", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER record_no_{change.lower()} BEFORE {change} ON record "
                f"BEGIN SELECT RAISE(ABORT, '{KEPT}'); END"
            )
    else:
        op.execute(
            "CREATE FUNCTION record_is_kept() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{KEPT}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER record_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON record "
            "FOR EACH STATEMENT EXECUTE FUNCTION record_is_kept()"
        )
