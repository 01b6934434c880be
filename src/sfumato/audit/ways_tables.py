"""Ways out of tables: counts, sums and other measures, choices, keys, studies, and synthetic rows."""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.audit.invented_table import invented_table
from sfumato.audit.product import Whatever
from sfumato.audit.synthetic_rows import resampled
from sfumato.audit.ways import Heard, WayOut
from sfumato.audit.ways_played import DELTA, HALF_CHARGED, drawn_again, in_groups, new_vault, undercharged
from sfumato.core.limits import Limit
from sfumato.core.release import Release
from sfumato.core.units import record, user
from sfumato.engines.expressions import col
from sfumato.mechanisms import NoisyThreshold, OptimalSelection

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["IN_VAULT", "OF_CERTIFICATE", "PERSON", "RECORD", "SYNTHETIC", "TABLES"]

RECORD = record(relation="add/remove")
PERSON = user("id", relation="add/remove")
SPREAD = 8  # groups of one person, where noise is Gaussian
RARELY = Fraction(3, 20)
IN_VAULT = "vault, a release of many groups"
OF_CERTIFICATE = "vault, then the mechanism of its certificate"
Ask = Callable[["Table"], Whatever]


def _table(rows: dict[str, list[int]], **declared: Whatever) -> "Table":
    return invented_table(new_vault(RECORD), rows, **declared)


def _of_rows(ask: Ask, **values: int) -> Callable[[int, int, int], Release]:
    """Groups with a row each, as many times as it counts, of these values."""

    def release(groups: int, times: int, epsilon: int) -> Release:
        held = {"g": [group for group in range(groups) for _ in range(times)]}
        held |= {name: [values.get(name, 10)] * (groups * times) for name in ("x", "y")}
        table = _table(held, keys={"g": range(groups)}, bounds={"x": (0, 10), "y": (0, 10)})
        told: Release = ask(table).release(epsilon=epsilon, even_if_useless=True)
        return told

    return release


def _grouped(ask: Ask) -> Ask:
    return lambda table: ask(table.group_by("g"))


def _measured(name: str, ask: Ask, *, grouped: bool = False, wide: int = 1, **values: int) -> WayOut:
    play = in_groups(_of_rows(ask if grouped else _grouped(ask), **values), wide=wide)
    return WayOut(name=name, kind="release", how=IN_VAULT, play=play, most=50_000)


def _of_persons(units: int, times: int, epsilon: int) -> Release:
    """Persons who are in eight groups each, which nobody else is in."""
    import pyarrow as pa

    places = [place for place in range(units * SPREAD) for _ in range(times)]
    ids = [2 * (place // SPREAD) + again % times for again, place in enumerate(places)]
    table = new_vault(PERSON).table(
        pa.table({"id": pa.array(ids, pa.int64()), "g": pa.array(places, pa.int64())}),
        name="invented",
        version="1",
        keys={"g": range(units * SPREAD)},
        limit=Limit(groups=SPREAD, rows_per_group=1),
    )
    return table.group_by("g").count().release(epsilon=epsilon, delta=DELTA, even_if_useless=True)


def _medians(size: int, times: int) -> Heard:
    """Medians of groups where one row more at the bottom makes the narrow gap at the top less likely, by almost ε."""
    import numpy as np

    here, number = [0, 8_000, 10_000], min(size, 3_000)
    rows = here + [0] * times
    told, left, releases = [], size, 0
    while left > 0:
        groups = min(left, number)
        held = {"g": [group for group in range(groups) for _ in rows], "x": rows * groups}
        asked = _table(held, keys={"g": range(groups)}, bounds={"x": (0, 10_000)}).group_by("g").quantiles("x", ["1/2"])
        release = asked.release(epsilon=4, even_if_useless=True)
        told.append(np.array(release.statement.values, dtype=np.float64))
        left, releases = left - groups, releases + 1
    return Heard(
        scores=np.concatenate(told), epsilon=release.charged.epsilon, delta=release.charged.delta, releases=releases
    )


def _keys(*, counted: bool) -> Callable[[int, int], Heard]:
    """Keys that are shown about half of the time, or rarely, with one person more or not; hidden ones score lowest."""

    def play(size: int, times: int) -> Heard:
        import numpy as np

        epsilon = 1
        if counted:
            persons = NoisyThreshold.calibrated(keys=1, most=1, epsilon=epsilon, delta=DELTA).threshold
        else:
            rule = OptimalSelection.calibrated(keys=1, epsilon=epsilon, delta=DELTA)
            persons = max(count for count in range(rule.sure) if rule.chance(count) < RARELY)
        told, left, releases = [], size, 0
        while left > 0:
            keys = min(left, 20_000)
            table = _table({"g": [key for key in range(keys) for _ in range(persons + times)]})
            release = table.find_keys("g", counted=counted).release(epsilon=epsilon, delta=DELTA)
            shown = np.full(keys, -1.0)
            shown[[int(key) for (key,) in release.statement.found]] = release.statement.values if counted else 1.0
            told.append(shown)
            left, releases = left - keys, releases + 1
        return Heard(
            scores=np.concatenate(told), epsilon=release.charged.epsilon, delta=release.charged.delta, releases=releases
        )

    return play


def _one(ask: Ask, *, delta: Fraction = Fraction(0), **values: int) -> Callable[[int, int], Release]:
    """One release of a table whose only row is there as often as it counts."""

    def release(times: int, epsilon: int) -> Release:
        held = {name: [values.get(name, 10)] * times for name in ("x", "y")}
        held |= {name: [values.get(name, 1)] * times for name in ("g", "z")}
        table = _table(held, keys={"g": range(4), "z": range(3)}, bounds={"x": (0, 10), "y": (0, 10)})
        found = ask(table).release(epsilon=epsilon, delta=delta, even_if_useless=True)
        made: Release = getattr(found, "release", found)  # a study has the release that it is worked out from
        return made

    return release


def _again(name: str, ask: Ask, *, delta: Fraction = Fraction(0), curve: bool = False, **values: int) -> WayOut:
    play = drawn_again(_one(ask, delta=delta, **values))
    return WayOut(name=name, kind="release", how=OF_CERTIFICATE, play=play, curve=curve, most=200_000)


def _contributions(times: int, epsilon: int) -> Release:
    import pyarrow as pa

    table = new_vault(PERSON).table(pa.table({"id": pa.array(range(times), pa.int64())}), name="invented", version="1")
    return table.contributions(most=4).release(epsilon=epsilon, even_if_useless=True)


TABLES: tuple[WayOut, ...] = (
    WayOut(
        name="counts",
        kind="release",
        how=IN_VAULT,
        play=in_groups(_of_rows(_grouped(lambda t: t.count()))),
        most=400_000,
    ),
    _measured(
        "counts, asked in SQL", lambda t: t.sql("SELECT g, COUNT(*) AS n FROM invented GROUP BY g"), grouped=True
    ),
    _measured("sums", lambda t: t.sum("x")),
    _measured("means", lambda t: t.mean("x")),
    _measured("variances", lambda t: t.variance("x")),
    _measured("proportions", lambda t: t.proportion(col("x") > 3)),
    _measured("ratios", lambda t: t.ratio("x", "y")),
    _measured("covariances", lambda t: t.covariance("x", "y")),
    _measured("histograms", lambda t: t.histogram("x", [0, 5, 10]), wide=2, x=3),
    WayOut(
        name="counts of persons, Gaussian noise",
        kind="release",
        how=IN_VAULT,
        play=in_groups(_of_persons, wide=SPREAD),
        curve=True,
        most=30_000,
    ),
    WayOut(
        name="counts of a person in eight groups, Gaussian noise",
        kind="release",
        how=OF_CERTIFICATE,
        play=drawn_again(lambda times, epsilon: _of_persons(1, times, epsilon)),
        curve=True,
    ),
    WayOut(
        name="medians",
        kind="release",
        how=IN_VAULT,
        play=_medians,
        most=6_000,
        broken=undercharged(_medians),
        flaw=HALF_CHARGED,
    ),
    WayOut(name="private key discovery", kind="release", how=IN_VAULT, play=_keys(counted=True), most=50_000),
    WayOut(name="selected keys", kind="release", how=IN_VAULT, play=_keys(counted=False), most=50_000),
    _again("marginals", lambda t: t.marginals(["g"], ["z"], ["g", "z"])),
    _again("linear regressions", lambda t: t.linear_regression("y ~ x")),
    _again("survival curves", lambda t: t.survival("x", col("z") == 1, until=10)),
    WayOut(
        name="contributions of persons",
        kind="release",
        how=OF_CERTIFICATE,
        play=drawn_again(_contributions),
        most=200_000,
    ),
)


def _synthesized(times: int, epsilon: int) -> Release:
    """The noisy tables that synthetic rows are made of."""
    table = _table({name: [1] * times for name in ("g", "z")}, keys={"g": range(2), "z": range(2)})
    return table.synthesis(rows=100).release(epsilon=epsilon).release


def _membership(size: int, times: int) -> Heard:
    """How many of 2,000 synthetic rows are like the target's, beside 29 others who are like it and 30 who are not."""
    import numpy as np

    rows = {"g": [0] * 30 + [1] * (29 + times)}
    table = _table(rows, keys={"g": range(2)})
    made = [table.synthesis(rows=2_000).release(epsilon=8, fresh=True) for _ in range(size)]
    scores = np.array([float(np.sum(one.rows["g"].to_numpy())) for one in made])
    charged = made[0].release.charged
    return Heard(scores=scores, epsilon=charged.epsilon, delta=charged.delta, releases=size)


def _unprotected(size: int, times: int) -> Heard:
    """How many rows are like the target's, drawn from the data themselves, where nobody else is like it."""
    import numpy as np

    people = np.repeat([[0], [1]], [30, times], axis=0)
    make = resampled(np.random.default_rng(), times=15)
    scores = np.array([float(make(people).sum()) for _ in range(size)])
    return Heard(scores=scores, epsilon=Fraction(1), delta=Fraction(0), releases=0)


SYNTHETIC: tuple[WayOut, ...] = (
    WayOut(
        name="noisy tables of synthetic rows",
        kind="synthetic",
        how=OF_CERTIFICATE,
        play=drawn_again(_synthesized),
        most=200_000,
    ),
    WayOut(
        name="synthetic rows, membership",
        kind="synthetic",
        how="vault, a release a draw",
        play=_membership,
        most=250,
        broken=_unprotected,
        flaw="rows of the data themselves",
    ),
)
