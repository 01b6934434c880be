"""All ways out that are attacked, in the order of the table, and the attack on all of them."""

from collections.abc import Iterator, Sequence

from sfumato.audit.ways import KINDS, SAMPLES, WayAudited, WayOut
from sfumato.audit.ways_graphs import GRAPHS, STREAMS
from sfumato.audit.ways_local import LOCAL
from sfumato.audit.ways_tables import SYNTHETIC, TABLES
from sfumato.audit.ways_training import TRAINING
from sfumato.errors import InvalidInput

__all__ = ["WAYS", "ways_out"]

WAYS: tuple[WayOut, ...] = (*TABLES, *STREAMS, *GRAPHS, *LOCAL, *SYNTHETIC, *TRAINING)


def ways_out(
    kind: str | None = None,
    *,
    samples: int = SAMPLES,
    confidence: float = 0.99,
    only: str = "",
    twins: bool = True,
    ways: Sequence[WayOut] | None = None,
) -> Iterator[WayAudited]:
    """Attack every shipped way out of a kind (of all kinds, if None), and the broken copy of each.

    ``only`` is a part of names, in capitals or not. All rows together hold with the confidence: each has its share of
    the doubt. Invented data alone is read. "Nothing
    found" is no proof.

    >>> rows = list(ways_out("local", only="kary", samples=2_000))
    >>> [(row.twin, row.refuted) for row in rows], rows[0].epsilon
    ([(False, False), (True, True)], Fraction(1, 1))
    """
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"the kinds of ways out are {', '.join(KINDS)}; nothing was attacked.")
    all_of_them = WAYS if ways is None else ways
    chosen = [way for way in all_of_them if kind in (None, way.kind) and only.casefold() in way.name.casefold()]
    rows = [(way, twin) for twin in ((False, True) if twins else (False,)) for way in chosen]
    for way, twin in rows:
        yield way.run(samples=samples, alpha=(1 - confidence) / len(rows), twin=twin)
