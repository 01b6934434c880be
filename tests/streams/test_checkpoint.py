"""Streams that are killed and go on: the series and the charge are as if nothing had happened; copies are refused."""

import contextlib
import copy
import json
import os
import pickle
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.gate import checkpoint, sealed
from sfumato.governance import memory
from sfumato.governance.ledger import Ledger
from sfumato.governance.memory import MemoryLedger
from sfumato.vault import Vault
from tests.governance.homes import Home, sqlite_home

UNIT = sf.event(relation="add/remove")
BUDGET = sf.Budget(epsilon=4, delta=1e-6)


class Killed(BaseException):
    """What stands for kill -9 in these tests."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    place = sqlite_home(tmp_path)
    ledger = place.create()
    ledger.declare_population("all", unit=UNIT, cap=BUDGET, reason="test")
    ledger.declare_dataset(Dataset(name="er", edition="1"), population="all", cap=BUDGET)
    ledger.open_account("er", unit=UNIT, cap=BUDGET, reason="test")
    return place


def question(home: Home) -> Any:
    vault = Vault(unit=UNIT, ledger=home.url, account="er", key=home.key, anchor=home.anchor)
    return vault.stream(name="er", version="1", horizon=12).running_total(strategy="square root")


def asked(state: Path) -> dict[str, Any]:
    return {"epsilon": 1, "delta": 1e-7, "state": state, "idempotency": "night shift"}


def spent(home: Home) -> sf.Budget:
    return Ledger.open(home.url, key=home.key, anchor=home.anchor).balance("er").spent


def test_the_ledger_is_charged_once_and_the_series_goes_on(home: Home, tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = question(home).open(**asked(state))
    told = [float(first.add(value)) for value in (3, 1, 4)]
    first._stack.close()  # the process is gone, and with it its lock
    again = question(home).resume(**asked(state))
    assert (again.steps, list(again.totals)) == (3, pytest.approx(told))
    more = [float(again.add(value)) for value in (1, 5)]
    release = again.close()
    assert list(release.columns["total"].values) == pytest.approx([*told, *more])
    assert not state.exists()  # nothing can go on from it
    for again_or_anew in (question(home).resume, question(home).open):
        with pytest.raises(errors.Refused, match="was closed"):
            again_or_anew(**asked(state))
    kept = question(home).released(epsilon=1, delta=1e-7, idempotency="night shift")
    assert (kept.certificate, kept.repeated, kept.charged) == (release.certificate, True, sf.Budget.none())
    with pytest.raises(errors.NotDeclared, match="no stream like this was closed"):
        question(home).released(epsilon=1, delta=1e-7, idempotency="another night")
    assert spent(home) == sf.Budget(epsilon=1, delta=1e-7)
    assert Ledger.open(home.url, key=home.key, anchor=home.anchor).verify() == ()


@pytest.mark.few(2)
@pytest.mark.parametrize("where", ["before the state", "before the count", "after the count"])
def test_killed_at_any_point_of_a_step(home: Home, tmp_path: Path, where: str, monkeypatch: Any) -> None:
    """Nothing is told twice: what was told is in the state, and what is not in the state was never told."""
    state = tmp_path / "state"
    total = question(home).open(**asked(state))
    told = [float(total.add(value)) for value in (3, 1)]
    write, move = checkpoint.write_sealed, type(total._gate).move

    def killed(*given: Any, **named: Any) -> None:
        if where == "after the count":
            move(*given, **named)
        raise Killed

    if where == "before the state":
        monkeypatch.setattr(checkpoint, "write_sealed", killed)
    else:
        monkeypatch.setattr(type(total._gate), "move", killed)
    with pytest.raises(Killed):
        total.add(4)
    monkeypatch.undo()
    assert checkpoint.write_sealed is write
    again = question(home).resume(**asked(state))
    assert again.steps == (2 if where == "before the state" else 3)
    assert list(again.totals[:2]) == pytest.approx(told)
    for value in (4, 1)[again.steps - 2 :]:
        again.add(value)
    assert (again.steps, spent(home)) == (4, sf.Budget(epsilon=1, delta=1e-7))
    assert len(again.close().values) == 4


def test_a_copied_and_an_older_state_are_refused(home: Home, tmp_path: Path) -> None:
    state, twin = tmp_path / "state", tmp_path / "copy"
    total = question(home).open(**asked(state))
    total.add(3)
    shutil.copy(state, twin)
    older = tmp_path / "older"
    shutil.copy(state, older)
    total._stack.close()
    first = question(home).resume(**asked(twin))  # the copy goes on first: then the other one may not
    with pytest.raises(errors.Refused, match="another copy of it has gone on"):
        question(home).resume(**asked(state))
    first.add(1)
    first._stack.close()
    shutil.copy(older, twin)  # a backup is put back
    with pytest.raises(errors.Refused, match="older than the ledger's count"):
        question(home).resume(**asked(twin))
    with pytest.raises(errors.Refused):  # nor can it be started again from nothing under its charge
        question(home).open(**asked(tmp_path / "new"))
    assert spent(home) == sf.Budget(epsilon=1, delta=1e-7)


def test_two_processes_that_go_on_at_once(home: Home, tmp_path: Path) -> None:
    state, twin = tmp_path / "state", tmp_path / "copy"
    total = question(home).open(**asked(state))
    shutil.copy(state, twin)
    with pytest.raises(errors.Refused, match="running elsewhere"):
        question(home).resume(**asked(state))
    other = question(home).resume(**asked(twin))
    with pytest.raises(errors.Refused, match="another copy"):
        total.add(1)  # the count has moved on without this one
    with pytest.raises(errors.Refused, match="stopped within a step"):
        total.add(1)
    assert other.add(1).step == 1


@pytest.mark.parametrize("place", [30, -1])
def test_a_state_that_was_changed_or_sealed_by_another_key_is_refused(home: Home, tmp_path: Path, place: int) -> None:
    state = tmp_path / "state"
    total = question(home).open(**asked(state))
    total.add(3)
    total._stack.close()
    sealed = bytearray(state.read_bytes())
    sealed[place] ^= 1
    state.write_bytes(bytes(sealed))
    with pytest.raises(errors.Refused, match="or it was changed"):
        question(home).resume(**asked(state))


def test_a_state_shows_nothing_of_what_it_holds(tmp_path: Path) -> None:
    vault = Vault(unit=UNIT, budget=BUDGET, name="er")
    total = vault.stream(name="er", version="1", horizon=12).running_total(strategy="increments")
    running = total.open(epsilon=1, delta=1e-7, state=tmp_path / "state")
    running.add(271_828)
    exact = str(running._encoders[0].state()[0])
    assert exact == "271828"
    assert exact.encode() not in (tmp_path / "state").read_bytes()
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_a_ledger_in_memory_knows_its_streams_and_no_other_does(tmp_path: Path) -> None:
    key = SigningKey.new()
    vault = Vault(unit=UNIT, budget=BUDGET, name="er", key=key)
    said = {"epsilon": 1, "delta": 1e-7, "state": tmp_path / "state"}
    total = vault.stream(name="er", version="1", horizon=12).running_total()
    first = total.open(**said)  # type: ignore[arg-type]
    told = float(first.add(2))
    first._stack.close()
    assert total.resume(**said).totals == pytest.approx((told,))  # type: ignore[arg-type]
    other = Vault(unit=UNIT, budget=BUDGET, name="er", key=key)
    with pytest.raises(errors.Refused, match="not in this vault's memory"):
        other.stream(name="er", version="1", horizon=12).running_total().resume(**said)  # type: ignore[arg-type]
    assert other.spent == sf.Budget.none()
    # Nor does the same stream of another vault, with the same key and the same number of its charge.
    other.stream(name="er", version="1", horizon=12).running_total().open(**said | {"state": tmp_path / "own"})  # type: ignore[arg-type]
    with pytest.raises(errors.Refused, match="another stream or another charge"):
        other.stream(name="er", version="1", horizon=12).running_total().resume(**said)  # type: ignore[arg-type]


def test_a_watch_goes_on_with_the_same_noisy_threshold(home: Home, tmp_path: Path) -> None:
    vault = Vault(unit=UNIT, ledger=home.url, account="er", key=home.key, anchor=home.anchor)
    alarms = vault.stream(name="er", version="1", horizon=12).alarms(threshold=50, alarms=2)
    said = {"epsilon": 1, "state": tmp_path / "watch", "idempotency": "watch"}
    watch = alarms.open(**said)  # type: ignore[arg-type]
    watch.check(10**6)
    level = int(watch._watch._level[0])
    watch._stack.close()
    again = alarms.resume(**said)  # type: ignore[arg-type]
    assert (int(again._watch._level[0]), again._watch._left, again.steps) == (level, 1, 1)
    assert again.check(10**6).alarm
    assert again.halted
    assert spent(home) == sf.Budget(epsilon=1)


def test_a_key_without_a_state_file_is_refused(home: Home) -> None:
    with pytest.raises(errors.SfumatoError):
        question(home).open(epsilon=1, delta=1e-7, idempotency="k")
    assert spent(home) == sf.Budget.none()


def open_ones(tmp_path: Path, *, state: bool = False) -> list[Any]:
    """A stream of totals and a watch, in the memory of one vault."""
    stream = Vault(unit=UNIT, budget=BUDGET, name="er").stream(name="er", version="1", horizon=120)
    total = stream.running_total(strategy="increments")
    alarms = stream.alarms(threshold=50, alarms=2)
    files = {"state": tmp_path / "total"} if state else {}, {"state": tmp_path / "watch"} if state else {}
    return [total.open(epsilon=1, delta=1e-7, **files[0]), alarms.open(epsilon=1, **files[1])]  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_open_stream_is_not_copied(tmp_path: Path, copied: Any) -> None:
    """Two of them would tell from one charge."""
    for running in open_ones(tmp_path):
        with pytest.raises(errors.Refused, match="is not copied"):
            copied(running)


def forked(call: Any) -> str:
    """What a call says in a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call()
            os.write(write, b"told")
        except errors.SfumatoError as wrong:
            os.write(write, str(wrong).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        found = told.read()
    os.waitpid(child, 0)
    return found


def test_a_fork_tells_nothing(tmp_path: Path) -> None:
    total, watch = open_ones(tmp_path, state=True)
    before = (tmp_path / "total").read_bytes()
    for call in (lambda: total.add(1), lambda: total.add_many([1]), lambda: watch.check(1), total.close, watch.close):
        assert "runs in another process" in forked(call)
    assert (tmp_path / "total").read_bytes() == before
    assert (total.add(1).step, watch.check(1).alarm) == (1, False)


def test_the_size_of_a_state_hardly_tells_what_is_in_it(tmp_path: Path) -> None:
    """Few digits or many, nobody or twenty persons: the file is as large."""
    sizes = set()
    vault = Vault(unit=sf.user("id", relation="add/remove"), budget=BUDGET, name="er")
    stream = vault.stream(name="er", version="1", horizon=12, limit=sf.Limit(groups=2, rows_per_group=1))
    for name, people in (("nobody", []), ("many", [f"person {number}" for number in range(20)])):
        total = stream.running_total(strategy="increments").open(epsilon=1, delta=1e-7, state=tmp_path / name)
        total.add(people=people)
        sizes.add((tmp_path / name).stat().st_size)
    assert len(sizes) == 1
    plain = b'{"a":"1"}'
    assert [len(sealed._plain({"a": "1" * size})) for size in (1, 5000)] == [4096, 8192]
    assert sealed._plain({"a": "1"}).rstrip() == plain


def test_a_step_that_breaks_ends_the_stream(tmp_path: Path, monkeypatch: Any) -> None:
    """Half a step would be measured twice: once for nothing, and once for the next."""
    total, watch = open_ones(tmp_path)
    total.add(1)

    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    for call, inside, name in ((total.add, total._mechanism, "drawn"), (watch.check, watch._watch, "check")):
        with monkeypatch.context() as patched:
            patched.setattr(type(inside), name, broken)
            with pytest.raises(KeyboardInterrupt):
                call(1)
        with pytest.raises(errors.Refused, match="is closed"):
            call(1)


@pytest.mark.parametrize("wrong", [{"value": "x"}, {"value": True}, {"value": 1.5}, {"people": ["a"]}, {}])
def test_what_is_no_step_is_refused_and_the_stream_goes_on(tmp_path: Path, wrong: dict[str, Any]) -> None:
    total, watch = open_ones(tmp_path)
    for call in (total.add, watch.check):
        with pytest.raises(errors.SfumatoError, match="nothing was released"):
            call(**wrong)
    assert (total.add(1).step, watch.check(1).alarm) == (1, False)


def test_a_list_of_persons_with_one_bad_id_counts_nobody(tmp_path: Path) -> None:
    vault = Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**5), name="er")
    stream = vault.stream(name="er", version="1", horizon=12, limit=sf.Limit(groups=1, rows_per_group=1))
    watch = stream.alarms(threshold=2, alarms=1).open(epsilon=10**4)
    for wrong in (["a", "b", "c", ("d",)], ["a", b"b"], 7, "abc", ["a", True]):
        with pytest.raises(errors.InvalidInput, match="nothing was counted and nothing was released"):
            watch.check(people=wrong)
    assert watch.steps == 0
    assert watch.check(people=["a", "b", "c"]).alarm  # all three still had their step


def test_threads_share_a_stream_and_every_step_is_told_once(tmp_path: Path) -> None:
    total, _ = open_ones(tmp_path, state=True)
    with ThreadPoolExecutor(4) as pool:
        steps = list(pool.map(lambda _: total.add(1).step, range(24)))
    assert sorted(steps) == list(range(1, 25))
    assert len(total.close().values) == 24


def test_a_file_that_is_taken_is_refused_before_anything_is_charged(home: Home, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("something else")
    for state, error in ((taken, errors.Refused), (tmp_path / "nowhere" / "state", errors.InvalidInput)):
        with pytest.raises(error, match="nothing was read and nothing was spent"):
            question(home).open(**asked(state))
    assert (spent(home), taken.read_text()) == (sf.Budget.none(), "something else")


def test_no_id_of_a_person_stops_a_stream(tmp_path: Path) -> None:
    """Half a surrogate pair, a number of 5,000 digits: who is in a step must not be told by an error."""
    vault = Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**5), name="er")
    stream = vault.stream(name="er", version="1", horizon=12, limit=sf.Limit(groups=1, rows_per_group=1))
    alarms = stream.alarms(threshold=3, alarms=2)
    watch = alarms.open(epsilon=10**4, state=tmp_path / "watch")
    odd = ["\ud800", "\udfff!", "北", "", "x", 10**5000, -1, "-1", "\x00"]
    assert watch.check(people=odd).gap == len(odd) - 3  # all of them count, once each
    watch._stack.close()
    again = alarms.resume(epsilon=10**4, state=tmp_path / "watch")
    assert not again.check(people=odd).alarm


@pytest.mark.few(2)
@pytest.mark.parametrize("strategy", ["best", "square root", "tree"])
@pytest.mark.alpha(1e-9)
def test_a_stream_that_keeps_nothing_goes_on_from_its_state(home: Home, tmp_path: Path, strategy: str) -> None:
    vault = Vault(unit=UNIT, ledger=home.url, account="er", key=home.key, anchor=home.anchor)
    asked_of = vault.stream(name="er", version="1", horizon=700).running_total(strategy=strategy, keep=False)
    total = asked_of.open(**(asked(tmp_path / "state") | {"epsilon": 2}))
    told = total.add_many([1] * 300)
    total._stack.close()
    again = asked_of.resume(**(asked(tmp_path / "state") | {"epsilon": 2}))
    more = again.add_many([1] * 300)
    assert (again.steps, more.first) == (600, 301)
    assert more.margins[0] > told.margins[0]
    # the same total goes on: α < 1e-9 for both, 3.2 margins of 1.96 standard deviations being more than six of these
    assert abs(more.totals[0] - 301) < 3.2 * more.margins[0]
    assert abs(told.totals[-1] - 300) < 3.2 * told.margins[-1]


@pytest.mark.few(2)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("strategy", "horizon"),
    [
        *(("buffers", 600), ("square root", 600), ("optimal", 64), ("tree", 600)),
        *(("increments", 600), ("totals", 600), ("doubling", None)),
    ],
)
def test_every_strategy_goes_on_where_it_was(tmp_path: Path, strategy: str, horizon: int | None, keep: bool) -> None:
    """Resumed after each batch, across the blocks of all of them: totals come out right to the thousand."""
    vault = Vault(unit=UNIT, budget=sf.Budget(epsilon=10**6, delta=1e-6), name="er")
    stream = vault.stream(name="er", version="1", horizon=horizon, bounds=(0, 10**5))
    asked = stream.running_total(strategy=strategy, keep=keep)
    said: dict[str, Any] = {"epsilon": 1000, "delta": 1e-9, "state": tmp_path / "state"}
    running, exact = asked.open(**said), 0
    for size in (1, 7, 30) if horizon == 64 else (1, 7, 30, 250, 5):
        batch = [1000 * (place % 7) for place in range(size)]
        exact += sum(batch)
        told = running.add_many(batch)
        assert 1000 * round(float(told.totals[-1]) / 1000) == exact
        running._stack.close()
        running = asked.resume(**said)
    assert (len(running.close().values) > 0) is keep


def test_no_number_stops_a_stream(tmp_path: Path) -> None:
    """Beyond the bounds, beyond 64 bits, of any whole type: held to the bounds without a word."""
    vault = Vault(unit=UNIT, budget=sf.Budget(epsilon=10**6, delta=1e-6), name="er")
    stream = vault.stream(name="er", version="1", horizon=12, bounds=(-500, 1000))
    total = stream.running_total(strategy="increments").open(epsilon=1000, delta=1e-9)
    total.add(10**30)
    told = total.add_many([2**63, -1])
    more = total.add_many([-(10**30), 10**30, 7])
    assert [100 * round(float(one) / 100) for one in (*told.totals, *more.totals)] == [2000, 2000, 1500, 2500, 2500]
    for wrong in ([1.5, 2.0], ["a"], [[1], [2]], [True]):
        with pytest.raises(errors.InvalidInput, match="nothing was"):
            total.add_many(wrong)
    watch = stream.alarms(threshold=999, alarms=2).open(epsilon=1000)
    assert watch.check(-(10**30)).alarm is False
    assert watch.check(10**30).alarm


def test_a_state_is_enough_to_find_its_charge(home: Home, tmp_path: Path) -> None:
    said = {"epsilon": 1, "delta": 1e-7, "state": tmp_path / "state"}
    first = question(home).open(**said)
    told = float(first.add(3))
    first._stack.close()
    again = question(home).resume(**said)
    assert again.totals == pytest.approx((told,))
    again._stack.close()
    with pytest.raises(errors.Refused, match="made for something else"):
        question(home).resume(**said | {"epsilon": 2})
    for text in (b"", b"sfumato stream state 1\n\x00\x00\x00\x02{}", b"x" * 400):
        (tmp_path / "no state").write_bytes(text)
        with pytest.raises(errors.Refused, match="is not a state of a stream"):
            question(home).resume(**said | {"state": tmp_path / "no state"})
    last = question(home).resume(**said)
    kept = (tmp_path / "state").read_bytes()
    last.close()
    with pytest.raises(errors.Refused, match="is not a state of a stream"):  # it was removed
        question(home).resume(**said)
    (tmp_path / "state").write_bytes(kept)  # as if the process had died before that
    with pytest.raises(errors.Refused, match="was closed"):
        question(home).resume(**said)
    assert len(question(home).released(epsilon=1, delta=1e-7).values) == 1
    assert spent(home) == sf.Budget(epsilon=1, delta=1e-7)


def place_of(path: Path) -> int:
    """The place in the count that a file is at."""
    return int(json.loads(sealed._opened(path)[1])["serial"])


def played(tmp_path: Path, monkeypatch: Any) -> None:
    """Chance plays the adversary: 500 moves with any number of copies, one step in eight killed somewhere."""
    asked = Vault(unit=UNIT, budget=BUDGET, name="er").stream(name="er", version="1", horizon=400)
    question, said = asked.running_total(strategy="increments"), {"epsilon": 1, "delta": 1e-7}
    written, moved, renamed = checkpoint.write_sealed, MemoryLedger.advance, Path.replace
    plan = {"at": ""}

    def around(where: str, function: Any) -> Any:
        def stepped(*given: Any, **named: Any) -> Any:
            if plan["at"] == f"before {where}":
                raise Killed
            found = function(*given, **named)
            if plan["at"] == f"after {where}":
                raise Killed
            return found

        return stepped

    monkeypatch.setattr(checkpoint, "write_sealed", around("write", written))
    monkeypatch.setattr(MemoryLedger, "advance", around("move", moved))
    monkeypatch.setattr(Path, "replace", around("rename", renamed))
    kills = [f"{when} {where}" for when in ("before", "after") for where in ("write", "move", "rename")]
    told: dict[int, int] = {}
    refused = 0
    live = {tmp_path / "0": question.open(**said, state=tmp_path / "0")}  # type: ignore[arg-type]
    live[tmp_path / "0"].add(1)
    told[1] = live[tmp_path / "0"]._values[0][0]
    for turn in range(500):
        files = sorted((path for path in tmp_path.iterdir() if path.suffix == ""), key=place_of)
        match secrets.choice(["step"] * 8 + ["copy", "resume", "fork"] * 3 + ["gone"]):
            case "step" if live:
                path, running = secrets.choice(list(live.items()))
                plan["at"] = secrets.choice(kills) if secrets.randbelow(8) == 0 else ""
                try:
                    step = running.add(turn).step
                    assert told.setdefault(step, running._values[0][step - 1]) == running._values[0][step - 1]
                except (Killed, errors.Refused) as end:
                    refused += isinstance(end, errors.Refused)
                    live.pop(path)
                plan["at"] = ""
            case "copy":
                shutil.copy(secrets.choice(files[-2:]), tmp_path / f"copy {turn}")
                if files[0] not in live and len(files) > 6:
                    files[0].unlink()  # the oldest
            case "fork" if live:  # a copy goes on beside its original
                path = tmp_path / f"fork {turn}"
                shutil.copy(secrets.choice(list(live)), path)
                with contextlib.suppress(errors.Refused):
                    live[path] = question.resume(**said, state=path)  # type: ignore[arg-type]
            case "resume":
                path = secrets.choice(files[-4:] if secrets.randbelow(4) else files)
                try:
                    live[path] = question.resume(**said, state=path)  # type: ignore[arg-type]
                except errors.Refused:
                    refused += 1
                    continue
                assert live[path].steps >= max(told, default=0)  # none that was told is forgotten
                values = live[path]._values[0]
                assert all(values[step - 1] == value for step, value in told.items())
            case "gone" if live:
                live.pop(secrets.choice(list(live)))._stack.close()
    assert (len(told) > 0, refused > 0) == (True, True)  # it did play


def test_however_states_are_copied_put_back_and_killed_a_step_is_told_one_way(tmp_path: Path, monkeypatch: Any) -> None:
    played(tmp_path, monkeypatch)


def by_place_alone(number: int, place: int, holder: str, last: tuple[int, str] | None) -> bool:
    """A count that does not look who holds a place."""
    if last is not None and place < last[0]:
        raise errors.Refused(f"charge {number}: {holder} is too late")
    return True


@pytest.mark.parametrize("count", [lambda *_: True, by_place_alone])
def test_a_count_that_looks_less_closely_is_found_out(tmp_path: Path, monkeypatch: Any, count: Any) -> None:
    """The twins of the game above."""
    monkeypatch.setattr(memory, "check_next", count)

    def games() -> None:
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            with monkeypatch.context() as patched:
                played(folder, patched)

    with pytest.raises(AssertionError):
        games()
