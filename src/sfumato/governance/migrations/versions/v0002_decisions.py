"""Decisions and declarations: where the last one stands, and a way to find them all."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the board needs; a ledger of the first migration holds no decision."""
    op.create_index("record_kind", "record", ["kind"])
    op.add_column("head", sa.Column("governed", sa.BigInteger, nullable=False, server_default="0"))
