"""The same statistics at edge and at node level, on one scale: what it costs to protect a node and not a link."""

from collections.abc import Sequence
from types import ModuleType, UnionType

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.release import Release, only_release
from sfumato.core.units import Edge, Node, Weight
from sfumato.errors import InvalidInput
from sfumato.graphs.plots.degree_counts import counts_of
from sfumato.graphs.plots.degree_distribution import reach, spans_of, staircase
from sfumato.graphs.plots.graph_statistics import PlottedStatistic, statistics_of
from sfumato.inference.consistency import Adjusted
from sfumato.mechanisms.chosen_cap import ChosenCap
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["edge_and_node"]

WIDTH, STEP = 300, 26
STAIRS = (340, 250)
Releases = Release | Sequence[Release]


def edge_and_node(edge: Releases, node: Releases, language: str = "en", theme: str = "light") -> Chart:
    """Draw the same statistics released at both levels: two marks on their intervals for each, on one scale.

    ``edge`` is a release, or several, that protect a link, ``node`` what protects a node with all its links. Statistics
    are matched by name; those that one side alone has are left out. Two degree histograms are drawn side by side, as
    the numbers of nodes with at least a given number of links.

    Guarantee: the intervals are the releases' own and cover their noise; how many times wider is the quotient of their
    lengths. Assumes: both are about one network, which is for the caller to know: their datasets may have two names.

    >>> import sfumato as sf
    >>> units = sf.edge(relation="add/remove"), sf.node(max_degree=20, relation="add/remove")
    >>> vaults = [sf.Vault(unit=unit, budget=sf.Budget(epsilon=4), name="contacts") for unit in units]
    >>> links = [vault.graph([(0, 1), (1, 2)], name="wards", version="1", nodes=nodes) for vault, nodes in
    ...          zip(vaults, (9, None), strict=True)]
    >>> chart = edge_and_node(*(each.edges().release(epsilon=1) for each in links))
    >>> chart.to_dict()["title"]["text"]
    'wards: what it costs to protect a node and not a link'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    edges, nodes = _checked(edge, Edge | Weight, "edge"), _checked(node, Node, "node")
    colours = palette(theme)
    fitted = False
    if all(_by_degree(release) for release in (*edges, *nodes)):
        fitted = any(isinstance(counts_of(release).figure, Adjusted) for release in (*edges, *nodes))
        drawn, band = _stairs(altair, edges, nodes, colours, language), "network_plot.levels_stairs"
    else:
        pairs = _pairs(edges, nodes)
        panels = [_panel(altair, one, other, colours, language) for one, other in pairs]
        drawn, band = altair.vconcat(*panels, spacing=20), "network_plot.levels_band"
    return dressed(
        drawn,
        title=message(language, "network_plot.levels", dataset=clean(edges[0].statement.dataset.name)),
        subtitle=[
            message(language, band),
            message(language, "network_plot.level_cut"),
            *([message(language, "network_plot.fallen")] if fitted else []),
        ],
        language=language,
        theme=theme,
    )


def _checked(given: Releases, kind: type | UnionType, word: str) -> list[Release]:
    """The releases of one level, with the unit that belongs to it."""
    found = [only_release(release) for release in ([given] if isinstance(given, Release) else given)]
    if not found or not all(isinstance(release.statement.unit, kind) for release in found):
        raise InvalidInput(
            f"the {'first' if word == 'edge' else 'second'} releases must be those at {word} level; nothing was drawn. "
            "Say edge_and_node(edge, node)."
        )
    return found


def _by_degree(release: Release) -> bool:
    return list(release.statement.query.labels()) == ["degree"]


def _pairs(
    edges: Sequence[Release], nodes: Sequence[Release]
) -> list[tuple[tuple[Release, PlottedStatistic], tuple[Release, PlottedStatistic]]]:
    """The statistics that both levels have, each with the release that it comes from; of several the first."""
    left, right = (
        {each.name: (release, each) for release in reversed(some) for each in statistics_of(release)}
        for some in (edges, nodes)
    )
    order = dict.fromkeys(each.name for release in edges for each in statistics_of(release))
    found = [(left[name], right[name]) for name in order if name in right]
    if not found:
        raise InvalidInput(
            f"the two levels have no statistic in common: {', '.join(left)} and {', '.join(right)}. Nothing was drawn."
        )
    return found


def _limit(release: Release) -> int | None:
    """The cap that the numbers were counted under: the one that was chosen, that of the query, or that of the unit."""
    said = release.statement
    if isinstance(said.mechanism, ChosenCap):
        return said.values[0]
    asked: int | None = getattr(said.query, "max_degree", None)
    return said.unit.max_degree if isinstance(said.unit, Node) and asked is None else asked


def _level(release: Release, language: str) -> str:
    """What is protected, at which ε, under which limit."""
    level = "node" if isinstance(release.statement.unit, Node) else "edge"
    facts, cap = {"amount": amount(release.statement.spend, language)}, _limit(release)
    if cap is None:
        return message(language, f"network_plot.level_{level}", **facts)
    return message(language, f"network_plot.level_{level}_limit", cap=f"{cap:,}", **facts)


def _panel(
    altair: ModuleType,
    edge: tuple[Release, PlottedStatistic],
    node: tuple[Release, PlottedStatistic],
    colours: Palette,
    language: str,
) -> Chart:
    rows: list[ChartRow] = []
    for (release, each), note in ((edge, ""), (node, _wider(edge[1], node[1], language))):
        within = message(language, "network_plot.within", low=each.ends[0], high=each.ends[1])
        row = {"level": _level(release, language), "value": each.value, "low": each.low, "high": each.high}
        rows.append(row | {"shown": each.shown, "within": within, "note": note})
    numbers = [row[name] for row in rows for name in ("value", "low", "high")]
    least, most = min(0.0, *numbers), max(0.0, *numbers)
    scale = altair.Scale(domain=[least, most + (most - least) * 0.03 or 1.0], nice=False)
    zero = {"condition": {"test": "datum.value === 0", "value": colours.band}, "value": colours.line}
    below = altair.Axis(title=None, tickCount=4, format=",.8~f", gridColor=zero, labelFlush=False, labelFontSize=10)
    named = altair.Axis(
        title=None, grid=False, labelColor=colours.ink, labelFontSize=11, labelLimit=190, minExtent=170, maxExtent=170
    )
    tips = [
        altair.Tooltip("level:N", title=" "),
        altair.Tooltip("shown:N", title=message(language, "plot.value")),
        altair.Tooltip("within:N", title=message(language, "network_plot.interval")),
    ]
    base = altair.Chart(altair.Data(values=rows)).encode(y=altair.Y("level:N", sort=None, axis=named), tooltip=tips)
    words = {"align": "left", "fontSize": 11}
    heading = {"text": edge[1].said(language), "fontSize": 12, "anchor": "start", "frame": "group", "offset": 5}
    return (
        altair.layer(
            base.mark_bar(height=9, color=colours.band, cornerRadius=2).encode(
                x=altair.X("low:Q", axis=below, scale=scale), x2="high:Q"
            ),
            base.mark_tick(thickness=3, size=17, color=colours.mark, opacity=1).encode(x="value:Q"),
            base.mark_text(align="right", color=colours.ink, fontSize=12, fontWeight="bold").encode(
                x=altair.value(WIDTH + 68), text="shown:N"
            ),
            base.mark_text(color=colours.quiet, **words).encode(x=altair.value(WIDTH + 78), text="within:N"),
            base.mark_text(color=colours.ink, **words).encode(x=altair.value(WIDTH + 190), text="note:N"),
        )
        .properties(width=WIDTH, height=altair.Step(STEP), title=heading)
        .resolve_scale(y="shared")
    )


def _wider(edge: PlottedStatistic, node: PlottedStatistic, language: str) -> str:
    times = node.width / edge.width
    return message(language, "network_plot.wider", times=f"{times:,.0f}" if times >= 10 else f"{times:.2g}")


def _stairs(
    altair: ModuleType, edges: Sequence[Release], nodes: Sequence[Release], colours: Palette, language: str
) -> Chart:
    """Both degree distributions, as numbers of nodes with at least as many links, up to the degree that both reach."""
    if len(edges) > 1 or len(nodes) > 1:
        raise InvalidInput("of degree histograms one at each level is compared; nothing was drawn.")
    both = [(release, counts_of(release)) for release in (edges[0], nodes[0])]
    last = min(counts.most for _, counts in both)
    first = max(counts.first for _, counts in both)
    shown = [
        counts.classes([span for span in spans_of(counts, at_least=True) if first <= span[0] <= last])
        for _, counts in both
    ]
    lows, tops = zip(*(reach(each) for each in shown), strict=True)
    panels = [
        staircase(
            altair,
            each,
            colours,
            language,
            at_least=True,
            size=STAIRS,
            up_to=(min(lows), max(tops)),
            named=place == 0,
        ).properties(title={"text": _level(release, language), "fontSize": 12, "anchor": "start", "frame": "group"})
        for place, ((release, _), each) in enumerate(zip(both, shown, strict=True))
    ]
    return altair.hconcat(*panels, spacing=24)
