"""Attacks on whole releases of invented data: through a vault, a stream, a client, a trainer and an evaluator.

What is released is compared with the law that its certificate states. Where the audit can work out by itself how much
noise the charge needs, a certificate that states less is not believed: the draws are then compared with what it needs.

Over 600 lines because it is one table: every way of a release, attacked as users call it.
"""

from collections.abc import Callable, Sequence, Sized
from fractions import Fraction
from itertools import permutations, product
from typing import TYPE_CHECKING, Any  # ways to ask, made by their names for what they take

from sfumato import laws as error_laws
from sfumato.audit.bounds import gaussian_epsilon
from sfumato.audit.drawn import GAP, half_shown, shrunk, watch_cells
from sfumato.audit.fit import Cells, Played, finite, numbers, tabled
from sfumato.audit.invented_table import invented_table
from sfumato.audit.keys import peeled, stops
from sfumato.audit.ladders import climbed
from sfumato.audit.verdict import Attack, Drawn
from sfumato.core.budget import Budget
from sfumato.core.foreign import Array
from sfumato.core.limits import Limit
from sfumato.core.release import Release
from sfumato.core.units import Unit, edge, event, record, user
from sfumato.errors import SfumatoError
from sfumato.learning.adaptive import AdaptiveClip, AdaptiveSums
from sfumato.learning.correlated import Correlated, CorrelatedSums
from sfumato.learning.noisy_sums import WIDTH, NoisySums
from sfumato.local.client import Client
from sfumato.local.collection import ORACLES, Collection
from sfumato.local.means import MEANS
from sfumato.mechanisms import (
    Gaussian,
    Ladder,
    Laplace,
    LimitSearch,
    NoisyThreshold,
    OptimalSelection,
    QuantileChoice,
    SparseVector,
    TopChoice,
)
from sfumato.streams.noise import SeriesNoise
from sfumato.vault import Vault

if TYPE_CHECKING:
    from sfumato.graphs.graph import Graph
    from sfumato.learning.paradigms.examples import Teachers
    from sfumato.tables.table import Table

__all__ = ["PRODUCT", "PRODUCT_BOUNDS", "asked_of", "needed", "noise_of_sums", "weak"]

Whatever = Any  # questions, oracles and declarations of every kind, which share no type

DELTA = 1e-9
LARGE = Budget(epsilon=10**6, delta=Fraction(1, 10**6))
RECORD = record(relation="add/remove")
KEYS = 2_000
HORIZON = 4
LEARNING = "torch"


def needed(epsilon: float, delta: float) -> float:
    """How many times as far as a unit moves an answer the standard deviation of Gaussian noise must be, in floats.

    >>> round(needed(1.0, 1e-5), 4)
    3.7306
    """
    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if gaussian_epsilon(1 / middle, delta) > epsilon else (low, middle)
    return high


def stated(release: Release, *, l1: float | None = None, l2: float | None = None) -> Cells:
    """The law of a certificate; or that which the charge needs for a unit which moves the answer so far, if wider."""
    law, charged = release.statement.law, release.charged
    if isinstance(law, error_laws.DiscreteLaplace) and l1 is not None:
        least = Fraction(l1) / charged.epsilon
        return numbers(law if law.scale >= least else error_laws.DiscreteLaplace(scale=least))
    if isinstance(law, error_laws.RoundedGaussian) and l2 is not None:
        sigma = l2 * needed(float(charged.epsilon), float(charged.delta))
        return numbers(law if float(law.sigma) > sigma * (1 - 1e-6) else error_laws.RoundedGaussian(sigma=_near(sigma)))
    return numbers(law)


def _near(number: float) -> Fraction:
    return Fraction(number).limit_denominator(10**6)


def _vault(unit: Unit) -> Vault:
    return Vault(unit=unit, budget=LARGE, name="audit")


def _values(release: Release, exact: int = 0) -> Array:
    import numpy as np

    return np.array(release.statement.values, dtype=np.float64) - exact


def _table(rows: dict[str, list[int]], **declared: Whatever) -> "Table":
    return invented_table(_vault(RECORD), rows, **declared)


def _grouped(keys: int, rows: int = 0) -> "Table":
    """A table with a number of groups, all of them empty or each with some rows of 0."""
    held = {"g": [key for key in range(keys) for _ in range(rows)], "x": [0] * (keys * rows)}
    return _table(held, keys={"g": range(keys)}, bounds={"x": (0, 10)}).group_by("g")


def counted(size: int) -> Played:
    """Counts of empty groups."""
    release = _grouped(size).count().release(epsilon=1)
    return Played(cells=stated(release, l1=1), draws=_values(release))


def totalled(size: int) -> Played:
    """Sums of empty groups."""
    release = _grouped(size).sum("x").release(epsilon=1)
    return Played(cells=stated(release), draws=_values(release))


def averaged(size: int) -> Played:
    """What means are worked out from: two numbers for each empty group."""
    release = _grouped(max(1, size // 2)).mean("x").release(epsilon=1)
    return Played(cells=stated(release), draws=_values(release))


def of_persons(size: int) -> Played:
    """Counts of empty groups where a person may be in all of them, with Gaussian noise."""
    import pyarrow as pa

    many = min(size, 1_000)
    table = _vault(user("id", relation="add/remove")).table(
        pa.table({"id": pa.array([], pa.int64()), "g": pa.array([], pa.int64())}),
        name="invented",
        version="1",
        keys={"g": range(many)},
        limit=Limit(groups=many, rows_per_group=1),
    )
    release = table.group_by("g").count().release(epsilon=1, delta=DELTA)
    return Played(cells=stated(release, l2=many**0.5), draws=_values(release))


ROWS = 42  # of value 0 in a group: at ε = 1 about as likely to come out as one of the 2^30 other values


def medians(size: int) -> Played:
    """Medians of groups whose rows are all 0: whether 0 is what comes out."""
    import numpy as np

    release = _grouped(min(size, 300), ROWS).quantiles("x", ["1/2"]).release(epsilon=1)
    steps = release.statement.mechanism.steps  # type: ignore[attr-defined]  # a median is chosen among steps
    other = steps * np.exp(-ROWS / 2)  # each other value is wrong by half of the rows
    chance = 1 / (1 + other)
    return Played(cells=finite([chance, 1 - chance]), draws=(_values(release) != 0).astype(int))


def topped(size: int) -> Played:
    """The two largest of three groups, one release at a time."""
    counts = (0, 1, 2)
    rows = {"g": [key for key, count in enumerate(counts) for _ in range(count)]}
    table = _table(rows, keys={"g": range(3)}).group_by("g")
    told = [table.top(2).release(epsilon=1, fresh=True).statement.values for _ in range(min(size, 32))]
    cells = tabled(list(permutations(range(3), 2)), peeled(counts, Fraction(2), 2))
    return Played(cells=cells, draws=_outcomes(told))


def suggested(size: int) -> Played:
    """The limit that is suggested where six persons have one row, and three have two."""
    import pyarrow as pa

    ids = [person for person in range(9) for _ in range(1 + person // 6)]
    vault = _vault(user("id", relation="add/remove"))
    table = vault.table(pa.table({"id": pa.array(ids, pa.int64())}), name="invented", version="1")
    asked = table.suggest_limit(spend=1, most=4)
    told = [asked.release(epsilon=1, fresh=True).statement.values for _ in range(min(size, 32))]
    run = LimitSearch.calibrated(candidates=[(1, 2, 3, 4)], epsilon=1, spend=[Fraction(1)])
    return Played(
        cells=tabled([(limit,) for limit in (1, 2, 3, 4)], stops(run, (3, 0, 0)).tolist()), draws=_outcomes(told)
    )


def found(size: int) -> Played:
    """Keys that as many rows have as the threshold is: which are shown, and with which noise."""
    import numpy as np

    keys, epsilon, top = min(size, 2_000), Fraction(1, 4), 120
    rule = NoisyThreshold.calibrated(keys=1, most=1, epsilon=epsilon, delta=DELTA)
    rows = {"g": [key for key in range(keys) for _ in range(rule.threshold)]}
    said = _table(rows).find_keys("g").release(epsilon=epsilon, delta=DELTA).statement
    noisy = np.zeros(keys, dtype=np.int64)
    noisy[: len(said.values)] = 1 + np.minimum(np.array(said.values, dtype=np.int64) - rule.threshold, top + 1)
    return Played(cells=half_shown(1 / epsilon, top), draws=noisy)


def selected(size: int) -> Played:
    """Keys that are shown about half of the time, without their counts."""
    import numpy as np

    keys = min(size, 500)
    rule = OptimalSelection.calibrated(keys=1, epsilon=1, delta=DELTA)
    persons = rule.sure // 2 - 1
    rows = {"g": [key for key in range(keys) for _ in range(persons)]}
    said = _table(rows).find_keys("g", counted=False).release(epsilon=1, delta=DELTA).statement
    chance = float(rule.chance(persons))
    return Played(cells=finite([1 - chance, chance]), draws=(np.arange(keys) < len(said.found)).astype(int))


def _graph(nodes: int) -> "Graph":
    """Two of many nodes know each other; the others have no edge."""
    return _vault(edge(relation="add/remove")).graph([(0, 1)], name="invented", version="1", nodes=nodes)


def histogram(size: int) -> Played:
    """How many nodes have each degree, from 2 on: none has."""
    release = _graph(size + 2).degree_histogram().release(epsilon=1)
    return Played(cells=stated(release, l1=4), draws=_values(release)[2:])


def degrees(size: int) -> Played:
    """The degrees of nodes without an edge."""
    release = _graph(size + 2).degrees().release(epsilon=1)
    return Played(cells=stated(release, l1=2), draws=_values(release)[2:])


def stars(size: int, *, reach: int = 6_000) -> Played:
    """The number of wedges by a ladder, one release at a time."""
    import numpy as np

    graph = _graph(12)
    told = [graph.local_stars(2, way="ladder").release(epsilon=1, fresh=True) for _ in range(min(size, 80))]
    ladder = told[0].statement.mechanism
    assert isinstance(ladder, Ladder)  # noqa: S101 - narrows the type
    rungs, rate = ladder.bounds(1, 1)[0], float(ladder.epsilon) / 2
    cells = finite(
        climbed(0, rungs, rate, reach=reach),
        [climbed(0, rungs, rate * times, reach=reach) for times in (0.5, 0.7, 1.4, 2.0)],
    )
    draws = np.clip([one.statement.values[0] for one in told], -reach, reach) + reach
    return Played(cells=cells, draws=draws)


def _stream(size: int, value: int, epsilon: int) -> tuple[Array, Release]:
    """A running total of groups that all have this number in their first step: its measurements, group by group."""
    import numpy as np

    groups = max(1, size)
    declared = _vault(event(relation="add/remove")).stream(
        name="invented", version="1", horizon=HORIZON, groups=[str(group) for group in range(groups)], bounds=(0, 9)
    )
    total = declared.running_total().open(epsilon=epsilon, delta=DELTA)
    steps = np.zeros((HORIZON, groups), dtype=np.int64)
    steps[0] = value
    total.add_many(steps)
    release = total.close()
    return np.array(release.statement.values, dtype=np.float64).reshape(-1, groups), release


def streamed(size: int) -> Played:
    """The measurements of a stream of zeros, with the noise that it was opened with."""
    drawn, release = _stream(max(1, size // HORIZON), 0, 1)
    moved = _move(release)
    return Played(cells=stated(release, l2=float((moved**2).sum()) ** 0.5), draws=drawn.ravel())


def _move(release: Release) -> Array:
    """By how much one event in the first step moves the measurements."""
    import numpy as np

    from sfumato.streams.strategy_encoder import encoder_of

    strategy = release.statement.mechanism.strategy  # type: ignore[attr-defined]  # the mechanism of a stream has one
    one = np.zeros(HORIZON, dtype=np.int64)
    one[0] = 1
    moved = encoder_of(strategy).measure(one) - encoder_of(strategy).measure(0 * one)
    return np.asarray(moved, dtype=np.float64)


def told(value: int) -> Callable[[int], Array]:
    """A stream with one event more or not, along the way that the event moves the measurements."""

    def outputs(size: int) -> Array:
        drawn, release = _stream(size, value, 16)
        return _move(release) @ drawn

    return outputs


def alarmed(size: int) -> Played:
    """Two looks of watches, each opened anew."""
    found = []
    for number in range(min(size, 1_000)):
        if number % 50 == 0:
            vault = _vault(event(relation="add/remove"))
        stream = vault.stream(name="invented", version=str(number), horizon=2, bounds=(0, 9))
        watch = stream.alarms(threshold=0, alarms=2).open(epsilon=1)
        looks = [watch.check(value) for value in (0, 1)]
        first, second = (0 if one.gap is None else 1 + min(one.gap, GAP) for one in looks)
        found.append(first * (GAP + 2) + second)
    run = SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1, monotone=True)
    return Played(cells=watch_cells(run), draws=_outcomes(found))


def voted(size: int) -> Played:
    """The votes of two teachers for one of two classes, of whom a person moves one."""
    import numpy as np

    questions = max(1, min(size, KEYS) // 2)
    taught = _taught()
    release = taught.labels(np.zeros((questions, 1)), name="questions").release(epsilon=1, delta=DELTA)
    exact = np.tile([2, 0], questions)
    return Played(cells=stated(release, l2=(2 * questions) ** 0.5), draws=_values(release) - exact)


def _taught() -> "Teachers":
    import numpy as np

    examples = _vault(user("id", relation="add/remove")).examples(
        np.zeros((1, 1)), np.zeros(1, dtype=np.int64), name="invented", version="1", ids=[1]
    )
    made: Teachers = examples.teachers(_always_first, parts=2, classes=2, name="teachers")
    return made


def _always_first(_inputs: object, _targets: object, _seed: int) -> Callable[[Sized], list[int]]:
    return lambda questions: [0] * len(questions)


def reported(oracle: Whatever, truth: int | Fraction, wrong: Whatever = None) -> Callable[[int], Played]:
    """Reports of clients, each of a person of its own, against their exact odds; ``wrong`` is a broken one's."""
    collection = Collection(name="invented", ask=oracle if wrong is None else wrong)
    place = oracle.step(truth) if isinstance(oracle, MEANS) else truth

    def play(size: int) -> Played:
        outcomes = list(oracle.outputs())
        cells = tabled(outcomes, [oracle.probability(one, place) for one in outcomes])
        return Played(cells=cells, draws=_outcomes([Client(collection).report(truth) for _ in range(size)]))

    return play


def asked_of(kind: type, epsilon: int) -> Whatever:
    """One way to ask in the local model, with few enough values or steps to list all reports."""
    asked = {"epsilon": epsilon, **({"steps": 6} if kind in MEANS else {"values": 5})}
    return kind.calibrated(**asked) if hasattr(kind, "calibrated") else kind(**asked)


def _outcomes(given: Sequence[object]) -> Array:
    import numpy as np

    held = np.empty(len(given), dtype=object)
    held[:] = given
    return held if isinstance(given[0], tuple | bytes) else held.astype(np.int64)


def noise_of_sums(sums: Array, release: Release, pitch: Fraction, multiplier: float) -> Played:
    """Noise on sums, in steps of its lattice; a pitch too fine for the clip of 1 and the multiplier is not believed."""
    import numpy as np

    least = Fraction(multiplier) / WIDTH
    believed = pitch if least * (1 - Fraction(1, 10**6)) <= pitch <= least * (1 + Fraction(1, 64)) else least
    law = error_laws.RoundedGaussian(sigma=Fraction(WIDTH))
    return Played(cells=numbers(law), draws=np.rint(np.asarray(sums).ravel() / float(believed)))


def trained(size: int) -> Played:
    """One step of training on units that have no gradient: what is learned is noise alone."""
    import numpy as np

    from sfumato.learning.canaries import summed

    number = min(size, 1_000)
    sums, release = summed(_vault(RECORD).trainer, np.zeros(number), batch=number, steps=1, epsilon=1, delta=DELTA)
    noise = release.statement.mechanism
    assert isinstance(noise, NoisySums)  # noqa: S101 - narrows the type
    multiplier = max(float(noise.multiplier), needed(1.0, DELTA))
    return noise_of_sums(sums, release, noise.pitch(release.statement.sensitivity), multiplier)


def trained_adaptively(size: int) -> Played:
    """The same with a clip that follows the norms."""
    import numpy as np

    from sfumato.learning.canaries import summed

    number, follow = min(size, 1_000), AdaptiveClip(noise=Fraction(100))
    sums, release = summed(
        _vault(RECORD).trainer, np.zeros(number), batch=number, steps=1, epsilon=1, delta=DELTA, noise=follow
    )
    noise = release.statement.mechanism
    assert isinstance(noise, AdaptiveSums)  # noqa: S101 - narrows the type
    return noise_of_sums(sums, release, noise.pitch_of(noise.clip, 1), float(noise.multiplier))


def trained_in_cycles(size: int) -> Played:
    """Correlated noise: what the sums of all steps, mixed again, have of it."""
    import numpy as np

    from sfumato.learning.canaries import summed

    number, steps = max(2, min(size, 1_800) // 6 * 2), 3
    sums, release = summed(
        _vault(RECORD).trainer,
        np.zeros(number),
        batch=number // 2,
        steps=steps,
        epsilon=1,
        delta=DELTA,
        noise=Correlated(bands=2),
    )
    noise = release.statement.mechanism
    assert isinstance(noise, CorrelatedSums)  # noqa: S101 - narrows the type
    mixed = [
        sum(c / noise.column[0] * sums[at - k] for k, c in enumerate(noise.column[: at + 1])) for at in range(steps)
    ]
    far = float(noise.squared) ** 0.5
    multiplier = max(float(noise.multiplier), needed(1.0, DELTA)) * far
    return noise_of_sums(np.array(mixed), release, noise.pitch(release.statement.sensitivity), multiplier)


def sampled(size: int) -> Played:
    """Who counts in a step, read off by gradients as long as the clip: four units and steps at a time."""
    import numpy as np

    from sfumato.learning.canaries import summed

    number, steps, rate = 64, 20, 0.25
    sums, release = summed(_vault(RECORD).trainer, np.ones(number), batch=16, steps=steps, epsilon=200, delta=DELTA)
    return Played(cells=_inclusion(release, rate), draws=_blocks(sums > 0.5))


def _inclusion(release: Release, rate: float) -> Cells:
    """The law of two units in two steps: each is in with the rate, and is read off wrongly as often as noise says."""
    from scipy.special import ndtr

    noise = release.statement.mechanism
    sigma = float(noise.pitch(release.statement.sensitivity) * WIDTH)  # type: ignore[attr-defined]  # noisy sums have a pitch
    seen = rate * float(ndtr(0.5 / sigma)) + (1 - rate) * float(ndtr(-0.5 / sigma))

    def law(chance: float) -> list[float]:
        return [chance ** sum(four) * (1 - chance) ** (4 - sum(four)) for four in product((0, 1), repeat=4)]

    return finite(law(seen), [law(seen * times) for times in (0.5, 0.8, 1.25, 2.0)])


def _blocks(bits: Array) -> Array:
    """Bits of steps and units in squares of two by two, each as a number from 0 to 15."""
    square = bits.astype(int)
    return (8 * square[::2, ::2] + 4 * square[::2, 1::2] + 2 * square[1::2, ::2] + square[1::2, 1::2]).ravel()


def _everybody(size: int) -> Played:
    """The same where the sampler returns everybody."""
    import numpy as np

    played = sampled(size)
    return Played(cells=played.cells, draws=np.full(len(played.draws), 15))


def looked_up(size: int) -> Played:
    """A model that writes to its weights while it computes: what is learned must be noise alone, or it is refused."""
    import numpy as np

    from sfumato.learning import canaries

    number = min(size, 400)
    try:
        sums, release = canaries.looked_up(_vault(RECORD).trainer, number, epsilon=1, delta=DELTA)
    except SfumatoError:  # refused by name, before anything is read: nothing is released at all
        return Played(cells=finite([1.0, 0.0]), draws=np.zeros(1, dtype=np.int64))
    noise = release.statement.mechanism
    assert isinstance(noise, NoisySums)  # noqa: S101 - narrows the type
    multiplier = max(float(noise.multiplier), needed(1.0, DELTA))
    return noise_of_sums(sums, release, noise.pitch(release.statement.sensitivity), multiplier)


def _written(size: int) -> Played:
    """The same where the row of each unit is cut from 2 to 1, and nothing puts it back."""
    import numpy as np

    played = trained(size)
    far = WIDTH / needed(1.0, DELTA)  # one clip in steps of the lattice
    return Played(cells=played.cells, draws=np.asarray(played.draws) + len(played.draws) * far)


def canaries(*, present: bool) -> Callable[[int], Array]:
    """Noisy sums in which each of many units has a place of its own, and is in it or not."""
    import numpy as np

    def outputs(size: int) -> Array:
        from sfumato.learning.canaries import summed

        number = min(size, 1_000)
        given = np.full(number, 1.0 if present else 0.0)
        rounds = -(-size // number)
        return np.concatenate(
            [
                summed(_vault(RECORD).trainer, given, batch=number, steps=1, epsilon=8, delta=DELTA)[0].ravel()
                for _ in range(rounds)
            ]
        )

    return outputs


def evaluated(size: int) -> Played:
    """How many held-out units a model gets right, where it gets none right."""
    import numpy as np

    from sfumato.learning.canaries import evaluated as asked

    many = min(size, 600)
    told, release = asked(_vault(RECORD).evaluator, many, epsilon=1, delta=DELTA)
    return Played(cells=stated(release, l2=many**0.5), draws=np.array(told))


def rows_of(size: int, rows: int) -> Array:
    """Counts of groups that all have the same number of rows."""
    return _values(_grouped(size, rows).count().release(epsilon=1))


def weak(
    name: str,
    kind: str,
    play: Callable[[int], Played],
    *,
    delta: float = 0.0,
    draws: int = KEYS,
    needs: str | None = None,
) -> Drawn:
    """Noise alone, and the same with 0.7 of it."""
    return Drawn(
        name=name,
        kind=kind,
        epsilon=1.0,
        delta=delta,
        play=play,
        flaw="0.7 of the noise",
        broken=lambda size: shrunk(play(size)),
        draws=draws,
        needs=needs,
    )


def _fixed(
    name: str, kind: str, play: Callable[[int], Played], flaw: str, outcome: object, *, delta: float = 0.0, draws: int
) -> Drawn:
    """A choice, and one that always comes out the same."""

    def broken(size: int) -> Played:
        played = play(size)
        return Played(cells=played.cells, draws=_outcomes([outcome] * len(played.draws)))

    return Drawn(name=name, kind=kind, epsilon=1.0, delta=delta, play=play, flaw=flaw, broken=broken, draws=draws)


def _local(kind: type) -> Drawn:
    oracle, wrong = asked_of(kind, 1), asked_of(kind, 2)
    if hasattr(oracle, "buckets"):  # the same reports, at other odds
        wrong = kind(epsilon=2, values=oracle.values, buckets=oracle.buckets)
    elif hasattr(oracle, "size"):
        wrong = kind(epsilon=2, values=oracle.values, size=oracle.size)
    truth: int | Fraction = Fraction(1) if kind in MEANS else 1
    name: str = kind.KIND  # type: ignore[attr-defined]  # each way to ask has one
    return Drawn(
        name=f"client: {name.removeprefix('local.').replace('_', ' ')}",
        kind=name,
        epsilon=1.0,
        delta=0.0,
        play=reported(oracle, truth),
        flaw="reports at 2ε",
        broken=reported(oracle, truth, wrong),
        draws=1_500,
    )


def _odds(kind: type) -> Attack:
    """The exact odds of all reports under two values: the first and the second, or the two ends of a mean."""
    oracle = asked_of(kind, 1)
    first, second = (0, oracle.steps) if kind in MEANS else (0, 1)

    def law(place: int) -> list[float]:
        return [float(oracle.probability(one, place)) for one in oracle.outputs()]

    name: str = kind.KIND  # type: ignore[attr-defined]  # each way to ask has one
    return Attack(
        name=f"odds: {name.removeprefix('local.').replace('_', ' ')}",
        kind=name,
        epsilon=1.0,
        delta=0.0,
        here=lambda _: law(first),
        there=lambda _: law(second),
        exact=True,
    )


PRODUCT: tuple[Drawn, ...] = (
    weak("vault: counts", Laplace.KIND, counted),
    weak("vault: sums", Laplace.KIND, totalled),
    weak("vault: means", Laplace.KIND, averaged),
    weak("vault: counts of persons", Gaussian.KIND, of_persons, delta=DELTA, draws=1_000),
    _fixed("vault: medians", QuantileChoice.KIND, medians, "the exact median", 0, draws=300),
    _fixed("vault: top groups", TopChoice.KIND, topped, "the exact top", (2, 1), draws=32),
    _fixed("vault: suggested limits", LimitSearch.KIND, suggested, "always the last", (4,), draws=32),
    _fixed(
        "vault: private key discovery",
        NoisyThreshold.KIND,
        found,
        "all are shown, exactly",
        1,
        delta=DELTA,
        draws=2_000,
    ),
    _fixed("vault: selected keys", OptimalSelection.KIND, selected, "all are shown", 1, delta=DELTA, draws=500),
    weak("vault: degrees", Laplace.KIND, degrees),
    weak("vault: degree histogram", Laplace.KIND, histogram),
    _fixed("vault: wedges by a ladder", Ladder.KIND, stars, "the exact count", 6_000, draws=80),
    weak("vault: votes of teachers", Gaussian.KIND, voted, delta=DELTA),
    weak("stream: running totals", SeriesNoise.KIND, streamed, delta=DELTA, draws=4_000),
    _fixed("stream: alarms", SparseVector.KIND, alarmed, "never silent, no gap", GAP + 3, draws=1_000),
    *(_local(kind) for kind in (*ORACLES, *MEANS)),
    weak("training: weights", NoisySums.KIND, trained, delta=DELTA, draws=1_000, needs=LEARNING),
    weak(
        "training: weights, adaptive clip",
        AdaptiveSums.KIND,
        trained_adaptively,
        delta=DELTA,
        draws=1_000,
        needs=LEARNING,
    ),
    weak(
        "training: weights, correlated noise",
        CorrelatedSums.KIND,
        trained_in_cycles,
        delta=DELTA,
        draws=1_800,
        needs=LEARNING,
    ),
    Drawn(
        name="training: who is sampled",
        kind=NoisySums.KIND,
        epsilon=200.0,
        delta=DELTA,
        play=sampled,
        flaw="everybody",
        broken=_everybody,
        needs=LEARNING,
    ),
    Drawn(
        name="training: a model that writes to its weights",
        kind=NoisySums.KIND,
        epsilon=1.0,
        delta=DELTA,
        play=looked_up,
        flaw="what it wrote is kept",
        broken=_written,
        draws=400,
        needs=LEARNING,
    ),
    weak("evaluator: counts", Gaussian.KIND, evaluated, delta=DELTA, draws=600, needs=LEARNING),
)

PRODUCT_BOUNDS: tuple[Attack, ...] = (
    *(_odds(kind) for kind in (*ORACLES, *MEANS)),
    Attack(
        name="vault: counts, a row more",
        kind=Laplace.KIND,
        epsilon=1.0,
        delta=0.0,
        here=lambda size: rows_of(size, 0),
        there=lambda size: rows_of(size, 1),
        share=0.5,
        most=8_000,
    ),
    Attack(
        name="stream: running totals, an event more",
        kind=SeriesNoise.KIND,
        epsilon=16.0,
        delta=DELTA,
        here=told(0),
        there=told(1),
        share=0.5,
        curve=True,
        most=3_000,
    ),
    Attack(
        name="training: weights, a unit more",
        kind=NoisySums.KIND,
        epsilon=8.0,
        delta=DELTA,
        here=canaries(present=False),
        there=canaries(present=True),
        share=0.4,
        curve=True,
        most=4_000,
        needs=LEARNING,
    ),
)
