"""HLA genotypes of patients from a table: a row for each copy of a gene, or a row for each patient."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InvalidInput
from sfumato.genomics.reading import LaboratoryRows
from sfumato.genomics.study import GENOTYPE_COLUMNS, PATIENT
from sfumato.genomics.text_tables import TextRows, read_text

__all__ = ["read_genotypes"]

_COPY = re.compile(r"(?:HLA[-_ ]?)?(A|B|C|DRB1|DQA1|DQB1|DPA1|DPB1)[-_. ]?[12]\Z", re.IGNORECASE)


def read_genotypes(path: str | Path, *, delimiter: str | None = None) -> LaboratoryRows[pa.Table]:
    """Read genotypes: columns patient and allele with a row for each copy, or patient, A1, A2, B1, B2, … with one row.

    Names of alleles without their gene (``02:01`` in a column A1) get it from the column. Cells that are empty are no
    copy. Refused and counted are lines with another number of columns, and rows of nobody. Whether a name is an allele
    is asked later, by the table of supertypes. Sensitive: the result.
    """
    text = read_text(path, delimiter=delimiter or ("," if str(path).endswith(".csv") else "\t"))
    patient = text.column(PATIENT)
    if patient is None:
        raise InvalidInput("the table of genotypes has no column patient; nothing was read.")
    patient = pc.utf8_trim_whitespace(patient)
    allele = text.column("allele")
    parts = _wide(text, patient) if allele is None else [_copies(patient, allele, gene=None)]
    if not parts:
        raise InvalidInput(
            "the table of genotypes has neither a column allele nor columns such as A1, A2, B1 and B2; nothing was "
            "read."
        )
    rows = pa.concat_tables(parts)
    rows = rows.filter(pc.not_equal(rows["allele"], ""))
    owned = pc.not_equal(rows[PATIENT], "")
    refused = {"malformed line": text.broken, "row of nobody": len(rows) - int(pc.sum(owned, min_count=0).as_py())}
    return LaboratoryRows(rows=rows.filter(owned), refused=refused)


def _wide(text: TextRows, patient: pa.ChunkedArray) -> list[pa.Table]:
    found = []
    for name in text.names:
        gene, column = _COPY.match(name), text.column(name)
        if gene is not None and column is not None:
            found.append(_copies(patient, column, gene=gene[1].upper()))
    return found


def _copies(patient: pa.ChunkedArray, allele: pa.ChunkedArray, *, gene: str | None) -> pa.Table:
    """One row for each cell, with its gene: the column's, or what stands before the star."""
    name = pc.utf8_trim_whitespace(allele)
    bare = pc.replace_substring_regex(name, r"^(?i:HLA)[-_ ]?", "")
    if gene is None:
        genes = pc.utf8_upper(pc.replace_substring_regex(bare, r"[*_ ].*$", ""))
    else:
        bare = pc.if_else(pc.match_substring_regex(bare, r"^\d"), pc.binary_join_element_wise(gene, bare, "*"), bare)
        genes = pa.chunked_array([pa.repeat(pa.scalar(gene), len(bare))])
    return pa.table({PATIENT: patient, "gene": genes, "allele": bare}, schema=GENOTYPE_COLUMNS)
