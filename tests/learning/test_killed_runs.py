"""kill -9 at any point of a training run: it ends as if nothing had happened, for one charge."""

import secrets
import shutil
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.reports.verify import verify
from tests.governance.homes import Home, sqlite_home
from tests.parts import package

package("torch")

from sfumato.learning import weights_digest  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402
from tests.learning.learner import EVERY, SPEND, STEPS, furnished, run, said, trained, trainer_of  # noqa: E402


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """What a run shows that nobody interrupts, and how many points it has."""
    folder = tmp_path_factory.mktemp("whole")
    home = sqlite_home(folder)
    furnished(home).close()
    trained(home, folder / "warm")  # what each process would import and compile anew is here before it is forked
    code, words = run(home, folder / "state", 0)
    assert code == 0
    return dict(word.split(":") for word in words[:-1]), int(words[-1])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    place = sqlite_home(tmp_path)
    furnished(place).close()
    return place


@pytest.mark.claim("S1-12")
@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.long)])
def test_killed_at_a_random_point_and_resumed(
    home: Home, tmp_path: Path, times: int, whole: tuple[dict[str, str], int]
) -> None:
    shown, points = whole
    assert set(shown) == {"3", "6", "8", "end"}
    assert points > 60
    for trial in range(times):
        state, last = tmp_path / f"run {trial}", 1 + secrets.randbelow(points)
        code, words = run(home, state, last)
        assert code == -9
        told = dict(word.split(":") for word in words)
        assert told.items() <= shown.items()
        found = trained(home, state)
        assert weights_digest(found.model) == shown["end"], f"killed at point {last} of {points}"
        assert found.release.statement.query.weights == shown["end"]
        assert (found.epsilon, found.delta) == (2, sf.Budget(**SPEND).delta)
        assert found.curve[-1] == (STEPS, 2)
        assert verify(found.release.certificate.document).consistent
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.balance("clinic").spent == sf.Budget(epsilon=2 * times, delta=f"{times}/1000000000")


class Killed(BaseException):
    """The process is gone."""


def stopped(home: Home, state: Path, monkeypatch: pytest.MonkeyPatch, after: int, *, resume: bool = False) -> Any:
    """A run that is gone after so many steps; its trainer."""
    made, summed = 0, Run._summed

    def killed(self: Run) -> Any:
        nonlocal made
        if made == after:
            raise Killed
        made += 1
        return summed(self)

    monkeypatch.setattr(Run, "_summed", killed)
    model, trainer = trainer_of(home)
    before = weights_digest(model)
    with pytest.raises(Killed):
        trainer.fit(**said(state), resume=resume)
    monkeypatch.undo()
    assert weights_digest(model) == before  # nobody sees what was not told
    return trainer


def test_a_rewound_checkpoint_is_refused(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, older = tmp_path / "run", tmp_path / "older"
    stopped(home, state, monkeypatch, EVERY + 1)
    shutil.copy(state, older)
    first = trained(home, state)
    assert weights_digest(first.model) == first.release.statement.query.weights
    shutil.copy(older, state)
    _, trainer = trainer_of(home)
    with pytest.raises(errors.Refused, match="was closed"):
        trainer.fit(**said(state), resume=True)
    assert home.open().balance("clinic").spent == sf.Budget(**SPEND)


@pytest.mark.long
def test_an_older_checkpoint_of_a_run_that_goes_on_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, older = tmp_path / "run", tmp_path / "older"
    stopped(home, state, monkeypatch, EVERY + 1)  # one state, at step 3
    shutil.copy(state, older)
    stopped(home, state, monkeypatch, EVERY, resume=True)  # one more, at step 6
    newer = state.read_bytes()
    shutil.copy(older, state)
    with pytest.raises(errors.Refused, match="older than the ledger's count"):
        trainer_of(home)[1].fit(**said(state), resume=True)
    state.write_bytes(newer)
    assert trained(home, state).release.statement.query.done == STEPS
    assert home.open().balance("clinic").spent == sf.Budget(**SPEND)


def test_of_two_copies_one_goes_on(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, copy = tmp_path / "run", tmp_path / "copy"
    stopped(home, state, monkeypatch, EVERY + 1)
    shutil.copy(state, copy)
    _, trainer = trainer_of(home)

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Run, "_summed", killed)
        with pytest.raises(Killed):  # the first resumes, takes its place in the count, and is gone again
            trainer.fit(**said(state), resume=True)
    _, other = trainer_of(home)
    with pytest.raises(errors.Refused, match=r"older than the ledger's count|another copy of it has gone on"):
        other.fit(**(said(copy) | {"idempotency": "run"}), resume=True)
    assert trained(home, state).curve[-1][0] == STEPS


@pytest.mark.long
def test_the_weights_of_a_run_that_has_ended_are_in_its_file(home: Home, tmp_path: Path) -> None:
    state = tmp_path / "run"
    first = trained(home, state)
    again = trained(home, state)
    assert weights_digest(again.model) == weights_digest(first.model)
    assert again.release.repeated
    assert again.release.charged == sf.Budget.none()
    with pytest.raises(errors.Refused, match="holds the state of a training run already"):
        trainer_of(home)[1].fit(**said(state))
    assert home.open().balance("clinic").spent == sf.Budget(**SPEND)


@pytest.mark.long
def test_a_changed_file_is_refused(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "run"
    stopped(home, state, monkeypatch, EVERY + 1)
    good = state.read_bytes()
    for bad in (good[:-1], good[: len(good) // 2], good[:-1] + bytes([good[-1] ^ 1]), b"x" * 100, good[:4300]):
        state.write_bytes(bad)
        with pytest.raises((errors.Refused, errors.InvalidInput)):
            trainer_of(home)[1].fit(**said(state), resume=True)
    state.write_bytes(good)
    assert trained(home, state).release.statement.query.done == STEPS
