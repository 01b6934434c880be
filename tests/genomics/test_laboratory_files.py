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
    found = read_peptides(written(tmp_path, text, name))
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
