"""What a notebook shows: tables that are escaped, load nothing, and hold no value of the data that was not released."""

import re
from html import unescape
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.notebook_card import card
from sfumato.errors import Refused
from sfumato.tables.table import Table
from sfumato.vault import Vault

EVIL = "<img src=x onerror=alert(1)>"
QUOTE = "\"'><script>alert(2)</script>"
SECRET = 724_911
ALLOWED = {"div", "strong", "table", "tbody", "thead", "tr", "th", "td", "p", "caption", "small", "span", "br"}


class Tags(HTMLParser):
    """The tags of a text, and the attributes with which something could be loaded or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.acting: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.acting += [name for name, _ in attrs if name.startswith("on") or name in ("src", "href", "style")]


def vault(name: str = "clinic") -> Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name=name)


def evil_table() -> Table:
    rows = pa.table({"id": [1, 2, SECRET], EVIL: ["a", QUOTE, "a"], "age": [50, SECRET, 60]})
    return vault(f"clinic {EVIL}").table(
        rows,
        name=f"visits {QUOTE}",
        version=EVIL,
        limit=sf.Limit(groups=2, rows_per_group=1),
        keys={EVIL: ["a", QUOTE]},
        bounds={"age": (0, 120)},
    )


def shown(thing: object) -> str:
    text: str = thing._repr_html_()  # type: ignore[attr-defined]
    return text


def judged(text: str) -> None:
    found = Tags()
    found.feed(text)
    assert found.tags <= ALLOWED, found.tags - ALLOWED
    assert found.acting == []
    assert EVIL not in text
    assert "<script" not in text


@pytest.mark.parametrize("what", ["vault", "table", "grouped", "question", "filtered", "preview", "means", "release"])
def test_names_and_labels_are_text_and_never_markup(what: str) -> None:
    table = evil_table()
    question = table.group_by(EVIL).count()
    filtered = table.where(sf.col(EVIL) == QUOTE).agg(n=sf.count(), mean_age=sf.mean("age"))
    thing = {
        "vault": lambda: vault(f"clinic {EVIL}"),
        "table": lambda: table,
        "grouped": lambda: table.group_by(EVIL),
        "question": lambda: question,
        "filtered": lambda: filtered,
        "preview": lambda: question.preview(epsilon=1),
        "means": lambda: filtered.preview(epsilon=1),
        "release": lambda: question.release(epsilon=1),
    }[what]()
    text = shown(thing)
    judged(text)
    if what not in ("preview", "means"):
        assert "&lt;" in text, "the name is there, as text"
    assert str(SECRET) not in text


def test_a_text_that_is_not_escaped_is_noticed() -> None:
    with pytest.raises(AssertionError):
        judged(f"<div>{EVIL}</div>")


def test_what_is_shown_are_the_public_facts() -> None:
    here = vault()
    here_text = unescape(re.sub(r"<[^>]+>", "|", shown(here)))
    assert "Vault 'clinic'" in here_text
    assert "left||ε = 9" in here_text
    table = evil_table().where(sf.col("age") >= 65)
    assert "age &gt;= 65" in shown(table)
    assert "No row was read for this." in shown(table)
    assert "age 0 to 120" in shown(table)
    question = table.count()
    assert "release(epsilon=…)" in shown(question)
    assert shown(question.preview(epsilon=1)).count("<tr>") == 1
    assert "each ±" in shown(question.preview(epsilon=1))


def test_a_preview_says_what_depends_on_the_data() -> None:
    told = shown(evil_table().mean("age").preview(epsilon=1))
    assert "depends on how many rows a group has" in told


def test_showing_reads_and_spends_nothing() -> None:
    here = vault()
    rows = pa.table({"id": [1], "age": [50]})
    table = here.table(rows, name="t", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    for thing in (here, table, table.count(), table.count().preview(epsilon=1)):
        shown(thing)
    assert here.spent == sf.Budget(epsilon=0)


def test_a_vault_whose_ledger_cannot_be_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_vault: Vault) -> sf.Budget:
        raise Refused("the ledger is closed; nothing was done.")

    here = vault()
    assert "left" in shown(here)
    monkeypatch.setattr(Vault, "left", property(closed))
    assert "Its ledger cannot be read now." in shown(here)
    assert "left" not in shown(here)
    assert repr(here).endswith("its ledger cannot be read now")


@pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\u200b"])
def test_signs_that_hide_or_turn_text_are_spelt_out(sign: str) -> None:
    assert sign not in card("a", [("b", f"x{sign}y")], f"z{sign}")
