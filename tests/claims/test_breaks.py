"""Claims bite: on a product that is broken on purpose, the tests of the claim that it breaks fail."""

import json
import subprocess
import sys
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.claims.breaking import Break, Verdict, _verdict, apply, files_of, found, judged
from tests.claims.breaks import BREAKS, pairs_of
from tests.claims.catalogue import load
from tests.mutation.forked import Outcome, Unusable

ROOT = Path(__file__).parents[2]
FAR = "sfumato.laws.margins:room"


def run(*options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "tests.claims.breaks", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_every_break_names_claims_that_have_tests_and_each_name_is_used_once() -> None:
    assert [name for name, times in Counter(each.name for each in BREAKS).items() if times > 1] == []
    unknown = {number for each in BREAKS for number in each.claims} - set(load().claims)
    assert unknown == set()
    assert [number for _, number in pairs_of(BREAKS) if not files_of(number)] == []


def test_every_break_has_a_place_in_the_package() -> None:
    for each in BREAKS:
        for place in each.at:
            assert found(place)[2] is not None


def test_every_finished_owner_has_breaks() -> None:
    catalogue = load()
    broken = Counter(catalogue.claims[number].owner for _, number in pairs_of(BREAKS))
    assert set(broken) >= catalogue.finished
    assert min(broken[owner] for owner in catalogue.finished) >= 5


def test_every_finished_claim_has_a_break() -> None:
    catalogue = load()
    broken = {number for _, number in pairs_of(BREAKS)}
    finished = [number for number, claim in catalogue.claims.items() if claim.owner in catalogue.finished]
    assert [number for number in finished if number not in broken] == []


def test_a_place_that_is_gone_is_said() -> None:
    with pytest.raises(Unusable, match=r"nothing at sfumato\.laws\.margins:gone"):
        found("sfumato.laws.margins:gone")
    with pytest.raises(Unusable, match="a break that stands in"):
        found("sfumato.gone:room")


class Sample:
    """Something to break."""

    factor = 2

    def plain(self, value: int) -> int:
        return self.factor * value

    @classmethod
    def of_class(cls, value: int) -> int:
        return cls.factor * value

    @staticmethod
    def static(value: int) -> int:
        return 2 * value

    @property
    def held(self) -> int:
        return self.factor

    @cached_property
    def kept(self) -> int:
        return self.factor


@pytest.mark.parametrize("name", ["plain", "of_class", "static", "held", "kept"])
def test_methods_of_every_kind_are_replaced_as_what_they_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sample, name, vars(Sample)[name])  # put back afterwards

    def replace(original: Any) -> Any:
        return lambda *args: original(*args) + 1

    here = f"{Sample.__module__}:Sample.{name}"
    apply(Break(name="sample", claims=(), at=(here,), replace=replace))
    read = getattr(Sample(), name)
    assert (read(5) == 11) if callable(read) else (read == 3)


def three(logs: Path) -> list[list[Any]]:
    """On one claim: nothing is broken, the break cannot run, and every margin is too small."""
    same = Break(name="same", claims=("S1-31",), at=(FAR,), replace=lambda original: original)
    crash = Break(name="crash", claims=("S1-31",), at=(FAR,), replace=lambda original: lambda *args: original.gone)
    small = Break(
        name="small", claims=("S1-31",), at=(FAR,), replace=lambda original: lambda *args: min(2 * original(*args), 1)
    )
    early: list[Verdict] = []
    found = list(judged(pairs_of([same, crash, small]), jobs=1, logs=logs, seen=early.append))
    assert [each.broken for each in early] == ["small"]
    return [[each.broken, each.caught, each.by, each.note] for each in found]


@pytest.mark.long
def test_a_break_that_no_test_notices_one_that_crashes_and_one_that_is_caught(tmp_path: Path) -> None:
    # In a process of its own: the one that runs the tests has threads, and must not be forked.
    command = [sys.executable, "-m", "tests.claims.test_breaks", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    verdicts = {broken: more for broken, *more in json.loads(done.stdout.splitlines()[-1])}
    assert verdicts["same"][:2] == [False, None]
    caught, _, note = verdicts["crash"]
    assert not caught
    assert "only crashes (AttributeError)" in note
    caught, by, _ = verdicts["small"]
    assert caught
    assert "test_explain_what_if.py" in by


@pytest.mark.parametrize(
    ("kind", "caught"), [("AssertionError", True), ("TypeError", False), ("ModuleNotFoundError", False)]
)
def test_a_break_that_cannot_even_run_is_caught_by_nobody(kind: str, caught: bool) -> None:
    failed = {"code": 1, "failed": "tests/test_a.py::test_b", "kind": kind}
    outcome = Outcome(answer=failed, end="", at="", seconds=0.0, said="")
    assert _verdict(BREAKS[0], "S1-31", outcome).caught is caught


def test_a_test_that_fails_on_the_original_too_catches_nothing() -> None:
    assert not Verdict(broken="b", claim="S1-31", by="test", note="does not pass on the original").caught


def test_the_few_breaks_that_every_run_tries_are_caught() -> None:
    status, said = run("--fast")
    assert status == 0, said
    assert len([each for each in BREAKS if each.fast]) == 2
    assert said.count(" | tests/") == len(pairs_of(each for each in BREAKS if each.fast))


def test_a_break_that_there_is_not_is_no_success() -> None:
    assert run("--break", "nothing of the kind")[0] == 2


@pytest.mark.long
def test_every_break_is_caught() -> None:
    status, said = run()
    assert status == 0, said


if __name__ == "__main__":
    print(json.dumps(three(Path(sys.argv[1]))))
