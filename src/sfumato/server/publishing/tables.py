"""The table of publications: the grounds that somebody put on record for a release."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["PUBLICATIONS"]

PUBLICATIONS = sa.Table(
    "publications",
    METADATA,
    sa.Column("identifier", sa.String(100), primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("legal_basis", sa.Text, nullable=False),
    sa.Column("by", sa.String(100), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("withdrawn", sa.Float),
)
