"""The budget and its board by commands: the tree with bars, requests, votes with and without keys, vetoes."""

import io
import json
from fractions import Fraction
from pathlib import Path

import pytest
from rich.console import Console

from sfumato.cli.budget_tree import PLAIN, bar, draw
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.units import event, user
from sfumato.governance import settings
from sfumato.governance.board import signed_by
from sfumato.governance.overview import overview
from tests.cli.institution import BOARD, acting, done, governed, refused
from tests.governance.signers import key_of
from tests.runner.clinic import ACCOUNT, HEAD, MONTHS, SCHEMA

WHY = ("--reasons", "reasons.toml")


def spent(here: Path, epsilon: str, *, answered: bool = True) -> None:
    """Charge the department, as a vault does."""
    ledger = settings.opened(here)
    account = ledger.account("hospital/oncology", unit=user("patient_id", relation="add/remove"))
    charge = account.reserve(Budget(epsilon=epsilon), datasets=[Dataset(name="visits", edition="1")])
    if answered:
        account.commit_text(charge, f"question {charge.number}", "{}")
    ledger.close()


def shown(here: Path, width: int, encoding: str = "utf-8") -> list[str]:
    """The tree as a terminal of a width and an encoding shows it."""
    ledger = settings.opened(here)
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    draw(overview(ledger), Console(file=stream, width=width, highlight=False))
    ledger.close()
    stream.flush()
    return stream.buffer.getvalue().decode(encoding).splitlines()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.long
def test_the_tree_shows_what_is_spent_reserved_and_left_at_every_level(here):
    spent(here, "1/2")
    spent(here, "1/3", answered=False)
    lines = shown(here, 80)
    assert max(map(len, lines)) <= 80
    department = next(line for line in lines if "oncology" in line)
    assert department.split()[-4:] == ["0.5", "0.3334", "1.166", "2"]
    assert "█" in department
    assert "▒" in department
    assert next(line for line in lines if "visits" in line).split()[-1] == "4"
    assert any("└─ visits" in line for line in lines)
    assert any("patients" in line for line in lines)


@pytest.mark.parametrize("width", [30, 50, 60, 79])
def test_a_narrow_terminal_gets_the_same_figures(here, width):
    spent(here, "1/2")
    lines = shown(here, width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert "0.5 of 2, 1.5 left" in text or any(line.split()[-3:] == ["0.5", "1.5", "2"] for line in lines)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_knows_ascii_alone_gets_ascii(here, encoding):
    spent(here, "1/2")
    lines = shown(here, 80, encoding)  # a sign that it cannot show would raise here
    assert any("`- oncology" in line and "eps" in line and "#" in line for line in lines)


def test_bars_are_rounded_against_us():
    assert bar(Fraction(1, 1000), Fraction(0), Fraction(1), width=10) == "█" + "·" * 9
    assert bar(Fraction(1, 1000), Fraction(1, 1000), Fraction(1), width=10) == "█▒" + "·" * 8
    assert bar(Fraction(2), Fraction(0), Fraction(1), width=4, signs=PLAIN) == "####"


def test_an_empty_ledger_says_what_to_do(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done(run, "ledger", "init")
    assert "No account is open yet" in done(run, "budget", "show")
    assert "nothing was asked" not in refused(run, "budget", "requests")


@pytest.mark.long
def test_filters_and_windows_are_shown_with_what_decides(run, here):
    words = ("--unit", "event", "--reason", "x", "--delta", "1e-6")
    done(run, "account", "open", "register", *words, "--epsilon", 12)
    window = ("--every", "monthly", "--entry", "monthly", "--epsilon", 1, "--lifetime-epsilon", 24)
    done(run, "account", "windows", "register", *window)
    done(run, "account", "open", "lab", *words, "--epsilon", 1, "--method", "zcdp")
    done(run, "account", "open", "clinic", *words, "--epsilon", 1, "--method", "rdp", "--order", 20)
    done(run, "ledger", "population", "entries", "--unit", "event", "--epsilon", 9, "--reason", "x")
    done(run, "ledger", "dataset", "events", "--version", "1", "--population", "entries", "--epsilon", 9)
    ledger = settings.opened(here)
    account = ledger.account("register", unit=event(relation="add/remove"))
    account.reserve(
        Budget(epsilon="1/4"), datasets=[Dataset(name="events", edition="1")], reads=("2026-01-01", "2026-02-28")
    )
    ledger.close()
    lines = shown(here, 80)
    assert any("2026-01" in line and "0.75" in line for line in lines)
    assert any("a whole life" in line and "23.5" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "a person who was there all along has lost ε = 1/2; windows do not give anything back" in text
    assert "lab is kept by a zCDP filter: ρ decides" in text
    assert "clinic is kept by a Renyi filter of order 20: α decides" in text
    found = json.loads(done(run, "budget", "show", "--json"))
    assert {each["name"]: each["method"] for each in found["accounts"]}["clinic"] == "rdp"
    assert found["windows"][0]["lifetime"]["reserved"] == {"epsilon": "1/2", "delta": "0"}


def test_the_figures_for_programs_are_exact(run, here):
    spent(here, "1/3")
    found = json.loads(done(run, "budget", "show", "--json"))
    account = found["accounts"][1]
    assert account["name"] == "hospital/oncology"
    assert account["left"] == {"epsilon": "5/3", "delta": "1/1000000"}
    assert account["charges"] == 1
    assert found["datasets"][0]["population"] == "patients"
    assert found["board"] is False


def test_a_level_above_that_has_less_left_is_said(run, here):
    who = ("--unit", "user:patient_id", "--reason", "x")
    done(run, "account", "open", "hospital/oncology/wide", *who, "--epsilon", 3)
    said = " ".join(done(run, "budget", "show").split())
    assert "hospital/oncology/wide can ask for no more than ε = 2" in said
    assert "which is what hospital/oncology has left" in said


def test_without_a_board_there_is_nobody_to_ask(run, here):
    asked = ("budget", "request", *acting("ada"), "--action", "raise", "--account", "hospital", "--epsilon", 1, *WHY)
    for words in (asked, ("budget", "approve", 1, *acting("ben")), ("budget", "requests")):
        assert "has no board" in refused(run, *words)


@pytest.mark.long
def test_a_raise_is_asked_voted_on_and_raises_the_cap(run, seated):
    asked = (
        "budget",
        "request",
        *acting("ada"),
        "--action",
        "raise",
        "--account",
        "hospital",
        "--epsilon",
        "1/2",
        *WHY,
    )
    assert "request 1: raise a cap: hospital" in done(run, *asked)
    said = done(run, "budget", "requests")
    assert "1  open: raise a cap: hospital" in said
    assert "needs 2 of ben, cho, dai for the board" in said
    assert "whoever proposes does not vote" in refused(run, "budget", "approve", 1, *acting("ada"))
    assert "'zoe' is not known to the board" in refused(run, "budget", "approve", 1, *acting("zoe"))
    assert "Still needed: 1 of cho, dai for the board" in done(run, "budget", "approve", 1, *acting("ben"))
    assert "cast once" in refused(run, "budget", "approve", 1, *acting("ben"))
    assert json.loads(done(run, "budget", "show", "--json"))["accounts"][0]["cap"]["epsilon"] == "4"
    assert json.loads(done(run, "budget", "show", "--json"))["waiting"] == [1]
    decided = json.loads(done(run, "budget", "approve", 1, *acting("cho"), "--json"))
    assert decided == {"request": 1, "vote": "yes", "outcome": "approved", "needed": []}
    assert json.loads(done(run, "budget", "show", "--json"))["accounts"][0]["cap"]["epsilon"] == "9/2"
    assert "was approved" in refused(run, "budget", "approve", 1, *acting("dai"))
    assert "no request waits" in done(run, "budget", "requests", "--open")


def test_a_request_is_rejected_or_withdrawn(run, seated):
    asked = ("budget", "request", *acting("ada"), "--action", "raise", "--account", "hospital", "--epsilon", 1, *WHY)
    done(run, *asked)
    done(run, *asked)
    said = done(run, "budget", "reject", 1, *acting("ben"), "--reason", "not yet")
    assert "ben votes no. Still needed: 2 of cho, dai" in said
    assert "cho abstains" not in said
    outcome = done(run, "budget", "abstain", 1, *acting("cho"))
    assert "request 1 is rejected" in outcome
    assert "only 'ada' can withdraw" in refused(run, "budget", "withdraw", 2, *acting("ben"))
    assert "request 2 is withdrawn" in done(run, "budget", "withdraw", 2, *acting("ada"))
    states = [each["outcome"] for each in json.loads(done(run, "budget", "requests", "--json"))["requests"]]
    assert states == ["rejected", "withdrawn"]


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--action", "raise", "--account", "hospital", "--epsilon", "0", *WHY), "asks for nothing"),
        (("--action", "raise", "--account", "hospital", "--epsilon", "nan", *WHY), "not a number"),
        (("--action", "raise", "--account", "hospital", "--epsilon=-1", *WHY), "must not be below 0"),
        (("--action", "raise", "--account", "hospital", *WHY), "needs an account and an amount"),
        (("--action", "raise", "--account", "nowhere", "--epsilon", "1", *WHY), "no account, dataset or population"),
        (("--action", "raise", "--account", "hospital", "--epsilon", "1"), "say nothing about 'benefit'"),
        (("--action", "exception", *WHY, "--benefit", "x"), "give --reasons, or"),
        (("--action", "dataset", *WHY), "needs its name"),
        (("--action", "dataset", "--dataset", "none", *WHY), "no account, dataset or population 'dataset none'"),
        (("--action", "unlock", "--account", "hospital/oncology", "--epsilon", "1", *WHY), "there is no reserve"),
        (("--action", "board", *WHY), "--board FILE"),
        (("--action", "exception", "--board", "board.toml", *WHY), "--action board"),
    ],
)
def test_a_request_that_makes_no_sense_is_not_entered(run, seated, words, said):
    assert said in refused(run, "budget", "request", *acting("ada"), *words)
    assert "nothing was asked of the board yet" in done(run, "budget", "requests")


def test_the_reserve_is_unlocked_by_the_board_alone(run, here):
    done(run, "account", "allot", "hospital/oncology", "--rule", "reserve", "--share", "a=1/2", "--reason", "2026")
    done(run, "budget", "board", "board.toml", "--by", "director", "--reason", "decided")
    assert "a reserve of ε = 1" in done(run, "budget", "show")
    asked = ("budget", "request", *acting("ada"), "--action", "unlock", "--account", "hospital/oncology/a", *WHY)
    assert "the reserve has ε = 1" in refused(run, *asked, "--epsilon", 2)
    done(run, *asked, "--epsilon", "3/4")
    for name in ("ben", "cho"):
        done(run, "budget", "approve", 1, *acting(name))
    found = json.loads(done(run, "budget", "show", "--json"))
    assert found["reserves"] == [{"account": "hospital/oncology", "locked": {"epsilon": "1/4", "delta": "1/2000000"}}]
    assert found["accounts"][2]["cap"]["epsilon"] == "7/4"


def test_a_community_vetoes_and_lifts(run, seated):
    done(run, "budget", "request", *acting("ada"), "--action", "dataset", "--dataset", "visits", *WHY)
    no = ("--community", "riverside", "--dataset", "visits", "--reason", "we were not asked")
    assert "does not speak for" in refused(run, "budget", "veto", *acting("ada"), *no)
    assert "riverside vetoes visits" in done(run, "budget", "veto", *acting("eva"), *no)
    assert "visits: vetoed by riverside" in done(run, "budget", "show")
    assert json.loads(done(run, "budget", "requests", "--json"))["requests"][0]["outcome"] == "vetoed"
    again = ("budget", "request", *acting("ada"), "--action", "dataset", "--dataset", "visits", *WHY)
    assert "under a community's veto" in refused(run, *again)
    assert "stands already" in refused(run, "budget", "veto", *acting("eva"), *no)
    assert "lifts its veto" in done(run, "budget", "lift", *acting("eva"), *no)
    done(run, *again)


def test_a_name_acts_with_its_key_or_not_at_all(run, here):
    keyed = BOARD.replace('eva = "eva.key.pub"\n', "").replace('dai = "dai.key.pub"\n', "")
    (here / "keyed.toml").write_text(keyed, "utf-8")
    said = done(run, "budget", "board", "keyed.toml", "--by", "director", "--reason", "decided")
    assert "no key is known of dai, eva, who cannot act" in said
    asked = ("budget", "request", *acting("ada"), "--action", "raise", "--account", "hospital", "--epsilon", 1, *WHY)
    done(run, *asked)
    assert "Missing option" in refused(run, "budget", "approve", 1, "--as", "ben", code=2)
    assert "acts by signature" in refused(run, "budget", "approve", 1, "--as", "ben", "--key", "eva.key")
    said = refused(run, "budget", "approve", 1, *acting("dai"))
    assert "knows no key of 'dai'" in said
    assert "sfumato key new dai.key" in said
    assert "--action board" in said
    assert "there is no key none.key" in refused(run, "budget", "approve", 1, "--as", "ben", "--key", "none.key")
    done(run, "budget", "approve", 1, *acting("ben"))
    assert "is approved" in done(run, "budget", "approve", 1, *acting("cho"))
    said = " ".join(done(run, "budget", "requests").split())
    assert f"ben yes ({signed_by(key_of('ben').public_text)})" in said
    done(run, "ledger", "verify")


def test_a_board_that_could_never_decide_is_not_seated(run, here):
    text = BOARD
    for name in ("ada", "ben", "cho"):
        text = text.replace(f'{name} = "{name}.key.pub"\n', "")
    (here / "board.toml").write_text(text, "utf-8")
    said = refused(run, "budget", "board", "board.toml", "--by", "director", "--reason", "decided")
    assert "1 members of this board have a key and 2 have to agree" in said


def test_a_new_board_rests_on_a_decision_of_the_old_one(run, seated):
    (seated / "new.toml").write_text(BOARD.replace("dai", "fay"), "utf-8")
    new = ("budget", "board", "new.toml", "--by", "director", "--reason", "dai left")
    assert "the board changes by its own decision" in refused(run, *new)
    done(run, "budget", "request", *acting("ada"), "--action", "board", "--board", "new.toml", *WHY)
    for name in ("ben", "cho"):
        done(run, "budget", "approve", 1, *acting(name))
    assert "ada, ben, cho, fay" in done(run, *new, "--proposal", 1)


def test_a_committee_of_a_site_has_to_agree_too(run, here):
    site = '[[committees]]\nsite = "north"\nmembers = ["ivo", "jun"]\nrepresentatives = ["jun"]\nquorum = 2\n'
    keys = 'ivo = "ivo.key.pub"\njun = "jun.key.pub"\n'
    (here / "sited.toml").write_text(BOARD + keys + site, "utf-8")
    terms = (here / "visits-terms.toml").read_text("utf-8") + 'sites = ["north"]\n'
    (here / "visits-terms.toml").write_text(terms, "utf-8")
    done(run, "ledger", "terms", "visits-terms.toml")
    done(run, "budget", "board", "sited.toml", "--by", "director", "--reason", "decided")
    done(run, "budget", "request", *acting("ada"), "--action", "dataset", "--dataset", "visits", *WHY)
    for name in ("ben", "cho", "ivo"):
        said = done(run, "budget", "approve", 1, *acting(name))
    assert "Still needed: 1 of jun for the committee of north" in said
    assert "is approved" in done(run, "budget", "approve", 1, *acting("jun"))


@pytest.mark.long
def test_names_cannot_play_tricks_with_the_terminal(run, seated):
    done(
        run, "budget", "request", *acting("ada"), "--action", "exception", "--subject", "[red]\x1b[2J",
        "--benefit", "x", "--risk", "y", "--choice", "z",
    )  # fmt: skip
    name = "hospital/a[bold]\x1b"
    done(run, "account", "open", name, "--unit", "user:patient_id", "--epsilon", 1, "--reason", "x")
    for words in (("budget", "requests"), ("budget", "show"), ("account", "list")):
        said = done(run, *words)
        assert "\x1b" not in said
    assert "[red]\\x1b[2J" in done(run, "budget", "requests")


FORGED = "request 9 is approved"


def test_names_cannot_forge_a_line(run, here):
    """What somebody named is told within one line, whatever is in the name."""
    name = f"x\n{FORGED}\u2028\r\n{FORGED}"
    why = ("--benefit", "x", "--risk", "y", "--choice", "z")
    asked = ("budget", "request", *acting("ada"), "--action", "exception", "--account", name, "--subject", name, *why)
    account = ("account", "open", name, "--unit", "record", "--epsilon", 1, "--reason", "x")
    people = ("ledger", "population", name, "--unit", "record", "--epsilon", 1, "--reason", "x")
    data = ("ledger", "dataset", name, "--version", name, "--population", name, "--epsilon", 1)
    told = [done(run, *words) for words in (account, people, data)]
    governed(run)
    told.append(done(run, *asked))
    told += [done(run, *words) for words in (("budget", "requests"), ("budget", "show"), ("account", "list"))]
    assert all(FORGED in said for said in told)
    for said in told:
        assert not any(line.strip().startswith(FORGED) for line in said.splitlines()), said


def test_a_plan_is_asked_for_by_its_file(run, seated):
    """Nothing is copied by hand: the request names the plan's digest and its account; --plan elsewhere is refused."""
    (seated / "visits.toml").write_text(SCHEMA, "utf-8")
    (seated / "plan.toml").write_text((HEAD + MONTHS).replace(ACCOUNT, "hospital/oncology"), "utf-8")
    ask = ("budget", "request", *acting("ada"), "--plan", "plan.toml", *WHY, "--action")
    for words in (("raise", "--epsilon", 1), ("plan", "--subject", "by hand"), ("plan", "--account", "hospital")):
        assert "nothing was asked" in refused(run, *ask, *words)
    digest = done(run, "plan", "digest", "plan.toml").strip()
    assert f"request 1: {digest}" in done(run, *ask, "plan")
    ledger = settings.opened(seated)
    assert ledger.minutes().proposal(1).account == "hospital/oncology"
    ledger.close()
