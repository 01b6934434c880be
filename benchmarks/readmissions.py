"""Features of the diabetes-130 table by its published description: lists and bounds were not read off the rows.

Words and codes are those of the code book (Strack et al. 2014, table 1, and the mapping of ids that comes with it), the
groups of diagnoses those of table 2 of that paper. Bounds of counts are judgements: a count beyond one is held to it.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

DRUGS = [
    "metformin",
    "repaglinide",
    "nateglinide",
    "chlorpropamide",
    "glimepiride",
    "glipizide",
    "glyburide",
    "tolbutamide",
    "pioglitazone",
    "rosiglitazone",
    "acarbose",
    "miglitol",
    "insulin",
]
BOUNDS = {
    "time_in_hospital": (1, 14),
    "num_lab_procedures": (0, 100),
    "num_procedures": (0, 6),
    "num_medications": (0, 40),
    "number_outpatient": (0, 5),
    "number_emergency": (0, 5),
    "number_inpatient": (0, 5),
    "number_diagnoses": (1, 9),
}
GROUPS = {
    "circulatory": ((390, 460), (785, 786)),
    "respiratory": ((460, 520), (786, 787)),
    "digestive": ((520, 580), (787, 788)),
    "diabetes": ((250, 251),),
    "injury": ((800, 1000),),
    "musculoskeletal": ((710, 740),),
    "genitourinary": ((580, 630), (788, 789)),
    "neoplasms": ((140, 240),),
}
WORDS: dict[str, Any] = {
    "race": ["Caucasian", "AfricanAmerican", "Asian", "Hispanic", "Other"],
    "gender": ["Female", "Male"],
    "age": [f"[{start}-{start + 10})" for start in range(0, 100, 10)],
    "admission_type_id": [1, 2, 3, 4, 5, 6, 7, 8],
    "discharge_disposition_id": list(range(1, 31)),
    "admission_source_id": [*range(1, 16), *range(17, 27)],
    "max_glu_serum": [">200", ">300", "Norm", "None"],
    "A1Cresult": [">7", ">8", "Norm", "None"],
    "change": ["Ch", "No"],
    "diabetesMed": ["Yes", "No"],
    **{drug: ["No", "Steady", "Up", "Down"] for drug in DRUGS},
    **{f"diag_{place}": [*GROUPS, "other"] for place in (1, 2, 3)},
}
PATIENTS = 71_518  # published with the table
HELD_OUT = 5  # one patient in five, by a hash of the number alone


def group_of(code: str) -> str:
    """The group of an ICD-9 code.

    >>> group_of("250.83"), group_of("428"), group_of("V27"), group_of("?")
    ('diabetes', 'circulatory', 'other', 'other')
    """
    try:
        number = float(code)
    except ValueError:
        return "other"
    return next((name for name, spans in GROUPS.items() if any(a <= number < b for a, b in spans)), "other")


def read(path: Path) -> tuple[dict[str, Any], Any, Any, Any]:
    """Columns, targets (readmitted within 30 days), patients, and which rows are of held-out patients."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns: dict[str, Any] = {name: table[name] for name in (*BOUNDS, *WORDS) if not name.startswith("diag_")}
    for place in (1, 2, 3):
        columns[f"diag_{place}"] = [group_of(code) for code in table[f"diag_{place}"].to_pylist()]
    targets = np.array([word == "<30" for word in table["readmitted"].to_pylist()], dtype=np.int64)
    patients = table["patient_nbr"].to_numpy()
    held = np.array([held_out(int(patient)) for patient in patients])
    return columns, targets, patients, held


def held_out(patient: int) -> bool:
    """Whether a patient is kept for the test: decided by the number alone."""
    return hashlib.sha256(str(patient).encode()).digest()[0] % HELD_OUT == 0


def area_under_curve(scores: Any, targets: Any) -> float:
    """The chance that a positive row is ranked above a negative one, ties counting half."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    positive = np.asarray(targets) == 1
    above = positive.sum()
    return float((ranks[positive].sum() - above * (above + 1) / 2) / (above * (len(ranks) - above)))
