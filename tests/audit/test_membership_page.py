"""The page and the command of membership attacks: both models, figures with limits, and no proof where nothing is."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.audit import membership_page as pages
from sfumato.audit import membership_study as studies
from sfumato.audit.membership_page import membership_page, write_membership_page
from sfumato.audit.membership_study import MembershipStudy
from sfumato.audit.reference_models import PrivacyCurve, model_membership
from sfumato.audit.roc_plot import roc_chart
from sfumato.cli.app import app
from sfumato.errors import InvalidInput

CURVE = PrivacyCurve(pairs=((2.0, 1e-6), (0.0, 0.17), (1.0, 0.0025)))


def made(apart: float, *, rows: int = 800) -> MembershipStudy:
    """A study of scores that are no draws: quantiles of two normal distributions, so that every figure stands."""
    from scipy.special import ndtri

    inside = np.arange(10 * rows).reshape(10, rows) % 2 == 0
    scores = ndtri((np.arange(10 * rows) * 0.6180339887 % 1 * 0.9998 + 0.0001).reshape(10, rows))

    def found(shift: float, curve: PrivacyCurve | None) -> tuple:
        return tuple(
            model_membership(
                scores + shift * inside, inside, attack=attack, references=number, curve=curve, comparisons=2
            )
            for attack, number in (("LiRA", 64), ("RMIA", 4))
        )

    return MembershipStudy(
        overfitted=found(1.6, None),
        private=found(apart, CURVE),
        epsilon=Fraction(2),
        delta=Fraction(1, 10**6),
        curve=CURVE,
        seed=1,
    )


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without their pictures, which take a second or two."""
    monkeypatch.setattr(pages, "_picture", lambda _study, _language: None)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.claim("S0-29")
def test_the_page_has_areas_and_rates_of_both_models_beside_what_is_allowed(tmp_path: Path) -> None:
    study = made(0.3)
    text = write_membership_page(study, tmp_path / "page.html").read_text("utf-8")
    for each in (*study.overfitted, *study.private):
        assert f"<td>{each.auc:.3f}</td>" in text
        assert f"<td>{each.low:.3f} – {each.high:.3f}</td>" in text
        assert each.few_false is not None
        assert f"<td>{each.few_false.rate:.4f}</td>" in text
    assert "<td>0.881</td>" in text
    assert "<td>0.0074</td>" in text
    assert not any("·" in cell for cell in re.findall("<td>(.*?)</td>", text))  # a number a cell
    assert "times the false ones plus δ" in text
    assert "e<sup>ε</sup>" in text
    assert "e^" not in text
    assert "2,995" in text
    assert "less than its guarantee allows" in text
    assert "另一次训练的非成员" in text
    assert "another may find more" in text
    assert "<script" not in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("apart", "words"),
    [(0.0, ("That proves no privacy", "并不证明隐私")), (2.5, ("What the private model states is refuted", "被推翻"))],
)
def test_the_page_says_what_was_found_and_what_was_not(apart: float, words: tuple[str, str]) -> None:
    text = membership_page(made(apart))
    assert all(each in text for each in words)
    assert ("is refuted" in text) is (apart > 1)


@pytest.mark.usefixtures("undrawn")
def test_an_attack_that_does_not_see_through_the_unprotected_model_has_no_weight() -> None:
    study = made(0.0)
    blunt = replace(study, overfitted=study.private)
    assert blunt.blunt
    assert "has no weight" in membership_page(blunt)


@pytest.mark.usefixtures("undrawn")
def test_too_few_others_are_said_to_be_too_few() -> None:
    text = membership_page(made(0.3, rows=200))
    assert text.count("not measurable</td>") == 4
    assert "2,995" in text
    assert text.count("无法测定</td>") == 4


def test_the_curves_are_drawn_on_logarithmic_axes_with_the_limits_beside_the_private_model() -> None:
    pytest.importorskip("altair")
    spec = roc_chart(made(0.3)).to_dict()
    panels = [panel["layer"] for panel in spec["hconcat"]]
    names = [{row["line"] for row in lines["data"]["values"]} for _, lines in panels]
    assert names[0] == {"LiRA", "RMIA", "guessing"}
    assert names[1] - names[0] == {"most that (ε, δ) allows", "most that the privacy curve allows"}
    for _, lines in panels:
        assert lines["encoding"]["x"]["scale"]["type"] == lines["encoding"]["y"]["scale"]["type"] == "log"
    rows = panels[1][1]["data"]["values"]
    assert all(row["true"] >= row["false"] for row in rows if row["line"].startswith("most"))


def test_where_few_people_stand_behind_a_curve_is_shaded_and_said_to_be() -> None:
    pytest.importorskip("altair")
    study = made(0.3)
    for panel in roc_chart(study).to_dict()["hconcat"]:
        (corner,) = panel["layer"][0]["data"]["values"]
        others = study.private[0].others
        assert corner["false"] == 1 / others
        assert corner["few"] == pytest.approx(20 / others)
        assert panel["layer"][0]["mark"]["type"] == "rect"
    for language, words in (("en", "fewer than 20 others were named"), ("zh-Hans", "少于 20 个")):
        assert any(words in line for line in roc_chart(study, language).to_dict()["title"]["subtitle"])


def test_a_page_is_html(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Nothing was written"):
        write_membership_page(made(0.3), tmp_path / "page.txt")


def test_a_page_that_could_not_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "membership_study", lambda **_: pytest.fail("it was computed"))
    for file in ("page.txt", "page", "no/page.html"):
        done = CliRunner().invoke(app, ["audit", "membership", "-o", str(tmp_path / file)])
        assert done.exit_code == 1
        assert "othing was computed" in " ".join(done.stderr.split())


@pytest.mark.parametrize("apart", [0.3, 2.5])
def test_figures_come_before_the_page_and_a_refuted_study_stays_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(studies, "membership_study", lambda **_: made(apart))
    monkeypatch.setattr(pages, "write_membership_page", full)
    done = CliRunner().invoke(app, ["audit", "membership", "-o", str(tmp_path / "page.html")])
    assert "Unprotected, learned by heart" in done.stdout
    assert "No space left" in done.stderr
    assert done.exit_code == (4 if apart > 1 else 1)


@pytest.mark.claim("S0-29")
def test_the_command_reports_areas_and_true_positives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    monkeypatch.setattr(studies, "membership_study", lambda **_asked: made(0.3))
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["audit", "membership", "--json", "-o", str(page)])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert page.read_text("utf-8").count("<svg") == 2
    for side in ("overfitted", "private"):
        for each in found[side]:
            assert each["low"] <= each["auc"] <= each["high"]
            assert each["few_false"]["low"] <= each["few_false"]["rate"] <= each["few_false"]["high"]
    assert found["private"][0]["bound"] == pytest.approx(0.8808, abs=1e-4)
    said = CliRunner().invoke(app, ["audit", "membership"]).stdout
    assert "allows any attack at most 0.881, and 0.0074 at 0.1%" in " ".join(said.split())
    monkeypatch.setattr(studies, "membership_study", lambda **_asked: made(2.5))
    assert CliRunner().invoke(app, ["audit", "membership"]).exit_code == 4
