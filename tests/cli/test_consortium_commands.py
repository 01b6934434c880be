"""Consortia and sites on the command line: folders, agreements, and what is refused; the tutorial runs the rest."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput
from sfumato.federated.agreement import SiteAgreement
from sfumato.federated.papers import ConsortiumPaper
from tests.federated.training.tables import table_network

SCHEMA = """kind = "schema"
version = 1
[dataset]
name = "stays"
version = "2026"
[unit]
column = "patient"
[limit]
groups = 1
rows_per_group = 1
[columns.patient]
type = "whole"
[columns.sex]
type = "text"
keys = ["F", "M"]
"""
CAP = ("--epsilon", "4", "--delta", "1e-6", "--reason", "for 2026")
SPEND = ("--epsilon", "1", "--delta", "1e-7")
COUNT = "SELECT sex, COUNT(*) FROM stays GROUP BY sex"


@pytest.fixture
def homes(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("stays.toml").write_text(SCHEMA, "utf-8")
    assert run("site", "new", "north", "--schema", "stays.toml", *CAP).exit_code == 0
    assert run("consortium", "new", "network", "--name", "net", "--schema", "stays.toml", *CAP).exit_code == 0
    for name in ("south", "west"):
        SigningKey.new().save(f"{name}.key")
    return tmp_path


def agree(run: Any, *more: str, north: str = "north/ledger.key.pub") -> Any:
    sites = [f"north={north}", "south=south.key.pub", "west=west.key.pub"]
    given = [word for site in sites for word in ("--site", site)]
    return run("consortium", "agree", "network", *given, "--sites-per-person", "1", "--missing", "1", *more)


@pytest.mark.parametrize("line", ['name = "stays"\n', 'version = "2026"\n'])
def test_a_schema_without_name_or_version_makes_no_site(line: str, run: Any, homes: Path) -> None:
    Path("half.toml").write_text(SCHEMA.replace(line, ""), "utf-8")
    told = run("site", "new", "east", "--schema", "half.toml", *CAP)
    assert (told.exit_code, "name and version" in told.stderr) == (1, True), told.stderr
    assert not Path("east").exists()


def test_folders_keys_and_the_agreement(run: Any, homes: Path) -> None:
    assert Path("north/ledger.key").stat().st_mode & 0o077 == 0
    again = run("site", "new", "north", "--schema", "stays.toml", *CAP)
    assert (again.exit_code, "there already" in again.stderr) == (1, True)
    told = agree(run, "-o", "agreement.toml", "--json")
    assert told.exit_code == 0, told.stderr
    digest = json.loads(told.stdout)["digest"]
    joined = run("site", "join", "north", "agreement.toml")
    assert digest in joined.stdout
    assert "may send anything" in joined.stdout
    paper = ConsortiumPaper.load("agreement.toml")
    assert (paper.digest, ConsortiumPaper.from_toml(paper.to_toml())) == (digest, paper)
    assert run("site", "join", "north", "agreement.toml").exit_code == 0  # the same again
    other = (
        Path("agreement.toml")
        .read_text("utf-8")
        .replace("missing = 1", "missing = 0")
        .replace("least_sites = 2", "least_sites = 3")
    )
    Path("other.toml").write_text(other, "utf-8")
    for words, why in (
        (("site", "join", "north", "other.toml"), "holds another agreement"),
        (("site", "join", "nowhere", "agreement.toml"), "not the folder of a site"),
        (("site", "join", "north", "stays.toml"), "not the agreement of a consortium"),
        (("site", "join", "north", "none.toml"), "cannot be read"),
        (("site", "answer", "network", "rows.csv"), "not the folder of a site"),
        (("site", "answer", "north", "rows.csv"), "its requests are files"),
        (("consortium", "ask", "north", COUNT, *SPEND), "not the folder of a consortium"),
        (("consortium", "ask", "network", *SPEND), "ask one question"),
        (("consortium", "ask", "network", COUNT, "--survival", "a:b", *SPEND), "ask one question"),
        (("consortium", "ask", "network", "--survival", "week", *SPEND), "is not TIME:EVENT"),
        (("consortium", "ask", "network", COUNT, "--left", "east", *SPEND), "no such site"),
        (("consortium", "verify", "network", "none.json"), "cannot be read"),
    ):
        refused = run(*words)
        assert (refused.exit_code, why in refused.stderr) == (1, True), (words, refused.stderr)


def test_agreements_that_cannot_be_are_refused(run: Any, homes: Path) -> None:
    for more, why in (
        (("-o", "stays.toml"), "already exists"),
        (("-o", "a.toml", "--address", "nowhere"), "HOST:PORT"),
        (("-o", "a.toml", "--colluding", "2"), "nothing was agreed"),
        (("-o", "a.toml", "--site", "east"), "is not NAME=KEY"),
        (("-o", "a.toml", "--site", "east=no.pub"), "east: a public key is"),
        (("-o", "a.toml", "--site", "east=south.key.pub"), "two members have one key"),
    ):
        refused = agree(run, *more)
        assert (refused.exit_code, why in refused.stderr) == (1, True), (more, refused.stderr)
        assert not Path("a.toml").exists()
    assert agree(run, "-o", "a.toml", north="south.key.pub").exit_code == 1
    others = {name: SigningKey.new().public_text for name in "abc"}
    paper = ConsortiumPaper(
        name="other", agreement=SiteAgreement(members=others, sites_per_person=1, coordinator=others["a"])
    )
    Path("other.toml").write_text(paper.to_toml(), "utf-8")
    refused = run("site", "join", "north", "other.toml")
    assert (refused.exit_code, "does not name the key of this site" in refused.stderr) == (1, True)


@pytest.mark.parametrize("change", [("true", '"yes"'), ("missing = 0", 'missing = "0"'), ("kind", "sort"), ("=", ":")])
def test_a_paper_in_another_form_is_not_read(change: tuple[str, str]) -> None:
    keys = {name: SigningKey.new().public_text for name in "abc"}
    text = ConsortiumPaper(
        name="net", agreement=SiteAgreement(members=keys, sites_per_person=1, coordinator=keys["a"])
    ).to_toml()
    assert ConsortiumPaper.from_toml(text).to_toml() == text
    with pytest.raises(InvalidInput):
        ConsortiumPaper.from_toml(text.replace(*change))


@pytest.mark.long
def test_a_count_by_files_alone(run: Any, homes: Path) -> None:
    Path("rows.csv").write_text("patient,sex\n" + "".join(f"{n},{'FM'[n % 2]}\n" for n in range(400)), "utf-8")
    for name in ("south", "west"):
        assert run("site", "new", name, "--schema", "stays.toml", *CAP).exit_code == 0
    given = [word for name in ("north", "south", "west") for word in ("--site", f"{name}={name}/ledger.key.pub")]
    made = run(
        "consortium", "agree", "network", *given, "--sites-per-person", "1", "--missing", "1", "-o", "paper.toml"
    )
    assert made.exit_code == 0, made.stderr
    for name in ("north", "south", "west"):
        assert run("site", "join", name, "paper.toml").exit_code == 0
    for _ in range(6):
        waiting = run("consortium", "ask", "network", COUNT, *SPEND)
        assert (waiting.exit_code, "have not answered" in waiting.stderr) == (1, True), waiting.stderr
        for file in sorted(Path("network/outbox").iterdir()):
            answer = Path("network/inbox") / file.with_suffix(".answer").name
            name = file.name.partition("-")[0]
            told = run("site", "answer-file", name, str(file), "rows.csv", "-o", str(answer))
            assert told.exit_code == 0, told.stderr
    done = run("consortium", "ask", "network", COUNT, *SPEND, "--save", "counts.json", "--json")
    assert done.exit_code == 0, done.stderr
    assert abs(json.loads(done.stdout)["columns"]["count"]["values"][0] - 600) < 100
    assert "north, south, west" in run("consortium", "verify", "network", "counts.json").stdout
    foreign = run("site", "answer-file", "south", "paper.toml", "rows.csv", "-o", "x.answer")
    assert (foreign.exit_code, "is not a request" in foreign.stderr) == (1, True)


@pytest.mark.long
def test_a_site_waits_for_its_coordinator(run: Any, homes: Path) -> None:
    assert agree(run, "-o", "agreement.toml", "--address", "127.0.0.1:1").exit_code == 0
    assert run("site", "join", "north", "agreement.toml").exit_code == 0
    Path("rows.csv").write_text("patient,sex\n1,F\n", "utf-8")
    program = "import sys; sys.argv[0] = 'sfumato'; from sfumato.cli import main; main()"
    words = [sys.executable, "-c", program, "site", "answer", "north", "rows.csv"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        said = [started.stdout.readline() for _ in range(2)]
        started.terminate()
    assert "answers the coordinator of net at 127.0.0.1:1" in said[0]
    assert "no connection" in said[1]


TRAIN = ("--persons", "90", "--rounds", "2", *SPEND)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--input", "sex", "--target", "died", "-o", "model.pt"), "choose the ending .safetensors"),
        (("--input", "sex", "--target", "died", "-o", "there.safetensors"), "already exists"),
        (("--input", "sex", "--target", "died", "-o", "a.safetensors", "--save", "a.safetensors"), "the same file"),
        (("--input", "sex", "--target", "died", "-o", "no/a.safetensors"), "no folder"),
        (("--input", "sex", "--target", "dead", "-o", "a.safetensors"), "no column 'dead'"),
        (("--input", "patient", "--target", "sex", "-o", "a.safetensors"), "whose rows they are"),
        (("--input", "sex", "--target", "sex", "-o", "a.safetensors"), "different columns"),
        (("--input", "sex", "--target", "died", "--hidden", "9999999", "-o", "a.safetensors"), "width of a layer"),
        (("--input", "sex", "--target", "died", "--batch", "91", "-o", "a.safetensors"), "at most --persons"),
        (("--input", "sex", "--target", "died", "--lr", "-1", "-o", "a.safetensors"), "--lr lies above 0"),
    ],
)
def test_a_run_that_cannot_be_is_refused_before_anybody_is_asked(
    more: tuple[str, ...], words: str, run: Any, homes: Path
) -> None:
    Path("died.toml").write_text(SCHEMA + '[columns.died]\ntype = "truth"\n', "utf-8")
    Path("there.safetensors").touch()
    assert run("consortium", "new", "other", "--name", "net", "--schema", "died.toml", *CAP).exit_code == 0
    told = run("consortium", "train", "other", *more, *TRAIN)
    assert (told.exit_code, words in " ".join(told.stderr.split())) == (1, True), (told.stderr, told.exception)
    assert not Path("other/runs").exists()


def test_a_site_lists_its_runs_and_leaves_one(run: Any, homes: Path) -> None:
    assert "voted for no training run" in run("site", "runs", "north").stdout
    plan = table_network().trainer().plan(epsilon=1, delta=1e-7, rounds=2)
    folder = Path("north/runs")
    folder.mkdir()
    (folder / f"{plan.digest}.proposal").write_text(plan.to_json(), "utf-8")
    (folder / f"{'0' * 64}.proposal").write_text(plan.to_json(), "utf-8")  # under another name than its own
    (listed,) = json.loads(run("site", "runs", "north", "--json").stdout)["runs"]
    assert (listed["run"], listed["standing"], listed["parameters"]) == (plan.digest, "not charged", 8)
    for wrong in ("", plan.digest[:7], "f" * 64, "../" + plan.digest):
        assert run("site", "leave", "north", wrong).exit_code == 1
    assert run("site", "leave", "north", plan.digest[:12]).exit_code == 0
    assert (folder / f"{plan.digest}.left").exists()
    assert "left: ε = 1" in run("site", "runs", "north").stdout
