"""A question about a graph on the command line: from an edge list to numbers with margins, files, and the ledger."""

import csv
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.cli.graph_options import Questions
from sfumato.cli.graph_questions import TAKES
from sfumato.core.signature import SigningKey
from tests import parts
from tests.cli.institution import done

NODES = 12
PAIRS = [(0, other) for other in range(1, NODES)] + [(1, 2), (2, 3)]  # node 0 has the most edges
CLEAR = "5000"  # at this ε another number than the exact one has a probability below 1e-200


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same graph in every kind of file, with the public facts about its nodes."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{j},0.5" for i, j in PAIRS]
    Path("contacts.csv").write_text("\n".join(["source,target,days", *rows]) + "\n", "utf-8")
    Path("named.csv").write_text("\n".join(["from,to", *(f"p{i},p{j}" for i, j in PAIRS)]) + "\n", "utf-8")
    pairs = {"source": [i for i, _ in PAIRS], "target": [j for _, j in PAIRS]}
    pyarrow.parquet.write_table(pa.table(pairs), "contacts.parquet")
    text = "# a comment\n" + "".join(f"{i}\t{j} 0.5\n" for i, j in PAIRS)
    Path("contacts.txt").write_text(text, "utf-8")
    Path("contacts.txt.gz").write_bytes(gzip.compress(text.encode()))
    Path("names.txt").write_text("# people\n" + "".join(f"p{i}\n" for i in range(NODES)), "utf-8")
    blocks = [f"{i},{'ward A' if i < 6 else 'ward B'}" for i in range(NODES)]
    Path("wards.csv").write_text("\n".join(["node,block", *blocks]) + "\n", "utf-8")
    return tmp_path


def told(run, *words: object) -> dict[str, list[object]]:
    """The values of each column."""
    found = json.loads(done(run, "graph", *words, "--json"))
    return {name: column["values"] for name, column in found["columns"].items()}


def test_it_prints_the_number_its_margin_and_what_is_protected(run, folder):
    said = done(run, "graph", "contacts.csv", "edges", "--epsilon", CLEAR, "--nodes", NODES)
    lines = [line.split() for line in said.splitlines()]
    assert lines[:2] == [["edges", "95%", "interval"], ["13", "13", "to", "13"]]
    assert "protected: edge, add/remove; one edge and nothing larger" in said
    assert f"charged: ε = {CLEAR}\n" in said
    assert "ledger: none" in said


@pytest.mark.parametrize("data", ["contacts.csv", "contacts.parquet", "contacts.txt", "contacts.txt.gz"])
def test_every_kind_of_file_is_the_same_graph(run, folder, data):
    assert told(run, data, "edges", "--epsilon", CLEAR, "--nodes", NODES) == {"edges": [13]}


@pytest.mark.parametrize("nodes", ["names.txt", "people.csv"])
def test_nodes_are_called_by_a_list(run, folder, nodes):
    listed = "node,block\n" + "".join(f"p{i},x\n" for i in range(NODES))
    Path("people.csv").write_text(listed, "utf-8")
    ends = ("--source", "from", "--target", "to")
    said = done(run, "graph", "named.csv", "top", "--choices", 1, "--epsilon", CLEAR, "--nodes", nodes, *ends)
    assert [line.split() for line in said.splitlines()[:2]] == [["member", "node"], ["1", "p0"]]


def test_a_range_leaves_out_what_it_does_not_hold_and_numbers_may_be_texts(run, folder):
    common = ("contacts.csv", "edges", "--epsilon", CLEAR)
    assert told(run, *common, "--nodes", "1..11") == {"edges": [2]}
    assert told(run, *common, "--nodes", "1..11", "--names", "text") == {"edges": [2]}


EDGE = ("--nodes", NODES)
NODE = ("--unit", "node", "--max-degree", 11)
WEIGHT = (*EDGE, "--unit", "weight", "--weight", "days", "--bound", 1)
EXACT = [
    ("edges", EDGE, "edges", [13]),
    ("edges", NODE, "edges", [13]),
    ("edges", WEIGHT, "edges", [13]),
    ("degrees", EDGE, "degree", [11, 2, 3, 2, *[1] * 8]),
    ("degree-sequence", (*EDGE, "--length", 3), "degree", [2, 3, 11]),
    ("degree-sequence", (*NODE, "--length", 2), "degree", [3, 11]),
    ("degree-histogram", (*EDGE, "--most", 2), "nodes", [0, 8, 4]),
    ("stars", (*EDGE, "--hold-to", 11), "stars", [60]),
    ("stars", (*NODE, "--leaves", 3), "stars", [166]),
    ("top", (*EDGE, "--choices", 2), "node", [0, 2]),
    ("top", (*EDGE, "--choices", 2, "--way", "peeling"), "node", [0, 2]),
    ("blocks", (*EDGE, "--blocks", "wards.csv"), "edges", [7, 6, 0, 13, 6, 13]),  # pairs, ends in a block, all
    ("blocks", (*EDGE, "--blocks", "wards.csv", "--part", "all=ward A+ward B"), "edges", [7, 6, 0, 13]),
    pytest.param("statistics", EDGE, "count", [13, 60, 2], marks=pytest.mark.long),  # compiles its walks
    ("synthetic", EDGE, "source", [i for i, _ in sorted(PAIRS)]),
    ("edges-and-degrees", EDGE, "count", [13, 0, 8, 2, 1, *[0] * 7, 1]),
    ("communities", (*EDGE, "--partition", "wards.csv"), "communities", None),
    ("pagerank", (*EDGE, "--restart", 3, "--damping", "0.5"), "rank", None),
]


@pytest.mark.few(6)
@pytest.mark.parametrize(("question", "more", "column", "exact"), EXACT, ids=lambda value: str(value)[:40])
def test_every_question_is_asked_with_its_options(run, folder, question, more, column, exact):
    # The scale of the noise is at most 100/ε here: at ε = 10^6 it moves a number by 1/2 with a chance below e^−5000.
    found = told(run, "contacts.csv", question, *more, "--epsilon", 10**6)
    assert column in found
    if exact is not None:
        assert [round(value) for value in found[column]] == exact


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("question", "more"),
    [
        ("triangles", EDGE),
        ("triangles", (*EDGE, "--way", "worst-graph")),
        ("triangles", (*NODE, "--choose-cap")),
        ("edges", (*NODE, "--choose-cap", "--least-cap", 4)),
        ("degree-histogram", (*NODE, "--choose-cap")),
        ("stars", EDGE),
        ("clustering", EDGE),
    ],
    ids=lambda value: str(value)[:40],
)
def test_noise_that_fits_the_graph_and_chosen_caps_are_there_too(run, folder, question, more):
    said = done(run, "graph", "contacts.csv", question, *more, "--epsilon", 1, "--preview")
    assert said.endswith(("protected: edge, add/remove\n", "protected: node (degree at most 11), add/remove\n"))
    assert "Nothing was read or spent." in said


def test_weights_of_a_plain_text_are_its_third_entries(run, folder):
    words = ("--nodes", 3, "--unit", "weight", "--weight", "days", "--bound", 1, "--epsilon", 10**6)
    found = told(run, "contacts.txt", "weights", *words)
    assert [round(value, 2) for value in found["weight"]] == [0.5, 0.5, 0.5]


def test_the_list_of_questions_is_the_one_that_is_asked():
    assert list(TAKES) == list(Questions.__args__)  # type: ignore[attr-defined]


def test_a_long_answer_is_cut_on_the_terminal_and_whole_in_its_file(run, folder):
    said = done(run, "graph", "contacts.csv", "degrees", "--nodes", 100, "--epsilon", 1, "--csv", "answer.csv")
    assert "… and 40 more: --csv FILE or --excel FILE writes all of them" in said
    assert "written: answer.csv" in said
    with Path("answer.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["node"] for row in rows] == [str(place) for place in range(100)]
    assert all(int(row["degree_data_low"]) < int(row["degree"]) < int(row["degree_data_high"]) for row in rows)


def test_the_certificate_verifies_and_is_explained(run, folder):
    SigningKey.new().save("key")
    asked = ("graph", "contacts.csv", "top", "--choices", 2, "--nodes", NODES, "--epsilon", 1)
    done(run, *asked, "--save", "top.json", "--key", "key", "--name", "wards", "--version", "May")
    assert "consistent" in done(run, "verify", "top.json", "--key", "key.pub")
    assert "Names of nodes of the network “wards” (version May): 2 nodes" in done(run, "explain", "top.json")


@pytest.mark.long
def test_it_draws_and_reports(run, folder):
    parts.package("vl_convert")
    done(
        run,
        *("graph", "contacts.csv", "edges", "--nodes", NODES, "--epsilon", 1, "--plot", "p.svg", "--report", "r.html"),
    )
    assert Path("p.svg").read_text("utf-8").startswith("<svg")
    assert "one link of the network" in Path("r.html").read_text("utf-8")


def test_a_preview_reads_no_file(run, folder):
    found = json.loads(done(run, "graph", "nowhere.csv", "edges", *EDGE, "--epsilon", 1, "--preview", "--json"))
    assert found["margins"] == {"edges": {"each": "3", "all": "3"}}
    assert found["protected"] == "edge, add/remove"


def test_an_account_is_charged_once_for_the_same_question(run, folder, monkeypatch):
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    who = ("--unit", "edge")
    done(run, "ledger", "init")
    done(run, "account", "open", "hospital", *who, "--epsilon", 4, "--reason", "for 2026")
    done(run, "ledger", "population", "patients", *who, "--epsilon", 8, "--reason", "lifetime")
    done(run, "ledger", "dataset", "contacts", "--version", "1", "--population", "patients", "--epsilon", 4)
    asked = ("graph", "contacts.csv", "edges", *EDGE, "--epsilon", "1/2", "--account", "hospital", "--version", "1")
    first, again = done(run, *asked), done(run, *asked)
    assert "ledger: hospital, which may still ask for ε = 7/2" in first
    assert "charged: nothing, this is the stored answer" in again
    assert first.splitlines()[:2] == again.splitlines()[:2]
