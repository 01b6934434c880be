"""Counts of charges: how far a stream has gone on, and which of its states did."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; no charge had a count before."""
    op.add_column("charge", sa.Column("place", sa.BigInteger))
    op.add_column("charge", sa.Column("holder", sa.Text))
