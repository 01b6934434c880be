"""Noise comes from the operating system's generator, and no other generator is in reach of it."""

import ast
import os
import random
from pathlib import Path

import numpy as np
import pytest

import sfumato
from sfumato.errors import InvalidInput
from sfumato.noise import SystemBits, SystemWords, discrete_laplace

PACKAGE = Path(sfumato.__file__).parent


def generators_in(source: str) -> list[str]:
    """Every mention of ``random`` as a module: imported, or reached through NumPy."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [
                    it.name for it in names if it.name.split(".")[-1] == "random" or it.name.startswith("random.")
                ]
            case ast.ImportFrom(module=module, names=names):
                parts = [*(module or "").split("."), *(it.name for it in names)]
                found += [f"from {module}"] if "random" in parts else []
            case ast.Attribute(attr="random", value=ast.Name(id="np" | "numpy" | "scipy" | "torch")):
                found.append(ast.unparse(node))
            case ast.Call(
                func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"), args=[ast.Constant(it)]
            ):
                found += [str(it)] if "random" in str(it) else []
    return found


NO_NOISE = {
    "audit/invented_rows.py": ["np.random"] * 4,  # rows that nobody has
    "audit/membership_study.py": ["np.random"],  # invented people, and who is in which model of them
    "audit/plans.py": ["np.random"] * 4,  # random questions about those rows
    "audit/random_plans.py": ["np.random"] * 7,
    "audit/synthetic_rows.py": ["np.random"],  # invented rows, and a broken maker that draws them again
    "audit/ways_tables.py": ["np.random"],  # the same broken maker of rows
    "server/demo_arrivals.py": ["np.random"],  # arrivals of the demonstration's month, which nobody made
    "server/demo_stream.py": ["np.random"],  # events of the demonstration, which nobody caused
    "research/invented.py": ["np.random"] * 3,  # rows that nobody has, for a dry run
    # generators that somebody else's code draws from are put aside and put back; what they give protects nobody
    "learning/draws.py": ["torch.random"],
    "learning/generative/networks.py": ["torch.random"],
    "learning/unchanged.py": ["numpy.random"] * 3,
    "learning/item_draws.py": ["numpy.random"] * 4,
    "learning/paradigms/teachers.py": ["numpy.random"] * 3 + ["torch.random"],
}


def test_no_other_generator_is_mentioned_in_the_package_outside_the_demo() -> None:
    """Studies and synthesis simulate from released numbers: by the layers they reach no row, and protect nobody."""
    paths = [
        path
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("demo", "studies", "synthesis")
    ]
    assert len(paths) > 40
    texts = [(path, path.read_text("utf-8")) for path in paths]
    named = [(path.relative_to(PACKAGE).as_posix(), text) for path, text in texts if "random" in text]
    found = {name: sorted(generators_in(text)) for name, text in named}
    assert {path: names for path, names in found.items() if names} == NO_NOISE


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "import random as r",
        "from random import gauss",
        "import numpy.random",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nx = np.random.laplace()",
        "import numpy\nx = numpy.random.default_rng",
        "__import__('random')",
        "import importlib\nimportlib.import_module('numpy.random')",
    ],
)
def test_the_scan_sees_every_way_to_another_generator(line: str) -> None:
    assert generators_in(line)
    assert generators_in("import secrets\nx = secrets.randbelow(3)\nrandom = 3") == []


def test_bits_are_what_the_operating_system_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def given(size: int) -> bytes:
        asked.append(size)
        return b"\x55" * size

    monkeypatch.setattr(random, "_urandom", given)  # where the standard library's `secrets` asks the system
    assert SystemBits().below(128) == 0x55
    assert asked == [1]


@pytest.mark.alpha(1e-70)
def test_the_key_of_bulk_words_is_what_the_operating_system_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    def words() -> list[int]:
        some = np.zeros(4, dtype=np.uint64)
        SystemWords().fill(some)
        return some.tolist()

    assert words() != words()
    monkeypatch.setattr(os, "urandom", lambda size: b"\x55" * size)
    assert words() == words()


@pytest.mark.alpha(1e-60)
def test_seeds_do_not_matter() -> None:
    state, legacy = random.getstate(), np.random.get_state()
    draws = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        draws.append(discrete_laplace(scale=1000, size=20).tolist())
    random.setstate(state)
    np.random.set_state(legacy)
    assert draws[0] != draws[1]  # equal with probability below 1e-60


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 256, 10**30])
def test_draws_stay_below_their_bound(bound: int) -> None:
    assert all(0 <= SystemBits().below(bound) < bound for _ in range(50))


def test_arrays_are_64_bit_and_of_the_size_asked_for() -> None:
    for size in (0, 1, 17):
        drawn = discrete_laplace(scale="1/3", size=size)
        assert (drawn.dtype, drawn.shape) == (np.dtype(np.int64), (size,))


@pytest.mark.parametrize(
    ("scale", "size"), [(0, 1), (-1, 1), ("x", 1), (float("nan"), 1), (1, -1), (1, 1.5), (1, True)]
)
def test_wrong_parameters_are_refused(scale, size) -> None:
    with pytest.raises(InvalidInput):
        discrete_laplace(scale=scale, size=size)


@pytest.mark.alpha(1e-100)
def test_a_draw_beyond_64_bits_is_refused_and_never_wrapped() -> None:
    with pytest.raises(InvalidInput, match="beyond 64 bits"):  # passes by chance with probability below 1e-100
        discrete_laplace(scale=10**40, size=5)
