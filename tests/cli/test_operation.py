"""Running a ledger by commands: checkpoints, health, backups and grants, with exit codes that a timer can use."""

import json
import re
from pathlib import Path

import pytest

from sfumato.cli.exits import Exit
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.units import user
from sfumato.governance import settings
from tests.cli.institution import done, refused
from tests.cli.test_ledger_commands import rewritten

VISITS = Dataset(name="visits", edition="1")
ASKED = "the question that nobody should read"


def charged(epsilon: str, *, answered: bool = True) -> None:
    book = settings.opened(None)
    account = book.account("hospital/oncology", unit=user("patient_id", relation="add/remove"))
    reservation = account.reserve(Budget(epsilon=epsilon), datasets=[VISITS])
    if answered:
        account.commit_text(reservation, f"{ASKED} {reservation.number}", '{"secret certificate": 4711}')
    book.close()


def test_verify_remembers_how_far_the_ledger_held(run, here):
    done(run, "key", "new", "auditor.key")
    mine = ("--checkpoint", "seen.json", "--verifier-key", "auditor.key")
    charged("1/10")
    first = done(run, "ledger", "verify", *mine)
    assert "7 entries" in first
    assert "remembered: seen.json" in first
    assert Path("seen.json").stat().st_mode & 0o077 == 0
    charged("1/10")
    assert "2 entries came since the checkpoint at 7, each in its place" in done(run, "ledger", "verify", *mine)
    told = json.loads(done(run, "ledger", "verify", *mine, "--json"))
    assert (told["holds"], told["since"], told["replayed"], told["checkpoint"]) == (True, 9, True, "seen.json")
    assert json.loads(done(run, "ledger", "verify", *mine, "--whole", "--json"))["since"] == 0
    assert "not signed with the key of the verifier" in refused(run, "ledger", "verify", "--checkpoint", "seen.json")
    kept = Path("seen.json").read_text("utf-8")
    assert ASKED not in kept
    charged("1/10")
    rewritten(here / "ledger.db", "UPDATE record SET body = replace(body, '1/10', '1/11') WHERE number = 10")
    refused(run, "ledger", "verify", *mine, code=Exit.FOUND_WRONG)
    assert Path("seen.json").read_text("utf-8") == kept
    Path("seen.json").write_text("{}", "utf-8")
    assert "is not a checkpoint" in refused(run, "ledger", "verify", *mine)


def test_the_chain_alone_is_a_quick_look_that_says_what_it_is(run, here):
    charged("1/10")
    assert "Nothing was replayed" in done(run, "ledger", "verify", "--chain-only")
    rewritten(here / "ledger.db", "UPDATE record SET body = replace(body, '1/10', '1/11') WHERE number = 6")
    refused(run, "ledger", "verify", "--chain-only", code=Exit.FOUND_WRONG)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--chain-only", "--checkpoint", "x"), "replays nothing"),
        (("--whole",), "go with --checkpoint"),
        (("--verifier-key", "x"), "go with --checkpoint"),
        (("--export", "x", "--checkpoint", "y"), "as a whole"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, here, words, why):
    assert why in refused(run, "ledger", "verify", *words)


def test_health_is_good_until_something_needs_attention(run, here):
    assert "nothing needs attention" in done(run, "ledger", "health")
    charged("1/10", answered=False)
    said = done(run, "ledger", "health")
    assert "open charges:  1" in said
    refused(run, "ledger", "health", "--checkpoint", "none.json", code=Exit.ATTENTION)
    done(run, "ledger", "verify", "--checkpoint", "seen.json")
    assert "last verified: 0:0" in done(run, "ledger", "health", "--checkpoint", "seen.json")
    charged("17/10")
    outcome = run("ledger", "health", "--json")
    told = json.loads(outcome.stdout)
    assert outcome.exit_code == Exit.ATTENTION
    assert told["near"] == [{"kind": "account", "name": "hospital/oncology", "used": "9/10"}]
    assert told["attention"] == ["the account 'hospital/oncology' has used 90% of its budget"]
    assert done(run, "ledger", "health", "--near", "91")
    assert ASKED not in outcome.stdout
    assert "4711" not in run("ledger", "health").stdout


def test_metrics_are_openmetrics_without_data(run, here):
    charged("1/10")
    text = done(run, "ledger", "health", "--metrics")
    lines = text.splitlines()
    assert lines[-1] == "# EOF"
    shape = re.compile(r"sfumato_ledger_[a-z_]+(\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\})? [0-9.e+-]+(Inf)?$")
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(families)) == len(families)
    assert all(line.startswith("# ") or shape.match(line) for line in lines)
    assert 'sfumato_ledger_budget_used_ratio{kind="account",name="hospital/oncology"} 0.05' in lines
    assert "sfumato_ledger_up 1" in lines
    assert ASKED not in text
    (here / "ledger.anchor").unlink()
    outcome = run("ledger", "health", "--metrics")
    assert outcome.exit_code == Exit.REFUSED
    assert "sfumato_ledger_up 0" in outcome.stdout.splitlines()


def test_backup_and_restore_by_commands(run, here):
    charged("1/10")
    assert "7 entries" in done(run, "ledger", "backup", "kept.db")
    charged("1/10")
    assert json.loads(done(run, "ledger", "backup", "newer.jsonl", "--json"))["entries"] == 9
    (here / "ledger.db").rename(here / "damaged.db")
    assert "sfumato ledger recover" in refused(run, "ledger", "restore", "kept.db")
    assert not (here / "ledger.db").exists()
    assert "It holds all that was anchored" in done(run, "ledger", "restore", "newer.jsonl")
    done(run, "ledger", "verify")
    (here / "ledger.db").rename(here / "again.db")
    assert "nobody can charge" in done(run, "ledger", "restore", "kept.db", "--older")
    assert "budgets would be refilled" in refused(run, "ledger", "head")
    done(run, "ledger", "recover", "--reason", "the disk failed")
    done(run, "ledger", "verify")


def test_grants_are_sql_to_be_read_first(run):
    said = done(run, "ledger", "grants", "--reader", 'o"hara')
    assert 'GRANT INSERT ON record TO "sfumato_charger";' in said
    assert '"o""hara"' in said
    assert "two roles" in refused(run, "ledger", "grants", "--reader", "x", "--charger", "x")


def test_a_log_is_kept_where_it_is_asked_for(run, here, monkeypatch):
    done(
        run,
        "--log",
        "what.jsonl",
        "ledger",
        "population",
        "others",
        "--unit",
        "user:id",
        "--epsilon",
        1,
        "--reason",
        "x",
    )
    monkeypatch.setenv("SFUMATO_LOG", "what.jsonl")
    done(run, "ledger", "verify")
    monkeypatch.delenv("SFUMATO_LOG")
    done(run, "ledger", "verify")
    lines = [json.loads(line) for line in Path("what.jsonl").read_text("utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["ledger.population", "ledger.verified"]
    assert lines[0]["population"] == "others"
