"""The register that the demonstrations attack: one row for each invented patient of the generated hospital network."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.demo.network import DIAGNOSES, RARE_DISEASE, REGIONS, SEXES, generate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

__all__ = ["PATIENTS", "SEED", "Register", "register"]

PATIENTS = 20_000
SEED = 2052  # of a network whose small region has one patient with the rare disease


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Register:
    """A row for each patient. Sexes, regions and diagnoses are places in their lists; a missing pressure is NaN.

    The exact numbers may be shown: no real person occurs.
    """

    names: tuple[str, ...]
    age: "Integers"
    sex: "Integers"
    region: "Integers"
    diagnosis: "Integers"
    pressure: "Floats"

    def __len__(self) -> int:
        return len(self.names)

    def some(self, places: "Integers") -> "Register":
        """The rows at these places."""
        return Register(
            names=tuple(self.names[place] for place in places.tolist()),
            age=self.age[places],
            sex=self.sex[places],
            region=self.region[places],
            diagnosis=self.diagnosis[places],
            pressure=self.pressure[places],
        )

    def within(self, region: str) -> "Register":
        """The patients of a region."""
        return self.some((self.region == REGIONS.index(region)).nonzero()[0])


def register(*, patients: int = PATIENTS, seed: int = SEED, folder: str | Path | None = None) -> Register:
    """Invent the hospital network, and keep one visit of each patient: one for the rare disease, else the first listed.

    ``folder`` is where ``visits.parquet`` is left; without it nothing is left.

    >>> some = register(patients=50)
    >>> len(some), some.names[0], len(some.some(some.age.argsort()[:3]))
    (50, 'P000000', 3)
    """
    natural(patients, "patients")
    if folder is not None:
        return _read(generate(folder, patients=patients, seed=seed))
    with tempfile.TemporaryDirectory() as place:
        return _read(generate(place, patients=patients, seed=seed))


def _read(path: Path) -> Register:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows = pq.read_table(path)
    lists = {"sex": SEXES, "region": REGIONS, "diagnosis": DIAGNOSES}
    places = {
        column: pc.index_in(rows[column], value_set=pa.array(names)).to_numpy().astype(np.int64)
        for column, names in lists.items()
    }
    names, who = np.unique(rows["patient_id"].to_numpy(), return_inverse=True)
    common = places["diagnosis"] != DIAGNOSES.index(RARE_DISEASE)
    order = np.lexsort((np.arange(len(rows)), common, who))
    kept = order[np.unique(who[order], return_index=True)[1]]
    return Register(
        names=tuple(names.tolist()),
        age=rows["age"].to_numpy().astype(np.int64)[kept],
        sex=places["sex"][kept],
        region=places["region"][kept],
        diagnosis=places["diagnosis"][kept],
        pressure=rows["sbp"].to_numpy().astype(np.float64)[kept],
    )
