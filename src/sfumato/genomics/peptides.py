"""Tables of peptides from mass spectrometry, as common search engines write them, as rows of patients."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InvalidInput
from sfumato.genomics.reading import LaboratoryRows
from sfumato.genomics.text_tables import TextRows, read_text

__all__ = ["PEPTIDE_COLUMNS", "PeptideFormat", "read_peptides"]

PEPTIDE_COLUMNS = pa.schema([("patient", pa.string()), ("peptide", pa.string()), ("allele", pa.string())])
"""One row for each peptide of a patient, and the allele that is taken to present it (missing where nobody says)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeptideFormat:
    """How a search engine names its columns: those of the peptide, of the sample and of the allele."""

    name: str
    peptide: tuple[str, ...]
    sample: tuple[str, ...]
    allele: tuple[str, ...] = ("allele", "HLA", "MHC", "Best Allele", "BestAllele")


FORMATS = (
    PeptideFormat(name="plain", peptide=("peptide",), sample=("patient",)),
    PeptideFormat(name="MaxQuant", peptide=("Sequence",), sample=("Experiment", "Raw file")),
    PeptideFormat(name="FragPipe", peptide=("Peptide", "Peptide Sequence"), sample=("Sample Name", "Spectrum File")),
    PeptideFormat(name="PEAKS", peptide=("Peptide",), sample=("Source File",)),
    PeptideFormat(name="DIA-NN", peptide=("Stripped.Sequence",), sample=("Run", "File.Name")),
    PeptideFormat(name="Comet", peptide=("plain_peptide",), sample=("sample", "spectrum_file")),
)
_DECOYS = ("Reverse", "Potential contaminant", "Contaminant", "is_decoy")
_SHORTEST, _LONGEST = 7, 45


def read_peptides(
    path: str | Path, *, patients: Mapping[str, str] | None = None, delimiter: str | None = None
) -> LaboratoryRows[pa.Table]:
    """Read a table of peptides: plain columns (patient, peptide, allele), MaxQuant, FragPipe, PEAKS, DIA-NN or Comet.

    ``patients`` says whose sample each raw file or experiment is. It is needed for all but plain files, which have a
    column of patients: a patient with two raw files would else count as two, and be protected as half of one.
    Flanking residues and modifications are taken off. Refused and counted are lines with another number of columns,
    what is no peptide of 7 to 45 of the 20 amino acids, decoys and contaminants, and samples of nobody. Sensitive: the
    result.
    """
    text = read_text(path, delimiter=delimiter or ("," if str(path).endswith(".csv") else "\t"))
    peptide, sample, allele = _found(text, mapped=patients is not None)
    clean = _residues(peptide)
    patient = pc.utf8_trim_whitespace(sample) if patients is None else _mapped(sample, patients)
    shaped = pc.match_substring_regex(clean, f"^[ACDEFGHIKLMNPQRSTVWY]{{{_SHORTEST},{_LONGEST}}}$")
    owned = pc.and_(patient.is_valid(), pc.match_substring_regex(pc.fill_null(patient, ""), r"\S"))
    real = _real(text)
    refused = {
        "malformed line": text.broken,
        "decoy or contaminant": _number(pc.invert(real)),
        "no peptide": _number(pc.and_(real, pc.invert(shaped))),
        "sample of nobody": _number(pc.and_(pc.and_(real, shaped), pc.invert(owned))),
    }
    rows = pa.table({"patient": patient, "peptide": clean, "allele": allele}, schema=PEPTIDE_COLUMNS)
    return LaboratoryRows(rows=rows.filter(pc.and_(pc.and_(real, shaped), owned)), refused=refused)


def _found(text: TextRows, *, mapped: bool) -> tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray]:
    for each in FORMATS:
        peptide, sample = text.column(*each.peptide), text.column(*each.sample)
        if peptide is not None and sample is not None:
            if not mapped and "patient" not in each.sample:
                raise InvalidInput(
                    f"the file is of {each.name} and names samples, not patients; nothing was read. Say whose each "
                    "sample is: patients={'run 1': 'p1', …}."
                )
            allele = text.column(*each.allele)
            return peptide, sample, pa.chunked_array([pa.nulls(len(sample), pa.string())]) if allele is None else allele
    known = ", ".join(each.name for each in FORMATS)
    raise InvalidInput(f"the file has no columns of peptide and sample that are known ({known}); nothing was read.")


def _residues(peptide: pa.ChunkedArray) -> pa.ChunkedArray:
    """Residues alone: without flanks (K.PEPTIDE.R), underscores, and modifications in any bracket."""
    bare = pc.replace_substring_regex(peptide, r"\([^()]*\([^()]*\)[^()]*\)|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}", "")
    bare = pc.replace_substring_regex(bare, r"^\s*[A-Za-z_-]\.([^.]+)\.[A-Za-z_-]\s*$", r"\1")
    return pc.utf8_upper(pc.replace_substring_regex(bare, r"^[_\s]+|[_\s]+$", ""))


def _mapped(sample: pa.ChunkedArray, patients: Mapping[str, str]) -> pa.ChunkedArray:
    coded = pc.dictionary_encode(sample).combine_chunks()
    owners = pa.array([patients.get(name) for name in coded.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([owners.take(coded.indices)])


def _real(text: TextRows) -> pa.ChunkedArray:
    real = pa.chunked_array([pa.repeat(pa.scalar(value=True), len(text.table))])
    for name in _DECOYS:
        column = text.column(name)
        if column is not None:
            real = pc.and_(real, pc.invert(pc.match_substring_regex(column, r"^\s*(\+|1|(?i:true))\s*$")))
    return pc.fill_null(real, fill_value=True)


def _number(rows: pa.ChunkedArray) -> int:
    return int(pc.sum(rows, min_count=0).as_py())
