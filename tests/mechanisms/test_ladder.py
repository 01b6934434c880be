"""What a ladder costs, and what it is refused for."""

from fractions import Fraction

import pytest

from sfumato.accounting.basic import cost, guarantee_of
from sfumato.core import events
from sfumato.core.budget import Budget
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import edge, user, weight
from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms.ladder import Ladder, Ladders, edges_of

pytestmark = pytest.mark.kills


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 25)])
@pytest.mark.parametrize("edges", [1, 2])
def test_the_loss_is_what_was_asked_for(share: Fraction, edges: int) -> None:
    for leaves in (None, 2, 3):
        ladder = Ladder.calibrated(nodes=9, leaves=leaves, epsilon=1, edges=edges, share=share)
        event = ladder.loss(Sensitivity.of(l1=ladder.widest))
        assert cost(guarantee_of(event, Budget(epsilon=1))).epsilon == 1
        assert ladder.epsilon + ladder.guide == Fraction(1, edges)
    parts = tuple(Ladder.calibrated(nodes=9, leaves=k, epsilon=1, edges=edges, share=share) for k in (None, 2))
    both = Ladders(parts=parts)
    assert cost(guarantee_of(both.loss(Sensitivity.of(l1=21)), Budget(epsilon=2))).epsilon == 2
    assert isinstance(both.loss(Sensitivity.of(l1=21)), events.Composed)


def test_ladders_of_other_counts_units_and_shares_are_refused() -> None:
    ladder = Ladder.calibrated(nodes=9, epsilon=1)
    for moved in (6, 8, 14):
        with pytest.raises(Refused, match="nodes"):
            ladder.loss(Sensitivity.of(l1=moved))
    with pytest.raises(Refused, match="other graphs"):
        Ladders(parts=(ladder,)).loss(Sensitivity.of(l1=8))
    with pytest.raises(InvalidInput, match="no ladder"):
        Ladders(parts=())
    with pytest.raises(InvalidInput, match="share below 1"):
        Ladder.calibrated(nodes=9, epsilon=1, share=1)
    with pytest.raises(InvalidInput, match="edges"):
        Ladder.calibrated(nodes=9, epsilon=1, edges=3)
    with pytest.raises(Refused, match="edges and weights"):
        edges_of(user("id", relation="replace"))
    assert [edges_of(edge(relation=relation)) for relation in ("add/remove", "replace")] == [1, 2]
    assert edges_of(weight(bound=1, relation="replace")) == 1
