"""The public layer of a study: what a patient moves, what is refused, and what it says, through vault and ledger."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.genomics import ImmunopeptidomicsStudy, PublicLayer, SupertypeTable, build_public_layer
from sfumato.genomics.study import KINDS

TABLE = SupertypeTable(
    version="small", digest="d", of={"A*02:01": "A02", "A*01:01": "A01", "B*07:02": "B07", "B*44:02": "B44"}
)
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
PEPTIDES = [f"SIINFEK{one}{two}" for one in LETTERS for two in LETTERS][:20]
CERTAIN = 4000  # noise at this ε has a probability below 1e-100
PERSON = sf.user("patient", relation="add/remove")
ALLELES = ("A*02:01", "A*01:01", "B*07:02", "B*44:02")


def study(patients: dict[str, int]) -> ImmunopeptidomicsStudy:
    """Patients with all four alleles, and so many peptides each."""
    names = [name for name, number in patients.items() for _ in range(number)]
    places = [place % len(PEPTIDES) for number in patients.values() for place in range(number)]
    return ImmunopeptidomicsStudy(
        genotypes=pa.table(
            {
                "patient": [name for name in patients for _ in ALLELES],
                "gene": [allele[0] for _ in patients for allele in ALLELES],
                "allele": [allele for _ in patients for allele in ALLELES],
            }
        ),
        peptides=pa.table(
            {
                "patient": names,
                "peptide": [PEPTIDES[place] for place in places],
                "allele": [ALLELES[(place + turn) % 4] for turn, place in enumerate(places)],
            }
        ),
    )


def layer(of: ImmunopeptidomicsStudy, unit: object = PERSON, epsilon: object = CERTAIN, **more: object) -> PublicLayer:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=CERTAIN, delta=1e-6), population=1000, name="study")  # type: ignore[arg-type]
    asked = {"version": "1", "supertypes": TABLE, "peptides_per_patient": 5, "peptides": PEPTIDES, **more}
    return build_public_layer(vault, of, epsilon=epsilon, **asked)  # type: ignore[arg-type]


def moved(first: Sequence[object], second: Sequence[object]) -> int:
    return sum(abs(int(one) - int(two)) for one, two in zip(first, second, strict=True))  # type: ignore[call-overload]


def l1(release: Release) -> Fraction:
    found = release.statement.sensitivity.l1
    assert found is not None
    return Fraction(found.value)


@pytest.mark.claim("S3-20")
def test_of_500_peptides_of_one_patient_k_enter_the_counts() -> None:
    others = {f"p{number}": 3 for number in range(4)}
    without, within = layer(study(others)), layer(study({**others, "much": 500}))
    assert moved(without.peptides.values, within.peptides.values) == 5
    assert moved(without.supertypes.values, within.supertypes.values) == 4
    assert moved(without.patients.values, within.patients.values) == 1
    assert l1(within.peptides) == 5


@pytest.mark.claim("S3-20")
def test_fewer_supertypes_of_a_patient_count_where_fewer_are_allowed() -> None:
    """Which two of a patient's four count differs between vaults, so that totals are compared."""
    for patients in ({"a": 1}, {"a": 1, "b": 1}):
        numbers = [int(each) for each in layer(study(patients), supertypes_per_patient=2).supertypes.values]  # type: ignore[call-overload]
        assert sum(numbers) == 2 * len(patients)
        assert max(numbers) <= len(patients)


@pytest.mark.claim("S3-18")
def test_a_family_is_a_unit_and_noise_grows_with_its_size() -> None:
    person, family = (layer(study({"a": 2}), unit) for unit in (PERSON, sf.family(4, "patient", relation="add/remove")))
    for name in ("patients", "supertypes", "peptides"):
        ones, fours = (l1(getattr(each, name)) for each in (person, family))
        assert fours == 4 * ones
    assert "4" in str(family.peptides.statement.unit)


@pytest.mark.claim("S3-20")
def test_numbers_without_noise_are_refused() -> None:
    made = layer(study({"a": 2}))
    plains: list[Any] = [pa.table({"supertype": ["A02"], "persons": [7]}), None, [7]]
    for plain in plains:
        with pytest.raises(Refused, match="without noise are refused"):
            PublicLayer(
                version="1",
                table=TABLE,
                patients=made.patients,
                supertypes=plain,
                peptides=made.peptides,
            )
    for epsilon in (0, -1, float("inf"), None):
        with pytest.raises(SfumatoError):
            layer(study({"a": 2}), epsilon=epsilon)


@pytest.mark.claim("S3-23")
def test_the_study_has_three_kinds_of_data_and_the_layer_no_patient(tmp_path: Path) -> None:
    assert set(KINDS) == {"genotypes", "mutations", "peptides"}
    assert all("patient" in columns.names for columns in KINDS.values())
    folder = layer(study({"patient-seven": 2})).save(tmp_path / "public")
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        "frequencies.csv",
        "layer.json",
        "patients.certificate.json",
        "patients.csv",
        "peptides.certificate.json",
        "peptides.csv",
        "supertypes.certificate.json",
        "supertypes.csv",
    ]
    assert all("patient-seven" not in path.read_text() for path in folder.iterdir())
    for path in folder.glob("*.csv"):
        assert "patient" not in path.read_text().splitlines()[0].replace('"', "").split(",")
    assert "patient-seven" not in repr(study({"patient-seven": 2}))


@pytest.mark.claim("S3-25")
def test_frequencies_come_back_from_the_layer() -> None:
    found = layer(study({f"p{number}": 1 for number in range(50)})).frequencies().to_pylist()
    shares = {row["supertype"]: row["share"] for row in found}
    assert shares == {"A01": 1.0, "A02": 1.0, "B07": 1.0, "B44": 1.0, "not expressed": 0.0}
    assert all(row["share_low"] <= row["share"] <= row["share_high"] for row in found)


def test_peptides_that_enough_patients_share_are_found_for_a_delta() -> None:
    of = study({f"p{number}": 1 for number in range(40)})
    found = layer(of, epsilon=40, peptides=None, delta="1/10000000").peptides.to_arrow()
    assert PEPTIDES[0] in found["peptide"].to_pylist()
    with pytest.raises(InvalidInput, match="needs delta"):
        layer(of, epsilon=40, peptides=None)


def test_all_three_charges_are_held_against_the_budget_before_the_first() -> None:
    vault = sf.Vault(unit=PERSON, budget=sf.Budget(epsilon=1), population=1000, name="study")
    with pytest.raises(SfumatoError):
        build_public_layer(
            vault,
            study({"a": 1}),
            version="1",
            supertypes=TABLE,
            epsilon="11/10",
            peptides_per_patient=2,
            peptides=PEPTIDES,
        )
    assert vault.spent.epsilon == 0


@pytest.mark.parametrize("peptides", ["SIINFEKLL", [], ["SIINFEKLL", None], [7]])
def test_a_list_of_peptides_is_one_of_texts(peptides: object) -> None:
    with pytest.raises(InvalidInput, match="list of texts"):
        layer(study({"a": 1}), peptides=peptides)


@pytest.mark.parametrize("unit", [sf.record(relation="add/remove"), sf.user("other", relation="add/remove")])
def test_another_unit_than_patients_is_refused(unit: object) -> None:
    with pytest.raises(Refused, match="column patient"):
        layer(study({"a": 1}), unit)


def test_a_study_without_its_columns_is_refused() -> None:
    with pytest.raises(InvalidInput, match="genotypes of a study have the columns"):
        ImmunopeptidomicsStudy(genotypes=pa.table({"patient": ["a"]}), peptides=study({"a": 1}).peptides)
    foul = pa.table({"patient": ["a"], "gene": ["A"], "allele": [[1]]})
    with pytest.raises(InvalidInput, match="another type"):
        ImmunopeptidomicsStudy(genotypes=foul, peptides=study({"a": 1}).peptides)
