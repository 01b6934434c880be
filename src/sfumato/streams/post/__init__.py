"""Series from releases of streams alone: smoothed, made consistent, carried on. All of it is post-processing: free.

Nothing here sees data: what goes in are releases, which hold the released totals and the strategy they were measured
by.
"""

from sfumato.streams.post.forecast import Forecast, forecast
from sfumato.streams.post.linear import Linear
from sfumato.streams.post.seasons import Seasons, consistent
from sfumato.streams.post.smoothing import Smoothed, smoothed

__all__ = ["Forecast", "Linear", "Seasons", "Smoothed", "consistent", "forecast", "smoothed"]
