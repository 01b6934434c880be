"""The table of jobs: what was asked, when its answer is to be looked at, and which release it became."""

import sqlalchemy as sa

from sfumato.server.database import METADATA

__all__ = ["JOBS", "WORKS"]

JOBS = sa.Table(
    "jobs",
    METADATA,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("login", sa.String(100), nullable=False, index=True),
    sa.Column("account", sa.String(500), nullable=False, index=True),
    sa.Column("dataset", sa.String(200), nullable=False),
    sa.Column("edition", sa.String(200), nullable=False),
    sa.Column("project", sa.String(32), index=True),
    sa.Column("title", sa.String(300), nullable=False),
    sa.Column("query", sa.Text, nullable=False),  # its document
    sa.Column("sql", sa.Text),  # as it was written, or as the form wrote it
    sa.Column("epsilon", sa.String(120), nullable=False),
    sa.Column("delta", sa.String(120), nullable=False),
    sa.Column("fresh", sa.Boolean, nullable=False),
    sa.Column("even_if_useless", sa.Boolean, nullable=False),
    sa.Column("groups", sa.Integer),  # another limit than the declared one, where there is one
    sa.Column("rows_per_group", sa.Integer),
    sa.Column("sent", sa.String(64), unique=True),  # a digest of whose it is and of the key that a program gave
    sa.Column("made", sa.Float, nullable=False),
    sa.Column("lane", sa.Integer, nullable=False),
    sa.Column("starts", sa.Float, nullable=False),
    sa.Column("ends", sa.Float, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("phase", sa.String(10), nullable=False),  # waiting, started or done
    sa.Column("outcome", sa.String(10)),  # released, refused or failed; seen by nobody before ``ends``
    sa.Column("release", sa.String(100)),
    sa.Column("charged_epsilon", sa.String(120)),
    sa.Column("charged_delta", sa.String(120)),
    sa.Column("words", sa.Text),  # of a refusal, which came before any charge
)

WORKS = sa.Table(
    "works",
    METADATA,
    sa.Column("job", sa.String(32), primary_key=True),
    sa.Column("form", sa.Text, nullable=False),  # of a study, of synthetic rows, of a model: what its answer becomes
)
