"""Tables of genotypes: a row for each copy or for each patient, and what is no row of anybody."""

from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.errors import InvalidInput
from sfumato.genomics import ImmunopeptidomicsStudy, SupertypeTable, build_public_layer, read_genotypes
from sfumato.genomics.study import KINDS
from sfumato.vault import Vault


def rows(path: Path, text: str) -> list[tuple[str, str, str]]:
    path.write_text(text)
    found = read_genotypes(path).rows
    return [tuple(row.values()) for row in found.to_pylist()]


def test_long_and_wide_tables_give_the_same_rows(tmp_path: Path) -> None:
    long = "patient,allele\np1,A*02:01\np1,HLA-A*01:01\n p1 ,B*0702\np1,B*44:02\n"
    wide = "patient\tHLA-A_1\tA2\tB.1\tb2\tnote\np1\t02:01\tHLA-A*01:01\tB*0702\t44:02\tx\n"
    found = rows(tmp_path / "long.csv", long)
    assert found == [("p1", "A", "A*02:01"), ("p1", "A", "A*01:01"), ("p1", "B", "B*0702"), ("p1", "B", "B*44:02")]
    assert sorted(rows(tmp_path / "wide.tsv", wide)) == sorted(found)


def test_what_is_nobodys_is_counted_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("patient,allele\n,A*02:01\np1,\np2,A*01:01\np3\n")
    read = read_genotypes(path)
    assert read.rows["patient"].to_pylist() == ["p2"]
    assert read.refused == {"malformed line": 1, "row of nobody": 1}


@pytest.mark.parametrize("header", ["who,allele", "patient,typing", "patient"])
def test_tables_without_their_columns_are_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(header + "\n")
    with pytest.raises(InvalidInput, match="nothing was read"):
        read_genotypes(path)


def test_blanks_around_a_name_make_no_second_patient() -> None:
    genotypes = pa.table({"patient": ["p1", " p1 ", "  "], "gene": ["A"] * 3, "allele": ["A*02:01"] * 3})
    study = ImmunopeptidomicsStudy(genotypes=genotypes, peptides=KINDS["peptides"].empty_table())
    assert study.genotypes["patient"].to_pylist() == ["p1", "p1", None]


def test_a_layer_of_nothing_is_refused_in_words() -> None:
    from sfumato import Budget, user

    vault = Vault(unit=user("patient", relation="add/remove"), budget=Budget(epsilon=1), name="study")
    table = SupertypeTable(version="1", digest="", of={"A*02:01": "A02"})
    for study, supertypes in ((None, table), (pa.table({}), table), (None, None)):
        with pytest.raises(InvalidInput, match="nothing was read or spent"):
            build_public_layer(
                vault, study, version="1", supertypes=supertypes, epsilon=1, delta=1e-7, peptides_per_patient=1
            )
    assert vault.spent.epsilon == 0
