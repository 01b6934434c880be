"""Pictures of streams: running totals on their bands, alarms over time, levels side by side, and adversaries."""

from sfumato.streams.plots.alarms_over_time import alarms
from sfumato.streams.plots.series import event_and_person, series
from sfumato.streams.plots.trajectories import Curve, advantages, trajectories

__all__ = ["Curve", "advantages", "alarms", "event_and_person", "series", "trajectories"]
