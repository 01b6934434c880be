"""What a query says of its pictures; where it says nothing, it is drawn as numbers on their intervals."""

from sfumato.core.query import Query

__all__ = ["glance_of", "plot_of", "scattered"]


def plot_of(query: Query) -> str:
    """The name of the picture of its answer: its ``PLOT``."""
    return str(getattr(query, "PLOT", "intervals"))


def scattered(query: Query) -> str | None:
    """Why no one law of noise can be drawn, where that is so: its ``SCATTERED``."""
    return getattr(query, "SCATTERED", None)


def glance_of(query: Query) -> tuple[tuple[str, str], ...]:
    """Figures that stand first on a page, each with the message that says what it is: its ``glance``."""
    return tuple(getattr(query, "glance", ()))
