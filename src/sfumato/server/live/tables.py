"""The tables of live streams: where events come from, which streams were opened, and the totals that they released."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["FEEDS", "POINTS", "STREAMS"]

FEEDS = sa.Table(
    "feeds",
    METADATA,
    sa.Column("name", sa.String(200), primary_key=True),  # the dataset of the ledger
    sa.Column("edition", sa.String(200), nullable=False),
    sa.Column("url", sa.Text, nullable=False),  # of the broker; it may hold a password
    sa.Column("key", sa.String(500), nullable=False),
    sa.Column("time", sa.String(200), nullable=False),
    sa.Column("person", sa.String(200)),
    sa.Column("relation", sa.String(20), nullable=False),
    sa.Column("population", sa.String(500), nullable=False),
    sa.Column("trim", sa.Boolean, nullable=False),
    sa.Column("declared_by", sa.String(100), nullable=False),
    sa.Column("declared", sa.Float, nullable=False),
)
STREAMS = sa.Table(
    "streams",
    METADATA,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("feed", sa.String(200), nullable=False),
    sa.Column("edition", sa.String(200), nullable=False),
    sa.Column("title", sa.String(200), nullable=False),
    sa.Column("account", sa.String(500), nullable=False),
    sa.Column("login", sa.String(100), nullable=False),
    sa.Column("start", sa.Float, nullable=False),
    sa.Column("every", sa.Integer, nullable=False),  # seconds
    sa.Column("horizon", sa.Integer, nullable=False),
    sa.Column("days", sa.Integer),  # in how many steps a person counts
    sa.Column("epsilon", sa.String(120), nullable=False),
    sa.Column("delta", sa.String(120), nullable=False),
    sa.Column("phase", sa.String(10), nullable=False),
    sa.Column("words", sa.Text, nullable=False),  # of a refusal
    sa.Column("release", sa.String(100)),
)
POINTS = sa.Table(
    "stream_points",
    METADATA,
    sa.Column("stream", sa.String(32), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("total", sa.Float, nullable=False),
    sa.Column("margin", sa.Float, nullable=False),
)
