"""Live streams: totals of events that keep coming from a broker, fed by a process of their own."""
