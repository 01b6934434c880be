"""The table of datasets; a place of data is in it, and no value of the data."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["DATASETS"]

DATASETS = sa.Table(
    "datasets",
    METADATA,
    sa.Column("name", sa.String(500), primary_key=True),
    sa.Column("edition", sa.String(500), primary_key=True),
    sa.Column("schema", sa.Text, nullable=False),  # TOML
    sa.Column("place", sa.Text, nullable=False),  # a path inside the folder of the service, or an address
    sa.Column("population", sa.String(500), nullable=False),
    sa.Column("relation", sa.String(20), nullable=False),
    sa.Column("declared_by", sa.String(100), nullable=False),
    sa.Column("declared", sa.Float, nullable=False),
    sa.Column("closed", sa.Float),
    sa.Column("purpose", sa.String(500)),
    sa.Column("recipient", sa.String(500)),
)
