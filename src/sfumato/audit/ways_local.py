"""Ways out of the local model: what a client reports of its person, with no vault and no collector to trust."""

from collections.abc import Callable
from fractions import Fraction
from math import log

from sfumato.audit.product import Whatever, asked_of
from sfumato.audit.ways import Heard, WayOut
from sfumato.local.client import Client
from sfumato.local.collection import ORACLES, Collection
from sfumato.local.means import MEANS

__all__ = ["LOCAL"]


def _reports(kind: type, *, epsilon: int = 1) -> Callable[[int, int], Heard]:
    """Reports of many clients with one of two values, by how much likelier the second makes each."""
    oracle: Whatever = asked_of(kind, epsilon)
    mean = kind in MEANS
    places = (0, oracle.steps) if mean else (0, 1)
    values: tuple[Fraction | int, Fraction | int] = (Fraction(-1), Fraction(1)) if mean else (0, 1)
    collection = Collection(name="invented", ask=oracle)
    claimed = Fraction(asked_of(kind, 1).epsilon)

    def play(size: int, times: int) -> Heard:
        import numpy as np

        odds = {
            one: round(log(oracle.probability(one, places[1]) / oracle.probability(one, places[0])), 9)
            for one in oracle.outputs()
        }
        scores = np.array([odds[Client(collection).report(values[times])] for _ in range(size)])
        return Heard(scores=scores, epsilon=claimed, delta=Fraction(0), releases=size)

    return play


def _way(kind: type) -> WayOut:
    name: str = kind.KIND  # type: ignore[attr-defined]  # each way to ask has one
    return WayOut(
        name=f"reports: {name.removeprefix('local.').replace('_', ' ')}",
        kind="local",
        how="clients, a report a draw",
        play=_reports(kind),
        broken=_reports(kind, epsilon=2),
        flaw="reports at 2ε",
        most=10_000,
    )


LOCAL: tuple[WayOut, ...] = tuple(_way(kind) for kind in (*ORACLES, *MEANS))
