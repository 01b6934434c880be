"""Filters by ρ and by Rényi loss: caps and sums of balances, and what each charge counts against which filter."""

import json

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; a charge's one ρ becomes its loss on each line that a zCDP filter keeps."""
    op.add_column("balance", sa.Column("cap_loss", sa.Text))
    op.add_column("balance", sa.Column("loss_order", sa.Text))
    op.add_column("balance", sa.Column("loss_spent", sa.Text, nullable=False, server_default="0/1"))
    op.add_column("charge", sa.Column("losses", sa.Text, nullable=False, server_default="[]"))
    connection = op.get_bind()
    kept = {name for (name,) in connection.execute(sa.text("SELECT name FROM balance WHERE cap_rho IS NOT NULL"))}
    charges = connection.execute(sa.text("SELECT number, rho, lines FROM charge WHERE rho IS NOT NULL")).all()
    for number, rho, lines in charges:
        losses = json.dumps([[line, rho] for line in json.loads(lines) if line in kept])
        connection.execute(
            sa.text("UPDATE charge SET losses = :losses WHERE number = :number"), {"losses": losses, "number": number}
        )
    op.drop_column("charge", "rho")  # older code, which would not count Rényi losses, cannot write charges any more
