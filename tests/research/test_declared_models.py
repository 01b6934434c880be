"""Models that scripts have trained: declarations go in, weights with their certificate come out, nothing else does."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.boxes.levels import BoxLevel
from sfumato.core.budget import Budget
from sfumato.core.documents import Document
from sfumato.errors import BudgetExceeded, EngineFailed, InvalidInput, Refused, SfumatoError
from sfumato.federated.training.declared_network import DeclaredNetwork
from sfumato.federated.training.weights_file import read_network
from sfumato.governance.research_entries import RunPhase
from sfumato.learning.training import Training
from sfumato.learning.weights import weights_digest
from sfumato.reports.stored import stored_release
from sfumato.research import messages as said
from sfumato.research import served as serving
from sfumato.research.connection import Connection
from sfumato.research.environment import ScriptJob
from sfumato.research.script_box import ScriptBox
from sfumato.research.served import ServedProject
from tests.parts import boxes
from tests.research.worlds import CANARY, World, project, world

TRAINED = """
import sfumato as sf
environment = sf.connect()
model = environment.train("visits", inputs=["age"], target="ward", hidden=[3], n_units=400,
                          epsilon="1/2", delta="1/10000000", epochs=2)
assert len(model.weights) > 8
"""
SPEND = Budget(epsilon="1/2", delta="1/10000000")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    found = world(tmp_path, cap=Budget(epsilon=4, delta="1/1000000"))
    yield found
    found.ledger.close()


def served_of(made: World) -> ServedProject:
    made.opened(project())
    return made.environment.served(project())


def request(served: ServedProject, **changed: object) -> said.TrainingRequest:
    network = DeclaredNetwork.of_schema(served._schemas["visits"], inputs=["age"], target="ward")
    asked = said.TrainingRequest(table="visits", network=network.to_json(), n_units=400, epochs=1, spend=SPEND)
    return replace(asked, **changed)  # type: ignore[arg-type]


def refused(served: ServedProject, asked: Document) -> SfumatoError:
    reply = served.answered(asked)
    assert isinstance(reply, said.RefusalReply)
    return reply.raised


def test_a_script_has_a_model_trained_and_weights_leave_with_their_certificate(made: World, tmp_path: Path) -> None:
    study = project()
    made.opened(study)
    number = made.submitted(study, TRAINED)
    first = made.environment.run(number)
    assert first.phase is RunPhase.RELEASED
    ((name, text),) = first.certificates.items()
    query = stored_release(text).statement.query
    assert isinstance(query, Training)
    (tmp_path / "model").write_bytes(first.models[name])
    network, model = read_network(tmp_path / "model")
    assert weights_digest(model) == query.weights
    assert ([column.name for column in network.inputs], network.hidden) == (["age"], (3,))
    assert CANARY.encode() not in first.models[name]
    assert made.ledger.balance(study.account).spent == SPEND
    again = made.environment.run(number)
    assert (again.phase, again.certificates, again.models) == (RunPhase.STORED, first.certificates, {})
    assert made.ledger.balance(study.account).spent == SPEND
    assert made.ledger.verify() == ()


def test_a_network_over_other_columns_than_those_approved_is_refused_and_costs_nothing(made: World) -> None:
    served = served_of(made)
    schema = made.environment.data["visits"][1]
    for inputs, target in ((["age"], "diagnosis"), (["diagnosis"], "ward")):
        network = DeclaredNetwork.of_schema(schema, inputs=inputs, target=target)
        assert isinstance(refused(served, request(served, network=network.to_json())), InvalidInput)
    stretched = request(served).network.replace('"100/1"', '"101/1"')  # other bounds than those of the schema
    assert stretched != request(served).network
    assert isinstance(refused(served, request(served, network=stretched)), Refused)
    assert isinstance(refused(served, request(served, table="patients")), Refused)
    assert served.vault.spent == Budget.none()


@pytest.mark.parametrize(
    "changed",
    [
        {"network": "x" * (2**18 + 1)},
        {"network": "[" * 5000},
        {"network": "{}"},
        {"network": base64.b64encode(b"cos\nsystem\n(S'true'\ntR.").decode()},
        {"epochs": 101},
        {"n_units": 10**8},
        {"n_units": 10**7, "epochs": 100},
        {"n_units": 0},
        {"spend": Budget(epsilon=1)},
    ],
    ids=["long", "deep", "empty", "pickle", "epochs", "units", "steps", "nobody", "no delta"],
)
def test_what_is_no_declaration_of_a_bounded_run_is_refused_and_costs_nothing(
    made: World, changed: dict[str, object]
) -> None:
    served = served_of(made)
    wrong = refused(served, request(served, **changed))
    assert not isinstance(wrong, EngineFailed)
    assert served.vault.spent == Budget.none()


def test_a_run_beyond_the_budget_of_the_project_is_refused(made: World) -> None:
    served = served_of(made)
    beyond = request(served, spend=Budget(epsilon=3, delta="1/10000000"))
    assert isinstance(refused(served, beyond), BudgetExceeded)
    assert served.vault.spent == Budget.none()


def test_whatever_goes_wrong_after_the_charge_has_the_same_words(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> object:
        raise ValueError(CANARY)

    served = served_of(made)
    monkeypatch.setattr(serving, "fitted", broken)
    assert str(refused(served, request(served))) == str(serving.FAILED)


def test_a_connection_believes_no_model_whose_certificate_is_not_signed_by_the_environment(made: World) -> None:
    served = served_of(made)

    def forged(asked: Document) -> Document:
        reply = served.answered(asked)
        if isinstance(reply, said.ModelReply):
            reply = replace(reply, certificate=reply.certificate.replace('"number":400', '"number":401'))
        return reply

    honest = Connection(served.answered)
    given: dict[str, object] = {"inputs": ["age"], "target": "ward", "n_units": 400, "epochs": 1}
    assert honest.train("visits", epsilon="1/4", delta="1/10000000", **given).weights  # type: ignore[arg-type]
    with pytest.raises(Refused, match="does not verify"):
        Connection(forged).train("visits", epsilon="1/4", delta="1/10000000", **given)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("level", list(BoxLevel), ids=lambda level: level.value)
def test_a_script_in_a_box_has_a_model_trained(tmp_path: Path, level: BoxLevel) -> None:
    boxes(level.value)
    made = world(tmp_path, {"script": ScriptJob(box=ScriptBox(level=level))}, Budget(epsilon=4, delta="1/1000000"))
    made.opened(project())
    found = made.environment.run(made.submitted(project(), TRAINED))
    assert found.phase is RunPhase.RELEASED
    assert set(found.models) == set(found.certificates)
    made.ledger.close()
