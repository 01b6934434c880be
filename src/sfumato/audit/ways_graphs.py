"""Ways out of graphs and of streams."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

from sfumato.audit.keys import sets
from sfumato.audit.ladders import climbed
from sfumato.audit.laws import stopped
from sfumato.audit.product import Whatever
from sfumato.audit.ways import Heard, WayOut
from sfumato.audit.ways_played import DELTA, HALF_CHARGED, drawn_again, likelihood, new_vault, undercharged
from sfumato.audit.ways_tables import OF_CERTIFICATE
from sfumato.core.foreign import Array
from sfumato.core.release import Release
from sfumato.core.units import edge, event
from sfumato.mechanisms import Ladder, SparseVector, TopSet

if TYPE_CHECKING:
    from sfumato.graphs.graph import Graph

__all__ = ["GRAPHS", "STREAMS"]

NODES = 6
HORIZON = 4
WATCHED = 40  # steps
THRESHOLD = 6
REACH = 300
EXACT = "vault, then the exact law of its certificate's mechanism"
Ask = Callable[["Graph"], Whatever]


def _graph(edges: Sequence[tuple[int, int]]) -> "Graph":
    return new_vault(edge(relation="add/remove")).graph(edges, name="invented", version="1", nodes=NODES)


def _of_edges(
    ask: Ask, *edges: tuple[int, int], beside: Sequence[tuple[int, int]] = ()
) -> Callable[[int, int], Release]:
    """A release of a graph that has the first of these edges, or the first two: as many as count."""

    def release(times: int, epsilon: int) -> Release:
        made: Release = ask(_graph([*beside, *edges[:times]])).release(epsilon=epsilon, even_if_useless=True)
        return made

    return release


def _asked(name: str, ask: Ask, *edges: tuple[int, int], beside: Sequence[tuple[int, int]] = ()) -> WayOut:
    play = drawn_again(_of_edges(ask, *edges, beside=beside))
    return WayOut(name=name, kind="graph", how=OF_CERTIFICATE, play=play, most=200_000)


STAR = ((0, 1), (0, 2), (0, 3), (0, 4))
ALMOST_ALL = tuple(pair for pair in combinations(range(NODES), 2) if pair not in {(0, 1), (2, 3)})


def _exactly(
    law: Callable[[Whatever, int], Array], release: Callable[[int, int], Release]
) -> Callable[[int, int], Heard]:
    """The whole law of the mechanism that a certificate names, on one of two neighbours."""

    def play(_size: int, times: int) -> Heard:
        made = release(times, 1)
        scores = law(made.statement.mechanism, times)
        return Heard(scores=scores, epsilon=made.charged.epsilon, delta=made.charged.delta, releases=1, exact=True)

    return play


def _whole(
    name: str, kind: str, law: Callable[[Whatever, int], Array], release: Callable[[int, int], Release]
) -> WayOut:
    play = _exactly(law, release)
    return WayOut(name=name, kind=kind, how=EXACT, play=play, broken=undercharged(play), flaw=HALF_CHARGED)


def _rungs(ladder: Ladder, times: int) -> Array:
    """Wedges of one edge (none), or of two that meet (one)."""
    return climbed(times, ladder.bounds(1 + times, 1 + times)[0], float(ladder.epsilon) / 2, reach=REACH)


def _sets(rule: TopSet, times: int) -> Array:
    """Which node has most edges: two nodes do, far above the others, and then two others gain one."""
    counts = [3, 3, *[0] * (rule.candidates - 2)]
    counts[2] += times
    counts[3] += times
    return sets(counts, rule.scale, rule.choices)


def _watched(times: int, epsilon: int) -> Release:
    stream = new_vault(event(relation="add/remove")).stream(
        name="invented", version="1", horizon=WATCHED, bounds=(0, 9)
    )
    watch = stream.alarms(threshold=THRESHOLD, alarms=1, watched="total").open(epsilon=epsilon)
    watch.check(times)
    return watch.close()


def _alarms(run: SparseVector, times: int) -> Array:
    """In which step the only alarm is raised, where an event in the first moves the totals of all of them."""
    return stopped(
        [times] * WATCHED, threshold=THRESHOLD, threshold_scale=run.threshold_scale, query_scale=run.query_scale
    )


def _series(epsilon: int, *, delta: Fraction = DELTA) -> Callable[[int, int], Heard]:
    """Running totals of many groups, all of which have this many events in their first step."""

    def release(groups: int, times: int) -> Release:
        import numpy as np

        named = [str(group) for group in range(groups)]
        stream = new_vault(event(relation="add/remove")).stream(
            name="invented", version="1", horizon=HORIZON, bounds=(0, 9), groups=named
        )
        total = stream.running_total().open(epsilon=epsilon, delta=delta)
        steps = np.zeros((HORIZON, groups), dtype=np.int64)
        steps[0] = times
        total.add_many(steps)
        return total.close()

    def play(size: int, times: int) -> Heard:
        import numpy as np

        found, releases = [], 0
        for first in range(0, size, 10_000):
            groups = min(10_000, size - first)
            made = release(groups, times)
            told = np.array(made.statement.values, dtype=np.float64).reshape(-1, groups).T
            found.append(likelihood(told, _move(made), made.statement.law))
            releases += 1
        return Heard(
            scores=np.concatenate(found), epsilon=made.charged.epsilon, delta=made.charged.delta, releases=releases
        )

    return play


def _move(release: Release) -> Array:
    """By how much one event in the first step moves the measurements."""
    import numpy as np

    from sfumato.streams.strategy_encoder import encoder_of

    encoder = encoder_of(release.statement.mechanism.strategy)  # type: ignore[attr-defined]  # that of a stream has one
    one = np.zeros(HORIZON, dtype=np.int64)
    one[0] = 1
    return np.asarray(encoder.measure(one) - encoder.measure(0 * one), dtype=np.float64)


GRAPHS: tuple[WayOut, ...] = (
    _asked("edges", lambda g: g.edges(), (0, 1), (2, 3)),
    _asked("degrees", lambda g: g.degrees(), (0, 1), (0, 2)),
    _asked("degree sequences", lambda g: g.degree_sequence(), (0, 1), (0, 2)),
    _asked("degree histograms", lambda g: g.degree_histogram(), (0, 1), (2, 3)),
    _asked("edges and degrees", lambda g: g.edges_and_degrees(), (0, 1), (0, 2)),
    _asked(
        "stars", lambda g: g.stars(2), (0, 5), (1, 5), beside=(*STAR, (1, 2), (1, 3), (1, 4), (5, 2), (5, 3), (5, 4))
    ),
    _asked("statistics of random graph models", lambda g: g.ergm_statistics(), (0, 1), (2, 3), beside=ALMOST_ALL),
    _whole(
        "wedges by a ladder",
        "graph",
        _rungs,
        _of_edges(lambda g: g.local_stars(2, way="ladder"), (1, 2), beside=[(0, 1)]),
    ),
    _whole("nodes of highest degree", "graph", _sets, _of_edges(lambda g: g.top_degrees(1), (2, 3), beside=STAR)),
)

STREAMS: tuple[WayOut, ...] = (
    WayOut(
        name="running totals of events, Gaussian noise",
        kind="stream",
        how="vault, a stream of many groups",
        play=_series(4),
        curve=True,
        most=20_000,
    ),
    WayOut(
        name="running totals of events, Laplace noise",
        kind="stream",
        how="vault, a stream of many groups",
        play=_series(1, delta=Fraction(0)),
        most=20_000,
    ),
    WayOut(
        name="alarms",
        kind="stream",
        how=EXACT,
        play=_exactly(_alarms, _watched),
        broken=undercharged(_exactly(_alarms, _watched), by=3),
        flaw="a third of it is charged",
    ),
)
