"""Pictures of the local model: estimated shares on their intervals."""

from sfumato.local.plots.estimated_shares import shares

__all__ = ["shares"]
