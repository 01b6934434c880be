"""Files of laboratories: variants and peptides become rows of patients; what is foul is counted and not quoted."""

import gzip
from pathlib import Path

import pytest

from sfumato.errors import InvalidInput
from sfumato.genomics import read_maf, read_peptides, read_vcf

HEADER = "##fileformat=VCFv4.3\n##source=x\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
LINES = """chr1\t100\t.\ta\tG,T\t.\tPASS\t.\tGT:DP\t0/1:3\t1|2:4
1\t200\t.\tC\tT\t.\tPASS\t.\tGT\t./.\t1/1
1\tSECRET\t.\tC\tT\t.\t.\t.\tGT\t0/0\t0/1
2\t5\t.\tC\tT\t.\t.\t.\tGT\t0/3\t0/1
2\t6\t.\tC\tT\t.\t.\t.\tDP\t0/1\t0/1
"""


def written(folder: Path, text: str, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.claim("S3-25", "S3-23")
def test_genotypes_of_a_vcf_file_are_rows_of_patients(tmp_path: Path) -> None:
    found = read_vcf(written(tmp_path, f"{HEADER}P1\tP2\n{LINES}"))
    rows = sorted(
        tuple(row[name] for name in ("patient", "chromosome", "position", "reference", "alternate", "copies"))
        for row in found.rows.to_pylist()
    )
    assert rows == [
        ("P1", "1", 100, "A", "G", 1),
        ("P2", "1", 100, "A", "G", 1),
        ("P2", "1", 100, "A", "T", 1),
        ("P2", "1", 200, "C", "T", 2),
        ("P2", "2", 5, "C", "T", 1),
    ]
    assert found.refused == {"malformed line": 2, "missing or impossible genotype": 2}
    assert "SECRET" not in repr(found)


def test_a_compressed_file_is_read_as_the_plain_one(tmp_path: Path) -> None:
    plain = written(tmp_path, f"{HEADER}P1\tP2\n{LINES}")
    packed = tmp_path / "file.vcf.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_vcf(packed).rows.equals(read_vcf(plain).rows)


def test_a_cell_of_one_patient_takes_no_line_from_another(tmp_path: Path) -> None:
    broken = f"{LINES}3\t7\t.\tC\tT\t.\t.\t.\tGT\t0/1\t0/1\tmore\n"
    with pytest.raises(InvalidInput, match="another number of columns"):
        read_vcf(written(tmp_path, f"{HEADER}P1\tP2\n{broken}"))
    alone = f"{HEADER}P1\n3\t7\t.\tC\tT\t.\t.\t.\tGT\t0/1\n3\t8\n"
    assert read_vcf(written(tmp_path, alone)).refused["malformed line"] == 1


@pytest.mark.parametrize(
    "text", ["", "##only\n", "no header\n1\t2\n", HEADER.rstrip("\t").removesuffix("\tFORMAT") + "\n", "BCF\x02"]
)
def test_what_is_no_vcf_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing was read"):
        read_vcf(written(tmp_path, text))


@pytest.mark.claim("S3-25")
def test_mutations_of_a_maf_file_are_rows_of_patients(tmp_path: Path) -> None:
    header = "Hugo_Symbol\tChromosome\tStart_Position\tReference_Allele\tTumor_Seq_Allele1\tTumor_Seq_Allele2\t"
    text = f"#version 2.4\n{header}Tumor_Sample_Barcode\tVariant_Classification\n" + "".join(
        f"TP53\t{line}\tMissense_Mutation\n"
        for line in (
            "chr17\t7577120\tC\tC\tT\tTCGA-AB-1234-01A",
            "17\tSECRET\tC\tC\tT\tTCGA-AB-1234-01A",
            "17\t7\tC\tC\t-\tward 3",
            "17\t7\tC\tC\tT\t",
            "17\t7\tC\tC\t!\tward 3",
        )
    )
    found = read_maf(written(tmp_path, text + "KRAS\t12\n"))
    assert [(row["patient"], row["chromosome"], row["alternate"], row["gene"]) for row in found.rows.to_pylist()] == [
        ("TCGA-AB-1234", "17", "T", "TP53"),
        ("ward 3", "17", "-", "TP53"),
    ]
    assert found.refused == {"malformed line": 4}
    with pytest.raises(InvalidInput, match="Tumor_Sample_Barcode"):
        read_maf(written(tmp_path, "a\tb\n1\t2\n"))


@pytest.mark.claim("S3-25")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.tsv", "patient\tpeptide\tallele\nP1\tSIINFEKLL\tA*02:01\nP1\tSECRET!\t\n"),
        ("evidence.txt", "Sequence\tRaw file\tReverse\nSIINFEKLL\tP1\t\nBZX\tP1\t\nSIINFEKLL\tP1\t+\n"),
        ("psm.tsv", "Peptide\tSpectrum File\nSIINFEKLL\tP1\nSII1\tP1\n"),
        ("peaks.csv", "Peptide,Source File\nK.SIINF(+15.99)EKLL.R,P1\nSHORT,P1\n"),
        ("report.tsv", "Run\tStripped.Sequence\nP1\tSIINFEKLL\nP1\tSIINFEKLLO\n"),
        ("comet.txt", "plain_peptide\tsample\n_SIIN[57.02]FEKLL_\tP1\n\tP1\n"),
    ],
)
def test_tables_of_common_search_engines(name: str, text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text, name)
    if name != "plain.tsv":
        with pytest.raises(InvalidInput, match="samples, not patients"):
            read_peptides(path)
    found = read_peptides(path, patients=None if name == "plain.tsv" else {"P1": "P1"})
    assert [(row["patient"], row["peptide"]) for row in found.rows.to_pylist()] == [("P1", "SIINFEKLL")]
    assert found.refused["no peptide"] == 1
    assert found.refused["decoy or contaminant"] == (1 if "Reverse" in text else 0)


def test_samples_belong_to_patients_by_a_list(tmp_path: Path) -> None:
    path = written(tmp_path, "Peptide,Source File\nSIINFEKLL,raw1\nSIINFEKLL,raw2\n", "peaks.csv")
    found = read_peptides(path, patients={"raw1": "P1"})
    assert found.rows["patient"].to_pylist() == ["P1"]
    assert found.refused["sample of nobody"] == 1
    with pytest.raises(InvalidInput, match="MaxQuant"):
        read_peptides(written(tmp_path, "a\tb\n1\t2\n"))


TEN = "peptide,patient\n" + "".join(f"SIINFEKL{letter},p{number}\n" for number, letter in enumerate("ACDEFGHIKL"))


@pytest.mark.claim("S3-25")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'"SIINFEKLE,p3', id="a quotation mark before the peptide"),
        pytest.param(b'SIINFEKLE,"p3', id="a quotation mark before the patient"),
        pytest.param(b'SIIN"FEKLE,"p3', id="two quotation marks"),
        pytest.param(b"SIINFEKLE,p\xff", id="no UTF-8"),
        pytest.param(b"SIINFEKLE,p3\rSIINFEKLE,p1", id="a line in a line"),
        pytest.param(b"SIINFEKLE,p3,more", id="a column more"),
    ],
)
def test_a_foul_line_of_one_patient_leaves_the_lines_of_all_others(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "peptides.csv"
    path.write_bytes(TEN.encode().replace(b"SIINFEKLE,p3", line))
    found = read_peptides(path)
    assert found.rows["patient"].to_pylist() == [f"p{number}" for number in range(10) if number != 3]
    assert found.refused["malformed line"] == 1


def test_a_cell_that_is_larger_than_a_block_of_the_reader_is_read(tmp_path: Path) -> None:
    large = TEN.replace("SIINFEKLE", "E" * (3 << 20))
    for name, text in (("large.csv", large), ("large.tsv", large.replace(",", "\t"))):
        found = read_peptides(written(tmp_path, text, name))
        assert (found.rows.num_rows, found.refused["no peptide"]) == (9, 1)


def test_quoted_cells_and_names_of_columns_are_read(tmp_path: Path) -> None:
    text = '"Peptide", "Source File","a,b"\r\n"SIINFEKLL","raw ""1""","x,y"\r\nSIINFEKLL,raw2,"x"\r\n'
    own = {'raw "1"': "P1", "raw2": "P2"}
    assert read_peptides(written(tmp_path, text, "peaks.csv"), patients=own).rows["patient"].to_pylist() == ["P1", "P2"]


@pytest.mark.parametrize("samples", ["P1\tP1", "P1\tP1 ", "\tP2"])
def test_samples_without_a_name_of_their_own_are_refused(samples: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="two have the same"):
        read_vcf(written(tmp_path, f"{HEADER}{samples}\n{LINES}"))


@pytest.mark.parametrize("name", ["position", "POS", '"P1"'])
def test_a_sample_may_have_any_name(name: str, tmp_path: Path) -> None:
    haploid = "1\t100\t.\tA\tG\t.\tPASS\t.\tGT\t1\t0\n"
    found = read_vcf(written(tmp_path, f"{HEADER}{name}\tP2\n{haploid}"))
    assert [(row["patient"], row["copies"]) for row in found.rows.to_pylist()] == [(name.strip('"'), 1)]


def test_one_patient_under_two_spellings_is_one_patient(tmp_path: Path) -> None:
    header = "Chromosome\tStart_Position\tReference_Allele\tTumor_Seq_Allele2\tTumor_Sample_Barcode\n"
    text = header + "".join(f"1\t5\tA\tT\t{name}\n" for name in ("P1", "P1 ", " P1"))
    assert set(read_maf(written(tmp_path, text)).rows["patient"].to_pylist()) == {"P1"}


def test_a_file_that_is_broken_or_has_a_column_twice_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "broken.gz"
    packed.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xff" * 50)
    with pytest.raises(InvalidInput, match="compressed and broken"):
        read_vcf(packed)
    with pytest.raises(InvalidInput, match="twice"):
        read_peptides(written(tmp_path, "peptide\tpatient\tpatient\nSIINFEKLL\tP1\tP2\n"))


def test_a_deletion_of_one_patient_does_not_rewrite_the_variant_of_another(tmp_path: Path) -> None:
    alone = f"{HEADER}P1\n1\t100\t.\tA\tT\t.\t.\t.\tGT\t0/1\n"
    beside = f"{HEADER}P1\tP2\n1\t100\t.\tATG\tTTG,A\t.\t.\t.\tGT\t0/1\t0/2\n"
    found = [row for row in read_vcf(written(tmp_path, beside)).rows.to_pylist() if row["patient"] == "P1"]
    assert found == read_vcf(written(tmp_path, alone)).rows.to_pylist()
