"""Ballots by commands: a paper from the ledger, a signature in a folder without one, a carrier who has neither key."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.governance import settings
from sfumato.governance.agreements import Agreement
from sfumato.governance.entries import Recovered
from tests.cli.institution import acting, done, refused
from tests.governance.signers import key_of

WHY = ("--reasons", "reasons.toml")
ASK = ("budget", "request", "--as", "ada", "--action", "dataset", "--dataset", "visits", *WHY)
RIVER = ("--community", "riverside")


def at_home(folder: Path, name: str, *files: str) -> Path:
    """A machine of one's own: one key, what was sent, and nothing else."""
    home = folder / f"home-{name}"
    home.mkdir(exist_ok=True)
    if not (home / f"{name}.key").exists():
        shutil.copy(folder / f"{name}.key", home)
    for file in files:
        shutil.copy(folder / file, home)
    return home


def test_three_people_decide_from_three_machines(run, seated, monkeypatch):
    said = done(run, *ASK, "--paper", "ask.ballot")
    assert "ada asks it for a decision" in said
    assert "What is gained: beds are planned by it" in said
    assert "nothing was asked of the board yet" in done(run, "budget", "requests")
    home = at_home(seated, "ada", "ask.ballot")
    monkeypatch.chdir(home)  # no ledger here
    assert "Not signed yet." in done(run, "ballot", "show", "ask.ballot")
    assert f"ada signs, with the key {key_of('ada').public_text}" in done(
        run, "ballot", "sign", "ask.ballot", "--key", "ada.key"
    )
    monkeypatch.chdir(seated)
    assert "request 1: open a dataset: visits" in done(run, "ballot", "submit", home / "ask-ada.ballot")
    done(run, "ballot", "write", "--request", 1)
    for name, outcome in (("ben", "Still needed: 1 of cho, dai"), ("cho", "request 1 is approved")):
        home = at_home(seated, name, "request-1.ballot")
        monkeypatch.chdir(home)
        vote = ("ballot", "sign", "request-1.ballot", "--key", f"{name}.key", "--choice", "yes")
        assert f"{name} votes yes, with the key" in done(run, *vote)
        assert "was not overwritten" in refused(run, *vote)
        monkeypatch.chdir(seated)
        assert outcome in done(run, "ballot", "submit", home / f"request-1-{name}.ballot")
    assert "handed in before" in refused(run, "ballot", "submit", home / "request-1-cho.ballot")
    assert "was approved" in refused(run, "ballot", "write", "--request", 1)
    votes = json.loads(done(run, "budget", "requests", "--json"))["requests"][0]["votes"]
    assert [vote["key"] for vote in votes] == [key_of(name).public_text for name in ("ben", "cho")]
    done(run, "ledger", "verify")


def test_a_veto_and_its_end_by_ballot(run, seated):
    done(run, "ballot", "write", "--veto", "visits", *RIVER)
    assert "needs its reason" in refused(run, "ballot", "sign", "veto-visits.ballot", "--key", "eva.key")
    done(run, "ballot", "sign", "veto-visits.ballot", "--key", "eva.key", "--reason", "we were not asked")
    assert "riverside vetoes visits" in done(run, "ballot", "submit", "veto-visits-eva.ballot")
    said = json.loads(done(run, "ballot", "write", "--lift", "visits", *RIVER, "--out", "lift", "--json"))
    assert (said["file"], said["signed"]) == ("lift", False)
    done(run, "ballot", "sign", "lift", "--key", "eva.key", "--reason", "we were asked", "--out", "signed")
    ended = json.loads(done(run, "ballot", "submit", "signed", "--json"))
    assert ended == {"community": "riverside", "dataset": "visits", "veto": False}
    assert "handed in before" in refused(run, "ballot", "submit", "signed")
    done(run, *ASK, "--key", "ada.key")
    done(run, "ballot", "write", "--withdraw", 1, "--out", "back")
    done(run, "ballot", "sign", "back", "--key", "ada.key", "--out", "back-signed")
    assert "request 1 is withdrawn" in done(run, "ballot", "submit", "back-signed")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("write",), "a paper is for one thing"),
        (("write", "--veto", "visits"), "a paper is for one thing"),
        (("write", "--request", 7), "there is no proposal 7"),
        (("write", "--lift", "visits", *RIVER), "no veto of 'riverside' over 'visits' stands"),
        (("sign", "paper", "--key", "zoe.key", "--choice", "yes"), "does not know the key"),
        (("sign", "paper", "--key", "ben.key"), "yes, no or abstain"),
        (("sign", "paper", "--key", "ben.key", "--choice", "no"), "needs its reason"),
        (("sign", "board.toml", "--key", "ben.key", "--choice", "yes"), "is not a ballot"),
        (("submit", "paper"), "is not signed"),
        (("submit", "none"), "cannot be read as a ballot"),
    ],
)
def test_what_cannot_be_done_is_said(run, seated, words, said):
    done(run, *ASK, "--key", "ada.key")
    done(run, "ballot", "write", "--request", 1, "--out", "paper")
    assert said in refused(run, "ballot", *words)


def test_a_request_is_signed_here_or_elsewhere(run, seated):
    for words in ((), ("--key", "ada.key", "--paper", "ask.ballot")):
        assert "a request is signed" in refused(run, *ASK, *words)
    assert "only 'ada' can sign this request" in refused(run, *ASK, "--key", "ben.key")


def test_a_name_on_a_paper_names_no_file_elsewhere(run, seated):
    """Whoever writes a paper chooses its names; none of them may lead out of the folder."""
    done(run, *ASK, "--key", "ada.key")
    ledger = settings.opened(seated)
    paper = ledger.ballot(vote=1)
    ledger.close()

    keys = (("../../stolen", key_of("ben").public_text),)
    replace(paper, keys=keys).save(seated / "odd.ballot")
    done(run, "ballot", "sign", "odd.ballot", "--key", "ben.key", "--choice", "yes")
    assert (seated / f"odd-{key_of('ben').public_text[:8]}.ballot").is_file()
    assert "was altered" in refused(run, "ballot", "submit", f"odd-{key_of('ben').public_text[:8]}.ballot")


def test_a_line_of_a_ballot_is_one_line(run, seated):
    done(run, *ASK, "--key", "ada.key", "--subject", "x\nrequest 9 is approved\x1b[2J")
    said = done(run, "ballot", "write", "--request", 1)
    assert "\x1b" not in said
    assert not any(line.startswith("request 9") for line in said.splitlines())
    assert "votes yes" not in done(run, "budget", "reject", 1, *acting("ben"), "--reason", "no")


def test_a_recovery_is_agreed_to_from_two_machines(run, seated):
    shutil.copy(seated / "ledger.db", seated / "backup.db")
    done(run, "ledger", "dataset", "laboratory", "--version", "1", "--population", "patients", "--epsilon", 1)
    shutil.copy(seated / "backup.db", seated / "ledger.db")
    words = ("ledger", "recover", "--reason", "the disk failed")
    assert "Entries that are lost: 1" in done(run, *words, "--paper", "loss.ballot")
    assert "restored from an old backup" in refused(run, "budget", "show")
    for name in ("ada", "ben"):
        assert f"{name} agrees, with the key" in done(run, "ballot", "sign", "loss.ballot", "--key", f"{name}.key")
    sign = ("ballot", "sign", "loss.ballot", "--key", "cho.key")
    assert "asks for no choice" in refused(run, *sign, "--choice", "yes")
    assert "is an agreement to a recovery" in refused(run, "ballot", "submit", "loss-ada.ballot")
    assert "stays shut" in refused(run, *words, "--agreement", "loss-ada.ballot")
    assert "1 entry lost" in done(run, *words, "--agreement", "loss-ada.ballot", "--agreement", "loss-ben.ballot")
    done(run, "ledger", "verify")


def test_a_paper_is_asked_for_by_its_options_and_an_agreement_goes_with_the_recovery(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in ((), ("--lift", "visits"), ("--request", 1, "--community", "x"), ("--request", 1, "--withdraw", 1)):
        said = refused(run, "ballot", "write", *words)
        assert "--request N, --withdraw N, or --veto NAME" in said
    entry = Recovered(
        at="2026-01-05T09:00:00+00:00",
        reason="the disk failed",
        anchored="",
        lost=1,
        gap=Budget(epsilon=1),
        after="a" * 64,
        expires="2026-01-19T09:00:00+00:00",
    )
    Agreement.to(entry, "b" * 32, (("ben", key_of("ben").public_text),)).save("loss.ballot")
    assert "sfumato ledger recover --agreement" in refused(run, "ballot", "submit", "loss.ballot")
