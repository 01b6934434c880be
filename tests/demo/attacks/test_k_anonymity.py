"""k-anonymity: two 3-anonymous tables of the same people give some of them away together."""

import numpy as np
import pytest

from sfumato.demo.attacks.hospital import Register
from sfumato.demo.attacks.k_anonymity import (
    AnonymousTable,
    age_bands,
    by_age,
    by_sex_and_age,
    demonstrate_k_anonymity,
    intersect,
)
from sfumato.demo.network import DIAGNOSES, SMALL_REGION
from sfumato.errors import InvalidInput


@pytest.fixture(scope="module")
def found(hospital: Register):
    return demonstrate_k_anonymity(hospital)


@pytest.mark.claim("S3-17")
def test_two_tables_that_are_each_3_anonymous_isolate_one_person(found):
    assert found.k == (3, 3)
    one = found.example
    assert one.people == 1
    assert len(one.common) == 1
    assert len(one.of_first) >= 3
    assert len(one.of_second) >= 3
    assert set(one.common) == set(one.of_first) & set(one.of_second)


@pytest.mark.claim("S3-17")
def test_what_the_attacker_reads_is_true(hospital, found):
    small = hospital.within(SMALL_REGION)
    one = found.example
    fits = [place for place in range(len(small)) if small.age[place] == one.age and "FM"[small.sex[place]] == one.sex]
    assert len(fits) == 1
    assert DIAGNOSES[small.diagnosis[fits[0]]] == one.common[0]


@pytest.mark.claim("S3-17")
def test_one_table_alone_fails_too(found):
    assert found.homogeneous > 0
    assert min(found.background) > 0
    assert found.told < found.alone < found.people


def test_every_class_has_k_people_and_its_words_hold_them(hospital):
    small = hospital.within(SMALL_REGION)
    for k in (2, 3, 5):
        for table in (by_age(small, k=k), by_sex_and_age(small, k=k)):
            assert table.k >= k
            for place, words in enumerate(table.shown):
                low, high = words.split()[-1].split("–")
                ages = small.age[table.classes == place]
                assert (ages.min(), ages.max()) == (int(low), int(high))


def test_people_of_one_age_stay_together_and_a_short_rest_joins_the_last_band():
    places, shown = age_bands(np.array([1, 1, 1, 2, 3, 4, 5]), k=3)
    assert places.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert shown == ("1–1", "2–5")
    with pytest.raises(InvalidInput, match="no table was made"):
        age_bands(np.array([1, 2]), k=3)


def test_homogeneity_and_background_knowledge_are_counted_by_hand():
    table = AnonymousTable(
        classes=np.array([0, 0, 0, 1, 1, 1]), shown=("a", "b"), diagnosis=np.array([2, 2, 2, 0, 0, 3])
    )
    assert table.k == 3
    assert table.homogeneous == 3
    assert table.told_without(0) == 4  # the class of 2s, and the one with 3 in the other class
    assert table.held(1) == {0, 3}


def test_two_equal_tables_say_no_more_than_one(hospital):
    small = hospital.within(SMALL_REGION)
    table = by_age(small)
    assert all(intersect(small, table, table, place).people >= 3 for place in range(len(small)))
