"""A small institution in a folder, made by commands, and the files that its people wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.governance.signers import key_of

Run = Callable[..., Any]

TERMS = """kind = "terms"
version = 1
dataset = "visits"
purposes = ["research"]
ground = "public task"
condition = "public health"
hipaa = "not subject to HIPAA"
until = 2028-12-31
"""
BOARD = """kind = "board"
version = 1
members = ["ada", "ben", "cho", "dai"]
quorum = 2

[[communities]]
name = "riverside"
representatives = ["eva"]
datasets = ["visits"]

[keys]
ada = "ada.key.pub"
ben = "ben.key.pub"
cho = "cho.key.pub"
dai = "dai.key.pub"
eva = "eva.key.pub"
"""
PEOPLE = ("ada", "ben", "cho", "dai", "eva", "fay", "ivo", "jun", "zoe")
REASONS = """kind = "reasons"
version = 1
benefit = "beds are planned by it"
risk = "a rare case could be guessed"
choice = "±6 is enough"
"""
FILES = {"visits-terms.toml": TERMS, "board.toml": BOARD, "reasons.toml": REASONS}


def written(folder: Path) -> None:
    """Write what people declare; the keys that they keep at home lie beside it."""
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    for name in PEOPLE:
        key_of(name).save(folder / f"{name}.key")


def acting(name: str) -> tuple[str, ...]:
    """Who acts, with which key."""
    return ("--as", name, "--key", f"{name}.key")


def done(run: Run, *words: object) -> str:
    """Run a command that must succeed; what it printed."""
    outcome = run(*words)
    assert outcome.exit_code == 0, (words, outcome.stderr, outcome.exception)
    return str(outcome.stdout)


def refused(run: Run, *words: object, code: int = 1) -> str:
    """Run a command that must be refused with a message; what it said."""
    outcome = run(*words)
    assert outcome.exit_code == code, (words, outcome.stdout)
    assert isinstance(outcome.exception, SystemExit)
    return str(outcome.stderr)


def furnished(run: Run) -> None:
    """A hospital with a department, people and a dataset, in the folder that commands run in."""
    who = ("--unit", "user:patient_id")
    done(run, "ledger", "init")
    done(run, "account", "open", "hospital", *who, "--epsilon", 4, "--delta", "1e-6", "--reason", "for 2026")
    done(run, "account", "open", "hospital/oncology", *who, "--epsilon", 2, "--delta", "1e-6", "--reason", "figures")
    done(run, "ledger", "population", "patients", *who, "--epsilon", 8, "--delta", "1e-6", "--reason", "lifetime")
    done(run, "ledger", "dataset", "visits", "--version", "1", "--population", "patients", "--epsilon", 4)


def governed(run: Run) -> None:
    """Terms and a board for it."""
    done(run, "ledger", "terms", "visits-terms.toml")
    done(run, "budget", "board", "board.toml", "--by", "director", "--reason", "decided")
