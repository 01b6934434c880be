"""Files of variants as rows of patients: VCF text with genotypes, and MAF text of tumour mutations."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InvalidInput
from sfumato.genomics.reading import LaboratoryRows
from sfumato.genomics.text_tables import TextRows, read_text

__all__ = ["MUTATION_COLUMNS", "read_maf", "read_vcf"]

MUTATION_COLUMNS = pa.schema(
    [
        ("patient", pa.string()),
        ("chromosome", pa.string()),
        ("position", pa.int64()),
        ("reference", pa.string()),
        ("alternate", pa.string()),
        ("gene", pa.string()),
        ("effect", pa.string()),
        ("copies", pa.int64()),
    ]
)
"""One row for each variant of a patient; ``copies`` of the alternate allele (1 where a file does not say)."""
_FIXED = ("CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
_MOST_ALTERNATES = 16


def read_vcf(path: str | Path) -> LaboratoryRows[pa.Table]:
    """Read the genotypes of a VCF file (version 4, text or ``.gz``): each sample is a patient.

    One row for each sample and alternate allele that it has at least one copy of. A line whose position is no number,
    or whose alleles are none, is refused and counted; so is a genotype that names an allele which its line does not
    have, or none at all. A line with another number of columns is left out where there is one sample, and the file is
    refused where there are several: else a cell of one patient would take rows from all others. Sensitive: the result.
    """
    text = read_text(path, marked=True)
    samples = _samples(text)
    position = _whole(text.table.column(1))
    good = _all(
        position.is_valid(),
        pc.match_substring_regex(text.table.column(_FIXED.index("REF")), r"^[ACGTNacgtn]+$"),
        pc.match_substring_regex(text.table.column(_FIXED.index("ALT")), r"^[^\s]+$"),
        pc.match_substring_regex(text.table.column(_FIXED.index("FORMAT")), r"^GT(:|$)"),
    )
    kept = text.table.append_column("position", position).filter(good)
    refused = {"malformed line": text.broken + len(good) - pc.sum(good, min_count=0).as_py()}
    alternates = pc.split_pattern(kept.column(_FIXED.index("ALT")), ",")
    parts, missing = [], 0
    for place, sample in enumerate(samples, start=len(_FIXED)):
        rows, wrong = _of_sample(kept, alternates, sample, place)
        parts += rows
        missing += wrong
    refused["missing or impossible genotype"] = missing
    return LaboratoryRows(rows=pa.concat_tables(parts) if parts else MUTATION_COLUMNS.empty_table(), refused=refused)


def _samples(text: TextRows) -> tuple[str, ...]:
    """The names of the samples; refused where it is no file of variants, or a name is empty or there twice."""
    header, samples = tuple(name.upper() for name in text.names[: len(_FIXED)]), text.names[len(_FIXED) :]
    if header[:8] != _FIXED[:8]:
        raise InvalidInput("the file has no header of variants (#CHROM, POS, ID, REF, ALT, …); nothing was read.")
    if header != _FIXED or not samples:
        raise InvalidInput("the file has no genotypes: no column after FORMAT; nothing was read.")
    if not all(samples) or len(set(samples)) < len(samples):
        raise InvalidInput("a sample of the file has no name, or two have the same; nothing was read.")
    if text.broken and len(samples) > 1:
        raise InvalidInput("lines of the file have another number of columns than its header; nothing was read.")
    return samples


def _of_sample(kept: pa.Table, alternates: pa.ChunkedArray, sample: str, place: int) -> tuple[list[pa.Table], int]:
    """The variants of one sample by alternate allele, and how many of its genotypes said nothing."""
    genotype = pc.list_element(pc.split_pattern(kept.column(place), ":", max_splits=1), 0)
    coded = pc.dictionary_encode(genotype).combine_chunks()
    said = [_alleles(each) for each in coded.dictionary.to_pylist()]  # distinct genotypes: a handful
    codes = coded.indices.to_numpy(zero_copy_only=False)
    known = np.array([each is not None for each in said], dtype=bool)
    highest = np.array([max(each, default=0) if each else 0 for each in said], dtype=np.int64)
    there = pc.list_value_length(alternates).to_numpy(zero_copy_only=False)
    fine = known[codes] & (highest[codes] <= there) if len(codes) else np.zeros(0, bool)
    parts = []
    for number in range(1, int(highest.max(initial=0)) + 1):
        copies = np.array([0 if each is None else each.count(number) for each in said], dtype=np.int64)[codes]
        at = np.flatnonzero(fine & (copies > 0))
        if len(at):
            rows = kept.take(pa.array(at))
            chosen = pc.list_element(alternates.take(pa.array(at)), number - 1)
            parts.append(_rows(rows, sample, chosen, copies[at]))
    return parts, int((~fine).sum())


def _rows(rows: pa.Table, sample: str, alternate: pa.ChunkedArray, copies: np.ndarray) -> pa.Table:
    number = len(rows)
    reference, alternate, shift = _trimmed(pc.utf8_upper(rows.column(_FIXED.index("REF"))), pc.utf8_upper(alternate))
    return pa.table(
        {
            "patient": pa.repeat(pa.scalar(sample, pa.string()), number),
            "chromosome": _chromosome(rows.column(0)),
            "position": pc.add(rows["position"], shift),
            "reference": reference,
            "alternate": alternate,
            "gene": pa.nulls(number, pa.string()),
            "effect": pa.nulls(number, pa.string()),
            "copies": pa.array(copies, pa.int64()),
        },
        schema=MUTATION_COLUMNS,
    )


def _trimmed(
    reference: pa.ChunkedArray, alternate: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, pa.Array]:
    """Alleles without the bases at their ends that both have, and by how much the position moves.

    In a file of several samples the line of one is written so that it fits the others: a deletion of somebody makes
    ATG>TTG of an A>T. Trimmed, it is A>T whoever else is there.
    """
    both = pc.binary_join_element_wise(reference, alternate, ">").combine_chunks()
    coded = pc.dictionary_encode(both)
    found = [_shortest(*pair.split(">", 1)) for pair in coded.dictionary.to_pylist()]  # distinct pairs: few
    first, second, moved = zip(*found, strict=True) if found else ((), (), ())
    codes = coded.indices
    return (
        pa.chunked_array([pa.array(first, pa.string()).take(codes)]),
        pa.chunked_array([pa.array(second, pa.string()).take(codes)]),
        pa.array(moved, pa.int64()).take(codes),
    )


def _shortest(reference: str, alternate: str) -> tuple[str, str, int]:
    """One pair without common bases at its end, then at its beginning; one base stays of each.

    >>> _shortest("ATG", "TTG"), _shortest("CA", "CAA"), _shortest("A", "<DEL>")
    (('A', 'T', 0), ('C', 'CA', 0), ('A', '<DEL>', 0))
    """
    if not alternate.isalpha():
        return reference, alternate, 0
    while len(reference) > 1 and len(alternate) > 1 and reference[-1] == alternate[-1]:
        reference, alternate = reference[:-1], alternate[:-1]
    moved = 0
    while len(reference) > 1 and len(alternate) > 1 and reference[0] == alternate[0]:
        reference, alternate, moved = reference[1:], alternate[1:], moved + 1
    return reference, alternate, moved


def read_maf(path: str | Path) -> LaboratoryRows[pa.Table]:
    """Read a MAF file of mutations (text or ``.gz``): each tumour sample barcode is a patient.

    The patient is the first three parts of a barcode of the TCGA, and any other name as it stands. Lines with another
    number of columns, without a barcode, without a position or without alleles are refused and counted. Sensitive: the
    result.
    """
    text = read_text(path)
    sample, chromosome = text.column("Tumor_Sample_Barcode"), text.column("Chromosome")
    start, reference = text.column("Start_Position", "Start_position"), text.column("Reference_Allele")
    alternate = text.column("Tumor_Seq_Allele2", "Tumor_Seq_Allele1")
    if sample is None or chromosome is None or start is None or reference is None or alternate is None:
        raise InvalidInput(
            "the file has no columns Tumor_Sample_Barcode, Chromosome, Start_Position, Reference_Allele and "
            "Tumor_Seq_Allele2; nothing was read."
        )
    position, sample = _whole(start), pc.utf8_trim_whitespace(sample)
    number = len(sample)
    gene, effect = text.column("Hugo_Symbol"), text.column("Variant_Classification")
    rows = pa.table(
        {
            "patient": pc.replace_substring_regex(sample, r"^(TCGA-\w{2}-\w{4})-.*$", r"\1"),
            "chromosome": _chromosome(chromosome),
            "position": position,
            "reference": pc.utf8_upper(reference),
            "alternate": pc.utf8_upper(alternate),
            "gene": pa.nulls(number, pa.string()) if gene is None else gene,
            "effect": pa.nulls(number, pa.string()) if effect is None else effect,
            "copies": pa.array(np.ones(number, dtype=np.int64)),
        },
        schema=MUTATION_COLUMNS,
    )
    good = _all(
        pc.match_substring_regex(sample, r"\S"),
        position.is_valid(),
        pc.match_substring_regex(reference, r"^(-|[ACGTNacgtn]+)$"),
        pc.match_substring_regex(alternate, r"^(-|[ACGTNacgtn]+)$"),
    )
    refused = {"malformed line": text.broken + number - pc.sum(good, min_count=0).as_py()}
    return LaboratoryRows(rows=rows.filter(good), refused=refused)


def _all(first: pa.ChunkedArray, *more: pa.ChunkedArray) -> pa.ChunkedArray:
    for each in more:
        first = pc.and_(first, each)
    return pc.fill_null(first, fill_value=False)


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers from 1 to 10 digits, missing where a text is none."""
    fine = pc.match_substring_regex(column, r"^\d{1,10}$")
    return pc.if_else(fine, column, pa.scalar(None, pa.string())).cast(pa.int64())


def _chromosome(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(column, r"^(?i:chr)", "")


def _alleles(genotype: str | None) -> list[int] | None:
    """The numbers of the alleles of a genotype; None where one is missing or it is no genotype."""
    parts = (genotype or "").replace("|", "/").split("/")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() and len(part) <= 2 for part in parts):
        return None
    numbers = [int(part) for part in parts]
    return numbers if max(numbers) <= _MOST_ALTERNATES else None
