"""Plain edge lists: which lines count, whatever stands in the others, and nothing before the charge."""

import gzip
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.engines.expressions import Type
from sfumato.engines.text_lists import check_text, columns_of_text
from sfumato.errors import EngineFailed, InvalidInput

LINES = b"""# source target
% another comment
0 1
 1\t2 extra words
2
3 x
x 3
4 5 0.25

99999999999999999999 1
-1 +7 1e400
\xff\xfe 1
6 7 many
"""


def file(folder: Path, content: bytes = LINES, name: str = "edges.txt") -> Path:
    place = folder / name
    place.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return place


@pytest.mark.parametrize("name", ["edges.txt", "edges.txt.gz", "EDGES.TXT", "a.edges", "a.edgelist"])
def test_a_line_counts_by_itself(tmp_path: Path, name: str) -> None:
    head, tail, weight = columns_of_text(file(tmp_path, name=name), Type.WHOLE, weighted=True)
    assert list(zip(head.tolist(), tail.tolist(), strict=True)) == [(0, 1), (1, 2), (4, 5), (-1, 7), (6, 7)]
    assert [str(each) for each in weight.tolist()] == ["nan", "nan", "0.25", "inf", "nan"]  # type: ignore[union-attr]


def test_names_are_texts_where_the_nodes_are(tmp_path: Path) -> None:
    head, tail, weight = columns_of_text(file(tmp_path), Type.TEXT, weighted=False)
    assert weight is None
    assert ("3", "x") in zip(head.to_pylist(), tail.to_pylist(), strict=True)
    assert len(head) == 8  # all but comments, short lines and the one that is no text


@pytest.mark.parametrize("kind", [Type.WHOLE, Type.TEXT])
def test_a_file_without_a_line_that_counts_is_an_empty_graph(tmp_path: Path, kind: Type) -> None:
    head, tail, weight = columns_of_text(file(tmp_path, b"# nothing\n"), kind, weighted=True)
    assert (len(head), len(tail), len(weight)) == (0, 0, 0)  # type: ignore[arg-type]


def graph(place: Any, **said: Any) -> Any:
    vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="contacts")
    return vault.graph(place, name="wards", version="1", nodes=9, **said)


def test_nothing_is_opened_before_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, order = graph(file(tmp_path)).edges(), []
    ledger = asked._gate._ledger
    reserve = ledger.reserve

    def reserved(*words: Any, **said: Any) -> Any:
        order.append("charged")
        return reserve(*words, **said)

    def lines(*words: Any, **said: Any) -> Any:
        order.append("read")
        return columns_of_text(*words, **said)

    monkeypatch.setattr(type(ledger), "reserve", lambda _, *words, **said: reserved(*words, **said))
    monkeypatch.setattr("sfumato.graphs.source.columns_of_text", lines)
    # (0, 1), (1, 2), (4, 5), (6, 7): −1 is no node. At ε = 5000 other numbers have a probability below e^−5000.
    assert asked.release(epsilon=5000).values == (4,)
    assert order == ["charged", "read"]


def test_what_a_name_promises_is_checked(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match=r"no file 'none\.txt'.*nothing was spent"):
        graph(tmp_path / "none.txt").edges().release(epsilon=1)
    for name, content in (("a.txt", gzip.compress(LINES)), ("a.txt.gz", LINES)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput, match=r"its name says otherwise.*nothing was spent"):
            check_text(tmp_path / name)
    with pytest.raises(InvalidInput, match="names no columns"):
        graph(file(tmp_path), source="from")


def test_a_packed_file_that_breaks_off_keeps_the_charge_and_quotes_nothing(tmp_path: Path) -> None:
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"7654321 1\n" * 1000)[:-20])
    with pytest.raises(EngineFailed, match="the charge of ε = 1 is kept") as caught:
        graph(tmp_path / "cut.txt.gz").edges().release(epsilon=1)
    assert "7654321" not in str(caught.value)
