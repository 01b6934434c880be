"""The weights of a network as a matrix of tones, with a dot where noise does not explain a weight by itself."""

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs.pairs import pairs
from sfumato.graphs.queries.weights import PairWeights
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.columns import columns_of, magnitude, shared_margins
from sfumato.reports.plots.labels import clean, distinct
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["matrix"]

MOST_NODES = 80
SIZE = 480


def matrix(release: Release, language: str = "en", theme: str = "light") -> Chart:
    """Draw the released weight of every pair of nodes as a tone, from 0 to the bound; needs ``weights()``, to 80 nodes.

    Noise carries weights below 0 and beyond the bound: these have the lightest and the darkest tone, and the mouse
    shows the number. Pairs without a link are drawn like all others, because they have noise like all others.

    Guarantee: a dot says that the release's own 95% interval of that pair lies above 0. A pair without a link gets one
    by noise with a chance of at most 1/40; among many pairs some do. Nothing but the release is drawn.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.weight(bound=1, relation="replace"), budget=sf.Budget(epsilon=8), name="proteins")
    >>> rows = {"source": ["A"], "target": ["B"], "affinity": [0.75]}
    >>> import pyarrow as pa
    >>> bound = vault.graph(pa.table(rows), name="affinities", version="1", nodes=["A", "B", "C"], weight="affinity")
    >>> matrix(bound.weights().release(epsilon=4)).to_dict()["title"]["text"]
    'affinities: the weight of every pair'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    said = only_release(release).statement
    query = said.query
    if not isinstance(query, PairWeights):
        raise Unsupported("this release is not the weights of all pairs; nothing was drawn. Release weights().")
    nodes = query.shape.nodes or 0
    if nodes > MOST_NODES:
        raise InvalidInput(f"{nodes:,} nodes are too many for a matrix, which holds {MOST_NODES}; nothing was drawn.")
    names = distinct([clean(name) for name in query.called or range(nodes)])
    (column,), margins = columns_of(release), shared_margins(release)
    assert column.ends is not None  # noqa: S101 - for the reader of types
    assert margins is not None  # noqa: S101 - each weight has the noise of one number
    rows: list[ChartRow] = []
    for place, (one, other) in enumerate(pairs(query.shape)):
        low, high = column.interval(place) or ("", "")
        row = {"value": float(column.values[place]), "shown": column.text(place), "from": low, "to": high}
        row["dot"] = column.ends[place][0] > 0
        rows.append({"one": names[one], "other": names[other], **row})
        if not query.shape.directed:
            rows.append({"one": names[other], "other": names[one], **row})
    colours = palette(theme)
    tips = {
        "one": "network_plot.one_node",
        "other": "network_plot.other_node",
        "shown": "plot.value",
        "from": "column.low",
        "to": "column.high",
    }
    axis = {"title": None, "grid": False, "labelColor": colours.ink, "labelFontSize": 10, "labelPadding": 4}
    tone = altair.Color(
        "value:Q",
        scale=altair.Scale(
            domain=[0, float(query.bound)],
            range=[colours.faint, colours.mark],
            interpolate="lab",
            clamp=True,
            nice=False,
        ),
        legend=altair.Legend(
            title=message(language, "network_plot.weight"),
            titleFontWeight="normal",
            titleFontSize=11,
            titleColor=colours.quiet,
            gradientLength=220,
            gradientThickness=10,
            tickCount=3,
            format="~g",
            padding=12,
        ),
    )
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X("other:N", sort=names, axis=altair.Axis(labelAngle=-90, orient="top", **axis)),
        y=altair.Y("one:N", sort=names, axis=altair.Axis(**axis)),
        tooltip=[altair.Tooltip(f"{field}:N", title=message(language, word)) for field, word in tips.items()],
    )
    cells = base.mark_rect(stroke=colours.paper, strokeWidth=1).encode(color=tone)
    dots = base.mark_point(filled=True, size=max(6.0, 420 / nodes), color=colours.paper, opacity=1)
    facts = {"margin": magnitude(margins[0], 3), "joint": magnitude(margins[1], 3), "numbers": f"{query.size:,}"}
    return dressed(
        altair.layer(cells, dots.transform_filter("datum.dot")).properties(width=SIZE, height=SIZE),
        title=message(language, "network_plot.matrix", dataset=clean(said.dataset.name)),
        subtitle=[
            message(language, "network_plot.matrix_band", amount=amount(said.spend, language), **facts),
            message(language, "network_plot.matrix_tone" if query.shape.directed else "network_plot.matrix_mirrored"),
            message(language, "network_plot.matrix_dot"),
        ],
        language=language,
        theme=theme,
        labels=names,
    )
