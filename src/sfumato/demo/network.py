"""A generated hospital network: twelve invented regions, invented patients, no real person.

One row is one visit. A few patients come very often and many come once; some are seen in several regions; one region
is small and one disease is rare. These are the shapes that a private release has to cope with.

==============  ======  ==========================================================================
column          type    what it holds
==============  ======  ==========================================================================
``patient_id``  text    ``P000123``: who the visit belongs to
``region``      text    where the visit took place, one of :data:`REGIONS`
``sex``         text    one of :data:`SEXES`, the same at each visit of a patient
``age``         whole   0 to 99, the same at each visit of a patient
``diagnosis``   text    one of :data:`DIAGNOSES`; ``ILI`` is an influenza-like illness
``sbp``         number  systolic blood pressure in mmHg, within :data:`SBP`; sometimes missing
==============  ======  ==========================================================================
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["DIAGNOSES", "FILE", "RARE_DISEASE", "REGIONS", "SBP", "SEXES", "SMALL_REGION", "generate"]

FILE = "visits.parquet"
SEXES = ("F", "M")
SBP = (70, 240)

# Region, share of the patients, share of its visits that are for an influenza-like illness.
_REGIONS = (
    ("Alderwick", 0.150, 0.16),
    ("Brackenmoor", 0.130, 0.11),
    ("Caldervale", 0.120, 0.21),
    ("Dunmere", 0.110, 0.14),
    ("Elderfold", 0.100, 0.09),
    ("Fenwater", 0.090, 0.27),
    ("Greymarsh", 0.080, 0.13),
    ("Hartsholm", 0.070, 0.18),
    ("Juniper Bay", 0.060, 0.32),
    ("Kestrelby", 0.050, 0.12),
    ("Lindenheath", 0.037, 0.20),
    ("Skerry Isle", 0.003, 0.15),
)
REGIONS = tuple(name for name, _, _ in _REGIONS)
SMALL_REGION = "Skerry Isle"

# Diagnosis other than ILI, and its share of the other visits.
_DIAGNOSES = (
    ("hypertension", 0.24),
    ("injury", 0.20),
    ("back pain", 0.17),
    ("diabetes", 0.15),
    ("asthma", 0.13),
    ("depression", 0.1095),
    ("Lund syndrome", 0.0005),
)
DIAGNOSES = ("ILI", *(name for name, _ in _DIAGNOSES))
RARE_DISEASE = "Lund syndrome"

MOST_VISITS = 150
TRAVELLERS, AWAY = 0.30, 0.35


def generate(folder: str | Path, *, patients: int = 20_000, seed: int = 2026) -> Path:
    """Write ``visits.parquet`` into a folder and return its path; the same seed gives the same network.

    Nothing about the rows is returned: whoever wants to know asks a vault.

    >>> import tempfile
    >>> generate(tempfile.mkdtemp(), patients=10).name
    'visits.parquet'
    """
    import pyarrow.parquet as pq

    natural(patients, "patients")
    natural(seed, "seed", least=0)
    path = Path(folder) / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(_visits(patients, seed), path)
    except OSError as wrong:
        raise InvalidInput(f"{path} was not written: {wrong.strerror or wrong}. Choose another folder.") from None
    return path


def _visits(patients: int, seed: int) -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    # A seeded, insecure generator is right here and nowhere else: it invents the fictional people, and the same ones
    # each time. The noise of a release never comes from it, only from the operating system (sfumato.noise).
    draw = np.random.default_rng(seed)

    home = draw.choice(len(REGIONS), size=patients, p=_shares([share for _, share, _ in _REGIONS]))
    sex = draw.integers(0, len(SEXES), size=patients)
    age = np.clip(draw.normal(44, 24, size=patients), 0, 99).astype(np.int64)
    traveller = draw.random(patients) < TRAVELLERS
    visits = np.minimum(1 + draw.lognormal(0.5, 1.1, size=patients).astype(np.int64), MOST_VISITS)

    # From here on one entry is one visit, in an order that does not tell who came with whom.
    who = draw.permutation(np.repeat(np.arange(patients), visits))
    rows = len(who)
    elsewhere = draw.choice(len(REGIONS), size=rows, p=_shares([share for _, share, _ in _REGIONS]))
    region = np.where(traveller[who] & (draw.random(rows) < AWAY), elsewhere, home[who])
    other = 1 + draw.choice(len(_DIAGNOSES), size=rows, p=_shares([share for _, share in _DIAGNOSES]))
    has_ili = draw.random(rows) < np.array([share for _, _, share in _REGIONS])[region]
    diagnosis = np.where(has_ili, 0, other)
    high = 18 * (diagnosis == DIAGNOSES.index("hypertension"))
    pressure = np.clip(draw.normal(104 + 0.42 * age[who] + high, 13), *SBP).round(1)

    names = np.char.add("P", np.char.zfill(np.arange(patients).astype(str), 6))
    return pa.table(
        {
            "patient_id": pa.array(names[who], type=pa.string()),
            "region": _named(region, REGIONS),
            "sex": _named(sex[who], SEXES),
            "age": pa.array(age[who]),
            "diagnosis": _named(diagnosis, DIAGNOSES),
            "sbp": pa.array(pressure, mask=draw.random(rows) < 0.12),
        }
    )


def _shares(weights: list[float]) -> list[float]:
    """Scale to a sum of 1, which the generator insists on more exactly than decimals add up."""
    total = sum(weights)
    return [weight / total for weight in weights]


def _named(places: "np.ndarray[tuple[int], np.dtype[np.int64]]", names: tuple[str, ...]) -> "pa.Array":
    import pyarrow as pa

    return pa.array(names).take(pa.array(places))
