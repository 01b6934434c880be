"""What a visit to a page is made of."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Open", "Visit"]


@dataclass
class Visit:
    """A page that is open, and what it did."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def has_kept_quiet(self, path: Path) -> None:
        assert self.complaints == []
        assert self.requests == [path.as_uri()]


Open = Callable[..., Any]
