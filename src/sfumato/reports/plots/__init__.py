"""Pictures of releases and accounts, by Altair: they open offline, in English and Chinese, light and dark.

Every function here takes releases, laws or budgets and returns an Altair chart, which notebooks show by themselves;
:func:`save` writes it. None of them sees data. What one kind of data alone is drawn as comes with that kind, in its
package ``plots``, and is found here by its name too.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any  # whatever a kind of data has under a name

from sfumato.core.data_kind import kinds
from sfumato.core.foreign import Chart
from sfumato.core.release import Release, only_release
from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports.columns import described
from sfumato.reports.plots.belief_curve import belief, people
from sfumato.reports.plots.burning_down import burn_down
from sfumato.reports.plots.fonts import use_fonts
from sfumato.reports.plots.frontier_of_epsilon import frontier
from sfumato.reports.plots.icon_array import icons
from sfumato.reports.plots.law_of_noise import law, noise
from sfumato.reports.plots.map_of_areas import choropleth
from sfumato.reports.plots.saving import save
from sfumato.reports.plots.table_of_intervals import intervals

__all__ = [
    "GENERAL",
    "belief",
    "burn_down",
    "choropleth",
    "draw",
    "frontier",
    "icons",
    "intervals",
    "law",
    "noise",
    "people",
    "save",
    "use_fonts",
]

OF_COLUMNS = ("intervals", "noise", "frontier")
GENERAL: dict[str, Callable[..., Chart]] = {
    "intervals": intervals,
    "noise": noise,
    "belief": belief,
    "people": people,
    "frontier": frontier,
}


def draw(
    release: Release, kind: str = "intervals", language: str = "en", theme: str = "light", column: str | None = None
) -> Chart:
    """Draw a release as the kind of picture that is asked for by name; ``column`` picks one where there are several.

    What has another picture of its own is drawn as that in place of ``intervals``: a series on its bands, alarms over
    time, ε by step of a training.
    """
    description = described(only_release(release).statement)
    if kind == "intervals" and column is None:
        kind = description.plot
    if kind == "noise" and description.scattered is not None:
        raise Unsupported(f"{description.scattered}; nothing was drawn. Draw its {description.plot}.")
    plot = GENERAL.get(kind) or _brought(kind)
    if plot is None:
        names = [*GENERAL, *(name for brought in kinds() for name in brought.plots)]
        raise Unsupported(
            f"there is no plot {kind!r}; the plots are {', '.join(names)}. Nothing was drawn."
            f"{did_you_mean(kind, names)}"
        )
    if column is not None and kind not in OF_COLUMNS:
        raise InvalidInput(f"the plot {kind!r} is about all of a release and not about a column; nothing was drawn.")
    return plot(release, language, theme, **({} if column is None else {"column": column}))


def _brought(name: str) -> Callable[..., Chart] | None:
    """The plot of this name that some kind of data brings."""
    for kind in kinds():
        if name in kind.plots:
            module, _, function = kind.plots[name].partition(":")
            found: Callable[..., Chart] = getattr(importlib.import_module(module), function)
            return found
    return None


def _packages() -> Iterator[ModuleType]:
    """The package ``plots`` of each kind that has one."""
    for kind in kinds():
        if kind.messages is not None and importlib.util.find_spec(f"{kind.messages}.plots") is not None:
            yield importlib.import_module(f"{kind.messages}.plots")


def __getattr__(name: str) -> Any:
    """What a kind of data draws, by its name: ``plots.series`` is the ``series`` of streams."""
    if not name.startswith("_"):
        for package in _packages():
            if name in package.__all__:
                return getattr(package, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
