"""The tables of research: projects as they were drafted, and programs that were tried on invented rows."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["DRAFTED", "TRIALS"]

DRAFTED = sa.Table(
    "research_projects",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),  # what the board decides on
    sa.Column("project", sa.Text, nullable=False),  # its document
    sa.Column("login", sa.String(100), nullable=False),
    sa.Column("made", sa.Float, nullable=False),
)
TRIALS = sa.Table(
    "research_trials",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),  # of the program in its project, as the board decides on it
    sa.Column("project", sa.String(64), nullable=False, index=True),
    sa.Column("job", sa.String(20), nullable=False),
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("login", sa.String(100), nullable=False),
    sa.Column("made", sa.Float, nullable=False),
    sa.Column("phase", sa.String(10), nullable=False),
    sa.Column("epsilon", sa.String(120), nullable=False),
    sa.Column("delta", sa.String(120), nullable=False),
    sa.Column("releases", sa.Integer, nullable=False),
    sa.Column("words", sa.Text, nullable=False),  # of a refusal from public facts
)
