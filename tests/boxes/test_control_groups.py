"""Control groups: found in either version, used only where they hold, and gone with the box."""

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.boxes import control_groups, started
from sfumato.boxes.box import Box, BoxLimits
from sfumato.boxes.control_groups import GroupHome, control_group, control_groups_hold, homes_of
from sfumato.boxes.levels import BoxLevel
from tests.parts import boxes

MEMORY, PIDS = ("memory",), ("pids",)


@pytest.fixture
def held() -> Iterator[tuple[GroupHome, ...]]:
    """Where groups are made on this host; none is left there."""
    if not control_groups_hold():
        pytest.skip("this process may not make control groups here, or they do not hold")
    homes = control_groups._working_homes()
    yield homes
    assert not [left for home in homes for left in home.folder.glob(f"sfumato-box-{os.getpid()}-*")]


def test_homes_are_found_in_both_versions_and_in_containers() -> None:
    first = "30 1 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n31 1 0:2 /docker/x /cg/pids rw - cgroup cgroup rw,pids"
    assert homes_of("4:memory:/mine\n3:pids:/docker/x/y\n2:cpu:/\n", first) == [
        GroupHome(folder=Path("/cg/memory/mine"), version=1, controllers=MEMORY),
        GroupHome(folder=Path("/cg/pids/y"), version=1, controllers=PIDS),
    ]
    second = "30 1 0:1 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw"
    folders = [Path("/sys/fs/cgroup/user/mine"), Path("/sys/fs/cgroup/user")]
    assert [home.folder for home in homes_of("0::/user/mine\n", second)] == folders
    assert [home.folder for home in homes_of("0::/\n", second)] == [Path("/sys/fs/cgroup")]  # and not beside it
    assert homes_of("", "") == []


@pytest.mark.parametrize(
    ("version", "limits"),
    [
        (1, {"memory.limit_in_bytes": "2097152", "memory.memsw.limit_in_bytes": "2097152", "pids.max": "3"}),
        (2, {"memory.max": "2097152", "memory.swap.max": "0", "pids.max": "3"}),
    ],
)
def test_limits_are_written_in_the_words_of_each_version(version: int, limits: dict[str, str]) -> None:
    home = GroupHome(folder=Path("/cg"), version=version, controllers=("memory", "pids"))
    assert home.limits(memory=2, tasks=3) == limits


def test_a_folder_that_is_no_control_group_is_no_home(tmp_path: Path) -> None:
    assert not control_groups._can_make(GroupHome(folder=tmp_path, version=2, controllers=("memory", "pids")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [control_groups._TAKES_MEMORY, control_groups._TAKES_PROCESSES])
def test_what_takes_too_much_is_stopped_in_a_group_and_not_outside(held: tuple[GroupHome, ...], code: str) -> None:
    assert not control_groups._gets_through(held, code)
    assert control_groups._gets_through((), code)


def test_where_groups_do_not_hold_a_box_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "control_groups_hold", lambda: False)
    with control_group(memory=64, tasks=4) as files:
        assert files == ()


@pytest.mark.long
@pytest.mark.parametrize("level", list(BoxLevel), ids=lambda level: level.value)
def test_a_group_holds_a_box_whose_own_limit_of_memory_is_gone(
    held: tuple[GroupHome, ...], level: BoxLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes(level.value)
    usual = BoxLimits.resources
    monkeypatch.setattr(BoxLimits, "resources", lambda self: {**usual(self), "AS": 8 << 30})
    box = Box(limits=BoxLimits(seconds=Fraction(15), libraries=(), memory=512), level=level)
    code = "def analyse(rows): return len(bytearray(5 << 28))"
    rows = pa.table({"x": [1]})
    assert box.answer(code, rows) is None
    monkeypatch.setattr(started, "control_group", lambda **_: control_groups._groups((), memory=1, tasks=1))
    assert box.answer(code, rows) == (float(5 << 28),)
