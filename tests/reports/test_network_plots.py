"""Pictures of networks: the bands are the releases' own intervals, nothing private is drawn, and all can be read."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs.graph import Graph
from sfumato.graphs.plots.degree_counts import counts_of, widening
from sfumato.graphs.plots.graph_statistics import _measured, charged, statistics_of
from sfumato.reports import plots
from sfumato.reports.columns import AnswerColumn
from sfumato.reports.plots import fonts
from sfumato.reports.plots.theme import THEMES
from tests import parts
from tests.reports.drawn import LOOKS, Drawn
from tests.reports.made import release as table_release
from tests.reports.test_plots import rows, texts

EDGES = [(one, (one + step) % 60) for one in range(60) for step in (1, 2, 5)] + [(0, other) for other in range(9, 40)]
NAMES = {"en": "contacts", "zh": "接触"}


@pytest.fixture(autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


@cache
def links(language: str = "en") -> Graph:
    """A network of 60 nodes whose links are protected."""
    vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=100), name="links")
    return vault.graph(EDGES, name=NAMES[language], version="1", nodes=60)


@cache
def nodes(language: str = "en") -> Graph:
    """The same network, with its nodes protected."""
    unit = sf.node(max_degree=20, relation="add/remove")
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=100), name="nodes")
    return vault.graph(EDGES, name=NAMES[language], version="1", nodes=list(range(60)))


@cache
def weights(language: str = "en", *, directed: bool = False) -> Release:
    vault = sf.Vault(unit=sf.weight(bound=2, relation="replace"), budget=sf.Budget(epsilon=100), name="weights")
    table = pa.table({"source": ["a", "b"], "target": ["b", "c"], "days": [2.0, 1.0]})
    graph = vault.graph(
        table, name=NAMES[language], version="1", nodes=["a", "b", "c", "d"], weight="days", directed=directed
    )
    return graph.weights().release(epsilon=8)


@cache
def histogram(language: str = "en") -> Release:
    return links(language).degree_histogram(most=12).release(epsilon=2)


@cache
def chosen(language: str = "en") -> Release:
    return nodes(language).degree_histogram(choose_cap=True, least_cap=10).release(epsilon=8)


@cache
def statistics(language: str = "en") -> tuple[Release, Release]:
    return links(language).edges().release(epsilon=1), links(language).clustering().release(epsilon=4)


@cache
def node_statistics(language: str = "en") -> tuple[Release, Release]:
    asked = nodes(language).edges(choose_cap=True, least_cap=10), nodes(language).triangles()
    return asked[0].release(epsilon=1), asked[1].release(epsilon=4)


PICTURES: dict[str, Callable[[str, str], Any]] = {
    "degrees": lambda language, theme: histogram(language).plot("degrees", language=language, theme=theme),
    "degrees, log": lambda language, theme: plots.degrees(histogram(language), language, theme, scale="log"),
    "degrees of nodes": lambda language, theme: plots.degrees(chosen(language), language, theme),
    "statistics": lambda language, theme: plots.statistics(statistics(language), language, theme),
    "both levels": lambda language, theme: plots.edge_and_node(
        statistics(language), node_statistics(language), language, theme
    ),
    "degrees at both levels": lambda language, theme: plots.edge_and_node(
        histogram(language), chosen(language), language, theme
    ),
    "matrix": lambda language, theme: weights(language).plot("matrix", language=language, theme=theme),
}


@cache
def drawn_as(name: str, language: str, theme: str) -> Drawn:
    return Drawn.of(PICTURES[name](language, theme), theme)


@pytest.mark.few(1)
@pytest.mark.parametrize(("language", "theme"), LOOKS)
@pytest.mark.parametrize("name", PICTURES)
def test_it_is_drawn_whole_and_not_blank(name: str, language: str, theme: str) -> None:
    marked = drawn_as(name, language, theme).marked()
    assert 0.01 < marked.mean() < 0.6
    for edge in (marked[:6], marked[-6:], marked[:, :6], marked[:, -6:]):
        assert not edge.any(), "something is cut off"
    assert marked[:50, : marked.shape[1] // 2].any(axis=1).sum() >= 8, "the title is missing"


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PICTURES)
def test_chinese_pictures_say_everything_in_chinese(name: str) -> None:
    words = " ".join(drawn_as(name, "zh", "dark").texts)
    assert re.findall(r"[A-Za-z]{2,}", words) == []
    assert re.search(r"[\u4e00-\u9fff]{4}", words)
    assert fonts.missing(words) == ""


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "matrix"])
def test_only_colours_of_the_theme_are_used(name: str) -> None:
    used, palette = drawn_as(name, "zh", "dark").colours, THEMES["dark"]
    assert used <= {getattr(palette, role) for role in palette.__slots__}


@pytest.mark.parametrize("made", [histogram, chosen, weights, lambda: statistics()[1]])
@pytest.mark.long
def test_a_picture_is_made_of_the_certificate_alone(made: Callable[[], Release], tmp_path: Path) -> None:
    """Whoever has the certificate draws the same picture: nothing of the network is in it besides."""
    release, path = made(), tmp_path / "release.json"
    release.certificate.save(path)
    public = sf.load(path)
    for draw in (plots.degrees, plots.matrix, lambda one: plots.statistics([one])):
        try:
            expected = draw(release).to_dict()
        except Unsupported:
            continue
        assert draw(public).to_dict() == expected
        break
    else:
        pytest.fail("nothing was drawn")


def test_each_degree_stands_on_its_own_interval() -> None:
    release = histogram()
    drawn = rows(plots.degrees(release), "from", "value")
    assert [(row["value"], (row["low"], row["high"]), (row["least"], row["most"])) for row in drawn] == list(
        zip(release.values, release.interval(), release.interval(joint=True), strict=True)
    )
    assert [row["class"] for row in drawn] == [*map(str, range(12)), "12+"]
    margin = release.interval()[0][1] - release.values[0]
    assert f"within ±{margin} (dark band)" in " ".join(texts(plots.degrees(release)))


def test_a_band_of_another_width_would_be_noticed() -> None:
    """The twin of the test above: half the noise has other intervals."""
    release = links().degree_histogram(most=12).release(epsilon=4)
    drawn = rows(plots.degrees(histogram()), "from", "value")
    widths = {row["high"] - row["low"] for row in drawn}
    assert widths.isdisjoint({high - low for low, high in release.interval()})


def test_pooled_classes_are_sums_of_the_released_numbers_per_degree() -> None:
    release = histogram()
    drawn = rows(plots.degrees(release, scale="log"), "from", "value")
    spans = widening(1, 11)
    assert [(row["from"], row["to"]) for row in drawn] == [(first - 0.5, last + 0.5) for first, last in spans]
    figure, foot = release.figure, min(row["least"] for row in drawn)
    for row, (first, last) in zip(drawn, spans, strict=True):
        width, total = last + 1 - first, sum(figure.at(degree=str(degree)) for degree in range(first, last + 1))
        ((low, high),) = total.interval()
        assert row["value"] == pytest.approx(max(foot, float(total.values[0]) / width))
        assert row["low"] == pytest.approx(max(foot, float(low) / width))
        assert row["high"] == pytest.approx(max(foot, float(high) / width))
    said = " ".join(texts(plots.degrees(release, scale="log")))
    assert "Nodes without a link: " in said
    assert "Nodes with 12 links or more: " in said


def test_spans_that_widen_hold_every_degree_once() -> None:
    for most in range(2, 300, 7):
        held = [degree for first, last in widening(1, most) for degree in range(first, last + 1)]
        assert held == list(range(1, most + 1))


def test_under_a_chosen_cap_the_numbers_that_were_drawn_are_shown() -> None:
    """Those of nodes with so many links or more: each has one noise, and its margin is that of the law at the cap."""
    release = chosen()
    said, cap = release.statement, release.values[0]
    drawn = rows(plots.degrees(release), "from", "value")
    assert [row["class"] for row in drawn] == [f"{degree}+" for degree in range(cap + 1)]
    margin = said.mechanism.law_at(cap).margin(Fraction(19, 20))  # type: ignore[attr-defined]
    for row, value in zip(drawn, said.values[1:], strict=False):
        shown = row["value"]  # what was drawn, made to fall: its interval is widened to it
        assert (row["low"], row["high"]) == (min(max(0, value - margin), shown), max(0, value + margin, shown))
    assert f"at most {cap} links" in " ".join(texts(plots.degrees(release)))
    apart = rows(plots.degrees(release, at_least=False), "from", "value")
    assert [row["class"] for row in apart] == [str(degree) for degree in range(cap + 1)]


def test_edges_and_degrees_are_drawn_without_the_edges() -> None:
    release = nodes().edges_and_degrees().release(epsilon=1)
    counts = counts_of(release)
    assert (counts.first, counts.most, counts.cap) == (0, 20, 20)
    drawn = rows(plots.degrees(release), "from", "value")
    assert [row["low"] for row in drawn] == [float(low) for low, _ in release["count"].interval()[1:]]


def test_what_has_no_degrees_is_refused() -> None:
    for release in (table_release(), statistics()[0]):
        with pytest.raises(Unsupported, match="Release degree_histogram"):
            plots.degrees(release)
    with pytest.raises(InvalidInput, match="scale = 'loglog'"):
        plots.degrees(histogram(), scale="loglog")
    with pytest.raises(InvalidInput, match="degrees of 2 or more"):
        plots.degrees(links().degree_histogram(most=1).release(epsilon=1), scale="log")
    with pytest.raises(InvalidInput, match="not about a column"):
        histogram().plot("degrees", column="nodes")
    with pytest.raises(InvalidInput, match="takes releases"):
        plots.degrees([1, 2, 3])  # type: ignore[arg-type]


@pytest.mark.long
def test_statistics_stand_on_their_intervals_and_are_charged_together() -> None:
    edges, clustering = statistics()
    drawn = rows(plots.statistics([edges, clustering, edges], names=["edges", "triangles"]), "name", "value")
    assert [row["name"] for row in drawn] == ["links", "triangles"]
    assert [(row["low"], row["high"]) for row in drawn] == [edges.interval()[0], clustering["triangles"].interval()[0]]
    assert charged([edges, clustering, edges]).epsilon == 5
    assert "ε = 5" in " ".join(texts(plots.statistics([edges, clustering])))
    stars = links().stars(3, max_degree=12).release(epsilon=1)
    assert [each.said("en") for each in statistics_of(stars)] == ["3-stars"]


def test_a_cap_is_exact_and_no_statistic() -> None:
    assert [each.name for each in statistics_of(node_statistics()[0])] == ["edges"]


def test_a_number_whose_interval_shrank_to_nothing_is_still_a_statistic() -> None:
    def column(value: int, ends: tuple[int, int]) -> AnswerColumn:
        return AnswerColumn(name="triangles", measured=None, figure=None, values=(value,), ends=(ends,))

    assert _measured(column(-252, (0, 0)), 0)
    assert not _measured(column(7, (7, 7)), 0)  # exact, such as a cap


def test_statistics_of_two_stories_are_refused() -> None:
    edges, _ = statistics()
    with pytest.raises(InvalidInput, match="several networks"):
        plots.statistics([edges, node_statistics()[0]])
    with pytest.raises(InvalidInput, match="no release"):
        plots.statistics([])
    with pytest.raises(InvalidInput, match="no statistic here is called 'wedges'"):
        plots.statistics([edges], names=["wedges"])
    for release in (table_release(), histogram()):
        with pytest.raises(Unsupported, match="nothing was drawn"):
            plots.statistics([release])


@pytest.mark.long
def test_both_levels_show_how_many_times_wider() -> None:
    chart = plots.edge_and_node(statistics(), node_statistics())
    (edges, clustering), (capped, triangles) = statistics(), node_statistics()
    drawn = rows(chart, "level", "value")
    expected = [edges.interval()[0], capped["edges"].interval()[0], clustering["triangles"].interval()[0]]
    assert [(row["low"], row["high"]) for row in drawn] == [*expected, triangles.interval()[0]]
    assert [row["level"] for row in drawn] == [
        "one link · ε = 1",
        f"one node, limit {capped.values[0]} · ε = 1",
        "one link · ε = 4",
        "one node, limit 20 · ε = 4",
    ]
    (low, high), (least, most) = expected[:2]
    times = (most - least) / (high - low)
    assert drawn[1]["note"] == f"{times:,.0f} times as wide" if times >= 10 else f"{times:.2g} times as wide"


def test_both_levels_of_degrees_share_their_scale() -> None:
    chart = plots.edge_and_node(histogram(), chosen()).to_dict()
    for axis in ("x", "y"):
        one, other = (panel["layer"][0]["encoding"][axis]["scale"]["domain"] for panel in chart["hconcat"])
        assert one == other


def test_levels_that_do_not_belong_together_are_refused() -> None:
    edges, nodes_ = statistics(), node_statistics()
    with pytest.raises(InvalidInput, match="first releases must be those at edge level"):
        plots.edge_and_node(nodes_, edges)
    with pytest.raises(InvalidInput, match="second releases must be those at node level"):
        plots.edge_and_node(edges, [])
    with pytest.raises(InvalidInput, match="no statistic in common"):
        plots.edge_and_node(edges[0], nodes_[1])
    with pytest.raises(InvalidInput, match="one at each level"):
        plots.edge_and_node([histogram(), histogram()], chosen())


@pytest.mark.few(1)
@pytest.mark.parametrize("directed", [False, True])
def test_the_matrix_shows_every_pair_and_marks_what_noise_does_not_explain(*, directed: bool) -> None:
    release = weights(directed=directed)
    figure = release["weight"]
    drawn = {(row["one"], row["other"]): row for row in rows(plots.matrix(release), "one", "other")}
    assert len(drawn) == 12
    pairs = zip(*figure.labels.values(), strict=True)
    for pair, value, (low, _) in zip(pairs, figure.values, figure.interval(), strict=True):
        for ends in (pair,) if directed else (pair, pair[::-1]):
            assert drawn[ends]["value"] == float(value)
            assert drawn[ends]["dot"] == (low > 0)
    said = " ".join(texts(plots.matrix(release)))
    assert ("both halves" in said) is not directed


def test_what_makes_no_matrix_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"Release weights\(\)"):
        plots.matrix(histogram())
    vault = sf.Vault(unit=sf.weight(bound=1, relation="replace"), budget=sf.Budget(epsilon=9), name="weights")
    table = pa.table({"source": [0], "target": [1], "days": [0.5]})
    many = vault.graph(table, name="many", version="1", nodes=81, weight="days").weights().release(epsilon=1)
    with pytest.raises(InvalidInput, match="81 nodes are too many"):
        plots.matrix(many)
