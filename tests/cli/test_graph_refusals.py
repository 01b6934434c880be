"""Wrong input to ``sfumato graph``: each is refused before anything is read or spent, and says what to do."""

import gzip
from pathlib import Path

import pytest

import sfumato as sf

SECRET = "7654321"  # noqa: S105 - a node that no message may show
OK = ["--epsilon", "1", "--nodes", "9"]
NODE = ["--epsilon", "1", "--unit", "node"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("contacts.csv").write_text(f"source,target,days\n0,1,2\n{SECRET},3,1\n", "utf-8")
    Path("contacts.txt").write_text(f"0 1\n{SECRET} 3\n", "utf-8")
    Path("packed.txt").write_bytes(b"\x1f\x8b\x08\x00")
    Path("wards.csv").write_text("node,block\n" + "".join(f"{i},A\n" for i in range(8)), "utf-8")
    Path("twice.csv").write_text("node,block\n0,A\n0,B\n", "utf-8")
    Path("names.txt").write_text("a\nb\n", "utf-8")
    Path("raw.txt").write_bytes(b"\xff\xfe\xff")
    return tmp_path


@pytest.fixture
def no_release(monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was released")

    monkeypatch.setattr(sf.Vault, "release", never)


REFUSED = [
    ("edges", ["--epsilon", "1"], "--nodes 400"),
    ("edges", ["--epsilon", "-1", "--nodes", "9"], "epsilon = -1 must be above 0"),
    ("edges", ["--epsilon", "x", "--nodes", "9"], "epsilon"),
    ("edges", [*OK, "--delta", "1/10"], "δ = 1/10"),
    ("edges", [*OK, "--confidence", "1"], "confidence"),
    ("edges", ["--epsilon", "1", "--nodes", "0"], "--nodes 0: a graph has 1 to"),
    ("edges", ["--epsilon", "1", "--nodes", "1..99999999999", "--names", "text"], "a graph has 1 to"),
    ("edges", ["--epsilon", "1", "--nodes", "-3"], "a graph has 1 to"),
    ("edges", ["--epsilon", "1", "--nodes", "nobody"], "not a number of nodes, a range or a file"),
    ("edges", ["--epsilon", "1", "--nodes", "9..3"], "its end before its beginning"),
    ("edges", ["--epsilon", "1", "--nodes", "raw.txt"], "is not text in UTF-8"),
    ("edges", ["--epsilon", "1", "--nodes", "names.txt", "--names", "whole"], "--names text"),
    ("edges", NODE, "--max-degree 20"),
    ("edges", [*NODE, "--max-degree", "5", "--nodes", "9"], "Leave --nodes out"),
    ("edges", [*NODE, "--max-degree", "5", "--nodes", "names.txt"], "Leave --nodes out"),
    ("edges", [*OK, "--max-degree", "5"], "the cap of --unit node"),
    ("edges", [*OK, "--choose-cap"], "only --unit node has a degree cap"),
    ("edges", [*OK, "--unit", "weight", "--weight", "days"], "--bound 1"),
    ("edges", [*OK, "--unit", "weight", "--bound", "1"], "--weight COLUMN"),
    ("edges", [*OK, "--weight", "days"], "--bound 1"),
    ("edges", [*OK, "--bound", "1"], "--weight COLUMN"),
    ("weights", OK, "--weight COLUMN"),
    ("edges", [*OK, "--leaves", "3"], "--leaves does not go with edges but with stars"),
    ("edges", [*NODE, "--max-degree", "5", "--least-cap", "2"], "--choose-cap too"),
    ("triangles", [*NODE, "--max-degree", "5", "--way", "ladder"], "--way is not used here"),
    ("triangles", [*OK, "--way", "joint"], "'joint' is unknown"),
    ("stars", [*OK, "--hold-to", "3", "--share", "1/2"], "--share is not used here"),
    ("top", OK, "--choices 10"),
    ("top", [*OK, "--choices", "9"], "say nothing"),
    ("top", [*NODE, "--max-degree", "5", "--choices", "2"], "secret"),
    ("degrees", [*NODE, "--max-degree", "5"], "secret"),
    ("degrees", [*OK, "--direction", "out"], "no direction"),
    ("degree-sequence", [*NODE, "--max-degree", "5"], "--length 1000"),
    ("blocks", OK, "--blocks FILE"),
    ("blocks", [*OK, "--blocks", "wards.csv"], "nothing of node 8"),
    ("blocks", [*OK, "--blocks", "names.txt"], "not a CSV file with the columns node and block"),
    ("blocks", [*OK, "--blocks", "twice.csv"], "has a node twice"),
    ("blocks", [*OK, "--blocks", "contacts.csv"], "no column 'node'"),
    ("blocks", ["--epsilon", "1", "--nodes", "8", "--blocks", "wards.csv", "--part", "x=B"], "--part x=B"),
    ("communities", ["--epsilon", "1", "--nodes", "40", "--directed"], "where edges point"),
    ("pagerank", [*OK, "--restart", "ada"], "not the name of a declared node"),
    ("pagerank", [*OK, "--damping", "2"], "damping"),
    ("edges", [*OK, "--preview", "--save", "c.json"], "a preview has no answer to write"),
    ("edges", [*OK, "--plot", "p.gif"], "p.gif cannot be written"),
    ("top", [*OK, "--choices", "2", "--plot", "p.svg"], "there is no error to draw"),
    ("edges", [*OK, "--csv", "a.txt"], "a.txt cannot be written"),
    ("edges", [*OK, "--csv", "a.csv", "--report", "nowhere/r.html"], "there is no folder"),
    ("edges", [*OK, "--purpose", "research"], "--account"),
    ("edges", [*OK, "--account", "hospital"], "--version"),
]


@pytest.mark.few(20)
@pytest.mark.usefixtures("no_release")
@pytest.mark.parametrize(("question", "more", "words"), REFUSED, ids=lambda value: str(value)[:50])
def test_wrong_input_is_refused_before_anything_is_read(run, folder, question, more, words):
    outcome = run("graph", "contacts.csv", question, *more)
    assert outcome.exit_code == 1, (outcome.stdout, outcome.exception)
    assert words in outcome.stderr
    assert outcome.stdout == ""
    assert SECRET not in outcome.stderr
    assert isinstance(outcome.exception, SystemExit)


@pytest.mark.usefixtures("no_release")
@pytest.mark.parametrize("data", ["contacts", "contacts.csv.gz", "contacts.xlsx"])
def test_a_kind_of_file_that_is_not_read_is_named(run, folder, data):
    outcome = run("graph", data, "edges", *OK)
    assert outcome.exit_code == 1
    assert ".txt.gz" in outcome.stderr


@pytest.mark.parametrize(
    ("data", "more", "words"),
    [
        ("nowhere.csv", [], "no file 'nowhere.csv'"),
        ("nowhere.txt", [], "no file 'nowhere.txt'"),
        ("packed.txt", [], "packed with gzip"),
        ("contacts.csv", ["--source", "from"], "from"),
        ("contacts.txt", ["--source", "from"], "names no columns"),
    ],
)
def test_a_file_that_does_not_fit_costs_nothing(run, folder, data, more, words):
    outcome = run("graph", data, "edges", *OK, *more)
    assert outcome.exit_code == 1, outcome.stdout
    assert words in outcome.stderr
    assert "othing was" in outcome.stderr
    assert SECRET not in outcome.stderr


@pytest.mark.parametrize("words", [["contacts.csv"], ["contacts.csv", "cliques", *OK], ["contacts.csv", "edges"]])
def test_a_question_and_an_epsilon_are_needed(run, folder, words):
    assert run("graph", *words).exit_code == 2


def test_a_file_that_breaks_off_keeps_the_charge_and_says_nothing_of_the_data(run, folder):
    Path("cut.txt.gz").write_bytes(gzip.compress(f"{SECRET} 1\n".encode() * 1000)[:-20])
    outcome = run("graph", "cut.txt.gz", "edges", *OK)
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert "the charge of ε = 1 is kept" in outcome.stderr
    assert SECRET not in outcome.stderr
