"""kill -9 at every step of a stream: what was told stays told, nothing is told twice or differently, one charge."""

import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.release import Release
from sfumato.reports.verify import verify
from sfumato.vault import Vault
from tests.governance.homes import Home, dropped, postgres_home, sqlite_home
from tests.streams.feeder import (
    FED,
    HORIZON,
    LARGE,
    RISING,
    SPEND,
    UNIT,
    WATCHED,
    furnished,
    question,
    run,
    said,
    tried,
)

OTHER = (7000, 8000, 9000, 10_000)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """What each process would import and work out anew is here before it is forked."""
    vault = Vault(unit=UNIT, budget=LARGE, name="er")
    stream = vault.stream(name="er", version="1", horizon=HORIZON)
    stream.running_total(strategy="square root").open(**SPEND).add(1)  # type: ignore[arg-type]
    stream.alarms(**WATCHED).open(epsilon=100).check(1)


@pytest.fixture(params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """A furnished ledger, on each store in turn."""
    if request.param == "sqlite":
        place = sqlite_home(tmp_path)
        furnished(place).close()
        yield place
        return
    server = request.getfixturevalue("postgres_url")
    place = postgres_home(tmp_path, server)
    furnished(place).close()
    yield place
    dropped(place, server)


def gone_on(home: Home, state: Path, kind: str = "totals") -> Any:
    """What a client does after a crash: resume; where nothing was begun, open; where all was done, get the release."""
    asked, given = question(home, kind), said(state, kind)
    try:
        return asked.resume(**given) if state.exists() else asked.open(**given)  # under its key: the same charge
    except errors.Refused as wrong:
        if "was closed" not in str(wrong):
            raise
    del given["state"]
    return asked.released(**given)


def rounded(totals: Any) -> list[int]:
    return [100 * round(one / 100) for one in totals]


def spots(steps: int, stride: int) -> range:
    """Some of all steps, others each time."""
    return range(1 + secrets.randbelow(stride), steps + 1, stride)


@pytest.mark.few(1)
@pytest.mark.parametrize("stride", [60, pytest.param(1, marks=pytest.mark.long)])
def test_kill_at_any_step_of_a_stream_of_totals(home: Home, tmp_path: Path, stride: int) -> None:
    code, words = run(home, tmp_path / "whole", 0)
    assert (code, words[3]) == (0, "closed")
    steps, streams, seen = int(words[-1]), 1, set()
    assert steps > 60
    for last in spots(steps, stride if home.lite else 3 * stride):
        state = tmp_path / f"killed {last}"
        code, words = run(home, state, last)
        assert code == -9
        told = [float(word) for word in words if word != "closed"]
        streams += 1
        found = gone_on(home, state)
        if isinstance(found, Release):
            release, counted, behind = found, 3, "closed"
        else:
            counted = found.steps
            assert counted - len(told) in (0, 1)  # a step that was drawn and not told is told now
            assert list(found.totals[: len(told)]) == pytest.approx(told, rel=1e-12)
            behind = f"{counted - len(told)} behind"
            for value in OTHER[: 4 - counted]:  # other inputs than the process that is gone had
                found.add(value)
            release = found.close()
        series = release.columns["total"].values
        assert list(series[: len(told)]) == pytest.approx(told, rel=1e-12)
        fed = FED[:counted] if behind == "closed" else (*FED[:counted], *OTHER[: 4 - counted])
        assert rounded(series) == [sum(fed[: place + 1]) for place in range(len(fed))]
        assert verify(release.certificate.document).consistent
        seen.add(behind)
    assert seen >= {"0 behind", "1 behind", "closed"} or stride > 1
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.balance("er").spent == sf.Budget(epsilon=streams * SPEND["epsilon"], delta=f"{streams}/1000000000")
    assert {charge.state.value for charge in _charges(ledger)} == {"committed"}


def _charges(ledger: Any) -> list[Any]:
    with ledger.record.reading() as transaction:
        return list(transaction.charges())


@pytest.mark.few(2)
@pytest.mark.parametrize("where", ["drawn", "renamed", "counted"])
def test_a_step_that_was_drawn_keeps_its_input(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chosen moments of a step, one by one, and what each of them leaves behind."""
    home = sqlite_home(tmp_path)
    furnished(home).close()
    state = tmp_path / "state"
    running = question(home).open(**said(state))
    running.add(300)

    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    from sfumato.gate import sealed
    from sfumato.governance.durable import DurableLedger

    move = DurableLedger.advance
    if where == "drawn":  # written beside, not renamed
        monkeypatch.setattr(sealed.Path, "replace", killed)
    elif where == "renamed":
        monkeypatch.setattr(DurableLedger, "advance", killed)
    else:
        monkeypatch.setattr(DurableLedger, "advance", lambda *given, **named: killed(move(*given, **named)))
    with pytest.raises(Killed):
        running.add(100)
    monkeypatch.undo()
    again = question(home).resume(**said(state))
    assert again.steps == (1 if where == "drawn" else 2)
    again.add(7000)
    expected = [300, 7300] if where == "drawn" else [300, 400, 7400]
    assert rounded(again.totals) == expected


@pytest.mark.long
def test_killed_from_outside_at_any_moment(tmp_path: Path) -> None:
    """Another interpreter, and a SIGKILL that nobody sees coming."""
    home = sqlite_home(tmp_path)
    furnished(home).close()
    state = tmp_path / "state"
    command = [sys.executable, "-m", "tests.streams.feeder", home.url, home.folder, str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [float(child.stdout.readline()) for _ in range(1 + secrets.randbelow(30))]
        time.sleep(secrets.randbelow(20) / 1000)
        child.kill()
        told += [float(line) for line in child.stdout.read().split("\n") if line]
    assert child.returncode == -9
    again = question(home, horizon=500).resume(**said(state))
    assert again.steps - len(told) in (0, 1)
    assert list(again.totals[: len(told)]) == pytest.approx(told, rel=1e-9)
    fed = [FED[place % HORIZON] for place in range(again.steps)]
    assert rounded(again.totals[-1:]) == [sum(fed)]
    assert verify(again.close().certificate.document).consistent
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.balance("er").spent == sf.Budget(**SPEND)


@pytest.mark.parametrize("stride", [48, pytest.param(1, marks=pytest.mark.long)])
def test_kill_at_any_step_of_a_watch(tmp_path: Path, stride: int) -> None:
    home = sqlite_home(tmp_path)
    furnished(home).close()
    code, words = run(home, tmp_path / "whole", 0, "alarms")
    assert (code, words[0], words[2], words[4]) == (0, "-", "-", "closed")
    assert min(int(words[1]), int(words[3])) > 100
    for last in spots(int(words[-1]), stride):
        state = tmp_path / f"killed {last}"
        code, words = run(home, state, last, "alarms")
        assert code == -9
        told = [None if word == "-" else int(word) for word in words if word != "closed"]
        found = gone_on(home, state, "alarms")
        if not isinstance(found, Release):
            assert found.steps - len(told) in (0, 1)
            for value in RISING[found.steps : 4]:
                found.check(value)
            assert found.halted
            found = found.close()
        steps, gaps = found.columns["step"].values, found.columns["gap"].values
        assert steps == (2, 4)
        known = {place + 1: gap for place, gap in enumerate(told) if gap is not None}
        assert known.items() <= dict(zip(steps, gaps, strict=True)).items()
        assert verify(found.certificate.document).consistent
    assert home.open().verify() == ()


@pytest.mark.claim("S4-15")
def test_a_watch_that_halted_stays_halted_with_the_same_words(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    furnished(home).close()
    state = tmp_path / "state"
    watch = question(home, "alarms").open(**said(state, "alarms"))
    assert [watch.check(value).alarm for value in RISING[:4]] == [False, True, False, True]
    words = set()
    for running in (watch, None):
        if running is None:
            watch._stack.close()  # the process is gone, and its lock with it
            running = question(home, "alarms").resume(**said(state, "alarms"))
        assert running.halted
        for given in ((0,), (10**9,), ("x",), ()):
            with pytest.raises(errors.Refused) as refused:
                running.check(*given)
            words.add(str(refused.value))
    assert len(words) == 1
    assert running is not None
    assert running.close().columns["step"].values == (2, 4)


@pytest.mark.few(1)
def test_of_all_copies_one_goes_on_whatever_process_they_are_in(home: Home, tmp_path: Path) -> None:
    state, copy, older = tmp_path / "the stream", tmp_path / "copy", tmp_path / "older"
    running = question(home).open(**said(state))
    running.add(3)
    shutil.copy(state, older)
    running.add(1)
    shutil.copy(state, copy)
    assert "running elsewhere" in tried(home, state)
    assert "older than the ledger's count" in tried(home, older)
    assert tried(home, copy) == "went on"  # while the first one still runs: nothing but the ledger can tell
    with pytest.raises(errors.Refused, match="another copy of it has gone on"):
        running.add(4)
    assert "another copy of it has gone on" in tried(home, state)  # also for its next process
    shutil.copy(older, copy)
    assert "older than the ledger's count" in tried(home, copy)
    ledger = home.open()
    assert (ledger.balance("er").spent, ledger.verify()) == (sf.Budget(**SPEND), ())


def test_one_that_was_overtaken_cannot_close(tmp_path: Path) -> None:
    """Its certificate would leave out what the other one told."""
    home = sqlite_home(tmp_path)
    furnished(home).close()
    state, copy = tmp_path / "the stream", tmp_path / "copy"
    running = question(home).open(**said(state))
    running.add(3)
    shutil.copy(state, copy)
    assert tried(home, copy) == "went on"
    with pytest.raises(errors.Refused, match="another copy of it has gone on"):
        running.close()


def test_what_a_backup_brings_back_is_refused(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    furnished(home).close()
    state, backup = tmp_path / "the stream", tmp_path / "backup"
    backup.mkdir()
    running = question(home).open(**said(state))
    running.add(3)
    for file in tmp_path.glob("ledger.db*"):
        shutil.copy(file, backup)
    shutil.copy(state, backup)
    shutil.copy(home.anchor, backup)
    running.add(1)
    running.add(4)
    newer, ahead = state.read_bytes(), home.anchor.read_bytes()
    del running

    def restored() -> None:
        for file in tmp_path.glob("ledger.db*"):
            file.unlink()
        for file in backup.glob("ledger.db*"):
            shutil.copy(file, tmp_path)

    restored()
    shutil.copy(backup / "the stream", state)
    told = tried(home, state)  # database and state of the same night: the anchor is ahead of both
    assert "LedgerError" in told
    assert "restored from an old backup" in told
    shutil.copy(backup / "anchor", home.anchor)
    state.write_bytes(newer)  # database and anchor, and a state that is newer than both
    told = tried(home, state)
    assert "LedgerError" in told
    assert "older than the state" in told
    shutil.copy(backup / "the stream", state)  # all three: nothing is left that could tell, and the proof says so
    assert tried(home, state) == "went on"
    home.anchor.write_bytes(ahead)
    assert "LedgerError" in tried(home, state)
