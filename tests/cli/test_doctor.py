"""``doctor``: missing parts are named with what installs them, unfit ones end with 1, and nothing is a traceback."""

import importlib.metadata
import json
import sys

import pytest

from sfumato.boxes.levels import BoxLevel
from sfumato.cli import doctor
from sfumato.errors import Refused
from sfumato.noise.words import SystemWords

BITS = pytest.mark.alpha(1e-11)  # the look at the bits: ten standard deviations, and no word twice


def states(outcome) -> dict[str, dict[str, str]]:
    return {one["part"]: one for one in json.loads(outcome.stdout)["findings"]}


@BITS
def test_a_whole_installation_is_fit(run):
    """Words of which 51% are ones are found by the look at the bits; broken copies are below."""
    outcome = run("doctor", "--json")
    assert outcome.exit_code == 0, outcome.stdout
    found = states(outcome)
    assert json.loads(outcome.stdout)["fit"] is True
    assert {"python", "packages", "noise", "clock", "time zones", "ledger", "fonts", "boxes", "browser"} <= set(found)
    assert not [one for one in found.values() if one["state"] not in ("fit", "missing")]
    assert found["noise"]["state"] == found["clock"]["state"] == found["python"]["state"] == "fit"


@BITS
def test_the_table_has_a_line_for_each_part_and_counts_them(run):
    """As above."""
    lines = run("doctor").stdout.splitlines()
    words = [line.split()[0] for line in lines[:-1]]
    assert set(words) <= {"fit", "missing", "unfit"}
    assert lines[-1] == f"Fit: {words.count('fit')}; optional and missing: {words.count('missing')}; unfit: 0."


@BITS
def test_an_extra_that_is_missing_is_named_with_what_installs_it(run, monkeypatch):
    """As above."""
    whole = list(importlib.metadata.distributions())
    monkeypatch.setattr(
        importlib.metadata, "distributions", lambda: [one for one in whole if one.metadata["Name"] != "altair"]
    )
    outcome = run("doctor", "--json")
    assert outcome.exit_code == 0
    plots = states(outcome)["extra plots"]
    assert (plots["state"], plots["says"]) == ("missing", "not installed: altair")
    assert plots["do"] == "pip install 'sfumato[plots]'"


@BITS
def test_a_base_package_that_is_missing_is_unfit(run, monkeypatch):
    """As above."""
    whole = list(importlib.metadata.distributions())
    monkeypatch.setattr(
        importlib.metadata, "distributions", lambda: [one for one in whole if one.metadata["Name"] != "sqlglot"]
    )
    outcome = run("doctor", "--json")
    assert outcome.exit_code == 1
    assert states(outcome)["packages"]["says"] == "not installed: sqlglot"


def test_sources_that_are_not_installed_say_so(monkeypatch):
    def absent(_name):
        raise importlib.metadata.PackageNotFoundError("sfumato")

    monkeypatch.setattr(importlib.metadata, "requires", absent)
    (found,) = doctor.CHECKS["packages"]()
    assert (found.state, found.do) == ("missing", "pip install .")


@pytest.mark.parametrize("flaw", ["nothing", "the same again", "too many ones"])
def test_noise_that_is_broken_is_unfit(flaw, run, monkeypatch):
    fill = SystemWords.fill

    def broken(self, out):
        fill(self, out)
        if flaw == "nothing":
            out[:] = 0
        elif flaw == "the same again":
            out[1::2] = out[::2]
        else:
            other = out.copy()
            fill(self, other)
            out[::8] |= other[::8]  # three bits of four are ones in one word of eight: 53.1% of all

    monkeypatch.setattr(SystemWords, "fill", broken)
    outcome = run("doctor", "--json")
    assert outcome.exit_code == 1
    noise = states(outcome)["noise"]
    assert (noise["state"], noise["do"]) == ("unfit", "Release nothing from this machine.")


@BITS
def test_a_clock_before_the_installation_is_unfit(run, monkeypatch):
    """As above."""
    monkeypatch.setattr("sfumato.cli.doctor.time.time", lambda: 0.0)
    outcome = run("doctor", "--json")
    assert outcome.exit_code == 1
    assert "before sfumato was installed" in states(outcome)["clock"]["says"]


@BITS
def test_a_look_that_fails_is_a_finding_and_no_traceback(run, monkeypatch):
    """As above."""

    def breaks():
        raise ValueError("line one\nline two")
        yield

    monkeypatch.setitem(doctor.CHECKS, "fonts", breaks)
    outcome = run("doctor", "--json")
    assert outcome.exit_code == 1
    fonts = states(outcome)["fonts"]
    assert fonts["says"] == "looking failed with ValueError: line one"
    assert "Traceback" not in outcome.output


def test_boxes_are_tried_and_need_linux(monkeypatch):
    def leaks():
        raise Refused("boxes on this host cannot be used (level B leaves ways out: a thread).")

    monkeypatch.setattr("sfumato.boxes.trial.tested_level", leaks)
    (found,) = doctor.CHECKS["boxes"]()
    assert (found.state, "leaves ways out: a thread" in found.says) == ("missing", True)
    assert "Install bubblewrap or runsc" in found.do
    monkeypatch.setattr("sfumato.boxes.trial.tested_level", lambda: BoxLevel.NAMESPACES)
    (found,) = doctor.CHECKS["boxes"]()
    assert (found.state, found.says[:7]) == ("fit", "level B")
    monkeypatch.setattr(sys, "platform", "darwin")
    (found,) = doctor.CHECKS["boxes"]()
    assert (found.state, "Linux alone" in found.says) == ("missing", True)


@BITS
def test_no_browser_is_missing_and_says_what_to_do(run, monkeypatch):
    """As above."""
    monkeypatch.setattr("sfumato.reports.browser.shutil.which", lambda _name: None)
    monkeypatch.delenv("SFUMATO_BROWSER", raising=False)
    browser = states(run("doctor", "--json"))["browser"]
    assert (browser["state"], "Install one" in browser["says"]) == ("missing", True)
