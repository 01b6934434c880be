"""The tables of datasets and of what was taken over from releases; places of data are in them, and no value of them."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["BROUGHT_BACK", "DATASETS", "RESTATED"]

BROUGHT_BACK = 0.0
"""When a version was closed by coming back from a backup; a steward may open it again."""

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
RESTATED = sa.Table(  # parts of declarations that follow from private releases
    "restated_datasets",
    METADATA,
    sa.Column("name", sa.String(500), primary_key=True),
    sa.Column("edition", sa.String(500), primary_key=True),
    sa.Column("release", sa.String(100), primary_key=True),
    sa.Column("said", sa.Text, nullable=False),
    sa.Column("by", sa.String(100), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
