"""The accounting commands: figures, the exact fractions in JSON, and errors in plain words."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app

EVENTS = (
    '[{"kind":"event.discrete_laplace","l1":"1/1","scale":"20/1","version":1},'
    '{"kind":"event.discrete_laplace","l1":"1/1","scale":"20/1","version":1}]'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "events.json"
    path.write_text(EVENTS, encoding="utf-8")
    return path


def run(*words: object) -> tuple[int, str]:
    answer = CliRunner().invoke(app, [str(word) for word in words])
    return answer.exit_code, answer.output


def test_composition(file: Path) -> None:
    code, text = run("account", "compose", file, "--method", "basic", "--json")
    assert code == 0
    assert json.loads(text) == {"events": 2, "method": "basic", "epsilon": "1/10", "delta": "0"}
    code, text = run("account", "compose", file, file, "--delta", "1e-6")
    assert code == 0
    assert "events = 4" in text


def test_conversion() -> None:
    code, text = run("account", "convert", "--rho", "1/2", "--delta", "1e-5")
    assert code == 0
    assert "epsilon = 4.728" in text
    code, text = run("account", "convert", "--mu", "1", "--delta", "1e-5")
    assert "epsilon = 4.377" in text
    code, text = run("account", "convert", "--epsilon", "1/2", "--delta", "0", "--group", "3", "--json")
    assert json.loads(text)["epsilon"] == "3/2"


def test_calibration_goes_every_way_and_round() -> None:
    _, text = run(
        "account", "calibrate", "--epsilon", "1", "--delta", "1e-5", "--steps", "100", "--sampling", "0.01", "--json"
    )
    sigma = json.loads(text)["sigma"]
    _, text = run(
        "account", "calibrate", "--sigma", sigma, "--delta", "1e-5", "--steps", "100", "--sampling", "0.01", "--json"
    )
    top, _, bottom = json.loads(text)["epsilon"].partition("/")
    assert 0.995 < int(top) / int(bottom or 1) <= 1
    _, text = run(
        "account", "calibrate", "--sigma", sigma, "--delta", "1e-5", "--epsilon", "1", "--sampling", "0.01", "--json"
    )
    assert 100 <= json.loads(text)["steps"] <= 102
    code, text = run("account", "calibrate", "--sigma", "1", "--delta", "1e-5", "--epsilon", "1", "--steps", "100")
    assert code == 0
    assert "sampling = 0.01" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compose", "absent.json"), "cannot be read"),
        (("convert", "--delta", "1e-5"), "exactly one"),
        (("convert", "--delta", "1e-5", "--rho", "1", "--mu", "1"), "exactly one"),
        (("convert", "--delta", "2", "--rho", "1"), "outside 0 to 1"),
        (("calibrate", "--delta", "1e-5", "--epsilon", "1"), "give three"),
        (("calibrate", "--delta", "1e-5", "--epsilon", "-1", "--steps", "5", "--sampling", "0.1"), "above 0"),
    ],
)
def test_errors_in_plain_words(words: tuple[str, ...], said: str) -> None:
    code, text = run("account", *words)
    assert code == 1
    assert said in text
    assert "Traceback" not in text


@pytest.mark.parametrize("text", ["{}", "[1]", '{"kind":"event.unheard","version":1}', "no json"])
def test_a_file_that_holds_no_events(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text, encoding="utf-8")
    code, said = run("account", "compose", path)
    assert code == 1
    assert said.startswith("sfumato: ")
