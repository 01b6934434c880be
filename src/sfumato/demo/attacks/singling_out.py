"""Singling out: a table without any of the 18 Safe Harbor identifiers points to a person where it says 1.

A small area, a rare disease and a count of 1 are enough: whoever knows of one neighbour with that disease reads that
person's row. Counts from a vault bound what the same table can teach: the odds that the person is in the data move by
a factor within e^ε (those of a trait of somebody who is known to be in it within e^2ε).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core import adversary, enclosures
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, probability
from sfumato.core.guarantees import Pure
from sfumato.core.limits import Limit
from sfumato.core.release import Release
from sfumato.core.units import user
from sfumato.demo.attacks.hospital import Register
from sfumato.demo.attacks.reconstruction import laplace_of
from sfumato.demo.network import DIAGNOSES, RARE_DISEASE, REGIONS, SEXES, SMALL_REGION
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteLaplace
from sfumato.vault import Vault

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

__all__ = [
    "SinglingOut",
    "count_cells",
    "demonstrate_singling_out",
    "find_rows",
    "odds_exponent",
    "private_cells",
    "without_identifiers",
]

OLDEST = 90  # Safe Harbor: ages over 89 become one group
PRIOR = Fraction(1, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglingOut:
    """What was found. Public: an experiment on invented people.

    ``told`` is what the row of the person says besides. ``exponent`` is the logarithm of the factor by which the
    released cell moves the odds that the person is in the data, and ``worst`` the largest that any release could have.
    ``prior``, ``posterior``, ``low`` and ``high`` are a belief before and after it, and its bounds under ε.
    """

    region: str
    diagnosis: str
    count: int
    rows: int
    told: tuple[tuple[str, str], ...]
    cells_of_one: int
    cells: int
    shown: tuple[tuple[str, int, int], ...]
    """Each diagnosis of the region with its exact count and the released one."""
    epsilon: Fraction
    released: int
    margin: int
    exponent: Fraction
    worst: Fraction
    prior: Fraction
    posterior: Fraction
    low: Fraction
    high: Fraction

    @property
    def found(self) -> bool:
        """Whether the exact table pointed to one person."""
        return self.count == self.rows == 1


def without_identifiers(hospital: Register) -> Register:
    """The table that passes the list: no number of a patient is left, and ages over 89 are one group.

    >>> from sfumato.demo.attacks.hospital import register
    >>> table = without_identifiers(register(patients=300))
    >>> set(table.names), int(table.age.max()) <= 90
    ({''}, True)
    """
    import numpy as np

    return Register(
        names=("",) * len(hospital),
        age=np.minimum(hospital.age, OLDEST),
        sex=hospital.sex,
        region=hospital.region,
        diagnosis=hospital.diagnosis,
        pressure=hospital.pressure,
    )


def count_cells(table: Register) -> "Integers":
    """How many patients there are: regions × diagnoses."""
    import numpy as np

    places = table.region * len(DIAGNOSES) + table.diagnosis
    counts = np.bincount(places, minlength=len(REGIONS) * len(DIAGNOSES))
    return np.asarray(counts.reshape(len(REGIONS), len(DIAGNOSES)), dtype=np.int64)


def find_rows(table: Register, *, region: str, diagnosis: str) -> Register:
    """The rows that fit what a neighbour knows."""
    fits = (table.region == REGIONS.index(region)) & (table.diagnosis == DIAGNOSES.index(diagnosis))
    return table.some(fits.nonzero()[0])


def private_cells(hospital: Register, *, epsilon: Exact) -> Release:
    """The same counts through a vault, each patient in one cell.

    Guarantee: ε-DP for one patient more or less (add/remove), over all cells together.
    """
    import pyarrow as pa

    vault = Vault(unit=user("patient", relation="add/remove"), budget=Budget(epsilon=epsilon), name="register")
    rows = pa.table(
        {
            "patient": list(hospital.names),
            "region": pa.array(REGIONS).take(pa.array(hospital.region)),
            "diagnosis": pa.array(DIAGNOSES).take(pa.array(hospital.diagnosis)),
        }
    )
    keys = {"region": REGIONS, "diagnosis": DIAGNOSES}
    table = vault.table(rows, name="cases", version="demo", limit=Limit(groups=1, rows_per_group=1), keys=keys)
    return table.group_by("region", "diagnosis").count().release(epsilon=epsilon)


def odds_exponent(law: DiscreteLaplace, released: int, *, absent: int, present: int) -> Fraction:
    """The logarithm of the factor by which a released count moves the odds that a person is in, exactly.

    With noise P(z) ∝ exp(−|z|/scale) it is (|released − absent| − |released − present|)/scale.

    Guarantee: within ±|present − absent|/scale, whatever is released. Assumes: everybody else is known to the
    attacker, who therefore knows the exact count with and without the person.

    >>> law = DiscreteLaplace(scale=Fraction(2))
    >>> [str(odds_exponent(law, seen, absent=0, present=1)) for seen in (-5, 0, 1, 9)]
    ['-1/2', '-1/2', '1/2', '1/2']
    """
    return (abs(released - absent) - abs(released - present)) / law.scale


def demonstrate_singling_out(
    hospital: Register,
    *,
    epsilon: Exact = 1,
    prior: Exact = PRIOR,
    region: str = SMALL_REGION,
    diagnosis: str = RARE_DISEASE,
) -> SinglingOut:
    """Find the one patient of a region with a disease in the exact table; then see what private counts teach."""
    public = without_identifiers(hospital)
    counts = count_cells(public)
    found = find_rows(public, region=region, diagnosis=diagnosis)
    count = int(counts[REGIONS.index(region), DIAGNOSES.index(diagnosis)])
    if count != 1:
        raise InvalidInput(
            f"this hospital has {count:,} patients of that region with that disease, and the demonstration needs one. "
            "Nothing was released. Leave out patients and seed."
        )
    spend = Budget.asked(epsilon=epsilon, delta=0).epsilon
    release = private_cells(hospital, epsilon=spend)
    law = laplace_of(release)
    cells = zip(zip(*release.labels.values(), strict=True), release.values, strict=True)
    noisy = {name: int(value) for (where, name), value in cells if where == region}
    released = noisy[diagnosis]
    exponent = odds_exponent(law, released, absent=count - 1, present=count)
    chance = probability(prior, "prior")
    bounds = adversary.belief(Pure(epsilon=spend), chance)
    return SinglingOut(
        region=region,
        diagnosis=diagnosis,
        count=count,
        rows=len(found),
        told=_told(found),
        cells_of_one=int((counts == 1).sum()),
        cells=counts.size,
        shown=tuple(
            (name, int(exact), noisy[name])
            for name, exact in zip(DIAGNOSES, counts[REGIONS.index(region)], strict=True)
        ),
        epsilon=spend,
        released=released,
        margin=law.margin("0.95"),
        exponent=exponent,
        worst=1 / law.scale,
        prior=chance,
        posterior=_moved(chance, exponent),
        low=bounds.low,
        high=bounds.high,
    )


def _moved(chance: Fraction, exponent: Fraction) -> Fraction:
    """Bayes' rule, rounded towards where the belief moves from."""
    if exponent >= 0:
        factor = enclosures.exp(exponent).low
        return factor * chance / (1 - chance + factor * chance)
    factor = enclosures.exp(-exponent).low
    return chance / (chance + factor * (1 - chance))


def _told(found: Register) -> tuple[tuple[str, str], ...]:
    import numpy as np

    if len(found) != 1:
        return ()
    pressure = float(found.pressure[0])
    told = (("sex", SEXES[int(found.sex[0])]), ("age", str(int(found.age[0]))))
    return told if np.isnan(pressure) else (*told, ("sbp", f"{pressure:.1f}"))
