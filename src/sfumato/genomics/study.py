"""The data of an immunopeptidomics study: HLA genotypes, tumour mutations and peptides, linked by the patient."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InvalidInput
from sfumato.genomics.peptides import PEPTIDE_COLUMNS
from sfumato.genomics.variants import MUTATION_COLUMNS

__all__ = ["GENOTYPE_COLUMNS", "PATIENT", "ImmunopeptidomicsStudy"]

PATIENT = "patient"
GENOTYPE_COLUMNS = pa.schema([(PATIENT, pa.string()), ("gene", pa.string()), ("allele", pa.string())])
"""One row for each copy of an HLA gene of a patient: two rows for each gene."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ImmunopeptidomicsStudy:
    """The linked layer: three tables with one column of patients. It stays where it is; nothing here publishes it.

    Sensitive: all of it. A genome is for ever and is shared with relatives, so that names taken off protect nobody.

    >>> genotypes = pa.table({"patient": ["p1", "p1"], "gene": ["A", "A"], "allele": ["A*02:01", "A*01:01"]})
    >>> peptides = pa.table({"patient": ["p1"], "peptide": ["SIINFEKLL"], "allele": ["A*02:01"]})
    >>> ImmunopeptidomicsStudy(genotypes=genotypes, peptides=peptides)
    ImmunopeptidomicsStudy(genotypes, mutations and peptides of patients, who are not shown)
    """

    genotypes: pa.Table
    peptides: pa.Table
    mutations: pa.Table = field(default_factory=MUTATION_COLUMNS.empty_table)

    def __post_init__(self) -> None:
        for name, columns in KINDS.items():
            object.__setattr__(self, name, _shaped(getattr(self, name), columns, name))

    def __repr__(self) -> str:
        return "ImmunopeptidomicsStudy(genotypes, mutations and peptides of patients, who are not shown)"


KINDS = {"genotypes": GENOTYPE_COLUMNS, "mutations": MUTATION_COLUMNS, "peptides": PEPTIDE_COLUMNS}
"""The three kinds of data, and the columns of each."""


def _shaped(table: object, columns: pa.Schema, what: str) -> pa.Table:
    """The table with exactly these columns; refused where one is missing, or holds something else."""
    if not isinstance(table, pa.Table) or not set(columns.names) <= set(table.column_names):
        raise InvalidInput(f"{what} of a study have the columns {', '.join(columns.names)}; nothing was read.")
    try:
        found = table.select(columns.names).cast(columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidInput(f"a column of the {what} holds values of another type; nothing was read.") from None
    return found.set_column(columns.get_field_index(PATIENT), PATIENT, _person(found[PATIENT]))


def _person(names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Names without blanks around them, by which one patient would count as two; without any letter, nobody's."""
    bare = pc.utf8_trim_whitespace(names)
    return pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.string()), bare)
