"""Estimators for tables: what they learn, what they are charged, and what they never take from the rows."""

import sys
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused
from sfumato.reports.verify import verify
from tests import parts

parts.package("torch")

import numpy as np  # noqa: E402
import torch  # noqa: E402

from sfumato.learning import DPClassifier, DPRegressor, Features, features  # noqa: E402
from sfumato.learning.paradigms import persons  # noqa: E402
from sfumato.learning.units import kept_rows  # noqa: E402

RECORDS, PATIENTS = sf.record(relation="add/remove"), sf.user("patient", relation="add/remove")
CHANCE = np.random.default_rng()  # invented rows


def vault(unit: Any = RECORDS, epsilon: int = 8) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="trial")


def classifier(where: Any, **other: Any) -> DPClassifier:
    said = {"epsilon": 8, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], "n_units": 2000, "epochs": 5}
    return DPClassifier(vault=where, **{**said, **other})


class Spy:
    """A vault that trains nothing and remembers what it was asked for."""

    def trainer(self, model: torch.nn.Module, loss: Any, *, data: Any, clip: Any) -> "Spy":
        self.model, self.loss, self.data, self.clip = model, loss, data, clip
        return self

    def fit(self, **settings: Any) -> Any:
        self.settings = settings
        release = SimpleNamespace(certificate="the certificate")
        return SimpleNamespace(model=self.model, release=release, epsilon=Fraction(1), delta=Fraction(1, 10**6))

    def rows(self) -> tuple[Any, Any]:
        laid = self.data.laid(b"a key for tests, of no consequence")
        return laid.inputs[0], laid.targets


@pytest.fixture(scope="module")
def told() -> tuple[sf.Vault, DPClassifier, Any, Any]:
    """A fit on 2,000 rows whose label is the sign of the first column, and rows to test it with."""
    where, x, other = vault(), CHANCE.uniform(-1, 1, (2000, 3)), CHANCE.uniform(-1, 1, (1000, 3))
    return where, classifier(where).fit(x, (x[:, 0] > 0).astype(int)), other, (other[:, 0] > 0).astype(int)


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_what_is_plain_is_learned(told: tuple[sf.Vault, DPClassifier, Any, Any]) -> None:
    """α below 1e-9: at ε = 8 the noise on a mean gradient of norm about 1/2 is below 1/100, twenty times over."""
    _, model, x, y = told
    assert model.score(x, y) > 0.85
    chances = model.predict_proba(x)
    assert chances.shape == (1000, 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(chances.argmax(axis=1), model.predict(x))


def test_a_fit_is_one_charge_with_a_certificate(told: tuple[sf.Vault, DPClassifier, Any, Any]) -> None:
    where, model, _, _ = told
    assert where.left.epsilon == 0
    assert (model.epsilon_, model.delta_) == (8, Fraction(1, 10**6))
    assert verify(model.certificate_.document, key=where.public_key).consistent
    assert model.n_features_in_ == 3


def test_a_fit_beyond_the_budget_leaves_everything_as_it_was() -> None:
    where = vault(epsilon=1)
    model = classifier(where, epsilon=2)
    with pytest.raises(BudgetExceeded):
        model.fit(np.zeros((10, 2)), np.zeros(10))
    assert where.left.epsilon == 1
    with pytest.raises(InvalidInput, match="not fitted"):
        model.predict([[0, 0]])


@pytest.mark.parametrize("missing", ["vault", "epsilon", "delta", "bounds", "classes", "n_units"])
def test_what_is_not_declared_is_not_read_off_the_rows(missing: str) -> None:
    where = vault()
    model = classifier(where).set_params(**{missing: None})
    with pytest.raises(NotDeclared, match=missing):
        model.fit(np.zeros((4, 2)), np.array([0, 1, 0, 1]))
    assert where.left.epsilon == 8


def test_rows_are_scaled_by_bounds_alone() -> None:
    spy, x = Spy(), np.array([[0.5, 30.0], [2.0, 50.0], [np.nan, -np.inf]])
    classifier(spy, bounds=[(0, 1), (0, 100)]).fit(x, [0, 1, 1])
    together, _ = spy.rows()
    np.testing.assert_allclose(together, [[0, -0.4], [1, 0], [0, -1]], atol=1e-6)
    for place in range(3):  # a row is the same whoever else is there
        classifier(spy, bounds=[(0, 1), (0, 100)]).fit(x[place : place + 1], [0])
        torch.testing.assert_close(spy.rows()[0][0], together[place])


def test_standardised_rows_would_be_told_apart() -> None:
    """The broken twin of the test above takes means and deviations from the rows."""
    x = torch.tensor([[0.5, 30.0], [2.0, 50.0], [0.1, 10.0]])
    scaled = (x - x.mean(dim=0)) / x.std(dim=0)
    fewer = (x[:2] - x[:2].mean(dim=0)) / x[:2].std(dim=0)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(scaled[0], fewer[0])


def test_a_row_with_an_undeclared_label_counts_nothing() -> None:
    spy = Spy()
    said = classifier(spy, classes=["no", "yes"], bounds=[(-1, 1)])
    said.fit([[0.1], [0.2], [0.3], [0.4]], ["yes", "perhaps", None, "no"])
    rows, labels = spy.rows()
    assert labels.tolist() == [1, 0]
    np.testing.assert_allclose(rows[:, 0], [0.1, 0.4], atol=1e-6)


def test_settings_reach_the_trainer() -> None:
    spy = Spy()
    model = classifier(spy, hidden=(5,), clip="1/2", batch=77, epochs=3, learning_rate=0.125, momentum=0.5)
    model.fit(np.zeros((1, 2)), [0])
    assert [tuple(one.shape) for one in spy.model.parameters()] == [(5, 2), (5,), (2, 5), (2,)]
    assert spy.clip == "1/2"
    optimiser = spy.settings.pop("optimizer")
    assert spy.settings == {"epsilon": 8, "delta": 1e-6, "epochs": 3, "batch": 77}
    assert (optimiser.defaults["lr"], optimiser.defaults["momentum"]) == (0.125, 0.5)
    assert model.certificate_ == "the certificate"


@pytest.mark.parametrize(("number", "batch"), [(10, 10), (256, 256), (1000, 256), (60_000, 6000)])
def test_a_batch_follows_the_declared_number(number: int, batch: int) -> None:
    spy = Spy()
    classifier(spy, n_units=number).fit(np.zeros((1, 1)), [0])
    assert spy.settings["batch"] == batch
    assert spy.data.n_units == number


def test_persons_are_one_unit_each() -> None:
    where, x = vault(PATIENTS), CHANCE.uniform(-1, 1, (600, 2))
    model = classifier(where, n_units=200, max_records_per_unit=2, epochs=2)
    with pytest.raises(Refused, match="users"):
        model.fit(x, (x[:, 0] > 0).astype(int))
    assert where.left.epsilon == 8
    model.fit(x, (x[:, 0] > 0).astype(int), groups=np.repeat(np.arange(200), 3))
    statement = model.release_.statement
    assert (statement.query.units, statement.query.records, statement.limit.rows_per_group) == ("user", 2, 2)
    assert where.left.epsilon == 0


def test_groups_are_refused_where_records_are_protected() -> None:
    where = vault()
    with pytest.raises(Refused, match="records"):
        classifier(where, max_records_per_unit=1).fit(np.zeros((2, 1)), [0, 1], groups=["a", "b"])
    assert where.left.epsilon == 8


def test_columns_by_name_hold_words_too() -> None:
    import pyarrow as pa

    table = pa.table({"age": [30, None, 250], "ward": ["B", "A", "elsewhere"], "unused": [1, 2, 3]})
    spy = Spy()
    classifier(spy, bounds={"age": (0, 100)}, categories={"ward": ["A", "B"]}).fit(table, pa.array([0, 1, 1]))
    np.testing.assert_allclose(spy.rows()[0], [[-0.4, 0, 1], [0, 1, 0], [1, 0, 0]], atol=1e-6)
    with pytest.raises(InvalidInput, match="'age'"):
        classifier(spy, bounds={"age": (0, 100)}).fit({"years": [1]}, [0])


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_a_regression_stays_within_its_bounds() -> None:
    """α below 1e-9, as above: the slope is half the range and the noise a hundredth of that."""
    where, x = vault(), CHANCE.uniform(0, 10, (2000, 1))
    line = DPRegressor(
        vault=where, epsilon=8, delta=1e-6, bounds=(0, 10), target_bounds=(0, 100), n_units=2000, epochs=10
    )
    line.fit(x, 10 * x[:, 0])
    found = line.predict([[0], [5], [10], [1e9]])
    assert found.min() >= 0
    assert found.max() <= 100
    assert line.score(x, 10 * x[:, 0]) > 0.8
    assert where.left.epsilon == 0


def test_targets_are_held_to_their_bounds_and_no_number_counts_nothing() -> None:
    spy = Spy()
    DPRegressor(vault=spy, epsilon=1, delta=1e-6, bounds=[(0, 1)], target_bounds=(0, 10), n_units=9).fit(
        [[0.0], [0.5], [1.0], [0.2]], [5, 1e12, float("nan"), -3]
    )
    rows, targets = spy.rows()
    assert targets.tolist() == [[0.0], [1.0], [-1.0]]
    assert len(rows) == 3
    with pytest.raises(NotDeclared, match="targets"):
        DPRegressor(vault=spy, epsilon=1, delta=1e-6, bounds=(0, 1), n_units=9).fit([[0.0]], [1])


def test_parameters_are_as_scikit_learn_wants_them() -> None:
    where = vault()
    model = classifier(where, hidden=(3,))
    said = model.get_params(deep=False)
    assert said["vault"] is where
    assert said["hidden"] == (3,)
    twin = model.__sklearn_clone__()
    assert twin is not model
    assert twin.get_params() == said  # the vault is the same one: a copy would spend its budget twice
    assert twin.vault is where
    assert model.set_params(epochs=9).epochs == 9
    with pytest.raises(InvalidInput, match="no parameter 'epoch'"):
        model.set_params(epoch=9)
    assert repr(classifier(where)) == (
        "DPClassifier(epsilon=8, delta=1e-06, bounds=(-1, 1), classes=[0, 1], n_units=2000, epochs=5)"
    )


def test_scikit_learn_is_told_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in, as scikit-learn is not among what the project needs."""
    kinds = dict.fromkeys(("Tags", "TargetTags", "ClassifierTags", "RegressorTags"), SimpleNamespace)
    monkeypatch.setitem(sys.modules, "sklearn.utils", SimpleNamespace(**kinds))
    told = DPClassifier().__sklearn_tags__()
    assert (told.estimator_type, told.regressor_tags, told.target_tags.required) == ("classifier", None, True)
    told = DPRegressor().__sklearn_tags__()
    assert (told.estimator_type, told.classifier_tags) == ("regressor", None)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"bounds": (1, 0)}, "the lower below the upper"),
        ({"bounds": (0, float("inf"))}, "finite"),
        ({"bounds": [(0, 1), (0, 1), (0, 1)]}, "2 columns and bounds were declared for 3"),
        ({"bounds": [3, 4, 5]}, "a pair of numbers"),
        ({"classes": [1]}, "at least two"),
        ({"classes": [1, 1]}, "all different"),
        ({"hidden": (0,)}, "hidden"),
        ({"n_units": 0}, "n_units"),
    ],
)
def test_what_is_malformed_is_refused_before_anything_is_spent(other: dict[str, Any], words: str) -> None:
    where = vault()
    with pytest.raises(InvalidInput, match=words):
        classifier(where, **other).fit(np.zeros((1, 2)), [1])
    assert where.left.epsilon == 8


def test_rows_that_do_not_match_are_refused() -> None:
    where = vault()
    with pytest.raises(InvalidInput, match="different numbers of rows"):
        classifier(where).fit(np.zeros((2, 1)), [1])
    with pytest.raises(InvalidInput, match="rows and columns"):
        classifier(where).fit(np.zeros(2), [1, 0])
    assert where.left.epsilon == 8


def test_features_that_are_declared_twice_or_not_at_all_are_refused() -> None:
    with pytest.raises(NotDeclared):
        Features()
    with pytest.raises(InvalidInput, match="as numbers and as categories"):
        Features(bounds={"a": (0, 1)}, categories={"a": ["x"]})
    with pytest.raises(InvalidInput, match="all different"):
        Features(categories={"a": ["x", "x"]})
    with pytest.raises(InvalidInput, match="different lengths"):
        Features(bounds={"a": (0, 1), "b": (0, 1)})({"a": [1], "b": [1, 2]})


def test_cells_that_are_no_numbers_change_no_other_cell() -> None:
    column = ["1", "many", None, [1], 10**400, 3]
    found = Features(bounds={"a": (0, 10)})({"a": column})[:, 0]
    np.testing.assert_allclose(found, [-0.8, 0, 0, 0, 0, -0.4], atol=1e-6)
    assert Features(categories={"a": ["x"]})({"a": [["x"], {}, "x"]}).tolist() == [[0.0], [0.0], [1.0]]


class Watched(list[Any]):
    """A column that remembers whether a value of it was looked at."""

    looked = False

    def __iter__(self) -> Any:
        self.looked = True
        return super().__iter__()


def test_nothing_is_read_before_the_charge() -> None:
    where = vault(epsilon=1)
    columns = {"age": Watched([1.0, 2.0]), "ward": Watched(["A", "B"])}
    y, more = Watched([0, 1]), {"bounds": {"age": (0, 9)}, "categories": {"ward": ["A", "B"]}, "n_units": 2}
    with pytest.raises(BudgetExceeded):
        classifier(where, epsilon=2, **more).fit(columns, y)
    line = DPRegressor(vault=where, epsilon=2, delta=1e-6, target_bounds=(0, 1), **more)  # type: ignore[arg-type]
    with pytest.raises(BudgetExceeded):
        line.fit(columns, y)
    assert not any(each.looked for each in (*columns.values(), y))
    classifier(where, epsilon=1, **more).fit(columns, y)
    assert all(each.looked for each in (*columns.values(), y))  # the twin: a column can tell


X, Y = np.zeros((4, 2)), np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X, Y[:, None], "y must have one value for each row"),
        (X, iter(Y), "y must have one value"),
        (X, Y.astype(str), "y holds text"),
        (X, Y.astype("S"), "y holds bytes"),
        (X[:, :, None], Y, "rows and columns"),
        (X[:, :0], Y, "0 columns"),
        ({"a": [1]}, Y, "rows and columns"),
    ],
)
def test_shapes_and_types_that_cannot_be_learned_from_are_refused_before_the_charge(x: Any, y: Any, words: str) -> None:
    where = vault()
    with pytest.raises(InvalidInput, match=words):
        classifier(where).fit(x, y)
    assert where.left.epsilon == 8


def test_arrow_and_numbers_against_words_are_told_apart_by_type() -> None:
    import pyarrow as pa

    where = vault()
    for y, classes in ((pa.array(["0", "1"]), [0, 1]), (pa.array([0, 1]), ["0", "1"]), (torch.tensor([0, 1]), ["0"])):
        with pytest.raises(InvalidInput, match=r"no class is of that type|at least two"):
            classifier(where, classes=classes).fit(X[:2], y)
    assert where.left.epsilon == 8
    spy = Spy()
    classifier(spy, classes=[0, "1"]).fit(X, Y.astype(str))  # one of them is text
    assert spy.rows()[1].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"learning_rate": float("nan")}, "learning_rate must be a finite"),
        ({"learning_rate": float("inf")}, "learning_rate must be a finite"),
        ({"learning_rate": "fast"}, "learning_rate must be a finite"),
        ({"learning_rate": 0}, "above 0"),
        ({"momentum": float("nan")}, "momentum must be a finite"),
        ({"momentum": 5.0}, "below 1"),
        ({"momentum": -0.1}, "from 0"),
        ({"bounds": (0, 5e-324)}, "too close"),
        ({"hidden": 8}, "hidden is a list"),
        ({"hidden": "88"}, "hidden is a list"),
        ({"classes": iter([0, 1])}, "classes is a list"),
        ({"classes": [[0], [1]]}, "words or numbers"),
    ],
)
def test_settings_that_nothing_can_be_learned_with_are_refused(changed: dict[str, Any], words: str) -> None:
    where = vault()
    with pytest.raises(InvalidInput, match=words):
        classifier(where, **changed).fit(X, Y)
    assert where.left.epsilon == 8


def test_groups_that_are_no_column_are_refused_before_the_charge() -> None:
    where = vault(PATIENTS)
    for groups in (np.zeros((4, 2)), "abcd", [1, 2, 3]):
        with pytest.raises(InvalidInput, match="groups"):
            classifier(where, max_records_per_unit=1).fit(X, Y, groups=groups)
    assert where.left.epsilon == 8


def test_an_odd_id_or_a_row_of_another_width_says_nothing() -> None:
    """Whether one row is odd is as private as the rest: no word of it, before the charge or after."""
    ids = np.array([b"p1", b"p2", b"p\xff", object()], dtype=object)
    where = vault(PATIENTS)
    classifier(where, max_records_per_unit=1, n_units=4, epochs=1).fit(X, Y, groups=ids)
    assert where.left.epsilon == 0
    spy = Spy()
    said = classifier(spy, bounds=[(-1, 1)] * 2)
    said.fit([[0.1, 0.2], [0.3], "no", None, [0.5, [0.1]], np.array(3.0)], [0, 1, 0, 1, 1, 1])
    rows, labels = spy.rows()
    np.testing.assert_allclose(rows, [[0.1, 0.2], [0.5, 0]], atol=1e-6)
    assert labels.tolist() == [0, 1]
    with pytest.raises(InvalidInput, match="2 columns"):
        classifier(spy).fit(X, Y).predict([[0.1, 0.2], [0.3]])


def test_bounds_far_out_have_a_middle() -> None:
    found = Features(bounds={"a": (1e308, 1.5e308)})({"a": [0, 1.25e308, 1.6e308]})[:, 0]
    np.testing.assert_allclose(found, [-1, 0, 1], atol=1e-6)
    close = Features(bounds={"a": (1, np.nextafter(1, 2))})({"a": [1, 2]})
    assert float(close.abs().max()) <= 1


def test_a_number_is_read_the_same_whatever_else_is_in_its_column() -> None:
    for cell in ("1_0", " 3", "１", b"2", True, [4.0]):
        alone = Features(bounds={"a": (0, 10)})({"a": [cell]})[0]
        among = Features(bounds={"a": (0, 10)})({"a": [cell, None, "x", {}]})[0]
        torch.testing.assert_close(alone, among)


def test_classes_stay_as_they_are() -> None:
    model = classifier(Spy(), classes=[0, "1"]).fit(X, [0, "1", 0, "1"])
    assert model.classes_.tolist() == [0, "1"]
    assert model.predict(X).tolist() == [0, 0, 0, 0]
    model = classifier(Spy(), classes=[("a", 1), ("b", 2)]).fit(X, [("a", 1)] * 4)
    assert model.predict(X[:1]).tolist() == [("a", 1)]
    assert classifier(Spy(), classes=(0, 1)).fit(X, Y).fit(X, Y).classes_.tolist() == [0, 1]


def test_the_features_that_went_in_are_columns() -> None:
    spy, table = Spy(), {"age": [1, 2], "ward": ["A", "B"]}
    model = classifier(spy, bounds={"age": (0, 9)}, categories={"ward": ["A", "B", "C"]}).fit(table, [0, 1])
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8])
def test_tensors_of_any_numbers_are_read(dtype: torch.dtype) -> None:
    spy, x = Spy(), torch.tensor([[1.0, 2.0], [4.0, 8.0]]).to(dtype)
    classifier(spy, bounds=(0, 8)).fit(x, torch.tensor([0, 1]))
    torch.testing.assert_close(spy.rows()[0], torch.tensor([[-0.75, -0.5], [0.0, 1.0]]))
    where = vault()
    for odd in (torch.eye(2).to_sparse(), torch.eye(2).to(torch.complex64)):
        with pytest.raises(InvalidInput, match="rows and columns"):
            classifier(where).fit(odd, [0, 1])
        with pytest.raises(InvalidInput, match="one value for each row"):
            classifier(where).fit(x, odd[0])
    assert where.left.epsilon == 8


def test_arrow_tables_are_read_by_place_too() -> None:
    import pyarrow as pa

    spy = Spy()
    classifier(spy, bounds=(0, 8)).fit(pa.table({"a": [1, None], "b": ["8", "x"]}), [0, 1])
    torch.testing.assert_close(spy.rows()[0], torch.tensor([[-0.75, 1.0], [0.0, 0.0]]))


class Spiteful:
    """A cell, a row, a label or an id that raises whatever is done with it."""

    def __init__(self, what: type[BaseException], seen: list[str]) -> None:
        self.what, self.seen = what, seen

    def _raise(self, *_: Any) -> Any:
        self.seen.append("read")
        raise self.what

    __float__ = __len__ = __iter__ = __hash__ = __eq__ = __getitem__ = _raise  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return self._raise()


@pytest.mark.parametrize("what", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, BaseException])
def test_a_cell_that_raises_is_a_missing_one_and_nobody_is_told(what: type[BaseException]) -> None:
    bad = Spiteful(what, [])
    spy = Spy()
    classifier(spy, bounds=[(-1, 1)] * 2).fit([[0.5, bad], bad, [0.5, 0.5], [0.1, 0.1]], [0, 0, bad, 1])
    rows, labels = spy.rows()
    np.testing.assert_allclose(rows, [[0.5, 0], [0.1, 0.1]], atol=1e-6)
    assert labels.tolist() == [0, 1]
    said: dict[str, Any] = {"vault": spy, "epsilon": 1, "delta": 1e-6, "target_bounds": (0, 10), "n_units": 9}
    DPRegressor(bounds=[(-1, 1)], **said).fit([[0.5], [0.1]], [bad, 5])
    assert len(spy.rows()[0]) == 1
    assert Features(categories={"a": ["x"]})({"a": [bad, "x"]}).tolist() == [[0.0], [1.0]]
    assert kept_rows([bad, "p"], 1, b"key").tolist() == [[1]]


def test_what_has_no_code_of_its_own_is_read_without_guarding_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def guarded(work: Any) -> Any:
        raise AssertionError

    for where in (features, persons):
        monkeypatch.setattr(where, "attempt", guarded)
    assert [features.row_of(row, 2) for row in ([1, 2], (3, "x"), [1])] == [[1, 2], [3, "x"], None]
    np.testing.assert_array_equal(features.numbers([1, 2.5, "3", None, "x"]), [1, 2.5, 3, np.nan, np.nan])
    assert Features(categories={"a": ["x", 1]})({"a": ["x", 1.0, None]}).tolist() == [[1, 0], [0, 1], [0, 0]]
    ids = [7, 7.0, "7", b"7", None, 1.5, float("nan"), float("inf"), 2.0**53]
    assert kept_rows(ids, 2, b"key").tolist() == [[0, 1], [2, -1], [3, -1]]


@pytest.mark.parametrize("what", [ValueError, KeyboardInterrupt])
def test_nothing_in_a_list_is_looked_at_before_the_charge(what: type[BaseException]) -> None:
    """Of rows, labels and ids alike: a first one that raises, or has other cells than the rest, says nothing."""
    seen: list[str] = []
    bad, spy = Spiteful(what, seen), Spy()
    for first in (bad, [], [0.1], "text", None, [[0.1, 0.2]]):
        said = classifier(spy, bounds=[(-1, 1)] * 2, max_records_per_unit=1)
        said.fit([first, [0.1, 0.2]], [first, 1], groups=[first, "p"])
        assert spy.data.n_units == 2000
    classifier(spy, bounds=[(-1, 1)]).fit([], [])
    assert not seen
    where = vault()
    for rows in ([bad], [[0.1]], []):
        with pytest.raises(NotDeclared, match="a pair for each column"):
            classifier(where).fit(rows, [0] * len(rows))
    assert not seen
    assert where.left.epsilon == 8


def test_coefficients_are_on_the_scale_of_the_columns() -> None:
    rng = np.random.default_rng(4)
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=30, delta=1e-6), name="trial")
    x = np.column_stack([rng.uniform(20, 80, 400), rng.uniform(0, 1, 400)])
    line = DPRegressor(
        vault=vault, epsilon=5, delta=1e-7, bounds=[(20, 80), (0, 1)], target_bounds=(0, 100), n_units=400, epochs=1
    ).fit(x, x[:, 0])
    inner = (line.predict(x) > 0.5) & (line.predict(x) < 99.5)
    assert np.allclose((x @ line.coef_ + line.intercept_)[inner], line.predict(x)[inner], atol=1e-3)
    with pytest.raises(AttributeError, match="fitted model"):
        _ = DPRegressor().coef_
    for classes in (["low", "high"], ["low", "middle", "high"]):
        model = DPClassifier(
            vault=vault, epsilon=5, delta=1e-7, bounds=[(20, 80), (0, 1)], classes=classes, n_units=400, epochs=1
        ).fit(x, np.where(x[:, 0] > 50, "high", "low"))
        scores = x @ model.coef_.T + model.intercept_
        if len(classes) == 2:
            expected = np.log(model.predict_proba(x)[:, 1:] / model.predict_proba(x)[:, :1])
        else:
            expected = np.log(model.predict_proba(x)) + np.log(np.exp(scores).sum(axis=1, keepdims=True))
        assert np.allclose(scores, expected, atol=1e-4)
