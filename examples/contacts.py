"""A generated contact network of hospital patients: eight wards, invented patients, no real person.

One row is one day on which two patients were near each other. Patients come, lie in a bay of a few beds and go; those
of one bay at one time meet, some of one ward do, and a few are taken to another ward and meet patients there. A handful
walk about and meet very many. These are the shapes of such networks: bays make triangles, walks make long tails.

==========  ======  =======================================================
column      type    what it holds
==========  ======  =======================================================
``source``  text    a patient, such as ``Renal 017``: the ward, and a number
``target``  text    the other patient
``day``     whole   the day of the contact, 0 to 89
==========  ======  =======================================================
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DAYS", "FILE", "WARDS", "generate", "patients_of"]

FILE = "contacts.parquet"
WARDS = ("Cardiac", "Geriatric", "Intensive", "Maternity", "Oncology", "Renal", "Respiratory", "Surgical")
DAYS = 90

# How many of 100 patients of the same ward and time meet outside their bay, and how many beds a bay has, by ward.
_MEETING = (8, 14, 2, 4, 6, 12, 9, 7)
_BEDS = (4, 6, 1, 2, 4, 4, 6, 4)
_BAYS, _TAKEN, _WALKERS = 6, 0.08, 0.012


def patients_of(patients: int = 960) -> dict[str, str]:
    """The patients by name, each with the ward that admitted them: a public register, equally many for each ward.

    >>> list(patients_of(16).items())[:3]
    [('Cardiac 000', 'Cardiac'), ('Cardiac 001', 'Cardiac'), ('Geriatric 000', 'Geriatric')]
    """
    natural(patients, "patients", least=len(WARDS))
    return {f"{ward} {number:03}": ward for ward in WARDS for number in range(patients // len(WARDS))}


def generate(folder: str | Path, *, patients: int = 960, seed: int = 2026) -> Path:
    """Write ``contacts.parquet`` into a folder and return its path; the same seed gives the same contacts.

    Nothing about the rows is returned: whoever wants to know asks a vault.

    >>> import tempfile
    >>> generate(tempfile.mkdtemp(), patients=16).name
    'contacts.parquet'
    """
    import pyarrow.parquet as pq

    natural(seed, "seed", least=0)
    path = Path(folder) / FILE
    table = _contacts(list(patients_of(patients)), seed)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
    except OSError as wrong:
        raise InvalidInput(f"{path} was not written: {wrong.strerror or wrong}. Choose another folder.") from None
    return path


def _contacts(names: list[str], seed: int) -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    # As in the network of visits: a seeded generator invents fictional people, and never the noise of a release.
    draw = np.random.default_rng(seed)
    many = len(names)
    ward = np.repeat(np.arange(len(WARDS)), many // len(WARDS))
    comes = draw.integers(0, DAYS - 4, size=many)
    goes = np.minimum(comes + 2 + draw.geometric(0.055, size=many), DAYS)
    bay = draw.integers(0, _BAYS, size=many)
    walks = draw.random(many) < _WALKERS
    taken = np.where(draw.random(many) < _TAKEN, draw.integers(0, len(WARDS), size=many), -1)

    # From here on one entry is one pair of patients who were there at the same time.
    one, other = np.triu_indices(many, k=1)
    first, last = np.maximum(comes[one], comes[other]), np.minimum(goes[one], goes[other])
    one, other, first, last = (part[first < last] for part in (one, other, first, last))
    beds, meeting = np.array(_BEDS)[ward[one]], np.array(_MEETING)[ward[one]] / 100
    same = ward[one] == ward[other]
    chance = np.select(
        [
            same & (bay[one] == bay[other]) & (beds > 1),
            same,
            (taken[one] == ward[other]) | (taken[other] == ward[one]),
            walks[one] | walks[other],
        ],
        [0.4 + 0.09 * beds, meeting, 0.12, 0.10],
    )
    meets = draw.random(len(one)) < chance
    one, other, first, last = (part[meets] for part in (one, other, first, last))

    # And from here on one entry is one day of theirs, in an order that does not tell who came when.
    pair = np.repeat(np.arange(len(one)), last - first)
    day = np.arange(len(pair)) - np.repeat(np.cumsum(last - first) - last, last - first)
    near = draw.permutation(np.flatnonzero(draw.random(len(pair)) < 0.5))
    called = pa.array(names)
    return pa.table(
        {
            "source": called.take(pa.array(one[pair[near]])),
            "target": called.take(pa.array(other[pair[near]])),
            "day": pa.array(day[near]),
        }
    )
