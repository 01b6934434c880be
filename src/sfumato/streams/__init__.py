"""Streams: running totals and alarms over data that keeps coming, for events and for persons.

``STREAM_QUERIES`` are the questions, ``QUERIES`` all declarations that a certificate of a stream can hold; reading them
needs no data and no NumPy.
"""

from sfumato.core.data_kind import DataKind
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.doubling import Doubling
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.rows import Rows
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.streams.alarms import Alarms
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.total import RunningTotal

__all__ = [
    "KIND",
    "QUERIES",
    "STREAM_QUERIES",
    "Alarms",
    "Buffers",
    "Doubling",
    "Pattern",
    "Rows",
    "RunningTotal",
    "SeriesNoise",
    "Toeplitz",
    "Tree",
]

STREAM_QUERIES = (RunningTotal, Alarms)
QUERIES = (*STREAM_QUERIES, SeriesNoise, Pattern, Toeplitz, Buffers, Tree, Rows, Doubling)

KIND = DataKind(
    name="streams",
    declarations=QUERIES,
    messages="sfumato.streams",
    plots={
        "series": "sfumato.streams.plots.series:series",
        "alarms": "sfumato.streams.plots.alarms_over_time:alarms",
    },
    store="sfumato.streams.store:StreamStore",
)
