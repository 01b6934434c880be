"""Pictures of releases and accounts, by Altair: they open offline, in English and Chinese, light and dark.

Every function here takes releases, laws or budgets and returns an Altair chart, which notebooks show by themselves;
:func:`save` writes it. None of them sees data.
"""

from collections.abc import Callable
from typing import Any

from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports.columns import described
from sfumato.reports.plots.alarms_over_time import alarms
from sfumato.reports.plots.belief_curve import belief, people
from sfumato.reports.plots.burning_down import burn_down
from sfumato.reports.plots.degree_distribution import degrees
from sfumato.reports.plots.edge_and_node import edge_and_node
from sfumato.reports.plots.estimated_shares import shares
from sfumato.reports.plots.fonts import use_fonts
from sfumato.reports.plots.frontier_of_epsilon import frontier
from sfumato.reports.plots.graph_statistics import statistics
from sfumato.reports.plots.icon_array import icons
from sfumato.reports.plots.law_of_noise import law, noise
from sfumato.reports.plots.map_of_areas import choropleth
from sfumato.reports.plots.saving import save
from sfumato.reports.plots.series import event_and_person, series
from sfumato.reports.plots.table_of_intervals import intervals
from sfumato.reports.plots.training_curve import Trials, accuracies, training
from sfumato.reports.plots.trajectories import Curve, advantages, trajectories
from sfumato.reports.plots.weight_matrix import matrix

__all__ = [
    "KINDS",
    "Curve",
    "Trials",
    "accuracies",
    "advantages",
    "alarms",
    "belief",
    "burn_down",
    "choropleth",
    "degrees",
    "draw",
    "edge_and_node",
    "event_and_person",
    "frontier",
    "icons",
    "intervals",
    "law",
    "matrix",
    "noise",
    "people",
    "save",
    "series",
    "shares",
    "statistics",
    "training",
    "trajectories",
    "use_fonts",
]

OF_COLUMNS = ("intervals", "noise", "frontier")
OF_NETWORKS = ("degrees", "matrix")
OF_STREAMS = ("series", "alarms")
OF_MODELS = ("training",)
KINDS: dict[str, Callable[..., Any]] = {
    "intervals": intervals,
    "noise": noise,
    "belief": belief,
    "people": people,
    "frontier": frontier,
    "degrees": degrees,
    "matrix": matrix,
    "series": series,
    "alarms": alarms,
    "training": training,
}


def draw(
    release: Release, kind: str = "intervals", language: str = "en", theme: str = "light", column: str | None = None
) -> Any:
    """Draw a release as the kind of picture that is asked for by name; ``column`` picks one where there are several.

    The ``intervals`` of a stream go by step: a series on its bands, or alarms over time. A model has none: it is drawn
    as ε by step.
    """
    description = described(only_release(release).statement)
    if kind == "intervals" and column is None:
        kind = description.plot
    if kind == "noise" and description.scattered is not None:
        raise Unsupported(description.scattered)
    if kind not in KINDS:
        raise Unsupported(f"there is no plot {kind!r}; the plots are {', '.join(KINDS)}. Nothing was drawn.")
    if column is not None and kind not in OF_COLUMNS:
        groups = {"a network": OF_NETWORKS, "a stream": OF_STREAMS, "a model": OF_MODELS}
        about = next((name for name, kinds in groups.items() if kind in kinds), "the account")
        raise InvalidInput(f"the plot {kind!r} is about {about} and not about a column; nothing was drawn.")
    return KINDS[kind](release, language, theme, **({} if column is None else {"column": column}))
