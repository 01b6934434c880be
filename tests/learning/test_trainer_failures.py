"""What goes wrong in a run tells nothing of rows, and gives nobody a second draw for one charge."""

import shutil
import signal
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.gate.session import SessionGate
from sfumato.reports.verify import verify
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Units, weights_digest  # noqa: E402
from sfumato.learning.averaging import Average  # noqa: E402
from sfumato.learning.course import SampledCourse  # noqa: E402
from sfumato.learning.draws import Draws  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402
from sfumato.noise import SystemWords  # noqa: E402

SPEND: dict[str, Any] = {"epsilon": 2, "delta": 1e-7}
NUMBER = 40


def vault(**said: Any) -> Vault:
    facts: dict[str, Any] = {"unit": sf.record(relation="add/remove"), "budget": sf.Budget(epsilon=8, delta=1e-6)}
    return Vault(**{**facts, "name": "clinic", **said})


def rows() -> tuple[Tensor, Tensor]:
    inputs = torch.sin(torch.arange(NUMBER * 3.0) * 1.7).reshape(NUMBER, 3)
    return inputs, (inputs.sum(1) > 0).long()


def trainer(home: Vault, model: nn.Module | None = None, data: tuple[Tensor, Tensor] | None = None, **said: Any) -> Any:
    inputs, targets = data or rows()
    units = Units(inputs, targets, n_units=NUMBER, name="visits", version="1")
    return home.trainer(model or nn.Linear(3, 2), nn.functional.cross_entropy, data=units, **said)


def sums(monkeypatch: pytest.MonkeyPatch, model: nn.Module, data: tuple[Tensor, Tensor], way: str) -> Tensor:
    """The sum of the first step on all units, before its noise, of a run that ends as it should."""
    caught: list[Tensor] = []
    release, home = SampledCourse.release, vault()

    def spied(self: SampledCourse, total: Tensor) -> Tensor:
        caught.append(total.clone())
        return release(self, total)

    with monkeypatch.context() as patched:
        patched.setattr(SampledCourse, "release", spied)
        found = trainer(home, model, data, grad_mode=way).fit(
            steps=2, batch=NUMBER, max_physical_batch_size=16, **SPEND
        )
    assert home.spent == sf.Budget(**SPEND) == found.release.statement.spend
    assert found.release.statement.query.done == 2
    return caught[0]


class Words(nn.Module):
    """Words of a small vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.end = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, words: Tensor) -> Tensor:
        return self.end(self.table(words).mean(1))  # type: ignore[no-any-return]


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["semantic", "fast"])
@pytest.mark.parametrize("wrong", ["label", "word"])
def test_a_row_that_cannot_be_computed_counts_nothing_and_changes_nothing(
    wrong: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, targets = rows()
    model: nn.Module = nn.Linear(3, 2)
    if wrong == "word":
        inputs, model = (inputs.abs() * 8).long(), Words()
        inputs[17, 1] = 4321
    else:
        targets[17] = 4321
    kept = torch.arange(NUMBER) != 17
    state = {name: one.clone() for name, one in model.state_dict().items()}
    found = sums(monkeypatch, model, (inputs, targets), way)
    model.load_state_dict(state)
    without = sums(monkeypatch, model, (inputs[kept], targets[kept]), way)
    torch.testing.assert_close(found, without, atol=1e-5, rtol=1e-5)
    assert without.norm() > 0.1


def test_a_row_that_ends_the_process_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, targets = rows()
    inputs[17] = 4321.0
    summed = Run._sum

    def leaving(self: Run, *batch: Tensor) -> Any:
        if (batch[0] == 4321).any():
            raise SystemExit(str(batch[0]))
        return summed(self, *batch)

    monkeypatch.setattr(Run, "_sum", leaving)
    model, kept = nn.Linear(3, 2), torch.arange(NUMBER) != 17
    state = {name: one.clone() for name, one in model.state_dict().items()}
    found = sums(monkeypatch, model, (inputs, targets), "auto")
    model.load_state_dict(state)
    torch.testing.assert_close(
        found, sums(monkeypatch, model, (inputs[kept], targets[kept]), "auto"), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("closes", [True, False])
def test_what_ends_the_engine_is_not_passed_on_and_not_resumed(
    closes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Run, *given: Any) -> Any:
        raise SystemExit("row 4321")  # not in the model, whose failures count 0

    def locked(self: SessionGate, opened: Any) -> None:
        raise errors.LedgerError("the ledger is locked. No row was read.")

    home, model, state = vault(), nn.Linear(3, 2), tmp_path / "run"
    before = weights_digest(model)
    made = trainer(home, model)
    said: dict[str, Any] = {"steps": 2, "checkpoint": state, **SPEND}
    with monkeypatch.context() as patched:
        patched.setattr(Run, "_batches", broken)
        if not closes:
            patched.setattr(SessionGate, "fail", locked)
        with pytest.raises(errors.EngineFailed, match="charge of") as told:
            made.fit(**said)
    assert "4321" not in str(told.value)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None
    assert ("is closed" in str(told.value)) is closes
    assert home.spent == sf.Budget(**SPEND)
    assert weights_digest(model) == before
    assert state.exists() is closes
    with pytest.raises((errors.Refused, errors.InvalidInput), match=r"was closed|is not a state of a"):
        made.fit(**said, resume=True)
    assert home.spent == sf.Budget(**SPEND)


def test_of_runs_at_once_one_tells_that_its_engine_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    home = vault()

    def broken(self: Run, *given: Any) -> Any:
        assert self._gate.fail(self._opened)  # that of another run, in the meantime
        raise SystemExit("row 4321")

    monkeypatch.setattr(Run, "_batches", broken)
    with pytest.raises(errors.Refused, match="its dataset was closed; nothing was released") as told:
        trainer(home).fit(steps=2, **SPEND)
    assert told.value.__context__ is None
    assert home.spent == sf.Budget(**SPEND)


def test_what_learning_raises_ends_the_run_for_good(tmp_path: Path) -> None:
    """Else each resumption would draw the step anew, for whoever reads the gradients of a failing optimiser."""
    seen: list[Tensor] = []

    class Failing(torch.optim.SGD):
        live = False

        def step(self, closure: Any = None) -> Any:
            if not Failing.live:
                return None
            seen.append(self.param_groups[0]["params"][0].grad.clone())
            shutil.copy(state, copy)
            raise SystemExit

    home, state, copy = vault(), tmp_path / "run", tmp_path / "copy"
    made = trainer(home)
    said: dict[str, Any] = {"steps": 5, "optimizer": Failing, **SPEND}
    charged, opening = [], SessionGate.open

    def opened(self: SessionGate, *given: Any, **named: Any) -> Any:
        Failing.live = True
        charged.append(1)
        return opening(self, *given, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SessionGate, "open", opened)
        with pytest.raises(SystemExit):
            made.fit(checkpoint=state, **said)
    assert not state.exists()
    Failing.live = False
    for file in (state, copy):
        with pytest.raises((errors.Refused, errors.InvalidInput)):
            made.fit(checkpoint=file, resume=True, **said)
    assert len(seen) == len(charged) == 1
    assert home.spent == sf.Budget(**SPEND)


def heard_twice(state: Path, optimiser: Any, average: Average | None) -> tuple[list[Tensor], int]:
    """The noisy sums of a run that is interrupted after its first step was learned, and resumed."""
    seen: list[Tensor] = []
    learn = Run._learn

    def interrupted(self: Run, noisy: Tensor) -> None:
        seen.append(noisy.clone())
        learn(self, noisy)
        if len(seen) == 1:
            signal.raise_signal(signal.SIGINT)  # a real one: what code raises by itself ends the run for good

    made = trainer(vault())
    said: dict[str, Any] = {"steps": 3, "every": 3, "checkpoint": state, "optimizer": optimiser, "average": average}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "_learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.fit(**said, **SPEND)
        found = made.fit(**said, **SPEND, resume=True)
    return seen, found.release.statement.query.done


class Loud(torch.optim.SGD):
    """An optimiser of somebody else's."""


class LoudAverage(Average):
    """An average of somebody else's."""


@pytest.mark.few(1)
@pytest.mark.parametrize("who", ["nobody", "global hook", "own hook", "another class", "average"])
def test_whoever_listens_to_the_optimiser_hears_each_step_once(who: str, tmp_path: Path) -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def hooked(parameters: Any) -> Any:
        made = torch.optim.SGD(parameters, lr=0.1)
        made.register_step_post_hook(lambda *_: None)
        return made

    optimiser: Any = {"own hook": hooked, "another class": Loud}.get(who, torch.optim.SGD)
    handle = register_optimizer_step_pre_hook(lambda *_: None) if who == "global hook" else None
    try:
        seen, done = heard_twice(tmp_path / "run", optimiser, LoudAverage() if who == "average" else None)
    finally:
        if handle is not None:
            handle.remove()
    assert (len(seen), done) == (4, 3)
    assert torch.equal(seen[0], seen[1]) is (who != "nobody")  # a step that nobody heard is drawn anew


def test_masks_come_from_more_than_a_seed() -> None:
    """The second half of the words of a seed that torch would take decides; so do all others."""

    class Fixed(SystemWords):
        def __init__(self, place: int) -> None:
            self.place = place

        def fill(self, out: Any) -> None:
            out[:] = range(len(out))
            if self.place < len(out):
                out[self.place] ^= 1 << 40

    def drawn(place: int) -> list[float]:
        with Draws(torch.device("cpu"), Fixed(place)).used():
            return torch.rand(2000).tolist()

    assert drawn(10**6) == drawn(10**6)
    assert all(drawn(place) != drawn(10**6) for place in (1, 2, 100, 312))


class Locked(nn.Linear):
    """A model that cannot be copied."""

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.lock = threading.Lock()


class Computed(nn.Linear):
    """A model that keeps what it computed."""

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.last = self.weight * 2


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("model", "said", "words"),
    [
        (Locked, {}, "cannot be copied"),
        (Computed, {}, "cannot be copied"),
        (None, {"optimizer": lambda _: torch.optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1)}, "and no others"),
        (None, {"optimizer": torch.optim.SparseAdam}, "cannot make a step"),
        (None, {"average": object()}, "Average"),
        (None, {"lr": float("nan")}, "finite"),
        (None, {"lr": float("inf")}, "finite"),
    ],
)
def test_what_cannot_be_learned_with_is_refused_uncharged(model: Any, said: dict[str, Any], words: str) -> None:
    home = vault()
    made = trainer(home, None if model is None else model())
    with pytest.raises(errors.InvalidInput, match=words):
        made.fit(steps=1, **said, **SPEND)
    assert home.spent == sf.Budget.none()


def test_frozen_layers_may_be_in_an_optimiser() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    model[0].requires_grad_(requires_grad=False)
    made = torch.optim.SGD(model.parameters(), lr=0.1)
    assert trainer(vault(), model).fit(steps=1, optimizer=made, **SPEND).release.statement.query.parameters == 8


def test_two_runs_alike_are_told_apart_by_their_charges(tmp_path: Path) -> None:
    home = vault()
    said: dict[str, Any] = {"steps": 2, **SPEND}
    ends = []
    for name in ("first", "second"):
        average = Average(decay=0.5)
        found = trainer(home).fit(checkpoint=tmp_path / name, average=average, **said)
        ends.append((weights_digest(found.model), average))
    for name, (digest, average) in zip(("first", "second"), ends, strict=True):
        again = Average(decay=0.5)
        found = trainer(home).fit(checkpoint=tmp_path / name, average=again, resume=True, **said)
        assert weights_digest(found.model) == found.release.statement.query.weights == digest
        assert again.steps == average.steps == 2
        assert all(torch.equal(one, average.weights[key]) for key, one in again.weights.items())
    assert home.spent == sf.Budget(epsilon=4, delta=2e-7)


def test_a_run_that_was_stopped_stays_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(BaseException):
        pass

    def gone(self: Run, model: nn.Module) -> Any:
        raise Gone

    made, shown = trainer(vault()), []

    def watch(step: int, weights: Any) -> bool:
        shown.append(step)
        return step == 2

    said: dict[str, Any] = {"steps": 6, "every": 2, "checkpoint": tmp_path / "run", "callback": watch, **SPEND}
    with monkeypatch.context() as patched:
        patched.setattr(Run, "finish", gone)
        with pytest.raises(Gone):
            made.fit(**said)
    assert made.fit(**said, resume=True).release.statement.query.done == 2
    assert shown == [2]


@pytest.mark.few(1)
@pytest.mark.parametrize("steps", [2**40, 10**7 + 1])
def test_a_certificate_of_endless_steps_is_a_finding_and_no_endless_work(steps: int) -> None:
    from tests.reports.forgeries import signed_anew

    document = trainer(vault()).fit(steps=2, batch=10, **SPEND).release.certificate.document
    said = document["statement"]
    said["query"]["steps"] = said["mechanism"]["steps"] = said["event"]["times"] = steps
    outcome = verify(signed_anew(document) or document)
    assert not outcome.consistent
    assert any("at most" in finding.problem for finding in outcome.findings)


def test_losses_without_room_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.accounting import plan, pld
    from sfumato.accounting.basic import guarantee_of

    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    event = plan(sigma=2, steps=5, sampling=Fraction(1, 3))
    assert guarantee_of(event, sf.Budget(epsilon=4, delta=1e-5)).epsilon == 4
    with pytest.raises(errors.Refused, match="10,000,000 steps"):
        guarantee_of(plan(sigma=2, steps=10**7 + 1, sampling=Fraction(1, 3)), sf.Budget(epsilon=4, delta=1e-5))
    monkeypatch.setattr(pld, "delta", full)
    with pytest.raises(errors.Refused, match="too many"):
        guarantee_of(event, sf.Budget(epsilon=4, delta=1e-5))


@pytest.mark.parametrize("units", ["record", "group"])
def test_rows_of_a_person_count_where_units_are_users_alone(units: str) -> None:
    from sfumato.core.query import Dataset
    from sfumato.learning.training import Training

    said: dict[str, Any] = {"clip": 1, "times": 1, "number": 9, "rate": 1, "steps": 2, "parameters": 3}
    with pytest.raises(errors.InvalidInput, match="records"):
        Training(dataset=Dataset(name="x", edition="1"), units=units, records=2, **said)
    assert Training(dataset=Dataset(name="x", edition="1"), units="user", records=2, **said).records == 2
