"""The engine: one gradient a unit, clipped, summed."""

from sfumato.learning.engine.sums import ClippedSum, Engine, clipped_sum

__all__ = ["ClippedSum", "Engine", "clipped_sum"]
