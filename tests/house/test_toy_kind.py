"""A kind of data that nobody here knows: registered in three lines, it goes the whole way."""

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core import data_kind
from sfumato.core.query import Dataset
from sfumato.core.question import Question
from sfumato.errors import EngineFailed, InvalidInput, Refused, Unsupported
from sfumato.reports.page import page
from sfumato.reports.particulars import particulars
from sfumato.reports.verify import parsed, verify
from sfumato.reports.words import AUDIENCES
from tests.governance.homes import sqlite_home
from tests.house.toy_kind import KIND, Beads

BEAD = sf.record(relation="add/remove")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three lines that register it, undone afterwards."""
    data_kind.kinds()
    monkeypatch.setattr(data_kind, "_known", dict(data_kind._known))
    data_kind.register(KIND)


def opened(**said: object) -> sf.Vault:
    return sf.Vault(unit=BEAD, **{"budget": sf.Budget(epsilon=1), "name": "trial"} | said)  # type: ignore[arg-type]


def jar(vault: sf.Vault, beads: object = "oooo") -> Question:
    question: Question = vault.declare("jars", beads, name="a jar")
    return question


def test_a_release_is_charged_signed_and_verified(tmp_path: Path) -> None:
    vault = opened()
    release = jar(vault).release(epsilon="1/2")
    assert (release.charged, vault.left) == (sf.Budget(epsilon="1/2"), sf.Budget(epsilon="1/2"))
    assert len(release.values) == 1
    path = tmp_path / "beads.json"
    release.certificate.save(path)
    again = sf.load(path, key=vault.public_key)
    assert (again.values, again.statement) == (release.values, release.statement)


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "One number: how many beads the jar “a jar” (version 1) holds."), ("zh", "罐子里的珠子数")],
)
def test_it_is_explained_to_every_reader_in_both_languages(audience: str, language: str, words: str) -> None:
    text = jar(opened()).release(epsilon="1/2").explain(language, audience)
    assert words in text.partition("\n\n")[0]
    assert "±6" in text
    assert "{" not in text


@pytest.mark.long
def test_it_has_a_page_a_table_and_facts_of_its_own() -> None:
    release = jar(opened()).release(epsilon="1/2")
    text = page(release)
    assert "Beads in a jar" in text
    assert "罐中的珠子" in text
    assert f"{release.values[0]:,}" in release._repr_html_()
    assert dict(particulars(release, "en"))["noise"] == "discrete Laplace, scale 2"


def test_the_same_question_is_answered_from_storage() -> None:
    vault = opened()
    question = jar(vault)
    first, second = question.release(epsilon="1/2"), question.release(epsilon="1/2")
    assert (second.values, second.repeated, second.charged) == (first.values, True, sf.Budget.none())
    assert vault.spent == sf.Budget(epsilon="1/2")


def test_the_error_is_known_beforehand() -> None:
    question = jar(opened())
    assert question.preview(epsilon=1).margin == 3
    assert question.epsilon_for(margin=3) <= 1


def test_a_number_that_was_changed_is_found_out() -> None:
    text = jar(opened()).release(epsilon="1/2").certificate.text
    assert verify(parsed(text)).consistent
    changed = parsed(text)
    changed["statement"]["values"] = [10**6]  # type: ignore[index, call-overload]
    assert "statement.values" in {finding.field for finding in verify(changed).findings}


def test_a_ledger_on_disk_keeps_its_charge_and_its_answer(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    ledger = home.create()
    ledger.open_account("trial", unit=BEAD, cap=sf.Budget(epsilon=1), reason="a test")
    ledger.declare_population("beads", unit=BEAD, cap=sf.Budget(epsilon=1), reason="a test")
    dataset = Dataset(name="a jar", edition="1")
    ledger.declare_dataset(dataset, population="beads", cap=sf.Budget(epsilon=1))
    first = jar(sf.Vault(unit=BEAD, ledger=ledger, account="trial")).release(epsilon="1/2")
    again = jar(sf.Vault(unit=BEAD, ledger=home.open(), account="trial")).release(epsilon="1/2")  # another process
    assert (again.values, again.repeated) == (first.values, True)
    assert ledger.balance("trial").spent == sf.Budget(epsilon="1/2")
    assert ledger.verify() == ()


def test_a_jar_that_breaks_is_charged_and_closed() -> None:
    vault = opened()
    question = jar(vault, beads=7)  # has no length
    with pytest.raises(EngineFailed, match="the charge of ε = 1/2 is kept"):
        question.release(epsilon="1/2")
    with pytest.raises(Refused, match="was closed after its engine failed"):
        question.release(epsilon="1/4")
    assert vault.spent == sf.Budget(epsilon="1/2")


def test_another_vault_and_a_subclass_are_refused() -> None:
    class Few(Beads):
        """Says what it likes."""

    vault, dataset = opened(), Dataset(name="a jar", edition="1")
    jar(vault)
    with pytest.raises(InvalidInput, match="there is no jar"):
        opened().release(Beads(dataset=dataset), sf.Budget(epsilon="1/2"))
    with pytest.raises(Unsupported, match="cannot answer Few"):
        vault.release(Few(dataset=dataset), sf.Budget(epsilon="1/2"))
    with pytest.raises(Unsupported, match="a vault keeps no 'crates'"):
        vault.declare("crates")
    assert vault.spent == sf.Budget.none()
