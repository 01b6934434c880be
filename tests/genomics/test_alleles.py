"""Names of alleles as laboratories write them, and supertypes by a table with a version."""

import string
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from sfumato.errors import InvalidInput
from sfumato.genomics import Allele, HLATyping, SupertypeTable
from sfumato.genomics.alleles import AlleleFault
from tests.parts import dataset

SIDNEY = "hla-supertypes/HLA1supertypes_Sidney2008.csv"
SMALL = SupertypeTable(version="small", digest="", of={"A*02:01": "A02", "A*02:06": "A02", "A*01:01": "A01"})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HLA-A*02:01", "A*02:01"),
        ("a*02:01", "A*02:01"),
        ("A0201", "A*02:01"),
        ("A*0201", "A*02:01"),
        ("A*24020102L", "A*24:02:01:02L"),
        ("HLA-A*24:02:01:02L", "A*24:02:01:02L"),
        ("B*15:220", "B*15:220"),
        ("B*9502", "B*15:102"),
        ("A*9202", "A*02:102"),
        ("A*01:11N", "A*01:11N"),
        ("A*02:01:01G", "A*02:01:01G"),
        ("DRB1*15:01P", "DRB1*15:01P"),
        ("HLA-DQB1*06:02", "DQB1*06:02"),
        ("B*07", "B*07"),
        ("Cw*0702", "C*07:02"),
        ("HLA-Cw07:02", "C*07:02"),
    ],
)
def test_names_of_today_and_of_before(text: str, name: str) -> None:
    assert Allele.read(text).name == name


@pytest.mark.claim("S3-25")
@pytest.mark.parametrize(
    "text", ["", "A**", "A*2:1", "Z*02:01", "A*02:01:01:01:01", "A*02:01X", "A*02:AB", "A*٠٢:٠١", "patient 7"]
)
def test_what_is_no_allele_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Allele.read(text)
    assert text not in str(refused.value) or not text
    assert isinstance(HLATyping.read(text), AlleleFault)


@given(some.text(alphabet=string.printable + "é中", max_size=60))
def test_any_text_is_a_typing_or_a_fault_and_reads_again_as_itself(text: str) -> None:
    found = HLATyping.read(text)
    if isinstance(found, HLATyping):
        for each in found.alternatives:
            assert Allele.read(each.name) == each


def test_ambiguous_typings_have_a_supertype_where_all_alternatives_agree() -> None:
    assert SMALL.supertype("A*02:01/02:06") == "A02"
    assert SMALL.supertype("A*02:01/A*02:06") == "A02"
    assert SMALL.supertype("A*02:01/01:01") is None
    assert SMALL.supertype("A*02:01/B*07:02") is None
    assert SMALL.supertype("A*02:01N") == "not expressed"
    assert SMALL.supertype("A*02:01N/02:06") is None
    assert SMALL.supertype("/".join(["A*02:01"] * 65)) is None


@pytest.mark.claim("S3-25")
def test_unknown_alleles_are_counted_and_refused_row_by_row() -> None:
    column = pa.chunked_array([["A*02:01", "nobody's", None], ["A*02:XY", "A*99:99", "A*02:01/01:01", "A*02:06"]])
    found = SMALL.assign(column)
    assert found.rows.to_pylist() == ["A02", None, None, None, None, None, "A02"]
    assert found.refused == {"ambiguous": 1, "code": 1, "malformed": 1, "missing": 1, "unknown allele": 1}
    assert "nobody" not in repr(found)
    assert "1" not in repr(found)


@pytest.mark.claim("S3-25")
def test_all_names_of_the_published_table_are_read() -> None:
    table = SupertypeTable.read(dataset(SIDNEY), version="Sidney 2008")
    assert len(table.of) == 945
    assert table.names[:5] == ("A01", "A01 A03", "A01 A24", "A02", "A03")
    assert table.digest == "2587294956c384c9befadba3cab7501ec2c5694adc58e9079e3c35caf98aaa35"
    assert (table.supertype("HLA-A*02:01:01"), table.supertype("B*07:02")) == ("A02", "B07")


@pytest.mark.parametrize("text", ["allele,group\nA*0201,A02\n", "allele,supertype\nfoo,A02\n", ""])
def test_a_table_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        SupertypeTable.read(path, version="1")


def test_an_allele_in_two_supertypes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("allele,supertype\nA*0201,A02\nA*02:01,A03\n")
    with pytest.raises(InvalidInput, match="line 3"):
        SupertypeTable.read(path, version="1")
