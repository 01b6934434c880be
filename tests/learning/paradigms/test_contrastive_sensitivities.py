"""The functions that state what one person moves, number by number; no torch is needed."""

from fractions import Fraction

import pytest

from sfumato.core import enclosures
from sfumato.core.sensitivity import L2, LInf
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms import occurrences
from sfumato.learning.paradigms.attention_logits import LogitRelease, TopKey
from sfumato.learning.paradigms.contrastive import assigned_negatives, cyclic_negatives
from sfumato.learning.paradigms.logit_clipping import ClippedLogits
from sfumato.learning.paradigms.placed_groups import PlacedGroups

pytestmark = pytest.mark.kills

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE


@pytest.mark.parametrize(
    ("relation", "clip", "times", "over", "moved"),
    [
        (ADD_REMOVE, 1, 1, 1, 1),
        (REPLACE, 1, 1, 1, 2),
        (ADD_REMOVE, Fraction(1, 2), 3, 7, Fraction(3, 14)),
        (REPLACE, Fraction(1, 2), 3, 7, Fraction(3, 7)),
        (REPLACE, 5, 0, 9, 0),
    ],
)
def test_occurrences(relation: Relation, clip: Fraction, times: int, over: int, moved: Fraction) -> None:
    found = occurrences.sensitivity(relation, clip=clip, times=times, over=over)
    assert found.l2 == L2(Fraction(moved) ** 2)
    assert found.l1 is found.linf is found.l0 is None


def test_a_sum_is_over_one() -> None:
    assert occurrences.sensitivity(REPLACE, clip=3, times=2).l2 == L2(Fraction(144))


@pytest.mark.parametrize("wrong", [{"clip": 0}, {"times": -1}, {"over": 0}, {"times": True}])
def test_occurrences_that_make_no_sense(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        occurrences.sensitivity(REPLACE, **{"clip": 1, "times": 1, "over": 1, **wrong})  # type: ignore[arg-type]


def test_groups_move_as_many_as_a_place_is_in_and_never_more_than_there_are() -> None:
    groups = PlacedGroups(places=5, groups=((0, 1), (1, 2), (1, 3)), each=4)
    assert groups.affected == 3
    assert groups.sensitivity(ADD_REMOVE, clip=2).l2 == L2(Fraction(36))
    assert groups.sensitivity(REPLACE, clip=2, over=3).l2 == L2(Fraction(16))
    exact = PlacedGroups(places=5, groups=((0, 1), (1, 2), (3, 4)), each=2)
    assert exact.sensitivity(ADD_REMOVE, clip=1).l2 == L2(Fraction(4))
    with pytest.raises(Refused, match="in 2 groups and each = 1"):
        PlacedGroups(places=5, groups=((0, 1), (1, 2), (3, 4)), each=1)


@pytest.mark.parametrize(
    ("batch", "negatives", "own", "affected"), [(64, 4, False, 6), (64, 4, True, 5), (6, 4, False, 6)]
)
def test_cyclic_assignments(batch: int, negatives: int, own: bool, affected: int) -> None:
    groups = cyclic_negatives(batch, negatives=negatives, own=own)
    assert groups.sensitivity(REPLACE, clip=1, over=batch).l2 == L2(Fraction(2 * affected, batch) ** 2)


def test_assigned_in_degrees() -> None:
    star = [[3], [3], [0], [1], [3]]
    with pytest.raises(Refused, match="of 3 anchors and in_degree = 2"):
        assigned_negatives(star, in_degree=2)
    assert assigned_negatives(star, in_degree=3).sensitivity(ADD_REMOVE, clip=1).l2 == L2(Fraction(25))
    assert assigned_negatives(star, in_degree=3, own=True).sensitivity(ADD_REMOVE, clip=1).l2 == L2(Fraction(16))
    assert assigned_negatives(star, in_degree=9).sensitivity(ADD_REMOVE, clip=1).l2 == L2(Fraction(25))


@pytest.mark.parametrize("temperature", [Fraction(1, 3), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("batch", [1, 2, 3, 40, None])
def test_clipped_logits(batch: int | None, temperature: Fraction) -> None:
    """2C·(h + c) and 2C·(h + 2c), from the least and the largest weights that logits in reach allow; rounded up."""
    declared = ClippedLogits(clip=Fraction(3), temperature=temperature, batch=batch)
    ratio = enclosures.exp(2 / temperature, bits=300)  # the hottest over the coldest weight
    if batch is None:
        hot, cold = ratio, enclosures.Enclosure(Fraction(1), Fraction(1))
    else:
        others = batch - 1
        hot = others * ratio / (ratio + others)
        cold = others * ratio / (1 + others * ratio)
    for relation, rows in ((ADD_REMOVE, 1), (REPLACE, 2)):
        exact = 6 * (hot + rows * cold)
        found = declared.sensitivity(relation).l2
        assert found is not None
        assert exact.low**2 <= found.squared <= exact.high**2 * (1 + Fraction(1, 2**100))
        assert declared.moved(relation, over=5) >= exact.low / 5
        assert declared.moved(relation, over=5) <= exact.high / 5 * (1 + Fraction(1, 2**100))
        assert declared.sensitivity(relation, over=5).l2.squared == found.squared / 25  # type: ignore[union-attr]


def test_larger_batches_move_further_and_any_batch_is_covered() -> None:
    sizes = [1, 2, 3, 10, 1000, 10**6, None]
    for relation in Relation:
        moved = [ClippedLogits(clip=Fraction(1), temperature=Fraction(1), batch=n).moved(relation) for n in sizes]
        assert moved == sorted(moved)
        assert len(set(moved)) == len(sizes)
    assert moved[0] == 0


@pytest.mark.parametrize("wrong", [{"clip": 0}, {"temperature": Fraction(1, 1001)}, {"batch": 0}])
def test_clipped_logits_that_make_no_sense(wrong: dict[str, Fraction]) -> None:
    with pytest.raises(InvalidInput):
        ClippedLogits(**{"clip": Fraction(1), "temperature": Fraction(1), "batch": 1, **wrong})  # type: ignore[arg-type]
    assert ClippedLogits(clip=Fraction(1), temperature=Fraction(1, 1000), batch=None).moved(REPLACE) > 2**2000


def test_released_logits() -> None:
    release = LogitRelease(keys=9, l2=Fraction(3), sigma=Fraction(1), pitch=Fraction(1, 4))
    assert release.sensitivity().l2 == L2(Fraction(15) ** 2)
    assert release.noise.l2_squared == 225
    assert release.noise.sigma == 4
    uneven = LogitRelease(keys=2, l2=Fraction(1, 3), sigma=Fraction(1), pitch=Fraction(1)).sensitivity().l2
    assert uneven is not None
    assert (Fraction(1, 3) + enclosures.sqrt(2).low) ** 2 < uneven.squared < Fraction(3054, 1000)


def test_the_top_key() -> None:
    assert TopKey(keys=2, linf=Fraction(1), epsilon=Fraction(1), pitch=Fraction(1, 4)).sensitivity().linf == LInf(
        Fraction(5)
    )
    assert TopKey(keys=2, linf=Fraction(1), epsilon=Fraction(1), pitch=Fraction(2, 3)).sensitivity().linf == LInf(
        Fraction(3)
    )
