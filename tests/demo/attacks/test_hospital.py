"""The register that is attacked: one row for each patient, the same ones each time."""

import numpy as np
import pyarrow.parquet as pq

from sfumato.demo.attacks.hospital import Register, register
from sfumato.demo.network import DIAGNOSES, RARE_DISEASE, REGIONS, SMALL_REGION


def test_every_patient_has_one_row_and_it_is_one_of_their_visits(tmp_path):
    found = register(patients=60, seed=7, folder=tmp_path)
    rows = pq.read_table(tmp_path / "visits.parquet").to_pylist()
    assert found.names == tuple(sorted({row["patient_id"] for row in rows}))
    for place, name in enumerate(found.names):
        mine = [row for row in rows if row["patient_id"] == name]
        first = next((row for row in mine if row["diagnosis"] == RARE_DISEASE), mine[0])
        assert (REGIONS[found.region[place]], DIAGNOSES[found.diagnosis[place]]) == (
            first["region"],
            first["diagnosis"],
        )
        assert found.age[place] == first["age"]
        assert np.isnan(found.pressure[place]) if first["sbp"] is None else found.pressure[place] == first["sbp"]


def test_the_same_seed_gives_the_same_register_and_nothing_is_left_without_a_folder():
    one, two, other = (register(patients=80, seed=seed) for seed in (1, 1, 2))
    assert one.names == two.names
    assert (one.pressure == two.pressure).sum() + np.isnan(one.pressure).sum() == 80
    assert (one.age != other.age).any()


def test_the_small_region_has_one_patient_with_the_rare_disease(hospital: Register):
    small = hospital.within(SMALL_REGION)
    assert 50 < len(small) < 100
    assert (small.diagnosis == DIAGNOSES.index(RARE_DISEASE)).sum() == 1
