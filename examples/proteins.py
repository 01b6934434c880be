"""A generated network of protein affinities: 36 invented proteins in four complexes, measured in no laboratory.

One row is one measured pair; a pair without a row has affinity 0. Proteins of one complex bind well, a few bind across
complexes, and most pairs do not bind at all.

============  ======  ==================================================
column        type    what it holds
============  ======  ==================================================
``source``    text    a protein, such as ``A3``: its complex and a number
``target``    text    the other protein
``affinity``  number  how well they bind, above 0 and up to :data:`MOST`
============  ======  ==================================================
"""

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COMPLEXES", "FILE", "MOST", "PROTEINS", "generate"]

FILE = "affinities.parquet"
COMPLEXES = ("A", "B", "C", "D")
EACH = 9
MOST = 1
PROTEINS = {f"{name}{number}": name for name in COMPLEXES for number in range(1, EACH + 1)}
"""The proteins, each with its complex: a public list."""

# The middle affinity inside each complex, and between two: most pairs across bind not at all.
_INSIDE = {"A": 0.78, "B": 0.62, "C": 0.70, "D": 0.45}
_ACROSS = {("A", "B"): (0.55, 0.45), ("C", "D"): (0.35, 0.35)}
_ELSEWHERE = (0.03, 0.20)


def generate(folder: str | Path, *, seed: int = 2026) -> Path:
    """Write ``affinities.parquet`` into a folder and return its path; the same seed gives the same affinities.

    >>> import tempfile
    >>> generate(tempfile.mkdtemp()).name
    'affinities.parquet'
    """
    import pyarrow.parquet as pq

    natural(seed, "seed", least=0)
    path = Path(folder) / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(_affinities(seed), path)
    except OSError as wrong:
        raise InvalidInput(f"{path} was not written: {wrong.strerror or wrong}. Choose another folder.") from None
    return path


def _affinities(seed: int) -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    # As in the network of visits: a seeded generator invents the data, and never the noise of a release.
    draw = np.random.default_rng(seed)
    rows = []
    for one, other in combinations(PROTEINS, 2):
        inside = PROTEINS[one] == PROTEINS[other]
        chance, middle = (
            (0.92, _INSIDE[PROTEINS[one]]) if inside else _ACROSS.get((PROTEINS[one], PROTEINS[other]), _ELSEWHERE)
        )
        binds, affinity = draw.random() < chance, draw.normal(middle, 0.12)
        if binds:
            rows.append((one, other, round(min(max(float(affinity), 0.01), float(MOST)), 3)))
    order = draw.permutation(len(rows))
    source, target, affinity_of = zip(*(rows[place] for place in order), strict=True)
    return pa.table({"source": source, "target": target, "affinity": affinity_of})
