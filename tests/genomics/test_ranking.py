"""A ranking of supertypes that follows from published frequencies, found again in a public layer of invented donors.

α: the donors are fixed; the noise of a count has a scale of about 6 donors, and 150 would have to be passed.
"""

from itertools import combinations

import pytest

import sfumato as sf
from examples.hla_donors import carriers, donors
from sfumato import genomics
from sfumato.genomics.study import KINDS
from tests import parts

NUMBER, ERROR = 20_000, 0.012


@pytest.mark.claim("S3-20")
@pytest.mark.alpha(1e-10)
def test_the_published_ranking_of_supertypes_is_found_again_within_its_error() -> None:
    path = parts.dataset("hla-supertypes/HLA1supertypes_Sidney2008.csv")
    table = genomics.SupertypeTable.read(path, version="Sidney 2008")
    published = carriers(table)
    vault = sf.Vault(
        unit=sf.user("patient", relation="add/remove"), budget=sf.Budget(epsilon=1), population=10**6, name="donors"
    )
    study = genomics.ImmunopeptidomicsStudy(genotypes=donors(NUMBER), peptides=KINDS["peptides"].empty_table())
    layer = genomics.build_public_layer(
        vault,
        study,
        version="1",
        supertypes=table,
        epsilon=1,
        peptides_per_patient=1,
        peptides=["SIINFEKLL"],
        share_for_peptides=0.1,
    )
    found = {row["supertype"]: row["share"] for row in layer.frequencies().to_pylist()}
    for name, share in published.items():
        assert found[name] == pytest.approx(share, abs=ERROR), name
    apart = [(one, two) for one, two in combinations(published, 2) if published[one] - published[two] > 2 * ERROR]
    assert len(apart) > 60
    assert all(found[one] > found[two] for one, two in apart)
    assert list(found)[:2] == ["B44", "A02"]
