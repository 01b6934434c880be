"""The tables of people and of how they prove who they are; secrets are kept as digests alone."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["LINKS", "PEOPLE", "SESSIONS", "TOKENS"]

PEOPLE = sa.Table(
    "people",
    METADATA,
    sa.Column("login", sa.String(100), primary_key=True),
    sa.Column("shown", sa.String(200), nullable=False),
    sa.Column("roles", sa.String(200), nullable=False),  # by spaces
    sa.Column("accounts", sa.Text, nullable=False),  # paths of the ledger, one a line
    sa.Column("password", sa.String(300)),  # argon2id; none where nobody can sign in by one
    sa.Column("issuer", sa.String(300)),
    sa.Column("subject", sa.String(300)),
    sa.Column("closed", sa.Boolean, nullable=False, default=False),
    sa.UniqueConstraint("issuer", "subject"),
)
SESSIONS = sa.Table(
    "sessions",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("login", sa.ForeignKey("people.login"), nullable=False, index=True),
    sa.Column("began", sa.Float, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("confirmed", sa.Float),
    sa.Column("how", sa.String(20), nullable=False),
)
TOKENS = sa.Table(
    "tokens",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("number", sa.Integer, nullable=False, unique=True),
    sa.Column("login", sa.ForeignKey("people.login"), nullable=False, index=True),
    sa.Column("label", sa.String(100), nullable=False),
    sa.Column("roles", sa.String(200), nullable=False),
    sa.Column("accounts", sa.Text, nullable=False),
    sa.Column("made", sa.Float, nullable=False),
    sa.Column("ends", sa.Float, nullable=False),
    sa.Column("used", sa.Float),
)
LINKS = sa.Table(  # that sign somebody in once
    "links",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("login", sa.ForeignKey("people.login"), nullable=False),
    sa.Column("ends", sa.Float, nullable=False),
)
