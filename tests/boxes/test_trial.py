"""The first box is tried: its program finds every way out where there is no box, and none where there is one."""

import json
import subprocess
import sys
from fractions import Fraction

import pyarrow as pa
import pytest

from sfumato.boxes import trial
from sfumato.boxes.box import Box, BoxLimits
from sfumato.boxes.levels import BoxLevel
from sfumato.boxes.packages import packages_of
from sfumato.boxes.trial import ATTEMPTS, ways_out
from sfumato.errors import InvalidInput, Refused, Unsupported
from tests.parts import boxes

LIMITS = BoxLimits(seconds=Fraction(2), libraries=(), numbers=1 + len(ATTEMPTS))
UNBOXED = """
import json, sys
import pyarrow as pa
names = {}
exec(json.loads(sys.stdin.read()), names)
print(json.dumps(names["analyse"](pa.table({"x": [4, 8]}))))
"""
NEED_MORE = {
    "a file of its own",
    "a file among the libraries",
    "descriptors that were left open",
    "a process to trace",
    "another namespace",
    "signals",
    "variables of the host",
}
"""What an ordinary process may lack as well, by the host it runs on."""


class NoBox:
    """Runs a program as it is, in a process of its own."""

    def answer(self, code: str, block: pa.Table) -> tuple[float, ...]:
        said = subprocess.run(
            [sys.executable, "-c", UNBOXED], input=json.dumps(code), capture_output=True, text=True, check=True
        )
        return tuple(json.loads(said.stdout.splitlines()[-1]))


class MuteBox:
    """Answers nothing."""

    def answer(self, code: str, block: pa.Table) -> None:
        return


@pytest.mark.parametrize("level", list(BoxLevel), ids=lambda level: level.value)
def test_a_box_has_no_way_out(level: BoxLevel) -> None:
    boxes(level.value)
    assert ways_out(Box(limits=LIMITS, level=level)) == ()


@pytest.mark.parametrize("first", [None, ("a thread",)], ids=["silent", "leaks"])
def test_the_level_is_the_strongest_one_that_keeps_a_program_in(
    monkeypatch: pytest.MonkeyPatch, first: tuple[str, ...] | None
) -> None:
    monkeypatch.setattr(trial, "check_level", lambda level: level)
    monkeypatch.setattr(trial, "box_levels", lambda: iter(BoxLevel))
    found = {BoxLevel.GVISOR: first, BoxLevel.NAMESPACES: ()}
    monkeypatch.setattr(trial, "_found_at", found.__getitem__)
    assert trial.tested_level.__wrapped__() is BoxLevel.NAMESPACES
    found[BoxLevel.GVISOR] = ()
    assert trial.tested_level.__wrapped__() is BoxLevel.GVISOR
    found |= {BoxLevel.GVISOR: None, BoxLevel.NAMESPACES: ("a thread",)}
    with pytest.raises(Refused, match="level A does not answer as it should; level B leaves ways out: a thread"):
        trial.tested_level.__wrapped__()


def test_a_level_that_is_not_on_this_host_is_refused_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unsupported, match="level A needs gVisor"):
        Box(limits=LIMITS, level=BoxLevel.GVISOR)
    with pytest.raises(Unsupported, match=r"level A needs .*; level B needs bubblewrap"):
        Box(limits=LIMITS)


def test_every_way_out_is_found_where_there_is_no_box() -> None:
    found = ways_out(NoBox())  # type: ignore[arg-type]
    assert found is not None
    assert set(ATTEMPTS) - NEED_MORE <= set(found)


def test_a_box_that_does_not_answer_is_told_from_a_tight_one() -> None:
    assert ways_out(MuteBox()) is None  # type: ignore[arg-type]


def test_a_box_has_the_chosen_libraries_and_nothing_else() -> None:
    """No path file of an installation, which names folders of the host, and not this package."""
    boxes()
    code = "import os\ndef analyse(rows): return [len(os.listdir('/packages')), len(rows)]"
    limits = BoxLimits(seconds=Fraction(1), libraries=(), numbers=2)
    places = [place.name for package in packages_of(()) for place in package.places]
    assert Box(limits=limits).answer(code, pa.table({"x": [1]})) == (float(len(places)), 1.0)
    assert not any(name.endswith(".pth") or "sfumato" in name for name in places)


def test_libraries_that_are_not_there_are_refused() -> None:
    for library in ("sfumato", "no_such_library"):
        with pytest.raises(InvalidInput, match="no library that a box can have"):
            packages_of((library,))
    assert [package.name for package in packages_of(("statistics",))] == ["pyarrow"]
