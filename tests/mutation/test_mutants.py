"""The mutator makes each kind of change, and the runner tells a weak test from a strong one."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.mutants import Mutant, mutants_of, watched_in
from tests.mutation.trial import REACHED, instrumented

REPOSITORY = Path(__file__).parents[2]


def changes(body: str, parameters: str = "self, x, y, unit") -> dict[str, str]:
    """Each change made in a function with this body, and the line that it leaves."""
    source = f"class Toy:\n    def sensitivity({parameters}):\n{textwrap.indent(textwrap.dedent(body), ' ' * 8)}"
    return {f"{it.change}#{it.nth}".removesuffix("#1"): it.after for it in mutants_of(source, "toy")}


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("return x + y", {"+→-": "return x - y"}),
        ("return x - y", {"-→+": "return x + y"}),
        ("return x * y", {"*→/": "return x / y", "*→//": "return x // y"}),
        ("return x / y", {"/→*": "return x * y"}),
        ("return x // y", {"//→*": "return x * y", "//→/": "return x / y"}),
        ("return x ** y", {"**→*": "return x * y"}),
        ("return x % y", {"%→*": "return x * y"}),
        ("return x | y", {"|→&": "return x & y"}),
        ("x += y", {"+=→-=": "x -= y"}),
        ("return (x + y) * unit", {"+→-": "return (x - y) * unit", "*→/": "return (x + y) / unit",
                                   "*→//": "return (x + y) // unit"}),
        ("return -x", {"drop -": "return x"}),
        ("return not x", {"drop not": "return x"}),
        ("return x < y", {"<→<=": "return x <= y", "<→>": "return x > y"}),
        ("return x <= y", {"<=→<": "return x < y", "<=→>=": "return x >= y"}),
        ("return x > y", {">→>=": "return x >= y", ">→<": "return x < y"}),
        ("return x >= y", {">=→>": "return x > y", ">=→<=": "return x <= y"}),
        ("return x == y", {"==→!=": "return x != y"}),
        ("return x != y", {"!=→==": "return x == y"}),
        ("return x == y == unit", {"==→!=": "return x != y == unit", "==→!=#2": "return x == y != unit"}),
        ("return x is y", {"is→is not": "return x is not y"}),
        ("return x in y", {"in→not in": "return x not in y"}),
        ("return x and y", {"and→or": "return x or y"}),
        ("return x or y", {"or→and": "return x and y"}),
        ("return 2", {"2→3": "return 3", "2→1": "return 1"}),
        ("return x(0)", {"0→1": "return x(1)", "0→-1": "return x(-1)"}),
        ("return x[1.5]", {"1.5→2.5": "return x[2.5]", "1.5→0.5": "return x[0.5]"}),
        ("return x('1/2')", {"'1/2'→'3/2'": "return x('3/2')", "'1/2'→'-1/2'": "return x('-1/2')"}),
        ("return True", {"True→False": "return False"}),
        ("return False", {"False→True": "return True"}),
        ("return min(x, y)", {"min→max": "return max(x, y)"}),
        ("return max(x, y)", {"max→min": "return min(x, y)"}),
        ("return x(max, y)", {"max→min": "return x(min, y)"}),
        ("return x.floor(y)", {"floor→ceil": "return x.ceil(y)"}),
        ("return x if y else unit", {"swap if/else": "return unit if y else x"}),
        ("return Relation.REPLACE", {"REPLACE→ADD_REMOVE": "return Relation.ADD_REMOVE"}),
        ("return units.Relation.ADD_REMOVE", {"ADD_REMOVE→REPLACE": "return units.Relation.REPLACE"}),
        (
            """\
            match unit:
                case Relation.ADD_REMOVE:
                    return x
                case Relation.REPLACE:
                    return y
            """,
            {"ADD_REMOVE→REPLACE": "case Relation.REPLACE:",
             "REPLACE→ADD_REMOVE": "case Relation.ADD_REMOVE:"},
        ),
        ("match unit:\n    case True:\n        return x", {"True→False": "case False:"}),
    ],
)  # fmt: skip
def test_each_kind_of_change_is_made(body: str, made: dict[str, str]) -> None:
    assert changes(body) == made


def test_a_negative_constant_keeps_its_place() -> None:
    assert changes("return 0 ** x") == {
        "**→*": "return 0 * x",
        "0→1": "return 1 ** x",
        "0→-1": "return (-1) ** x",
    }


def test_a_default_argument_is_mutated_and_an_annotation_is_not() -> None:
    assert changes("y: int | Literal[3] = x", "self, x: int | None = 7") == {
        "7→8": "def sensitivity(self, x: int | None=8):",
        "7→6": "def sensitivity(self, x: int | None=6):",
    }


@pytest.mark.parametrize(
    "body",
    [
        "...",
        '"Claim 7."\n...',
        '"7"\nreturn x',
        "return x",
        "return f'7 of {x}'",
        "return x.max",
        "return 'l1'",
    ],
)
def test_what_is_not_an_operator_or_a_constant_is_left_alone(body: str) -> None:
    assert changes(body) == {}


TOY = '''\
"""A toy."""
class Shape(Protocol):
    def sensitivity(self, unit): ...


class Toy:
    def sensitivity(self, unit):
        """Moved by 2."""
        return 2 * self.rows

    def other(self, unit):
        return 3 * self.rows


def loss(moved, scale=1):
    if moved < 0:
        raise ValueError(f"{moved} < 0")
    return moved / scale


class Outer:
    class Inner:
        async def loss(self):
            return -self.moved
'''


def toy_mutants(**extra: tuple[str, ...]) -> list[Mutant]:
    return mutants_of(TOY, "pack.toy", **extra)


def test_watched_functions_are_found_wherever_they_are() -> None:
    found = [(it.qualname, it.line, it.stub) for it in watched_in(TOY, "pack.toy")]
    assert found == [
        ("Shape.sensitivity", 3, True),
        ("Toy.sensitivity", 7, False),
        ("loss", 15, False),
        ("Outer.Inner.loss", 23, False),
    ]


def test_ids_name_the_module_the_function_the_line_and_the_change() -> None:
    assert [it.id for it in toy_mutants() if it.qualname != "loss"] == [
        "pack.toy:Toy.sensitivity:L9:*→/",
        "pack.toy:Toy.sensitivity:L9:*→//",
        "pack.toy:Toy.sensitivity:L9:2→3",
        "pack.toy:Toy.sensitivity:L9:2→1",
        "pack.toy:Outer.Inner.loss:L24:drop -",
    ]


def test_keys_are_unique_and_do_not_move_with_the_lines() -> None:
    keys = [it.key for it in toy_mutants()]
    assert len(set(keys)) == len(keys)
    assert keys == [it.key for it in mutants_of("\n\n" + TOY, "pack.toy")]


def test_an_extra_name_is_watched() -> None:
    more = {it.id for it in toy_mutants(extra=("pack.toy.Toy.other",))} - {it.id for it in toy_mutants()}
    assert more == {f"pack.toy:Toy.other:L12:{change}" for change in ("*→/", "*→//", "3→4", "3→2")}


def test_each_mutant_parses_and_differs_from_the_original_in_one_line() -> None:
    original = ast.unparse(ast.parse(TOY)).splitlines()
    for mutant in toy_mutants():
        mutated = ast.unparse(ast.parse(mutant.source)).splitlines()
        different = [(a.strip(), b.strip()) for a, b in zip(original, mutated, strict=True) if a != b]
        assert different == [(mutant.before, mutant.after)]


# ------------------------------------------------------------ the runner, on a package made for the purpose

PACKAGE = {
    "src/toy_pack/__init__.py": "from toy_pack.counts import Count",
    "src/toy_pack/counts.py": """\
        class Count:
            def sensitivity(self, rows):
                return 2 * rows
        """,
}
STRONG = """\
    import pytest
    from toy_pack import Count

    pytestmark = pytest.mark.kills

    def test_exact_sensitivity():
        assert Count().sensitivity(5) == 10
    """
WEAK = STRONG.replace("== 10", ">= 5")
UNMARKED = STRONG.replace("pytestmark", "mark")
OTHER = """\
    import pytest

    pytestmark = [pytest.mark.kills]

    def test_nothing_of_the_package():
        assert True
    """
SURVIVORS_OF_WEAK = {"toy_pack.counts:Count.sensitivity:L3:2→3", "toy_pack.counts:Count.sensitivity:L3:2→1"}


def run_on(
    root: Path, *options: str, package: dict[str, str] = PACKAGE, **tests: str
) -> subprocess.CompletedProcess[str]:
    """Run on the toy package with these test files."""
    files = package | {f"checks/test_{name}.py": text for name, text in tests.items()}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
    where = ["--source", str(root / "src"), "--tests", str(root / "checks")]
    command = [sys.executable, "-m", "tests.mutation.run", *where, *options]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)


def survivors(output: str) -> set[str]:
    return {line.split()[1] for line in output.splitlines() if line.startswith("SURVIVED")}


@pytest.mark.long
def test_a_strong_test_kills_every_mutant(tmp_path: Path) -> None:
    done = run_on(tmp_path, strong=STRONG)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "toy_pack.counts: 4 of 4 killed" in done.stdout


@pytest.mark.long
def test_a_weak_test_lets_mutants_survive_and_each_is_shown(tmp_path: Path) -> None:
    done = run_on(tmp_path, weak=WEAK)
    assert done.returncode == 1, done.stdout + done.stderr
    assert survivors(done.stdout) == SURVIVORS_OF_WEAK
    assert "    return 2 * rows\n  → return 3 * rows" in done.stdout


@pytest.mark.long
def test_one_strong_test_among_weak_ones_is_enough(tmp_path: Path) -> None:
    done = run_on(tmp_path, another=OTHER, strong=STRONG, weak=WEAK)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_an_unmarked_test_kills_nothing(tmp_path: Path) -> None:
    done = run_on(tmp_path, weak=WEAK, strong=UNMARKED)
    assert survivors(done.stdout) == SURVIVORS_OF_WEAK, done.stdout + done.stderr


@pytest.mark.parametrize("killers", [OTHER, OTHER.replace("import pytest", "import pytest, toy_pack")])
@pytest.mark.long
def test_a_function_that_no_killer_runs_survives_with_a_note(tmp_path: Path, killers: str) -> None:
    done = run_on(tmp_path, other=killers)
    assert len(survivors(done.stdout)) == 4, done.stdout + done.stderr
    assert "(no killer test runs this function)" in done.stdout


@pytest.mark.long
def test_what_an_earlier_test_left_in_a_cache_still_counts_as_reached(tmp_path: Path) -> None:
    """Only the second test would notice, and in one process it would find the first one's result."""
    cached = {"src/toy_pack/__init__.py": """\
        import functools

        @functools.cache
        def loss(moved):
            return 2 * moved
        """}  # fmt: skip
    killers = """\
        import pytest
        from toy_pack import loss

        pytestmark = pytest.mark.kills

        def test_that_looks_away():
            loss(5)

        def test_that_looks():
            assert loss(5) == 10
        """
    done = run_on(tmp_path, package=cached, killers=killers)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_watched_function_tells_that_it_was_reached_and_is_otherwise_as_it_was() -> None:
    told: list[str] = []
    names: dict[str, Any] = {REACHED: told.append, "Protocol": object}
    exec(instrumented(TOY, "pack.toy"), names)  # noqa: S102
    toy = names["Toy"]()
    toy.rows = 3
    assert (toy.sensitivity(None), toy.other(None), names["loss"](6, scale=2)) == (6, 9, 3)
    assert told == ["pack.toy.Toy.sensitivity", "pack.toy.loss"]
    assert toy.sensitivity.__doc__ == "Moved by 2."


@pytest.mark.long
def test_a_mutant_that_breaks_the_import_of_the_tests_is_killed(tmp_path: Path) -> None:
    at_import = STRONG.replace("def test", "assert Count().sensitivity(5) == 10\n\n    def test")
    done = run_on(tmp_path, at_import=at_import)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_mutant_that_hangs_is_killed_by_the_time_limit(tmp_path: Path) -> None:
    hanging = STRONG.replace("assert", "while not").replace("== 10", "== 10: pass")
    done = run_on(tmp_path, "--grace", "0.5", "--jobs", "4", hanging=hanging)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 killed (4 by the time limit)" in done.stdout


@pytest.mark.long
def test_a_mutant_that_waits_without_working_is_killed_when_patience_ends(tmp_path: Path) -> None:
    waiting = STRONG.replace("assert", "while not").replace("== 10", "== 10: __import__('time').sleep(600)")
    done = run_on(tmp_path, "--patience", "5", "--jobs", "4", waiting=waiting)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 killed (4 by the time limit)" in done.stdout


@pytest.mark.parametrize(
    ("grace", "says"), [("1", "comes close to the time limit"), ("0.1", "ended with the time limit")]
)
@pytest.mark.long
def test_a_time_limit_that_the_original_hardly_meets_judges_nothing(tmp_path: Path, grace: str, says: str) -> None:
    """From its second run on this killer is slow: the first one sets its limit."""
    slower = """\
        import pathlib, time, pytest
        from toy_pack import Count

        pytestmark = pytest.mark.kills

        def test_exact_sensitivity():
            seen = pathlib.Path(__file__).with_name("seen")
            until = time.process_time() + 0.8 * seen.exists()
            while time.process_time() < until:
                pass
            seen.touch()
            assert Count().sensitivity(5) == 10
        """
    done = run_on(tmp_path, "--grace", grace, slower=slower)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stdout


@pytest.mark.long
def test_a_mutant_that_takes_the_process_down_is_killed(tmp_path: Path) -> None:
    crashing = STRONG.replace("assert", "if not").replace("== 10", "== 10: __import__('os').abort()")
    done = run_on(tmp_path, crashing=crashing)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_an_excused_mutant_may_survive_and_must(tmp_path: Path) -> None:
    excuses = [f"--equivalent={survivor.replace('L3:', '')}" for survivor in SURVIVORS_OF_WEAK]
    done = run_on(tmp_path, *excuses, weak=WEAK)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_on(tmp_path, *excuses, strong=STRONG)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("NOT EQUIVALENT") == 2


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ({"strong": UNMARKED}, "no file under"),
        ({"wrong": STRONG.replace("10", "11")}, "must pass on the original first"),
        ({"empty": STRONG.replace("def test_", "def check_")}, "must pass on the original first"),
        ({"a_first": OTHER.replace("assert True", "import sys; sys.first = 1"),
          "strong": STRONG.replace("def test", "import sys; sys.first\n\n    def test")},
         "must pass on the original first"),
    ],
)  # fmt: skip
@pytest.mark.long
def test_a_run_that_proves_nothing_says_so(tmp_path: Path, tests: dict[str, str], why: str) -> None:
    done = run_on(tmp_path, **tests)
    assert done.returncode == 2, done.stdout + done.stderr
    assert why in done.stdout


@pytest.mark.long
def test_neither_the_package_nor_its_bytecode_is_touched(tmp_path: Path) -> None:
    assert run_on(tmp_path, weak=WEAK).returncode == 1
    code = "from toy_pack import Count; print(Count().sensitivity(5))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path / "src", capture_output=True, text=True, check=True)
    assert done.stdout == "10\n"
    for name, text in PACKAGE.items():
        assert (tmp_path / name).read_text("utf-8") == textwrap.dedent(text)
