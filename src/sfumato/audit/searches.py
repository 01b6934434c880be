"""Attacks on searches over training runs, and on correlated noise over samples that are taken in turn."""

from fractions import Fraction

from sfumato.audit.fit import Played, finite
from sfumato.audit.product import DELTA, LARGE, LEARNING, RECORD, needed, noise_of_sums, weak
from sfumato.audit.verdict import Drawn
from sfumato.learning.best_of_runs import BestOfRuns
from sfumato.learning.correlated import BandedSums, Correlated
from sfumato.vault import Vault

__all__ = ["SEARCHES"]

MOST = 12


def turned(size: int) -> Played:
    """Samples in turn, all of a group each time: what the sums of all steps, mixed again, have of noise."""
    import numpy as np

    from sfumato.learning.canaries import summed

    number, steps = max(2, min(size, 1_800) // 6 * 2), 3
    sums, release = summed(
        Vault(unit=RECORD, budget=LARGE, name="audit").trainer,
        np.zeros(number),
        batch=number // 2,
        steps=steps,
        epsilon=1,
        delta=DELTA,
        noise=Correlated(bands=2, groups=2),
    )
    noise = release.statement.mechanism
    assert isinstance(noise, BandedSums)  # noqa: S101 - narrows the type
    mixed = [
        sum(c / noise.column[0] * sums[at - k] for k, c in enumerate(noise.column[: at + 1])) for at in range(steps)
    ]
    far = float(sum(Fraction(c, noise.column[0]) ** 2 for c in noise.column)) ** 0.5
    least = needed(1.0, DELTA) * 2**0.5 * far  # a unit has two turns in three steps
    return noise_of_sums(
        np.array(mixed), release, noise.pitch(release.statement.sensitivity), max(float(noise.sigma), least)
    )


def counted(size: int) -> Played:
    """How many runs of a search count, as a plan of it says; by the draws that a search makes."""
    import numpy as np

    from sfumato.learning.training import Training
    from sfumato.noise import SystemWords
    from sfumato.noise.hidden_runs import sample_run_number

    law = _search(Training)
    words = SystemWords()
    drawn = [sample_run_number(law.eta, law.gamma, law.most, words) - 1 for _ in range(min(size, 20_000))]
    chances = [(1 - float(law.gamma)) ** k / k for k in range(1, MOST + 1)]  # worked out anew: η = 0
    return Played(cells=finite([each / sum(chances) for each in chances]), draws=np.array(drawn))


def _search(training: type) -> BestOfRuns:
    """The mechanism of a search over one candidate."""
    from sfumato.core.budget import Budget
    from sfumato.core.query import Dataset

    run = training(
        dataset=Dataset(name="invented", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=100,
        rate=Fraction(1),
        steps=1,
        parameters=1,
    )
    spend = Budget(epsilon=1, delta=Fraction(1, 10**9))
    return BestOfRuns.calibrated((run,), spend, eta=Fraction(0), gamma=Fraction(1, 5), most=MOST)


def _all(size: int) -> Played:
    """The same where every run counts."""
    import numpy as np

    played = counted(size)
    return Played(cells=played.cells, draws=np.full(len(played.draws), MOST - 1))


SEARCHES = (
    weak("training: weights, samples in turn", BandedSums.KIND, turned, delta=DELTA, draws=1_800, needs=LEARNING),
    Drawn(
        name="search: how many runs count",
        kind=BestOfRuns.KIND,
        epsilon=1.0,
        delta=DELTA,
        play=counted,
        flaw="all of them",
        broken=_all,
        draws=4_000,
    ),
)
