"""Several statistics of one network, each as a mark on its interval and on a scale of its own, with 0 on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from sfumato.core.budget import Budget
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.query import Query
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs.shape import Shape
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message, messages
from sfumato.reports.columns import AnswerColumn, columns_of
from sfumato.reports.limited import limit_lines, truth
from sfumato.reports.plots.labels import clean, distinct
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["PlottedStatistic", "charged", "statistics", "statistics_of"]

MOST_STATISTICS = 20
WIDTH, HEIGHT = 360, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedStatistic:
    """One number of a release: its name in the catalogue, the number, its 95% interval, and all three as text."""

    name: str
    value: float
    low: float
    high: float
    shown: str
    ends: tuple[str, str]

    @property
    def width(self) -> float:
        """How wide its interval is."""
        return self.high - self.low

    def said(self, language: str) -> str:
        """Its name in a language; one that has no words there, as it is."""
        if self.name.endswith("-stars"):
            return message(language, "statistic.stars", leaves=self.name.removesuffix("-stars"))
        return messages(language).get(f"statistic.{self.name}", clean(self.name))


def statistics(
    releases: Sequence[Release], language: str = "en", theme: str = "light", *, names: Sequence[str] | None = None
) -> Chart:
    """Draw the numbers of several releases of one network, one line each: links, triangles, stars, clustering.

    Every line has a scale of its own with 0 on it, so the length of an interval beside that of its line says how exact
    the number is. ``names`` picks columns and labels by name, and their order. Numbers that a release gives by
    node or by degree have pictures of their own.

    Guarantee: the intervals are the releases' own, at 95% for each number by itself; they cover the added noise alone.
    ε is that of all releases together, each counted once.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=4), name="contacts")
    >>> wards = vault.graph([(0, 1), (1, 2)], name="wards", version="1", nodes=9)
    >>> chart = statistics([wards.edges().release(epsilon=1), wards.clustering().release(epsilon=2)])
    >>> chart.to_dict()["title"]["text"]
    'wards: the network in numbers'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    given = _one_network(releases)
    found = [each for release in given for each in statistics_of(release)]
    if names is not None:
        known = {each.name: each for each in found}
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidInput(
                f"no statistic here is called {missing[0]!r}; there are {', '.join(known)}. Nothing was drawn."
            )
        found = [known[name] for name in names]
    if len(found) > MOST_STATISTICS:
        raise InvalidInput(
            f"{len(found)} statistics are too many for one picture; nothing was drawn. Pick some with names=…."
        )
    colours, titles = palette(theme), distinct([each.said(language) for each in found])
    lines = [_line(altair, title, each, colours, language) for title, each in zip(titles, found, strict=True)]
    said = given[0].statement
    held = truth(next((each for each in given if each.limit_cuts()), given[0]), language)
    unit = message(language, f"unit.{said.unit.KIND.removeprefix('unit.')}")
    return dressed(
        altair.vconcat(*lines, spacing=14),
        title=message(language, "network_plot.statistics", dataset=clean(said.dataset.name)),
        subtitle=[
            message(language, "network_plot.statistics_band", amount=amount(charged(given), language), truth=held),
            *dict.fromkeys(line for each in given for line in limit_lines(each, language)),
            message(language, "network_plot.protects", unit=unit),
        ],
        language=language,
        theme=theme,
        labels=titles,
    )


def statistics_of(release: Release) -> list[PlottedStatistic]:
    """The numbers of a release that stand for the whole network; those that are exact, such as a cap, are left out.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=4), name="contacts")
    >>> wards = vault.graph([(0, 1), (1, 2)], name="wards", version="1", nodes=9)
    >>> [each.name for each in statistics_of(wards.clustering().release(epsilon=2))]
    ['clustering', 'triangles', 'wedges']
    """
    query = only_release(release).statement.query
    if not isinstance(getattr(query, "shape", None), Shape):
        raise Unsupported("this release is not about a network; nothing was drawn. Say release.plot().")
    labels = query.labels()
    if labels and list(labels) != ["statistic"]:
        raise Unsupported(
            f"this release goes by {' × '.join(labels)} and is not a statistic of the whole network; nothing was "
            "drawn. Say release.plot()."
        )
    found = []
    for column in columns_of(release):
        names = [str(label) for label in labels["statistic"]] if labels else [_name(query, column.name)]
        found += [_statistic(column, place, name) for place, name in enumerate(names) if _measured(column, place)]
    if not found:
        raise Unsupported("nothing here was measured, so there is no error to draw; nothing was drawn.")
    return found


def charged(releases: Sequence[Release]) -> Budget:
    """What all releases cost together, each counted once."""
    costs = {release.statement.identifier: release.statement.spend for release in releases}
    total = Budget.none()
    for cost in costs.values():
        total = Budget(epsilon=total.epsilon + cost.epsilon, delta=total.delta + cost.delta)
    return total


def _name(query: Query, column: str) -> str:
    """What a column counts; of stars, with how many leaves."""
    leaves = getattr(query, "leaves", None)
    return column if leaves is None else f"{leaves}-stars"


def _measured(column: AnswerColumn, place: int) -> bool:
    if column.chosen or column.ends is None:
        return False
    low, high = column.ends[place]
    return low < high or low != column.values[place]  # an interval may shrink to 0, the least that can be


def _statistic(column: AnswerColumn, place: int, name: str) -> PlottedStatistic:
    assert column.ends is not None  # noqa: S101 - for the reader of types
    low, high = column.ends[place]
    shown = column.interval(place) or (str(low), str(high))
    return PlottedStatistic(
        name=name,
        value=float(column.values[place]),
        low=float(low),
        high=float(high),
        shown=column.text(place).replace("-", "−"),
        ends=(shown[0].replace("-", "−"), shown[1].replace("-", "−")),
    )


def _one_network(releases: Sequence[Release]) -> list[Release]:
    """The releases, if they are about one network and protect the same; else the picture would mix two stories."""
    given = [only_release(release) for release in releases]
    if not given:
        raise InvalidInput("there is no release to draw; nothing was drawn.")
    if len({(each.statement.dataset, each.statement.unit) for each in given}) > 1:
        raise InvalidInput(
            "these releases are about several networks, or protect different units; nothing was drawn. Draw each by "
            "itself, or edge and node level with edge_and_node(...)."
        )
    return given


def _line(altair: ModuleType, title: str, each: PlottedStatistic, colours: Palette, language: str) -> Chart:
    row: ChartRow = {"name": title, "value": each.value, "low": each.low, "high": each.high, "shown": each.shown}
    row["within"] = message(language, "network_plot.within", low=each.ends[0], high=each.ends[1])
    least, most = min(0.0, each.low, each.value), max(each.high, each.value, 0.0)
    scale = altair.Scale(domain=[least, most * 1.04 if most > 0 else 1.0], nice=False)
    zero = {"condition": {"test": "datum.value === 0", "value": colours.band}, "value": colours.line}
    below = altair.Axis(
        title=None, tickCount=4, format=",.8~f", gridColor=zero, labelFlush=False, labelFontSize=10, labelPadding=3
    )
    named = altair.Axis(title=None, grid=False, labelColor=colours.ink, labelFontSize=12, minExtent=110, maxExtent=110)
    tips = [
        altair.Tooltip("name:N", title=" "),
        altair.Tooltip("shown:N", title=message(language, "plot.value")),
        altair.Tooltip("within:N", title=message(language, "network_plot.interval")),
    ]
    base = altair.Chart(altair.Data(values=[row])).encode(y=altair.Y("name:N", axis=named), tooltip=tips)
    spans = base.mark_bar(height=9, color=colours.band, cornerRadius=2)
    marks = base.mark_tick(thickness=3, size=17, color=colours.mark, opacity=1)
    figures = base.mark_text(align="right", color=colours.ink, fontSize=12, fontWeight="bold")
    ends = base.mark_text(align="left", color=colours.quiet, fontSize=11)
    return altair.layer(
        spans.encode(x=altair.X("low:Q", axis=below, scale=scale), x2="high:Q"),
        marks.encode(x="value:Q"),
        figures.encode(x=altair.value(WIDTH + 72), text="shown:N"),
        ends.encode(x=altair.value(WIDTH + 82), text="within:N"),
    ).properties(width=WIDTH, height=HEIGHT)
