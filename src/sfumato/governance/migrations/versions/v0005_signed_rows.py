"""Signed rows, and the map of the stored state: columns for both. What they hold is worked out from the record."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make room; whoever runs this replays the record and fills it (:mod:`sfumato.governance.signed_record`)."""
    op.add_column("record", sa.Column("nonce", sa.Text, nullable=False, server_default=""))
    op.add_column("record", sa.Column("head", sa.Text, nullable=False, server_default=""))
    op.drop_column("head", "governed")  # older code cannot charge any more: it would not sign its rows
    op.add_column("head", sa.Column("state", sa.Text, nullable=False, server_default=""))
    op.add_column("head", sa.Column("decisions", sa.Text, nullable=False, server_default=""))
    op.add_column("edition", sa.Column("declared", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("charge", sa.Column("digest", sa.Text, nullable=False, server_default=""))
    op.add_column("charge", sa.Column("answered", sa.Text))
    op.add_column("answer", sa.Column("digest", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "node",
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("children", sa.LargeBinary, nullable=False),
    )
