"""The calculator as a command and a page, and the public layer from files: what people who write no Python meet."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.app import app
from sfumato.genomics import uniqueness_page as pages
from sfumato.genomics.uniqueness_page import share_text, typing_levels, uniqueness_chart, write_uniqueness_page
from tests import parts


def told(*words: object) -> Result:
    return CliRunner().invoke(app, ["genomics", *(str(word) for word in words)])


@pytest.mark.claim("S3-19")
def test_the_command_gives_the_figures_of_all_levels() -> None:
    found = json.loads(told("uniqueness", "--people", 1000, "--alleles", "2,3", "--json").output)
    assert [each["genotypes"] for each in found] == [227_632_500, 153_846, 441, 18]
    assert found[2]["unique_skewed"] == pytest.approx(0.093, abs=0.01)
    lines = told("uniqueness", "--people", 1000).output
    for figure in ("227,632,500", "153,846", "441", "99.9996%", "10.4%"):
        assert figure in lines


@pytest.mark.parametrize("wrong", [("--alleles", "3,x"), ("--alleles", "0"), ("--alleles", ""), ("-o", "a.txt")])
def test_what_is_wrong_is_said(wrong: tuple[str, str]) -> None:
    found = told("uniqueness", *wrong)
    assert found.exit_code == 1
    assert "Nothing was computed" in found.output or "nothing was done" in found.output


def test_the_page_says_the_same_in_two_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_picture", lambda _levels, _language: None)
    levels = typing_levels(people=1000)
    text = write_uniqueness_page(levels, tmp_path / "page.html").read_text("utf-8")
    assert text.count("153,846") == text.count("99.9996%") == 2
    assert "How many people does an HLA genotype single out?" in text
    assert "独一无二" in text
    assert "http:" not in text


def test_the_picture_has_a_line_for_each_level() -> None:
    parts.package("altair")
    spec = uniqueness_chart(typing_levels(people=10, alleles=(2, 2)), "zh").to_dict()
    assert len({row["level"] for row in spec["data"]["values"]}) == 4


def test_nearly_everybody_is_not_everybody() -> None:
    assert (share_text(0.5), share_text(0.99999), share_text(1.0)) == ("50.0%", "99.999%", "100.00000000%")


def study(folder: Path) -> list[object]:
    """The files of a study of 400 invented patients, and the options that name them."""
    (folder / "supertypes.csv").write_text("allele,supertype\nA*0201,A02\nA*0101,A01\nB*0702,B07\nB*4402,B44\n")
    lines = [f"p{number},A*02:01,A*01:01,B*07:02,{'B*44:02' if number % 2 else ''}" for number in range(400)]
    (folder / "genotypes.csv").write_text("patient,A1,A2,B1,B2\n" + "\n".join(lines) + "\n")
    (folder / "peptides.tsv").write_text(
        "patient\tpeptide\tallele\n" + "".join(f"p{number}\tSIINFEKLL\tA*02:01\n" for number in range(400))
    )
    named = ("genotypes.csv", "peptides.tsv", "supertypes.csv")
    files = [each for name in named for each in (f"--{name.split('.')[0]}", folder / name)]
    return [*files, "--supertypes-version", "small", "--version", "1", "--peptides-per-patient", 2]


def test_a_public_layer_is_made_from_files(tmp_path: Path) -> None:
    said = study(tmp_path)
    spend = ("--epsilon", 20, "--delta", 1e-7, "--population", 10**5, "--out", tmp_path / "public", "--json")
    made = told("publish", *said, *spend)
    assert made.exit_code == 0, made.output
    shares = {row["supertype"]: row["share"] for row in json.loads(made.stdout)["supertypes"]}
    assert shares["A02"] == pytest.approx(1, abs=0.1)
    assert shares["B44"] == pytest.approx(0.5, abs=0.1)
    assert {path.name for path in (tmp_path / "public").iterdir()} >= {"layer.json", "peptides.certificate.json"}
    again = told("publish", *said, *spend)
    assert again.exit_code == 1
    assert "nothing was spent" in again.output


def test_a_study_without_a_way_to_its_peptides_is_refused(tmp_path: Path) -> None:
    found = told("publish", *study(tmp_path), "--epsilon", 1, "--out", tmp_path / "public")
    assert found.exit_code == 1
    assert "finding them needs delta" in " ".join(found.output.split())
    assert not (tmp_path / "public").exists()
