"""The engine: one gradient a unit, clipped, summed."""

from sfumato.learning.engine.bounds import SLACK
from sfumato.learning.engine.sums import ClippedSum, Engine, Kind, clipped_sum

__all__ = ["SLACK", "ClippedSum", "Engine", "Kind", "clipped_sum"]
