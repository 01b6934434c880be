"""What the service tells whoever runs it: one line for each request, and counts, without a value of anybody's data.

The logger is ``sfumato.service``. No address with its parameters, no form, no message and no password is among it: only
which route was asked for, by whom, and how that ended.
"""

import json
import logging
import threading
import traceback
from collections import Counter
from datetime import UTC, datetime
from pathlib import PurePath

__all__ = ["LOGGER", "RequestLines", "RequestWatch"]

LOGGER = logging.getLogger("sfumato.service")
LOGGER.addHandler(logging.NullHandler())
FIELDS = ("event", "route", "method", "status", "seconds", "who", "error", "place")
END = "# EOF\n"


class RequestWatch:
    """Counts what was answered. Safe for threads."""

    def __init__(self) -> None:
        self._answered: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._turn = threading.Lock()

    def answered(self, *, route: str, method: str, status: int, seconds: float, who: str | None) -> None:
        """Write down that a request was answered."""
        known = method if method in ("GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS") else "other"
        with self._turn:
            self._answered[route, known, status] += 1
        facts = {"route": route, "method": known, "status": status, "seconds": round(seconds, 4), "who": who}
        LOGGER.info("request", extra={"event": "request", **facts})

    def failed(self, error: BaseException) -> None:
        """Write down the kind of a bug and the line that it was raised at; its words might quote a row."""
        where = traceback.extract_tb(error.__traceback__)[-1:]
        place = f"{PurePath(where[0].filename).name}:{where[0].lineno}" if where else "unknown"
        LOGGER.error("failed", extra={"event": "failed", "error": type(error).__name__, "place": place})

    def metrics(self) -> str:
        """The counts as OpenMetrics text, without its end."""
        with self._turn:
            rows = sorted(self._answered.items())
        lines = ["# TYPE sfumato_requests counter", "# HELP sfumato_requests Requests that were answered."]
        lines += [
            f'sfumato_requests_total{{route="{route}",method="{method}",status="{status}"}} {count}'
            for (route, method, status), count in rows
        ]
        return "\n".join(lines) + "\n"


class RequestLines(logging.Formatter):
    """A line of JSON for each record, of known fields alone."""

    def format(self, record: logging.LogRecord) -> str:
        """The time, the level and the facts."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts = {name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None}
        return json.dumps({"at": at, "level": record.levelname.lower(), **facts}, ensure_ascii=False)
