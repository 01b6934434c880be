"""Words for releases about networks: what was asked is told rightly, and who is protected is what the unit says."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.question import Question
from sfumato.graphs import GRAPH_QUERIES
from sfumato.reports.catalogue import messages
from sfumato.reports.words import AUDIENCES

PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5), (1, 4)]
WEIGHED = [(head, tail, 0.5) for head, tail in PAIRS]
EDGE = {"add/remove": sf.edge(relation="add/remove"), "replace": sf.edge(relation="replace")}


def graph(unit: Any, **said: Any) -> Any:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=100), name="contacts")
    return vault.graph(said.pop("data", PAIRS), name="wards", version="1", **said)


def by_edge(**said: Any) -> Any:
    return graph(EDGE["add/remove"], nodes=6, **said)


def by_node() -> Any:
    return graph(sf.node(max_degree=3, relation="add/remove"))


def by_weight(relation: str = "replace") -> Any:
    return graph(sf.weight(bound="3/2", relation=relation), nodes=6, data=WEIGHED, weight="days")


ASKED: dict[str, tuple[Callable[[], Question], str]] = {
    "edges": (lambda: by_edge().edges(), "One number: how many links the network {data} has."),
    "chosen edges": (
        lambda: by_node().edges(choose_cap=True),
        "Two numbers: how many links the network {data} has, and",
    ),
    "degrees": (lambda: by_edge().degrees(), "A table of 6 numbers, one for each node: how many links it has in"),
    "sequence": (lambda: by_edge().degree_sequence(), "A list of 6 numbers: how many links each node of"),
    "longest": (lambda: by_node().degree_sequence(length=2), "A list of 2 numbers: how many links those nodes of"),
    "histogram": (lambda: by_edge().degree_histogram(), "A table of 6 numbers: how many nodes of"),
    "chosen histogram": (
        lambda: by_node().degree_histogram(choose_cap=True),
        "A table of 3 numbers: how many nodes of",
    ),
    "both": (lambda: by_edge().edges_and_degrees(), "A table of 7 numbers: how many links the network {data} has, and"),
    "stars": (lambda: by_edge().stars(3), "One number: how many stars with 3 leaves the network {data} has: a node"),
    "local stars": (
        lambda: by_edge().local_stars(2),
        "One number: how many stars with 2 leaves the network {data} has",
    ),
    "triangles": (lambda: by_edge().triangles(), "One number: how many triangles the network {data} has: three nodes"),
    "held triangles": (lambda: by_node().triangles(), "One number: how many triangles the network {data} has, when"),
    "chosen triangles": (lambda: by_node().triangles(choose_cap=True), "Two numbers: how many triangles the network"),
    "clustering": (lambda: by_edge().clustering(), "Three numbers: which part of all pairs of links that meet"),
    "statistics": (lambda: by_edge().ergm_statistics(), "A table of 3 numbers: how many links, 2-stars (pairs of"),
    "top": (lambda: by_edge().top_degrees(2), "Names of nodes of the network {data}: 2 nodes, chosen as those"),
    "one by one": (lambda: by_edge().top_degrees(1, way="peeling"), "Names of nodes of the network {data}: one node,"),
    "pagerank": (lambda: by_edge().pagerank(), "A table of 6 numbers, one for each node of the network {data}: its"),
    "communities": (lambda: by_edge().communities(2), "One number: how many communities explain the links of"),
    "candidates": (
        lambda: by_edge().communities(partitions={"halves": [0, 0, 0, 1, 1, 1], "one": [0] * 6}),
        "Which of the public groupings of nodes that were handed in explains the links of the network {data} best",
    ),
    "found communities": (
        lambda: graph(EDGE["add/remove"], nodes=12).communities(),
        "A table with one row for each node of the network {data}",
    ),
    "weights": (lambda: by_weight().weights(), "A table of 15 numbers, one for each pair of nodes of the network"),
    "blocks": (
        lambda: by_edge().block_edges([*"aaabbb"]),
        "A table of 6 numbers: how many links of the network {data}",
    ),
    "synthetic": (lambda: by_edge().synthetic(), "A synthetic network on the nodes of {data}, which resembles"),
}


@pytest.fixture(scope="module")
def released() -> dict[str, Any]:
    """One release of each question."""
    return {name: ask().release(epsilon=1) for name, (ask, _) in ASKED.items()}


def test_every_question_is_among_them(released: dict[str, Any]) -> None:
    assert {type(release.statement.query) for release in released.values()} == set(GRAPH_QUERIES)


@pytest.mark.few(10)
@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_is_told_in_a_sentence_of_its_own(released: dict[str, Any], name: str) -> None:
    release, begins = released[name], ASKED[name][1].format(data="“wards” (version 1)")
    for audience in AUDIENCES:
        first = release.explain("en", audience).partition("\n\n")[0]
        assert first.startswith(begins)
        assert "for each value of" not in first
        chinese = release.explain("zh", audience)
        assert re.search(r"[a-z]{2,}", chinese.partition("\n\n")[0].replace("wards", "")) is None
        assert "{" not in release.explain("en", audience) + chinese


@pytest.mark.parametrize("name", ["top", "one by one", "communities", "candidates", "synthetic"])
def test_what_was_chosen_has_no_margin_and_a_synthetic_network_is_no_choice(
    released: dict[str, Any], name: str
) -> None:
    text = released[name].explain("en", "clinician")
    assert "±" not in text
    assert ("may be made up" in text) is (name == "synthetic")
    assert ("was chosen at random (exponential mechanism), better choices" in text) is (name != "synthetic")


# ------------------------------------------------------------------------------------------------ who is protected

PERSON = re.compile(
    r"protect(s|ed)?:? (is )?(one|a|any|the) (person|patient)|illness say|diagnos|without you\b|person, with"
)
PERSON_ZH = re.compile(r"保护对象[是：](一个|某个|每个)?人|诊断|患有某种疾病|关于每个人")
PART = "noise hides most, and where a single patient"  # who needs noise, and no promise


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("kind", ["edge", "weight"])
def test_no_text_about_an_edge_or_a_weight_says_that_a_person_is_protected(
    relation: str, audience: str, kind: str
) -> None:
    asked = graph(EDGE[relation], nodes=6) if kind == "edge" else by_weight(relation)
    release = asked.edges().release(epsilon=1)
    english, chinese = release.explain("en", audience).replace(PART, ""), release.explain("zh", audience)
    assert PERSON.search(english) is None
    assert PERSON_ZH.search(chinese) is None
    if audience in ("public", "clinician", "board"):
        assert {"edge": "one link of the network", "weight": "the weight of one pair of nodes"}[kind] in english
        assert {"edge": "网络中的一条连接", "weight": "一对节点之间的权重"}[kind] in chinese
    if audience != "manager":
        assert re.search(r"A person (with several links|in several pairs) is protected less", english)


def test_the_search_finds_a_person_where_one_is_protected() -> None:
    import pyarrow as pa

    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    rows = vault.table(pa.table({"id": [1, 2]}), name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    release = rows.count().release(epsilon=1)
    for audience in ("public", "patient", "clinician", "board"):
        assert PERSON.search(release.explain("en", audience).replace(PART, "")), audience
    assert PERSON_ZH.search(release.explain("zh", "clinician"))


@pytest.mark.parametrize("audience", AUDIENCES)
def test_a_node_is_protected_with_all_its_links(audience: str) -> None:
    text = by_node().edges().release(epsilon=1).explain("en", audience)
    assert ("one node of the network, with all its links" in text) is (audience in ("public", "clinician", "board"))
    assert "illness say" not in text


# ------------------------------------------------------------------------------------------------ what did not count


def test_limits_are_those_that_were_enforced(released: dict[str, Any]) -> None:
    said = {name: release.explain("en", "public") for name, release in released.items()}
    cap = "Of each node at most 3 links count."
    assert [name for name, text in said.items() if cap in text] == ["chosen edges", "longest", "chosen histogram"]
    corners = "No node counts in more than 3 triangles."  # 3·2/2
    assert [name for name, text in said.items() if corners in text] == ["held triangles", "chosen triangles"]
    weights = "Weights above 1.5 were counted as 1.5."
    assert [name for name, text in said.items() if weights in text] == ["weights"]
    public = "that is not on the public list of nodes"
    by_nodes = [name for name, text in said.items() if public not in text]
    assert by_nodes == ["chosen edges", "longest", "chosen histogram", "held triangles", "chosen triangles"]


@pytest.mark.parametrize(("way", "words"), [("out", "lead away from it"), ("in", "lead to it")])
def test_degrees_out_and_in_are_told_apart(way: str, words: str) -> None:
    asked = by_edge(directed=True)
    assert f"only those that {words} count" in asked.degrees(way).release(epsilon=1).explain("en", "patient")
    assert "only those that lead" not in asked.degrees().release(epsilon=1).explain("en", "patient")


def test_a_chosen_cap_is_told_without_a_margin(released: dict[str, Any]) -> None:
    assert "cap ±0" not in released["chosen edges"].explain("en", "board")
    assert "edges ±" in released["chosen edges"].explain("en", "board")


def test_the_words_for_questions_of_a_unit_are_there_for_every_unit() -> None:
    kinds = {name.partition(".")[2] for name in messages("en") if name.startswith("unit.")}
    for role in ("trait", "traits", "example", "case"):
        assert {name.partition(".")[2] for name in messages("en") if name.startswith(f"{role}.")} == kinds
