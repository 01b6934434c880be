"""Draws from a ladder: a rung t with weight exp(−εt/2) for each number on it, and one of its numbers.

Widths are sums of growth: rung t has Σ_{u<t} δ_u numbers a side. So a draw chooses the place u of growth in proportion
to δ_u·r^(u+1)/(1 − r), r = exp(−ε/2), and then t = u + 1 and a geometric number more; which of the δ_u is drawn says
where on the rung it lies. Nothing is rounded. Proof: docs/proofs/ladder.md
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import ceil

from sfumato.core.ladder_widths import Rungs, WidthSteps
from sfumato.noise.lattice import sample_geometric
from sfumato.noise.selection import sample_intervals
from sfumato.noise.uniform import SPARE, fixed_exp
from sfumato.noise.words import WordBits, Words

__all__ = ["sample_ladder"]


def sample_ladder(rungs: Rungs, epsilon: Fraction, size: int, words: Words) -> list[int]:
    """Draw errors with P(z) ∝ exp(−ε·t/2), t the rung of |z|; exact for every rational ε.

    Sensitive: the rungs; nothing about them is kept. The time depends on them.

    >>> from sfumato.noise import SystemWords
    >>> sample_ladder(Rungs.of([]), Fraction(1), 2, SystemWords())
    [0, 0]
    """
    chosen = sample_intervals(lambda bits: _ends(rungs.runs, epsilon / 2, bits), size, words)
    further = sample_geometric(2 / epsilon, size, words).tolist()
    bits = WordBits(words)
    drawn = zip(chosen.tolist(), further, strict=True)
    return [_placed(rungs, epsilon, level, more, bits, words) for level, more in drawn]


def _placed(rungs: Rungs, epsilon: Fraction, level: int, more: int, bits: WordBits, words: Words) -> int:
    """The number that a place of growth and a rung stand for; level 0 is the centre."""
    if level == 0:
        return 0
    run = rungs.runs[level - 1]
    along = 0
    if run.count > 1:  # a geometric number, modulo the count, has the law of one that is below it
        along = int(sample_geometric(2 / (epsilon * run.step), 1, words)[0]) % run.count
    u = run.first + run.step * along
    within = bits.below(run.amount) if run.amount > 1 else 0
    distance = rungs.reach(u + more) + rungs.width(u - 1) + within + 1
    return -distance if bits.below(2) else distance


def _ends(runs: Sequence[WidthSteps], rate: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Enclose where centre and runs end on a scale of 2^bits: the centre has 1 − r, a run 2·amount·Σ r^(u + 1)."""
    grown = sum(run.amount * run.count for run in runs)
    fine = bits + 2 * SPARE + grown.bit_length() + ceil(1 / rate).bit_length()
    one = 1 << fine
    known: dict[int, tuple[int, int]] = {}

    def power(places: int) -> tuple[int, int]:
        if places not in known:
            known[places] = fixed_exp(rate * places, fine)
        return known[places]

    r_low, r_high = power(1)
    weights = [(one - r_high, one - r_low)]
    at, low, high = 0, one, one
    for run in runs:
        gap_low, gap_high = power(run.first + 1 - at)
        at, low, high = run.first + 1, low * gap_low >> fine, -(-high * gap_high >> fine)
        if run.count == 1:
            weights.append((2 * run.amount * low, 2 * run.amount * high))
            continue
        step_low, step_high = power(run.step)
        all_low, all_high = power(run.step * run.count)
        some_low, some_high = one - all_high, one - all_low
        weights.append(
            (
                2 * run.amount * low * some_low // (one - step_low),
                -(-2 * run.amount * high * some_high // (one - step_high)),
            )
        )
    lows, highs = (list(accumulate(ends)) for ends in zip(*weights, strict=True))
    least, most, last = lows[-1], highs[-1], 1 << bits
    downs = [(down << bits) // most for down in lows[:-1]]
    ups = [min((up << bits) // least, last - 1) for up in highs[:-1]]
    return [*downs, last], [*ups, last]
