"""A question that charges an account of the ledger: within terms and approvals, once, with the numbers."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.institution import acting, done, refused

SCHEMA = """kind = "schema"
version = 1
[dataset]
name = "visits"
version = "1"
[unit]
column = "patient_id"
population = 1000
[limit]
groups = 1
rows_per_group = 1
[columns.patient_id]
type = "text"
[columns.sex]
type = "text"
keys = ["F", "M"]
"""
COUNT = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
USE = ("--purpose", "research/oncology", "--recipient", "public")


def ask(folder: Path, *more: object, text: str = COUNT, epsilon: object = "0.1") -> list[object]:
    rows = pa.table({"patient_id": [f"p{number}" for number in range(40)], "sex": ["F", "M"] * 20})
    pyarrow.parquet.write_table(rows, folder / "visits.parquet")
    (folder / "visits.toml").write_text(SCHEMA, "utf-8")
    return ["query", "visits.parquet", text, "--schema", "visits.toml", "--epsilon", epsilon, *more]


def spent(run) -> list[str]:
    found = json.loads(done(run, "budget", "show", "--json"))
    return [each["spent"]["epsilon"] for part in ("accounts", "populations", "datasets") for each in found[part]]


def test_a_question_charges_every_level_and_a_repeat_charges_nothing(run, here):
    said = done(run, *ask(here, "--ledger", "ledger.toml", "--account", "hospital/oncology", "--save", "c.json"))
    assert "charged: ε = 1/10\n" in said
    assert "ledger: hospital/oncology, which may still ask for ε = 19/10" in said
    assert spent(run) == ["1/10"] * 4
    assert "consistent" in done(run, "verify", "c.json", "--key", "ledger.key.pub")
    again = done(run, *ask(here, "--account", "hospital/oncology"))
    assert "charged: nothing, this is the stored answer" in again
    assert again.splitlines()[:3] == said.splitlines()[:3]
    assert spent(run) == ["1/10"] * 4
    told = json.loads(done(run, *ask(here, "--account", "hospital/oncology", "--json", epsilon="1/5")))
    assert told["ledger"] == {
        "account": "hospital/oncology",
        "left": {"epsilon": "17/10", "delta": "1/1000000"},
        "repeated": False,
    }
    done(run, "ledger", "verify")


def test_what_does_not_fit_is_refused_with_the_numbers_and_nothing_is_spent(run, here):
    said = refused(run, *ask(here, "--account", "hospital/oncology", epsilon=3))
    assert "has ε = 2 left" in said or "ε = 2, δ = 1/1000000 left" in said
    assert "asks for ε = 3" in said
    assert "'hospital/surgery' is not open" in refused(run, *ask(here, "--account", "hospital/surgery"))
    other = (here / "visits.toml").read_text("utf-8").replace('version = "1"', 'version = "9"')
    (here / "other.toml").write_text(other, "utf-8")
    words = ["other.toml" if word == "visits.toml" else word for word in ask(here, "--account", "hospital/oncology")]
    assert "is not declared in the ledger" in refused(run, *words)
    replaced = ask(here, "--account", "hospital/oncology", "--unit-relation", "replace")
    assert "which does not cover it" in refused(run, *replaced)
    assert spent(run) == ["0"] * 4


@pytest.mark.parametrize("alone", [("--ledger", "ledger.toml"), USE[:2], USE[2:], ("--reads", "2026-01-01/2026-01-31")])
def test_what_belongs_to_an_account_needs_one(run, here, alone):
    assert "Say --account" in refused(run, *ask(here, *alone))


@pytest.mark.parametrize("days", ["2026-01-01", "/", "2026-01-01/", "soon"])
def test_days_that_are_none_are_refused(run, here, days):
    assert "is not a period of days" in refused(run, *ask(here, "--account", "hospital/oncology", "--reads", days))


def test_terms_and_board_decide_before_anything_is_read(run, seated):
    charged = ("--account", "hospital/oncology")
    assert "states no purpose" in refused(run, *ask(seated, *charged))
    assert "no approval of 'visits'" in refused(run, *ask(seated, *charged, *USE))
    asked = (*acting("ada"), "--action", "dataset", "--dataset", "visits", "--reasons", "reasons.toml")
    done(run, "budget", "request", *asked)
    done(run, "budget", "approve", 1, *acting("ben"))
    assert "no approval of 'visits'" in refused(run, *ask(seated, *charged, *USE))  # the quorum is not reached
    done(run, "budget", "approve", 1, *acting("cho"))
    marketing = ("--purpose", "marketing", "--recipient", "public")
    assert "this release is for marketing" in refused(run, *ask(seated, *charged, *marketing))
    assert spent(run) == ["0"] * 4
    assert "charged: ε = 1/10" in done(run, *ask(seated, *charged, *USE))
    no = ("--community", "riverside", "--dataset", "visits", "--reason", "we were not asked")
    done(run, "budget", "veto", *acting("eva"), *no)
    assert "under a community's veto" in refused(run, *ask(seated, *charged, *USE, epsilon="0.2"))
    assert spent(run) == ["1/10"] * 4


@pytest.mark.claim("S1-19")
def test_a_question_is_charged_to_the_windows_of_its_days(run, here):
    caps = ("--every", "monthly", "--epsilon", "0.1")
    assert "most_windows" in refused(run, "account", "windows", "hospital/oncology", *caps)
    said = done(run, "account", "windows", "hospital/oncology", *caps, "--most-windows", 3)
    assert "ε = 1/10 for each monthly window, and ε = 3/10 for a person with data in at most 3 of them" in said
    charged = ("--account", "hospital/oncology")
    assert "does not say which days it reads" in refused(run, *ask(here, *charged))
    assert spent(run) == ["0"] * 4
    january = (*charged, "--reads", "2026-01-01/2026-01-31")
    assert "which may still ask for ε = 0" in done(run, *ask(here, *january))
    february = ("--reads", "2026-02-01/2026-02-28")
    other = refused(run, *ask(here, *charged, *february))
    assert "was charged as one that reads 2026-01-01/2026-01-31, and is asked now as one that reads 2026-02-01" in other
    done(run, *ask(here, *january))  # stored, and for the days that it was charged for
    assert spent(run) == ["1/10"] * 4
    assert "'window hospital/oncology 2026-01' has ε = 0 left" in refused(run, *ask(here, *january, epsilon="0.05"))
    done(run, *ask(here, *charged, *february, epsilon="0.05"))
    (found,) = json.loads(done(run, "budget", "show", "--json"))["windows"]
    assert [(each["name"], each["spent"]["epsilon"]) for each in found["charged"]] == [
        ("2026-01", "1/10"),
        ("2026-02", "1/20"),
    ]
    assert (found["most_windows"], found["all_along"]["epsilon"]) == (3, "3/20")
    assert (found["lifetime"]["cap"]["epsilon"], found["lifetime"]["spent"]["epsilon"]) == ("3/10", "3/20")
    shown = " ".join(done(run, "budget", "show").split())
    words = "a person with data in at most 3 windows has lost at most ε = 3/20; one who was there all along has lost"
    assert words in shown
    done(run, "ledger", "verify")
