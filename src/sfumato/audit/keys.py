"""Attacks on choices: which keys private discovery shows, which groups are on top, where a search for a limit stops."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod

from sfumato.audit import laws
from sfumato.audit.verdict import Attack
from sfumato.core.foreign import Array
from sfumato.mechanisms.limit_search import LimitSearch
from sfumato.mechanisms.optimal_selection import OptimalSelection
from sfumato.mechanisms.top import TopChoice
from sfumato.mechanisms.top_set import TopSet

__all__ = ["grown", "peeled", "searched", "selected", "stops", "top", "top_set"]

Chance = Callable[[int], float]


def selected(name: str, chance: Chance, *, persons: int, keys: int, epsilon: float, delta: float) -> Attack:
    """Keys that all have ``persons`` persons, and the same with one more person who has all of them."""

    def law(count: int) -> Array:
        shown = chance(count)
        return [prod(shown if one else 1 - shown for one in outcome) for outcome in product((0, 1), repeat=keys)]

    return Attack(
        name=name,
        kind=OptimalSelection.KIND,
        epsilon=epsilon,
        delta=delta,
        here=lambda _: law(persons),
        there=lambda _: law(persons + 1),
        exact=True,
    )


def grown(epsilon: float, delta: float) -> Chance:
    """A mistake: π(n) = min(e^ε·π(n − 1) + δ, 1), which keeps half of the guarantee: a shown key tells little."""
    import math

    def chance(persons: int) -> float:
        shown = 0.0
        for _ in range(persons):
            shown = min(1.0, math.exp(epsilon) * shown + delta)
        return shown

    return chance


def top(name: str, rule: TopChoice, *, epsilon: float) -> Attack:
    """Two groups far below two others; a replaced unit moves them towards each other, and the lower are chosen."""
    return Attack(
        name=name,
        kind=TopChoice.KIND,
        epsilon=epsilon,
        delta=0.0,
        here=lambda _: peeled((400, 0, 0, 400), rule.scale, rule.choices),
        there=lambda _: peeled((399, 1, 1, 399), rule.scale, rule.choices),
        exact=True,
    )


def stops(rule: LimitSearch, above: Sequence[int], *, less: Fraction = Fraction(1)) -> Array:
    """Where the first walk of a search stops, with ``less`` of its noise."""
    walk, first = rule.walks[0], rule.thresholds[0]
    return laws.stopped(
        [rule.threshold(0, place) - first - count for place, count in enumerate(above)],
        threshold=1 - first,
        threshold_scale=less * walk.threshold_scale,
        query_scale=less * walk.query_scale,
    )


def searched(name: str, rule: LimitSearch, *, less: Fraction = Fraction(1)) -> Attack:
    """Few above each candidate, so that the first stops the search; one person who is above all but the last goes."""
    few = [max(0, rule.threshold(0, place) - 20) for place in range(len(rule.candidates[0]) - 1)]
    return Attack(
        name=name,
        kind=LimitSearch.KIND,
        epsilon=1.0,
        delta=0.0,
        here=lambda _: stops(rule, [*(count + 1 for count in few[:-1]), few[-1]], less=less),
        there=lambda _: stops(rule, few, less=less),
        exact=True,
    )


def top_set(name: str, rule: TopSet, *, epsilon: float) -> Attack:
    """The same four groups, of which a set is chosen at once."""
    return Attack(
        name=name,
        kind=TopSet.KIND,
        epsilon=epsilon,
        delta=0.0,
        here=lambda _: sets((400, 0, 0, 400), rule.scale, rule.choices),
        there=lambda _: sets((399, 1, 1, 399), rule.scale, rule.choices),
        exact=True,
    )


def sets(counts: Sequence[int], scale: Fraction, choices: int) -> Array:
    """The distribution over all sets of a given size, each in proportion to exp((sum of its counts)/scale)."""
    import numpy as np

    sums = np.array([sum(counts[place] for place in chosen) for chosen in combinations(range(len(counts)), choices)])
    weights = np.exp((sums - sums.max()) / float(scale))
    return weights / weights.sum()


def peeled(counts: Sequence[int], scale: Fraction, choices: int) -> Array:
    """The distribution over all sequences of choices without replacement, each in proportion to exp(count/scale)."""
    import numpy as np

    weights = np.exp((np.array(counts) - max(counts)) / float(scale))
    law = []
    for order in permutations(range(len(counts)), choices):
        left, chance = [True] * len(counts), 1.0
        for candidate in order:
            chance *= weights[candidate] / weights[left].sum()
            left[candidate] = False
        law.append(chance)
    return np.array(law)
