"""Examples in a vault: charged before anything is read, signed, verified, and refused where a fact is wrong."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.core.units import Unit
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.learning import EXAMPLE_QUERIES, lesson
from sfumato.reports.particulars import asked as what_was_asked
from sfumato.reports.particulars import particulars
from sfumato.reports.verify import parsed, verify
from sfumato.reports.words import AUDIENCES
from tests import parts

DRAW = np.random.default_rng(3)
INPUTS = DRAW.normal(size=(600, 3))
TARGETS = (INPUTS[:, 0] > 0).astype(np.int64)
QUESTIONS = DRAW.normal(size=(12, 3))
TRUTH = (QUESTIONS[:, 0] > 0).astype(int).tolist()


def vault(unit: Unit | None = None, epsilon: float = 1000) -> sf.Vault:
    return sf.Vault(
        unit=sf.record(relation="replace") if unit is None else unit,
        budget=sf.Budget(epsilon=epsilon, delta=1e-6),
        name="trial",
    )


def declared(held: sf.Vault, **other: Any) -> Any:
    given: dict[str, Any] = {"name": "scans", "version": "1", "ids": np.arange(600), **other}
    return held.examples(INPUTS, TARGETS, **given)


def nearest(inputs: Any, targets: Any, seed: int) -> Callable[[Any], Any]:
    """A teacher that says the class of the nearest mean."""
    means = np.stack([inputs[targets == k].mean(axis=0) for k in (0, 1)])
    return lambda asked: ((asked[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)


def probable(inputs: Any, targets: Any, seed: int) -> Callable[[Any], Any]:
    """A teacher that says how likely each class is."""
    means = np.stack([inputs[targets == k].mean(axis=0) for k in (0, 1)])

    def shares(asked: Any) -> Any:
        near = np.exp(-((asked[:, None] - means) ** 2).sum(axis=2))
        return near / near.sum(axis=1, keepdims=True)

    return shares


KEYS = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 1.0]])


def head(record: Any) -> Any:
    """Attention of a record, moved by a public query, on three public keys."""
    return KEYS @ (record + KEYS[0])


def asked(held: sf.Vault) -> dict[str, Any]:
    """One question of each kind."""
    examples = declared(held, n_units=600)
    teachers = examples.teachers(nearest, parts=20, classes=2, name="nearest means")
    return {
        "votes": teachers.labels(QUESTIONS, name="public"),
        "confident": teachers.confident_labels(QUESTIONS, name="public", answers=5, threshold=15),
        "curve": examples.learning_curve([lambda x: x[1] > 0, lambda x: x[0] > 0], name="rules"),
        "closer": examples.closer_model([1, 9], [1, 1]),
        "weights": examples.logistic_regression(regularisation=0.1),
        "soft": examples.teachers(probable, parts=20, classes=2, name="likely").soft_labels(
            QUESTIONS, name="public", of="probabilities"
        ),
        "student": teachers.closer_student(QUESTIONS, COIN, RULE, name="public", students=("coin", "rule")),
        "logits": examples.attention_logits(head, keys=3, clip=4, name="head"),
        "key": examples.attention_key(head, keys=3, bound=4, name="head"),
    }


ALL = ["votes", "confident", "curve", "closer", "weights", "soft", "student", "logits", "key"]
COIN = np.full((12, 2), 0.5)
RULE = np.where(QUESTIONS[:, :1] > 0, [0.1, 0.9], [0.9, 0.1])


@pytest.mark.claim("S3-07")
def test_labels_of_teachers_are_those_of_the_truth_where_the_noise_is_small() -> None:
    held = vault(sf.user("id", relation="add/remove"))
    release = asked(held)["votes"].release(epsilon=200)
    assert list(release["label"].values) == TRUTH
    assert len(release.values) == 24
    assert held.spent == release.charged
    inputs, labels = lesson(release, QUESTIONS)
    assert (len(inputs), labels) == (12, TRUTH)


def test_confident_labels_teach_what_was_answered() -> None:
    release = asked(vault(sf.user("id", relation="add/remove")))["confident"].release(epsilon=300, delta=1e-7)
    given = release["label"].values
    assert sum(label != -1 for label in given) == 5
    assert all(label in (-1, truth) for label, truth in zip(given, TRUTH, strict=True))
    inputs, labels = lesson(release, QUESTIONS)
    assert len(inputs) == len(labels) == 5
    with pytest.raises(InvalidInput, match="not the questions"):
        lesson(release, QUESTIONS[:3])


@pytest.mark.claim("S3-09", "S2-11")
def test_a_curve_has_shares_with_intervals() -> None:
    question = asked(vault())["curve"]
    release = question.release(epsilon=20)
    shares, ends = release["accuracy"].values, release["accuracy"].interval(0.999999)
    exact = [Fraction(int(((INPUTS[:, k] > 0) == TARGETS).sum()), 600) for k in (1, 0)]
    assert all(low <= truth <= high for truth, (low, high) in zip(exact, ends, strict=True))
    assert release.to_arrow().column_names == ["epoch", "accuracy", "accuracy_data_low", "accuracy_data_high"]
    assert len(shares) == 2
    assert question.preview(epsilon=20).margin == Fraction(release.statement.law.margin(Fraction(19, 20)), 600)


@pytest.mark.claim("S3-08")
def test_the_closer_of_two_models_is_chosen() -> None:
    release = asked(vault())["closer"].release(epsilon=100)
    assert release.statement.query.choice(release) == "second"
    assert float(release["difference"].values[0]) > 0.3


@pytest.mark.claim("S2-17")
def test_weights_come_close_to_those_without_noise() -> None:
    from sfumato.learning.paradigms.logistic import held_to_one, minimiser

    release = asked(vault())["weights"].release(epsilon=500)
    signs = np.where(TARGETS > 0, 1, -1)
    exact = minimiser(
        held_to_one(INPUTS), signs, number=600, regularisation=Fraction(1, 10), residual=Fraction(1, 10**6)
    )
    assert all(
        low <= truth <= high for truth, (low, high) in zip(exact, release["weight"].interval(0.999999), strict=True)
    )


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", ALL)
def test_every_release_is_charged_signed_and_verified(kind: str) -> None:
    held = vault()
    question = asked(held)[kind]
    release: Release = question.release(epsilon=1, delta=1e-7)
    assert held.spent.epsilon == release.charged.epsilon == 1
    assert verify(parsed(release.certificate.text), key=held.public_key).authenticated
    assert type(release.statement.query) in EXAMPLE_QUERIES
    again = question.release(epsilon=1, delta=1e-7)
    assert again.repeated
    assert again.values == release.values


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ALL)
def test_every_release_explains_itself_to_every_reader(kind: str) -> None:
    release = asked(vault())[kind].release(epsilon=1, delta=1e-7)
    for language in ("en", "zh"):
        assert all("{" not in release.explain(language, audience) for audience in AUDIENCES)
        facts = dict(particulars(release, language))
        assert "mechanism." not in facts["noise"]
        assert "query." not in what_was_asked(release.statement, language)
    assert "scans" in release.explain()


@pytest.mark.parametrize("kind", ALL)
def test_what_does_not_fit_the_budget_reads_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.learning.paradigms.store import ExampleStore

    def read(*_: Any) -> Any:
        raise AssertionError("something was read")

    held = vault(epsilon=0.5)
    question = asked(held)[kind]
    monkeypatch.setattr(ExampleStore, "read", read)
    with pytest.raises(BudgetExceeded):
        question.release(epsilon=1, delta=1e-7)
    assert held.spent.epsilon == 0


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("votes", {"parts": 21}),
        ("votes", {"ensemble": "other"}),
        ("votes", {"questions": 11}),
        ("confident", {"classes": 3}),
        ("curve", {"epochs": 1}),
        ("curve", {"number": 10**9}),
        ("closer", {"number": 10**9}),
        ("weights", {"number": 10**9}),
        ("weights", {"features": 2}),
        ("soft", {"steps": 1, "classes": 3}),
        ("soft", {"content": "0"}),
        ("student", {"parts": 21}),
        ("student", {"asked": "other"}),
        ("logits", {"number": 10**9}),
        ("logits", {"keys": 4}),
        ("logits", {"model": "other"}),
        ("key", {"number": 10**9}),
        ("key", {"content": "0"}),
    ],
)
def test_facts_that_were_not_declared_are_refused(kind: str, change: dict[str, Any]) -> None:
    held = vault()
    question = asked(held)[kind]
    with pytest.raises(Refused, match="not those declared"):
        held.release(replace(question.query, **change), sf.Budget(epsilon=1))
    with pytest.raises(InvalidInput, match="holds no such examples"):
        vault().release(question.query, sf.Budget(epsilon=1))


def test_a_teacher_that_fails_is_not_told_of() -> None:
    def fail(inputs: Any, targets: Any, seed: int) -> Any:
        raise ValueError("the data say that I must fail")

    teachers = declared(vault()).teachers(fail, parts=5, classes=2, name="failing")
    release = teachers.labels(QUESTIONS, name="public").release(epsilon=500)
    assert set(release["label"].values) == {0}


def test_what_a_teacher_prints_or_warns_of_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(inputs: Any, targets: Any, seed: int) -> Any:
        print("loss", targets.mean())
        warnings.warn(f"{len(targets)} records", stacklevel=1)
        sys.stderr.write("epoch 1")
        return lambda asked: [1] * len(asked)

    teachers = declared(vault()).teachers(loud, parts=5, classes=2, name="loud")
    release = teachers.labels(QUESTIONS, name="public").release(epsilon=500)
    assert set(release["label"].values) == {1}
    assert capsys.readouterr() == ("", "")


def test_a_model_that_cannot_work_is_refused_before_a_charge() -> None:
    held = vault()
    with pytest.raises(IndexError):
        declared(held).accuracy(lambda record: record[7], name="of seven")
    assert held.spent.epsilon == 0


@pytest.mark.parametrize("method", ["zcdp", "rdp"])
def test_accounts_that_count_renyi_losses_can_be_charged(method: str) -> None:
    from sfumato.accounting.filter_cost import filter_cost

    happened = asked(vault())["confident"].release(epsilon=1, delta=1e-7).statement.event
    assert filter_cost(happened, Fraction(8) if method == "rdp" else None) > 0


def test_of_each_person_the_first_record_counts() -> None:
    held = vault(sf.user("id", relation="replace"))
    ids = [0, 0, 0, 1, None, float("nan")]
    examples = held.examples(np.zeros((6, 1)), np.array([1, 0, 0, 0, 1, 1]), ids=ids, name="t", version="1", n_units=2)
    query = examples.accuracy(lambda record: 1, name="always one").query
    assert held._stores["learning"].read(query) == [1]


def test_names_stay_what_they_are() -> None:
    examples = declared(vault())
    teachers = examples.teachers(nearest, parts=20, classes=2, name="one")
    with pytest.raises(Refused, match="something else"):
        examples.teachers(nearest, parts=21, classes=2, name="one")
    teachers.labels(QUESTIONS, name="public")
    teachers.labels(QUESTIONS, name="public")
    with pytest.raises(Refused, match="something else"):
        teachers.labels(QUESTIONS[:5], name="public")
    examples.accuracy(lambda record: 1, name="rule")
    with pytest.raises(Refused, match="something else"):
        examples.accuracy(lambda record: 0, name="rule")


def test_declarations_that_lack_something_are_refused() -> None:
    held = vault()
    with pytest.raises(NotDeclared, match="public name"):
        held.examples(INPUTS, TARGETS)
    declared(held)
    with pytest.raises(Refused, match="declared already"):
        declared(held)
    with pytest.raises(InvalidInput, match="not that of the records"):
        held.examples(INPUTS, TARGETS, name="x", n_units=599)
    with pytest.raises(InvalidInput, match="same examples"):
        held.examples(INPUTS, TARGETS[:5], name="x")
    with pytest.raises(NotDeclared, match="ids="):
        vault(sf.user("id", relation="replace")).examples(INPUTS, TARGETS, name="x")
    with pytest.raises(Unsupported, match="records, users or families"):
        vault(sf.edge(relation="add/remove")).examples(INPUTS, TARGETS, name="x")
    with pytest.raises(NotDeclared, match="n_units="):
        declared(vault(sf.record(relation="add/remove"))).logistic_regression(regularisation=1)
    with pytest.raises(InvalidInput, match="at least one model"):
        declared(vault()).learning_curve([], name="none")
    with pytest.raises(InvalidInput, match="rows of numbers"):
        vault().examples(np.zeros((4, 2, 2)), np.array([1, 0, 1, 0]), name="x").logistic_regression(regularisation=1)


def test_what_is_declared_is_taken_over_as_it_is() -> None:
    held, inputs = vault(), np.ones((4, 1))
    examples = held.examples(inputs, np.ones(4, dtype=int), name="x", version="1")
    query = examples.accuracy(lambda record: int(record[0]), name="itself").query
    inputs[:] = 0
    assert held._stores["learning"].read(query) == [4]


@pytest.mark.claim("S3-09")
def test_a_torch_model_says_of_a_record_what_it_would_say_of_it_alone() -> None:
    parts.package("torch")
    import torch

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    model(torch.randn(50, 3))  # a batch norm in training mode mixes the records of a batch
    held = vault()
    examples = held.examples(torch.tensor(INPUTS, dtype=torch.float32), TARGETS, name="t", version="1")
    (found,) = held._stores["learning"].read(examples.accuracy(model, name="net").query)
    alone = model.eval()(torch.tensor(INPUTS, dtype=torch.float32)).argmax(dim=1).numpy()
    assert found == int((alone == TARGETS).sum())
    with pytest.raises(RuntimeError):
        examples.accuracy(torch.nn.Linear(9, 2), name="does not fit")


def test_torch_teachers_have_a_generator_of_their_own() -> None:
    parts.package("torch")
    import torch

    from sfumato.learning.paradigms.teachers import vote

    def drawn(inputs: Any, targets: Any, seed: int) -> Any:
        torch.rand(len(inputs))  # how much is drawn depends on the part
        return lambda asked: torch.randint(0, 9, (len(asked),)).tolist()

    state = torch.random.get_rng_state()
    asked_of = [
        vote(drawn, np.zeros((size, 1)), np.zeros(size), np.zeros((8, 1)), classes=9, seed=5) for size in (3, 3)
    ]
    assert asked_of[0] == asked_of[1]
    assert torch.equal(torch.random.get_rng_state(), state)
