"""A table to ask in SQL, behind a gate that nothing may pass."""

from fractions import Fraction

import sfumato as sf
from sfumato.core.documents import canonical, encode
from sfumato.core.query import Dataset
from sfumato.core.question import Question
from sfumato.core.units import Unit
from sfumato.tables.keys import Keys
from sfumato.tables.table import Table


class Shut:
    """A gate that says whom it protects, and nothing else."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"the gate was asked for {name}")


PERSONS = sf.user("patient_id", relation="add/remove")
ROWS = sf.record(relation="add/remove")
KEYS = {
    "sex": Keys(column="sex", values=("F", "M")),
    "ward": Keys(column="ward", values=(1, 2, 3)),
    "smoker": Keys(column="smoker", values=(True, False)),
    "Postcode": Keys(column="Postcode", values=("1000", "Ωmega", "")),
}
BOUNDS = {"sbp": (Fraction(80), Fraction(220)), "age": (Fraction(0), Fraction(120)), "stay": (Fraction(1), Fraction(9))}


def table(unit: Unit = PERSONS, name: str = "visits") -> Table:
    return Table(gate=Shut(unit), dataset=Dataset(name=name, edition="1"), keys=KEYS, bounds=BOUNDS)  # type: ignore[arg-type]


VISITS = table()


def document(question: Question) -> str:
    """The question as it is stored and signed."""
    return canonical(encode(question.query))
