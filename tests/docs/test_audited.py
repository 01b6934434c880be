"""The page of all ways out says what was found, about everything that is shipped."""

from sfumato.audit.ways_shipped import WAYS
from tests.docs.audited import PAGE, TABLES, measured, written


def test_the_tables_are_those_of_the_result_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page
    assert all(table() in page for table in TABLES.values())
    assert "no proof" in page


def test_every_way_out_is_in_it_and_none_was_refuted_but_all_broken_copies_were() -> None:
    found = measured()
    honest = {row["name"]: row for row in found if row["flaw"] is None}
    broken = {row["name"]: row for row in found if row["flaw"] is not None}
    assert set(honest) == set(broken) == {way.name for way in WAYS}
    assert not [name for name, row in honest.items() if row["refuted"]]
    assert not [name for name, row in broken.items() if not row["refuted"]]


def test_counts_and_gaussian_noise_are_proven_almost_as_far_as_they_claim() -> None:
    honest = {row["name"]: row for row in measured() if row["flaw"] is None}
    assert honest["counts"]["point"] >= 0.95
    assert honest["counts of a person in eight groups, Gaussian noise"]["by_curve"] >= 0.9
    assert sum(1 - row["confidence"] for row in measured()) <= 0.01 + 1e-9
