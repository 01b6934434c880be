"""Sources: what feeds an open stream, be it of totals or a watch.

With steps that are steps already: :func:`follow`, :func:`follow_async`. With events that have a time: an :class:`Inbox`
puts them into steps by a public clock, and :func:`watch` or :func:`watch_async` feed it from a :class:`GrowingFile`, a
:class:`PolledTable`, the :class:`RedisEvents` of a broker, or whatever else has events. With Spark Structured
Streaming: :func:`each_batch`.
"""

from sfumato.streams.clock import Arrival, Clock, Steps
from sfumato.streams.sources.batches import each_batch
from sfumato.streams.sources.columns import Columns
from sfumato.streams.sources.following import follow, follow_async
from sfumato.streams.sources.growing_file import GrowingFile
from sfumato.streams.sources.inbox import Inbox
from sfumato.streams.sources.polled_table import PolledTable
from sfumato.streams.sources.redis_events import RedisEvents
from sfumato.streams.sources.watching import watch, watch_async

__all__ = [
    "Arrival",
    "Clock",
    "Columns",
    "GrowingFile",
    "Inbox",
    "PolledTable",
    "RedisEvents",
    "Steps",
    "each_batch",
    "follow",
    "follow_async",
    "watch",
    "watch_async",
]
