"""The tables of projects and of drafts: questions that were not asked yet."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["DRAFTS", "PROJECTS"]

PROJECTS = sa.Table(
    "projects",
    METADATA,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("login", sa.String(100), nullable=False, index=True),
    sa.Column("account", sa.String(500), nullable=False),
    sa.Column("title", sa.String(200), nullable=False),
    sa.Column("about", sa.Text, nullable=False),
    sa.Column("made", sa.Float, nullable=False),
)
DRAFTS = sa.Table(
    "drafts",
    METADATA,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("project", sa.ForeignKey("projects.name"), nullable=False, index=True),
    sa.Column("login", sa.String(100), nullable=False),
    sa.Column("dataset", sa.String(200), nullable=False),
    sa.Column("title", sa.String(300), nullable=False),
    sa.Column("fields", sa.Text, nullable=False),  # of the form, as a query string
    sa.Column("made", sa.Float, nullable=False),
)
