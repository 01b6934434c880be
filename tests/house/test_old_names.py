"""Names that were replaced: each works, with a warning that says the new one, until the version in which it goes."""

import ast
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.deprecation import GONE
from sfumato.version import __version__
from tests.parts import package

SOURCE = Path(sf.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "versions.md"

UNITS = {"number": "n_units", "records": "max_records_per_unit"}
TABLE: dict[str, dict[str, str]] = {
    "Schema": {"number": "n_units"},
    "Table": {"number": "n_units"},
    "TableStore.declare": {"number": "n_units"},
    "ExampleStore.declare": {"number": "n_units"},
    "Examples": {"number": "n_units"},
    "Units": UNITS,
    "Units.of_groups": {"number": "n_units"},
    "Evaluated": {"number": "n_units"},
    "Plan": {"physical": "max_physical_batch_size"},
    "Trainer.plan": {"physical": "max_physical_batch_size"},
    "Trainer.fit": {"physical": "max_physical_batch_size", "watch": "callback", "optimiser": "optimizer"},
    "private_mean": {"physical": "max_physical_batch_size"},
    "ExampleStore.trainer": {"way": "grad_mode", "copies": "augmentations"},
    "ExampleStore.evaluator": {"right": "metric"},
    "Engine": {"way": "grad_mode"},
    "Multiplied": {"copies": "augmentations"},
    "Features": {"words": "categories"},
    "DPClassifier": {"words": "categories", **UNITS},
    "DPRegressor": {"words": "categories", "targets": "target_bounds", **UNITS},
    "_Estimator.set_params": {"words": "categories", "targets": "target_bounds", **UNITS},
    "StreamStore.declare": {"each": "max_per_event"},
    "Stream": {"each": "max_per_event"},
}
PRIVATE: dict[str, set[str]] = {
    **{owner: {"gate"} for owner in ("Table", "Graph", "Stream", "Examples", "Question")},
    "Release": {"presenter", "shown"},
}


def numbered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


EXPECTED = numbered(__version__) < numbered(GONE)
"""Whether the old names must still be there; afterwards they must be gone."""


def marked(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """What a decorator of deprecation stands on in the package, and what it says."""

    def walk(node: ast.AST, above: str) -> Iterator[tuple[str, dict[str, str]]]:
        for inner in ast.iter_child_nodes(node):
            called = above
            if isinstance(inner, ast.ClassDef | ast.FunctionDef):
                called = f"{above}.{inner.name}" if above else inner.name
                for mark in inner.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == name:
                        yield called, {word.arg or "": ast.literal_eval(word.value) for word in mark.keywords}
            yield from walk(inner, called)

    for path in sorted(SOURCE.rglob("*.py")):
        if f"@{name}(" in (text := path.read_text("utf-8")):
            yield from walk(ast.parse(text), "")


def test_no_name_of_the_table_is_gone_before_its_version_and_none_stays_after_it() -> None:
    assert dict(marked("renamed")) == (TABLE if EXPECTED else {})
    assert {owner: set(names) for owner, names in marked("withdrawn")} == (PRIVATE if EXPECTED else {})


def test_the_page_on_versions_lists_every_old_name_with_its_new_one() -> None:
    said = PAGE.read_text("utf-8")
    for names in TABLE.values():
        for old, new in names.items():
            assert f"| `{old}` | `{new}` |" in said
    for names in PRIVATE.values():
        for name in names:
            assert f"| `{name}` | private; " in said
    assert f"work until {GONE}," in said


# ------------------------------------------------------------------------------------------- every parameter, called


def vault(unit: Any = None) -> sf.Vault:
    budget = sf.Budget(epsilon=100, delta=1e-6)
    return sf.Vault(unit=unit or sf.record(relation="add/remove"), budget=budget, name="trial")


def table(**said: Any) -> Any:
    rows = pa.table({"x": [1, 2, 3]})
    return vault(sf.record(relation="replace")).table(rows, name="visits", version="1", **said)


def schema(**said: Any) -> Any:
    from sfumato.engines.expressions import Type
    from sfumato.tables.schema import ColumnFacts

    return sf.Schema(columns=(ColumnFacts(name="id", type=Type.TEXT),), unit="id", **said)


def stream(**said: Any) -> Any:
    unit = sf.event(relation="add/remove")
    return vault(unit).stream(name="er", version="1", horizon=4, bounds=(0, 99), **said)


def examples(**said: Any) -> Any:
    return vault().examples(np.zeros((3, 2)), np.zeros(3), name="scans", version="1", ids=["a", "b", "c"], **said)


def units(**said: Any) -> Any:
    from sfumato.learning import Units

    facts = {"n_units": 3} if not {"number", "n_units"} & set(said) else {}
    who = {"ids": ["a", "b", "c"]} if {"records", "max_records_per_unit"} & set(said) else {}
    return Units(np.zeros((3, 2)), np.zeros(3), name="visits", version="1", **who, **facts, **said)


def groups(**said: Any) -> Any:
    from sfumato.learning import Units, triplets

    ids = ["a", "b", "c"]
    return Units.of_groups(np.zeros((3, 2)), np.zeros(3), ids=ids, groups=triplets(9), name="scans", **said)


def model() -> Any:
    import torch

    return torch.nn.Linear(2, 2)


def loss(outputs: Any, targets: Any) -> Any:
    return (outputs[:, 0] - targets).square().mean()


def trainer(**said: Any) -> Any:
    return vault().trainer(model(), loss, data=units(n_units=40), **said)


def plan(**said: Any) -> Any:
    return trainer().plan(epsilon=1, delta=1e-7, steps=1, batch=10, **said)


def fitted(**said: Any) -> Any:
    """What a run was computed with: how many at a time, made by which optimiser, shown to which callback."""
    from sfumato.learning import Trainer

    asked = trainer()
    sizes: list[int] = []
    asked._try_out = lambda size, *_: sizes.append(size)
    assert isinstance(asked, Trainer)
    SEEN.clear()
    asked.fit(epsilon=1, delta=1e-7, steps=2, batch=10, every=1, progress=False, **said)
    return sizes, list(SEEN)


SEEN: list[Any] = []


def made_by(parameters: Any) -> Any:
    import torch

    SEEN.append("made")
    return torch.optim.SGD(parameters, lr=0.1)


def shown_to(step: int, weights: Any) -> bool:
    SEEN.append(step)
    return False


def mean(**said: Any) -> Any:
    import torch

    from sfumato.learning import Engine, private_mean

    engine = Engine(model(), loss, clip=1.0)
    found = private_mean(engine, torch.zeros(3, 2), torch.zeros(3), moved=1, multiplier=1, over=3, **said)
    return sorted(found)


def engine(**said: Any) -> Any:
    from sfumato.learning import Engine

    return Engine(model(), loss, **said)


def multiplied(**said: Any) -> Any:
    from sfumato.learning import Multiplied

    return Multiplied(augmented, **said)


def augmented(record: Any, draws: Any) -> Any:
    return record


def features(**said: Any) -> Any:
    from sfumato.learning import Features

    return Features(**said)


def classifier(**said: Any) -> Any:
    from sfumato.learning import DPClassifier

    return DPClassifier(bounds={"age": (0, 9)}, **said)


def regressor(**said: Any) -> Any:
    from sfumato.learning import DPRegressor

    return DPRegressor(bounds={"age": (0, 9)}, **said)


def changed(**said: Any) -> Any:
    return regressor().set_params(**said)


def evaluator(**said: Any) -> Any:
    return vault().evaluator(data=units(), evaluations=1, epsilon=1, delta=1e-7, **said)


def metric(outputs: Any, targets: Any) -> Any:
    return outputs.argmax(-1) == targets


def attribute(name: str) -> Callable[[Any], Any]:
    return lambda made: getattr(made, name)


def itself(made: Any) -> Any:
    return made


SEX = {"sex": ["f", "m"]}
CALLS: list[tuple[str, Callable[..., Any], str, str, Any, Callable[[Any], Any]]] = [
    ("Schema", schema, "number", "n_units", 9, itself),
    ("TableStore.declare", table, "number", "n_units", 3, attribute("n_units")),
    ("StreamStore.declare", stream, "each", "max_per_event", 5, attribute("max_per_event")),
    ("ExampleStore.declare", examples, "number", "n_units", 9, attribute("n_units")),
    ("Units", units, "number", "n_units", 9, attribute("n_units")),
    ("Units", units, "records", "max_records_per_unit", 2, attribute("max_records_per_unit")),
    ("Units.of_groups", groups, "number", "n_units", 7, attribute("n_units")),
    ("Trainer.plan", plan, "physical", "max_physical_batch_size", 32, attribute("max_physical_batch_size")),
    ("Trainer.fit", fitted, "physical", "max_physical_batch_size", 32, itself),
    ("Trainer.fit", fitted, "watch", "callback", shown_to, itself),
    ("Trainer.fit", fitted, "optimiser", "optimizer", made_by, itself),
    ("private_mean", mean, "physical", "max_physical_batch_size", 32, itself),
    ("ExampleStore.trainer", trainer, "way", "grad_mode", "semantic", attribute("_grad_mode")),
    ("ExampleStore.trainer", trainer, "copies", "augmentations", None, attribute("_augmentations")),
    ("ExampleStore.evaluator", evaluator, "right", "metric", metric, attribute("_metric")),
    ("Engine", engine, "way", "grad_mode", "semantic", attribute("grad_mode")),
    ("Multiplied", multiplied, "copies", "augmentations", 3, attribute("augmentations")),
    ("Features", features, "words", "categories", SEX, itself),
    ("DPClassifier", classifier, "words", "categories", SEX, repr),
    ("DPClassifier", classifier, "number", "n_units", 9, repr),
    ("DPClassifier", classifier, "records", "max_records_per_unit", 2, repr),
    ("DPRegressor", regressor, "words", "categories", SEX, repr),
    ("DPRegressor", regressor, "targets", "target_bounds", (0, 1), repr),
    ("DPRegressor", regressor, "number", "n_units", 9, repr),
    ("DPRegressor", regressor, "records", "max_records_per_unit", 2, repr),
    ("_Estimator.set_params", changed, "words", "categories", SEX, repr),
    ("_Estimator.set_params", changed, "targets", "target_bounds", (0, 1), repr),
    ("_Estimator.set_params", changed, "number", "n_units", 9, repr),
    ("_Estimator.set_params", changed, "records", "max_records_per_unit", 2, repr),
]
MADE_BY_US = {"Table", "Examples", "Stream", "Plan", "Evaluated"}
"""Users read these and do not make them: their attributes are below."""
WITHOUT_TORCH = {"Schema", "TableStore.declare", "StreamStore.declare", "ExampleStore.declare"}


def test_every_old_parameter_is_called_below() -> None:
    listed = {(owner, old, new) for owner, names in TABLE.items() for old, new in names.items()}
    called = {(owner, old, new) for owner, _, old, new, _, _ in CALLS}
    assert called == {one for one in listed if one[0] not in MADE_BY_US}


@pytest.mark.few(8)
@pytest.mark.filterwarnings("ignore:.*fetch_arrow_table:DeprecationWarning")  # Ibis calls it
@pytest.mark.skipif(not EXPECTED, reason="the old names are gone")
@pytest.mark.parametrize(
    ("owner", "call", "old", "new", "value", "seen"), CALLS, ids=[f"{one[0]}-{one[2]}" for one in CALLS]
)
def test_an_old_parameter_gives_the_same_and_warns_at_the_line_of_the_caller(
    owner: str, call: Callable[..., Any], old: str, new: str, value: Any, seen: Callable[[Any], Any]
) -> None:
    if owner not in WITHOUT_TORCH:
        package("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        wanted = seen(call(**{new: value}))
    with pytest.warns(DeprecationWarning, match=rf"\({old}=…\) is now .*\({new}=…\)") as heard:
        found = seen(call(**{old: value}))
    assert found == wanted
    assert [one.filename for one in heard if GONE in str(one.message)] == [__file__]
    with pytest.raises(TypeError, match=f"given {old}= and {new}="):
        call(**{old: value, new: value})


@pytest.mark.parametrize("call", [table, schema, stream, examples])
def test_an_unknown_parameter_is_refused_as_ever(call: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'numbers'"):
        call(numbers=3)


# -------------------------------------------------------------------------------------------- every attribute, read


def evaluated() -> Any:
    from sfumato.learning.evaluation import Evaluated

    return Evaluated(count=90, n_units=100, margin=4)


ATTRIBUTES: list[tuple[str, Callable[[], Any]]] = [
    ("Schema", lambda: schema(n_units=9)),
    ("Table", lambda: table(n_units=3)),
    ("Stream", lambda: stream(max_per_event=3)),
    ("Examples", lambda: examples(n_units=9)),
    ("Units", lambda: units(n_units=9)),
    ("Evaluated", evaluated),
    ("Plan", plan),
    ("Engine", engine),
    ("Multiplied", lambda: multiplied(augmentations=3)),
    ("Features", lambda: features(categories=SEX)),
    ("DPClassifier", lambda: classifier(categories=SEX, n_units=9, max_records_per_unit=3)),
    ("DPRegressor", lambda: regressor(categories=SEX, n_units=9, max_records_per_unit=3, target_bounds=(0, 1))),
]


def test_every_old_attribute_is_read_below() -> None:
    assert {owner for owner, _ in ATTRIBUTES} == {owner for owner in TABLE if "." not in owner} - {"private_mean"}


@pytest.mark.skipif(not EXPECTED, reason="the old names are gone")
@pytest.mark.parametrize(("owner", "make"), ATTRIBUTES, ids=[owner for owner, _ in ATTRIBUTES])
def test_an_old_attribute_is_the_new_one_and_warns(owner: str, make: Callable[[], Any]) -> None:
    if owner not in {"Schema", "Table", "Stream", "Examples", "Evaluated"}:
        package("torch")
    made = make()
    for old, new in TABLE[owner].items():
        with pytest.warns(DeprecationWarning, match=rf"\.{old} is now {owner}\.{new}\.") as heard:
            found = getattr(made, old)
        assert found == getattr(made, new)
        assert heard[0].filename == __file__


def graph() -> Any:
    unit = sf.edge(relation="add/remove")
    return vault(unit).graph([(0, 1), (1, 2)], name="wards", version="1", nodes=3)


@pytest.mark.skipif(not EXPECTED, reason="the old names are gone")
@pytest.mark.parametrize(
    ("owner", "make"),
    [
        ("Table", table),
        ("Graph", graph),
        ("Stream", stream),
        ("Examples", examples),
        ("Question", lambda: table().count()),
        ("Release", lambda: table().count().release(epsilon=1)),
    ],
)
def test_what_became_private_is_still_read_with_a_warning(owner: str, make: Callable[[], Any]) -> None:
    made = make()
    for name in PRIVATE[owner]:
        with pytest.warns(DeprecationWarning, match=rf"^{owner}\.{name} is private\. Use ") as heard:
            found = getattr(made, name)
        assert found == getattr(made, f"_{name}")
        assert heard[0].filename == __file__
        assert f"_{name}" not in repr(made)


# ------------------------------------------------------------------------------------------------- documents, files


def test_files_keep_their_words() -> None:
    made = schema(n_units=9, name="visits")
    assert "number = 9" in made.to_toml()
    assert "n_units" not in made.to_toml()
    assert sf.Schema.from_toml(made.to_toml()) == made


def test_questions_keep_their_fields() -> None:
    from sfumato.core.documents import encode

    assert encode(stream(max_per_event=5).running_total().query)["each"] == 5  # type: ignore[call-overload, index]
    rows = vault(sf.record(relation="replace")).table(
        pa.table({"x": [1, 2, 3]}), name="visits", version="1", bounds={"x": (0, 9)}, n_units=3
    )
    assert encode(rows.mean(sf.coalesce(sf.col("x"), 1)).query)["number"] == 3  # type: ignore[call-overload, index]
