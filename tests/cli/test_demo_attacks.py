"""``sfumato demo attacks``: what it prints and writes, the claims through the command, and what it refuses."""

import json
import math
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.cli.demo_attacks import _plain
from sfumato.demo.attacks import (
    demonstrate_gradient_inversion,
    demonstrate_k_anonymity,
    demonstrate_reconstruction,
    demonstrate_ridge,
    demonstrate_singling_out,
    register,
    running,
)
from sfumato.demo.attacks.pictures import attack_picture
from sfumato.demo.attacks.running import AttackDemonstrations, show
from sfumato.demo.attacks.words import AttackStory, attack_story
from sfumato.errors import Unsupported
from sfumato.reports.gallery import GalleryPart, gallery
from tests import parts

WORDS = re.compile(r"\bcannot be\b|\bnever\b|\bten\b|100%|保证")


@pytest.fixture(scope="module")
def made() -> AttackDemonstrations:
    """The demonstrations, two of them with fewer people."""
    hospital = register()
    found = (
        demonstrate_reconstruction(hospital, people=30, shares=(Fraction(1), Fraction(4))),
        demonstrate_singling_out(hospital),
        demonstrate_k_anonymity(hospital),
        demonstrate_gradient_inversion(hospital, candidates=10, times=2),
        demonstrate_ridge(hospital),
    )
    return AttackDemonstrations(epsilon=Fraction(1), patients=len(hospital), found=found)


@pytest.fixture
def quick(made, monkeypatch):
    """The command on demonstrations that were run once."""
    monkeypatch.setattr(running, "demonstrate", lambda **_: made)
    return made


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave the plots extra out, which is what takes the time."""
    monkeypatch.setitem(sys.modules, "altair", None)


@pytest.mark.claim("S1-18", "S3-17", "S3-12")
@pytest.mark.usefixtures("quick", "no_pictures")
def test_the_command_shows_what_is_claimed(run, tmp_path):
    outcome = run("demo", "attacks", "--folder", tmp_path / "new", "--lang", "en", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    document = json.loads(outcome.stdout)
    found = document["demonstrations"]
    assert list(found) == ["reconstruction", "singling_out", "k_anonymity", "gradients", "ridge"]
    one = found["singling_out"]
    assert (one["count"], one["rows"]) == (1, 1)
    odds = one["posterior"] / (1 - one["posterior"]) * 9
    assert 1 / math.e - 1e-9 < odds < math.e + 1e-9
    assert found["k_anonymity"]["k"] == [3, 3]
    assert found["k_anonymity"]["example"]["people"] == 1
    assert len(found["k_anonymity"]["example"]["common"]) == 1
    rows = [each["information"] for each in found["ridge"]["penalties"]]
    assert all(row == sorted(row, reverse=True) for row in [*rows, *zip(*rows, strict=True)] if isinstance(row, list))
    assert {each["without_noise"] for each in found["ridge"]["penalties"]} == {"infinite"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"README.txt", "attacks.html"}


@pytest.mark.long
def test_the_whole_command_writes_a_page_and_every_picture(run, tmp_path):
    parts.package("vl_convert")
    outcome = run("demo", "attacks", "--folder", tmp_path / "new", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    document = json.loads(outcome.stdout)
    assert {Path(file).name for file in document["files"]} == {path.name for path in (tmp_path / "new").iterdir()} - {
        "README.txt"
    }
    for name in document["demonstrations"]:
        assert len((tmp_path / "new" / f"{name}.png").read_bytes()) > 5_000
        assert ET.parse(tmp_path / "new" / f"{name}.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own


@pytest.mark.usefixtures("quick")
def test_without_json_it_tells_the_stories(run, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "written", lambda made, folder, **_: (folder / "attacks.html",))
    outcome = run("demo", "attacks", "--folder", tmp_path, "--lang", "zh")
    assert outcome.exit_code == 0
    assert "两张 k = 3 的表格锁定一个人" in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == f"已写入：{tmp_path / 'attacks.html'}"
    assert "没有绘图" in outcome.stderr
    assert "written" not in outcome.output
    monkeypatch.setattr(running, "written", lambda made, folder, **_: (folder / "attacks.html", folder / "a.svg"))
    outcome = run("demo", "attacks", "--folder", tmp_path, "--lang", "zh")
    assert outcome.stdout.splitlines()[-1].endswith("，图片在其旁边")
    outcome = run("demo", "attacks", "--folder", tmp_path, "--lang", "en")
    assert outcome.stdout.splitlines()[-1] == f"written: {tmp_path / 'attacks.html'}, and pictures beside it"


def test_the_name_of_a_line_stands_where_the_line_does_not_cross_it(made):
    parts.package("altair")
    found = made.found[0]
    for private, below in (((0.6, 0.4), True), ((0.4, 0.6), False), ((0.5, 0.5), False)):
        answered = tuple(replace(each, private=share) for each, share in zip(found.answered, private, strict=True))
        layers = attack_picture(replace(found, answered=answered)).to_dict()["layer"]
        assert (layers[-1]["mark"]["dy"] > 0) is below


def test_long_names_have_room_in_fonts_that_are_wider(made):
    parts.package("altair")
    axis = attack_picture(made.found[1]).to_dict()["hconcat"][0]["layer"][0]["encoding"]["y"]["axis"]
    assert axis["minExtent"] > 7 * len("influenza-like illness")


def test_powers_stand_above_the_line():
    text = gallery([GalleryPart(language="en", kind="k", title="t", lead=("a < e^ε",), shown=())])
    assert "a &lt; e<sup>ε</sup>" in text
    assert "e^" not in text


@pytest.mark.usefixtures("quick")
def test_a_folder_of_somebody_else_and_a_wrong_epsilon_are_refused(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    outcome = run("demo", "attacks", "--folder", tmp_path)
    assert (outcome.exit_code, "Nothing was written" in outcome.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    outcome = run("demo", "attacks", "--folder", tmp_path / "mine.txt")
    assert (outcome.exit_code, "cannot be written" in outcome.stderr) == (1, True)
    for wrong in ("0", "-1", "x"):
        assert run("demo", "attacks", "--folder", tmp_path / "new", "--epsilon", wrong).exit_code == 1
    assert not (tmp_path / "new").exists()


def stories(made: AttackDemonstrations, language: str) -> list[AttackStory]:
    return [attack_story(found, language) for found in made.found]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_story_has_its_figures_and_no_word_that_says_too_much(made, language):
    told = stories(made, language)
    assert len({story.title for story in told}) == 5
    for story in told:
        assert len(story.paragraphs) == 5
        text = "\n".join((story.title, *story.paragraphs))
        assert "{" not in text
        assert not WORDS.search(text), text
    with pytest.raises(Unsupported, match="no text in 'fr'"):
        attack_story(made.found[0], "fr")


@pytest.mark.long
def test_the_page_holds_both_languages_every_picture_and_loads_nothing(made):
    parts.package("vl_convert")
    text = show(made)
    assert text.count("<svg") == 2 * 2 * 5  # wide and narrow, English and Chinese
    assert [
        words for words in ("<script", "<img", "http-equiv", "Differential privacy", "差分隐私") if words in text
    ] == [
        "http-equiv",
        "Differential privacy",
        "差分隐私",
    ]
    for language in ("en", "zh-Hans"):
        for story in stories(made, language):
            assert f'id="{language}-{story.name}"' in text


@pytest.mark.usefixtures("no_pictures")
def test_without_the_plots_extra_the_page_has_words_alone(made, tmp_path):
    files = running.written(made, tmp_path, languages=("en",))
    assert [file.name for file in files] == ["attacks.html"]
    assert "<svg" not in files[0].read_text("utf-8")
    again = running.written(made, tmp_path, languages=("en",))  # a second run overwrites its own files
    assert again == files


def test_results_for_programs_are_plain():
    assert _plain((Fraction(1, 2), math.inf, Fraction(1, 3**40), "a")) == ["1/2", "infinite", 3.0**-40, "a"]
