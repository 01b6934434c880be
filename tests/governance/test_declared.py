"""Board, terms and reasons as people write them down: read strictly, refused with the name of the file."""

from pathlib import Path

import pytest

from sfumato.core.signature import SigningKey
from sfumato.errors import SfumatoError
from sfumato.governance.board import Community
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.declared import board_of, reasons_of, terms_of

BOARD = """kind = "board"
version = 1
members = ["ada", "ben", "cho"]
quorum = 2
[keys]
ben = "ben.key.pub"
[[committees]]
site = "north"
members = ["hana", "ivo"]
representatives = ["ivo"]
quorum = 2
[[communities]]
name = "riverside"
representatives = ["eva"]
datasets = ["visits"]
"""
TERMS = """kind = "terms"
version = 1
dataset = "visits"
purposes = ["research"]
ground = "consent"
condition = "explicit consent"
hipaa = "not subject to HIPAA"
consent = ["research/oncology"]
consent_text = "form 3"
until = 2028-12-31
sites = ["north"]
"""
REASONS = """kind = "reasons"
version = 1
benefit = "beds"
risk = "a rare case"
choice = "±6"
"""


def written(folder: Path, text: str) -> Path:
    place = folder / "said.toml"
    place.write_text(text, "utf-8")
    return place


def test_a_board_with_everything(tmp_path):
    key = SigningKey.new()
    key.save(tmp_path / "ben.key")
    board = board_of(written(tmp_path, BOARD))
    assert (board.members, board.quorum) == (("ada", "ben", "cho"), 2)
    assert board.keys == (("ben", key.public_text),)
    assert board.committee("north").representatives == ("ivo",)
    assert board.communities == (Community(name="riverside", representatives=("eva",), datasets=("visits",)),)
    as_digits = BOARD.replace("ben.key.pub", key.public_text)
    assert board_of(written(tmp_path, as_digits)) == board
    asking = board_of(written(tmp_path, BOARD.replace("quorum = 2", 'quorum = 2\nproposers = ["analyst"]', 1)))
    assert (asking.proposers, "analyst" in asking.people) == (("analyst",), True)


def test_terms_with_a_day_of_toml_or_as_text(tmp_path):
    wanted = Terms(
        dataset="visits",
        purposes=("research",),
        ground=Ground.CONSENT,
        condition=SpecialCategory.EXPLICIT_CONSENT,
        hipaa=HipaaBasis.NOT_SUBJECT,
        consent=("research/oncology",),
        consent_text="form 3",
        forbidden=(),
        recipients=(),
        until="2028-12-31",
        sites=("north",),
    )
    assert terms_of(written(tmp_path, TERMS)) == wanted
    assert terms_of(written(tmp_path, TERMS.replace("2028-12-31", '"2028-12-31"'))) == wanted


def test_reasons(tmp_path):
    assert reasons_of(written(tmp_path, REASONS)).choice == "±6"


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (board_of, TERMS, 'does not say kind = "board"'),
        (board_of, BOARD.replace("version = 1", "version = 2"), "version = 1"),
        (board_of, BOARD.replace("quorum = 2\n[keys]", "[keys]"), "quorum is missing"),
        (board_of, BOARD.replace("quorum = 2\n[keys]", "quorum = 1\n[keys]"), "at least 2"),
        (board_of, BOARD.replace('"ben", ', '"ben", 3, '), "list of texts"),
        (board_of, BOARD.replace("site =", "place ="), "'place' is an unknown field"),
        (board_of, BOARD.replace("ben.key.pub", "absent.pub"), "public key of 'ben'"),
        (board_of, BOARD.replace("[[committees]]", "[committees]"), "under \\[\\[committees\\]\\]"),
        (board_of, "kind = ", "not TOML"),
        (board_of, BOARD.replace("version = 1", "version = true"), "version = 1"),
        (board_of, BOARD.replace("quorum = 2", f"quorum = {'9' * 5000}"), "endless number"),
        (board_of, BOARD.replace("quorum = 2", f"quorum = 0x{'f' * 5000}"), "quorum must be a whole number"),
        (board_of, BOARD.replace("ben.key.pub", "x" * 5000), "public key of 'ben'"),
        (terms_of, TERMS.replace("2028-12-31", "9" * 5000), "endless number"),
        (terms_of, TERMS.replace('"consent"', '"custom"'), "Say one of 'consent', 'contract'"),
        (terms_of, TERMS.replace('"visits"', "3"), "dataset must be a text"),
        (terms_of, TERMS.replace("2028-12-31", '"soon"'), "not a day"),
        (terms_of, TERMS.replace("2028-12-31", "2028-12-31T10:00:00"), "not a day"),
        (terms_of, TERMS + 'colour = "red"', "'colour' is an unknown field"),
        (reasons_of, REASONS.replace('"beds"', '" "'), "say nothing about 'benefit'"),
        (reasons_of, REASONS.replace('risk = "a rare case"\n', ""), "risk is missing"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_name_of_the_file(tmp_path, read, text, words):
    SigningKey.new().save(tmp_path / "ben.key")
    with pytest.raises(SfumatoError, match=words) as refused:
        read(written(tmp_path, text))
    assert "said.toml" in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SfumatoError, match="No such file"):
        board_of(tmp_path / "none.toml")
