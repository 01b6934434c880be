"""Boxes: hostile programs are kept in, and size and time of an answer are the same whatever happens inside."""

import subprocess
import sys
import time
from fractions import Fraction

import pyarrow as pa
import pytest

from sfumato.boxes import inside
from sfumato.boxes.box import Box, BoxLimits, WarmBox, most_memory
from sfumato.boxes.levels import BoxLevel
from sfumato.boxes.seccomp import AARCH64, CONTROL, ONCE, X86_64, Machine, filter_program
from sfumato.boxes.started import StartedBox
from sfumato.errors import InvalidInput
from tests.boxes.hostile import HOSTILE
from tests.parts import boxes

ROWS = pa.table({"x": [1.0, 2.0, 6.0]})
TRIED_ALWAYS = (
    "files of the host",
    "network by UDP",
    "fork",
    "descriptors that were left open",
    "load and memory of the host",
    "notice of what others do",
)
LIMITS = BoxLimits(seconds=Fraction(1), libraries=())


BOTH = [level.value for level in BoxLevel]


def answer(
    code: str, limits: BoxLimits = LIMITS, rows: pa.Table = ROWS, level: str | None = None
) -> tuple[float, ...] | None:
    boxes(level)
    return Box(limits=limits, level=None if level is None else BoxLevel(level)).answer(code, rows)


@pytest.mark.parametrize("level", BOTH)
@pytest.mark.parametrize(
    "program", [pytest.param(name, marks=[] if name in TRIED_ALWAYS else [pytest.mark.long]) for name in HOSTILE]
)
def test_a_hostile_program_is_kept_in(program: str, level: str) -> None:
    assert answer(HOSTILE[program], BoxLimits(seconds=Fraction(3), libraries=()), level=level) in ((0.0,), None)


def test_the_same_programs_get_through_where_there_is_no_box() -> None:
    """What they look for is there: else they would prove nothing."""
    found = {}
    shared = ("load and memory of the host", "lock on a file that others have")
    for name in ("environment", "thread", "name of the host", *shared):
        names: dict[str, object] = {}
        exec(HOSTILE[name], names)  # noqa: S102 - ours
        found[name] = names["analyse"](ROWS)  # type: ignore[operator]
    assert found == dict.fromkeys(found, 1.0)


@pytest.mark.parametrize("level", BOTH)
def test_one_answer_of_its_size_leaves(level: str) -> None:
    both = BoxLimits(seconds=Fraction(1), libraries=(), numbers=2)
    assert answer("def analyse(rows): return [sum(rows['x'].to_pylist()), 7]", both, level=level) == (9.0, 7.0)


def test_one_number_is_an_answer_by_itself() -> None:
    assert answer("def analyse(rows): return sum(rows['x'].to_pylist())") == (9.0,)


@pytest.mark.long
def test_rows_are_a_frame_of_pandas_where_it_is_loaded() -> None:
    frame = BoxLimits(seconds=Fraction(3))
    assert answer("def analyse(rows): return rows.groupby('x').size().max()", frame) == (1.0,)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import os; os.write(1, b'x' * 10_000_000)", id="floods"),
        pytest.param("def analyse(rows): return 'a word'", id="word"),
        pytest.param("def analyse(rows): return float('nan')", id="nan"),
        pytest.param("def analyse(rows): return 1e999", id="infinity", marks=pytest.mark.long),
        pytest.param("def analyse(rows): return 10 ** 400", id="huge", marks=pytest.mark.long),
        pytest.param("def analyse(rows): return [1, 2]", id="more", marks=pytest.mark.long),
        pytest.param("def analyse(rows): raise SystemExit(7)", id="exit"),
        pytest.param("import os; os._exit(7)", id="exit at once", marks=pytest.mark.long),
        pytest.param("def analyse(rows):\n  while True: pass", id="hangs"),
        pytest.param("no program", id="no program", marks=pytest.mark.long),
        pytest.param("import ctypes; ctypes.string_at(0)", id="crash", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("level", BOTH)
def test_anything_else_is_nothing_and_takes_the_whole_slot(code: str, level: str) -> None:
    boxes(level)
    with Box(limits=LIMITS, level=BoxLevel(level)).warm() as box:
        box.ready()
        start = time.monotonic()
        assert box.answer(code, ROWS) is None
        assert time.monotonic() - start >= 1


def test_limits_are_held_to_reason() -> None:
    foul = ({"libraries": ("os; x",)}, {"libraries": "pandas"}, {"core": 1 << 20})
    too_much = {"memory": most_memory() + 1}  # whoever takes all of the host's ends a run, which others see
    for wrong in ({"seconds": 0}, {"memory": 1}, {"numbers": 0}, too_much, *foul):
        with pytest.raises(InvalidInput):
            BoxLimits(**wrong)


@pytest.mark.parametrize("calls", [X86_64, AARCH64], ids=["x86-64", "AArch64"])
def test_calls_that_open_a_way_are_on_no_list(calls: dict[str, int]) -> None:
    foul = {
        "socket",
        "connect",
        "bind",
        "sendto",
        "fork",
        "vfork",
        "clone",
        "clone3",
        "ptrace",
        "io_uring_setup",
        "kill",
    }
    foul |= {"mount", "unshare", "setns", "shmget", "memfd_create", "process_vm_readv", "bpf", "keyctl", "open"}
    assert not foul & set(calls)
    assert len(set(calls.values())) == len(calls)
    assert set(ONCE) <= set(calls)
    program = filter_program(calls.values(), Machine(audit=1, calls=calls))
    assert len(program) == 8 * (7 + 2 * len(calls) + 2 * len(CONTROL))
    assert {"sysinfo", "ioctl", "prlimit64"} <= set(ONCE)


def test_a_box_that_does_not_read_its_block_takes_the_slot_and_no_more() -> None:
    """The wait for a reader ends with the slot, whatever the size of the block: this one reads nothing for a minute."""
    boxes()
    deaf = "import os, time; os.write(1, b'R'); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-I", "-c", deaf], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        box = WarmBox(StartedBox(process), BoxLimits(seconds=Fraction(1, 20), libraries=()), {})
        box.ready()
        start = time.monotonic()
        assert box.answer("def analyse(rows): return 1", pa.table({"x": pa.array(range(1 << 18))})) is None
        assert time.monotonic() - start < 30


@pytest.mark.long
def test_a_program_is_stopped_before_its_slot_ends() -> None:
    """Else its memory is cleared while the next block runs: 145 ms for 1.5 GB."""
    boxes()
    with Box(limits=BoxLimits(seconds=Fraction(5), libraries=())).warm() as box:
        box.ready()
        killed: list[float] = []
        process, end = box._process, box._process.kill
        process.kill = lambda: (killed.append(time.monotonic()), end())[1]  # type: ignore[method-assign]
        assert box.answer("def analyse(rows):\n  while True: pass", ROWS) is None
        assert time.monotonic() - killed[0] > 0.25


def test_calls_of_another_machine_leave_no_line_in_the_log_of_the_host() -> None:
    """The kernel logs a filter that ends a process, with a number that the program chose."""
    assert b"\x06\x00\x00\x00\x00\x00\x00\x80" not in filter_program([0], Machine(audit=1, calls=X86_64))


def test_a_block_of_several_pieces_arrives_whole() -> None:
    many = pa.table({"x": pa.array(range(50_000))})
    assert answer("def analyse(rows): return sum(rows['x'].to_pylist())", rows=many) == (49_999 * 25_000.0,)


def test_code_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="UTF-8"):
        answer("x = '\ud800'")


def test_a_box_that_crashes_leaves_no_image_of_its_memory() -> None:
    code = (
        f"import ctypes, runpy; libc = ctypes.CDLL(None); runpy.run_path({inside.__file__!r})['undumpable'](libc); "
        "print(libc.prctl(3, 0, 0, 0, 0))"
    )
    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True, timeout=60)
    assert said.stdout.strip() == b"0"
    assert "undumpable" in inside.main.__code__.co_names
