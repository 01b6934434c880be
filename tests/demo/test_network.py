"""The generated network has the shapes that a private release must cope with, and the same ones each time."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.demo.network import DIAGNOSES, RARE_DISEASE, REGIONS, SBP, SEXES, SMALL_REGION, generate
from sfumato.errors import InvalidInput


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    return pq.read_table(generate(folder)).to_pandas()


def test_the_columns_have_plain_types(tmp_path):
    schema = pq.read_schema(generate(tmp_path, patients=5))
    assert {field.name: field.type for field in schema} == {
        "patient_id": pa.string(),
        "region": pa.string(),
        "sex": pa.string(),
        "age": pa.int64(),
        "diagnosis": pa.string(),
        "sbp": pa.float64(),
    }


def test_every_value_is_in_its_public_list(visits):
    assert len(REGIONS) == len(set(REGIONS)) == 12
    assert set(visits["region"]) == set(REGIONS)
    assert set(visits["sex"]) == set(SEXES)
    assert set(visits["diagnosis"]) == set(DIAGNOSES)
    assert visits["age"].between(0, 99).all()
    assert visits["sbp"].dropna().between(*SBP).all()
    assert visits["patient_id"].str.fullmatch(r"P\d{6}").all()


def test_some_patients_come_very_often_and_many_come_once(visits):
    often = visits.groupby("patient_id").size()
    assert len(often) == 20_000
    assert often.median() <= 3
    assert (often == 1).mean() > 0.25
    assert often.max() > 50


def test_some_patients_are_seen_in_several_regions(visits):
    regions = visits.groupby("patient_id")["region"].nunique()
    assert 0.05 < (regions > 1).mean() < 0.5


def test_a_patient_has_one_age_and_one_sex(visits):
    assert (visits.groupby("patient_id")[["age", "sex"]].nunique() == 1).all().all()


def test_one_region_is_small_and_one_disease_is_rare(visits):
    regions, diagnoses = visits["region"].value_counts(), visits["diagnosis"].value_counts()
    assert regions.idxmin() == SMALL_REGION
    assert regions[SMALL_REGION] < regions.drop(SMALL_REGION).min() / 5
    assert diagnoses.idxmin() == RARE_DISEASE
    assert 0 < diagnoses[RARE_DISEASE] < 100
    assert diagnoses["ILI"] > 5000


def test_some_blood_pressures_are_missing(visits):
    assert 0.05 < visits["sbp"].isna().mean() < 0.2


def test_the_same_seed_invents_the_same_people(tmp_path):
    one, two, other = (
        pq.read_table(generate(tmp_path / name, patients=500, seed=seed))
        for name, seed in (("one", 1), ("two", 1), ("other", 2))
    )
    assert one.equals(two)
    assert not one.equals(other)


def test_it_is_quick(tmp_path):
    generate(tmp_path, patients=10)  # imports
    start = time.perf_counter()
    generate(tmp_path)
    assert time.perf_counter() - start < 5  # about 0.3 s; the rest is for a busy machine


@pytest.mark.parametrize("wrong", [{"patients": 0}, {"patients": 1.5}, {"seed": -1}])
def test_nonsense_is_refused(tmp_path, wrong):
    with pytest.raises(InvalidInput):
        generate(tmp_path / "new", **wrong)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="was not written"):
        generate(tmp_path / "file", patients=5)
