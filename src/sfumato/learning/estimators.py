"""Estimators in the manner of scikit-learn: tables in, predictions out, one guarantee for the fit."""

import importlib
import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from numbers import Number, Real
from typing import TYPE_CHECKING, Any, Protocol, Self, cast  # parameters and tags, as scikit-learn wants them

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.deprecation import renamed
from sfumato.core.exact import Exact, natural
from sfumato.core.foreign import Array
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.learning.features import (
    Features,
    bounded,
    cells,
    length_of,
    middle,
    numbers,
    place_of,
    row_of,
    scaled,
)
from sfumato.learning.given import GivenRows
from sfumato.learning.layered import layered
from sfumato.learning.table_units import TableUnits

if TYPE_CHECKING:
    from sfumato.learning.engine.losses import Loss
    from sfumato.learning.trainer import Trainer

__all__ = ["DPClassifier", "DPRegressor"]

Bounds = Any  # a pair for all columns, a pair for each, or pairs by name: numbers of any type, each checked
SMALL = 256  # units up to which every step takes them all
SHARE = 10  # of more units, one in this many is in a step


class TrainingVault(Protocol):
    """A vault that trains: a fit is charged to it."""

    @property
    def trainer(self) -> "Callable[..., Trainer]":
        """Make what fits a model."""
        ...


class _Estimator:
    """What both have in common: parameters as scikit-learn wants them, public features, and a fit through a vault."""

    _usual, _gentle = 1.0, 0.25  # learning rates of a linear model, and of a network

    def __init__(
        self,
        *,
        vault: "TrainingVault | None",
        epsilon: Exact | None,
        delta: Exact | None,
        bounds: Bounds,
        categories: Mapping[str, Sequence[Hashable]] | None,
        n_units: int | None,
        max_records_per_unit: int | None,
        hidden: Sequence[int],
        epochs: int,
        batch: int | None,
        clip: Exact,
        learning_rate: float | None,
        momentum: float,
        name: str,
        version: str | None,
    ) -> None:
        self.vault, self.epsilon, self.delta = vault, epsilon, delta
        self.bounds, self.categories = bounds, categories
        self.n_units, self.max_records_per_unit = n_units, max_records_per_unit
        self.hidden, self.epochs, self.batch, self.clip = hidden, epochs, batch, clip
        self.learning_rate, self.momentum, self.name, self.version = learning_rate, momentum, name, version

    def get_params(self, deep: object = None) -> dict[str, Any]:
        """What was said when it was made, by name; ``deep`` changes nothing, as no part is an estimator."""
        return {name: getattr(self, name) for name in _said(type(self))}

    @renamed(words="categories", targets="target_bounds", number="n_units", records="max_records_per_unit")
    def set_params(self, **params: object) -> Self:
        """Say some of it anew."""
        known = _said(type(self))
        for name in params:
            if name not in known:
                raise InvalidInput(f"there is no parameter {name!r}; nothing was changed. There are {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """An unfitted twin with the same vault: a copied vault would spend the same budget twice."""
        return type(self)(**self.get_params())

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator in its pipelines; nothing but scikit-learn calls this."""
        tags = importlib.import_module("sklearn.utils")
        is_classifier = isinstance(self, DPClassifier)
        return tags.Tags(
            estimator_type="classifier" if is_classifier else "regressor",
            target_tags=tags.TargetTags(required=True),
            classifier_tags=tags.ClassifierTags() if is_classifier else None,
            regressor_tags=None if is_classifier else tags.RegressorTags(),
        )

    def __repr__(self) -> str:
        default = {name: part.default for name, part in inspect.signature(type(self)).parameters.items()}
        said = {name: value for name, value in self.get_params().items() if name != "vault"}
        shown = ", ".join(f"{name}={value!r}" for name, value in said.items() if not _same(value, default[name]))
        return f"{type(self).__name__}({shown})"

    def _fitted(
        self,
        x: GivenRows,
        y: GivenRows,
        groups: GivenRows,
        *,
        target: Tensor,
        outputs: int,
        loss: "Loss",
        encode: Callable[[GivenRows], tuple[Tensor, Tensor]],
    ) -> None:
        """Train on the rows that count, and remember what may be known of it. What is refused follows from types.

        ``target`` is one made-up target; ``encode`` makes targets of ``y``, and says which of them count.
        """
        rate, momentum = self._rates()
        table = self._table(x)
        model = self._network(len(table.features.names), outputs)
        if table.rows != length_of(y, "y"):
            raise InvalidInput("X and y have different numbers of rows; nothing was trained and nothing was spent")
        if groups is not None and length_of(groups, "groups") != table.rows:
            raise InvalidInput("groups and y have different numbers of rows; nothing was trained and nothing spent")
        number = natural(self.n_units, "n_units")
        batch = self.batch if self.batch is not None else number if number <= SMALL else max(SMALL, number // SHARE)

        def encoded() -> tuple[Tensor, Tensor, Tensor]:
            (inputs, there), (targets, counted) = table.read(), encode(y)
            return inputs, targets, there & counted

        units = TableUnits(
            encoded,
            rows=table.rows,
            inputs=torch.zeros(len(table.features.names)),
            targets=target,
            ids=groups,
            max_records_per_unit=None if groups is None else self.max_records_per_unit,
            n_units=number,
            name=self.name,
            version=self.version,
        )
        trainer = cast("TrainingVault", self.vault).trainer(model, loss, data=units, clip=self.clip)
        trained = trainer.fit(
            epsilon=cast("Exact", self.epsilon),
            delta=cast("Exact", self.delta),
            epochs=self.epochs,
            batch=batch,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum),
        )
        self.model_, self.release_ = trained.model.eval(), trained.release
        self.certificate_, self.epsilon_, self.delta_ = trained.release.certificate, trained.epsilon, trained.delta
        self.n_features_in_ = len(table.features.columns)
        self._features = table.features

    def _rates(self) -> tuple[float, float]:
        """The learning rate and the momentum; what no run could learn with is refused."""
        if not isinstance(self.hidden, list | tuple):
            raise InvalidInput("hidden is a list of how wide each layer is, such as (32,); nothing was read or spent")
        rate = self.learning_rate if self.learning_rate is not None else self._gentle if self.hidden else self._usual
        said: dict[str, Any] = {"learning_rate": rate, "momentum": self.momentum}
        for name, value in said.items():
            if not isinstance(value, Real) or not math.isfinite(value):
                raise InvalidInput(f"{name} must be a finite number; nothing was read and nothing was spent")
        if rate <= 0 or not 0 <= self.momentum < 1:
            raise InvalidInput(
                "learning_rate must be above 0, and momentum from 0 to below 1; nothing was read and nothing was spent"
            )
        return float(rate), float(self.momentum)

    def _check_declared(self) -> None:
        """Refuse to start where a public fact is missing; nothing has been looked at yet."""
        meant = {
            "vault": "the vault that is charged: vault=sf.Vault(…)",
            "epsilon": "how much of the budget to spend: epsilon=1",
            "delta": "the δ of that: delta=1e-6",
            "n_units": "how many units there are as far as the public knows: n_units=10_000",
        }
        missing = [words for name, words in meant.items() if getattr(self, name) is None]
        if self.bounds is None and self.categories is None:
            missing.append("bounds of every column: bounds=[(0, 120), …], or (low, high) for all of them")
        if missing:
            raise NotDeclared(f"nothing was read and nothing was spent. Say {'; and '.join(missing)}.")

    def _table(self, x: GivenRows, width: int | None = None) -> "_Table":
        """The rows as they will be read: by name where columns were declared by name, else by place. Reads no row.

        The shape of an array or a frame says how many columns there are. What is in a list is not looked at: of
        rows in one it is ``width`` or, without that, for how many bounds were declared.
        """
        if isinstance(self.bounds, Mapping) or self.categories is not None:
            features = Features(bounds=self.bounds, categories=self.categories)
            rows = features.rows(x)
            return _Table(features, rows, lambda: (features(x), torch.ones(rows, dtype=torch.bool)))
        odd = isinstance(x, Tensor) and (x.layout != torch.strided or x.is_complex())
        listed = isinstance(x, list | tuple)
        if odd or not (listed or (hasattr(x, "__array__") and len(getattr(x, "shape", ())) == 2)):
            raise InvalidInput(
                "X must have rows and columns, in an array, a frame or a list of rows; nothing was trained and nothing "
                "was spent"
            )
        each = _is_list_of_pairs(self.bounds)
        if listed and width is None and not each:
            raise NotDeclared(
                "how many columns a list has depends on its rows, which are not looked at; nothing was read "
                "and nothing was spent. Say bounds=[(low, high), …], a pair for each column, or give an array."
            )
        columns: int = x.shape[1] if not listed else len(self.bounds) if width is None else width
        pairs = self.bounds if each else [self.bounds] * columns
        if len(pairs) != columns or not columns:
            raise InvalidInput(
                f"X has {columns} columns and bounds were declared for {len(pairs)}; nothing was trained and nothing "
                "was spent. Declare a pair (low, high) for each column, or one pair for all."
            )
        features = Features(bounds={str(place): pair for place, pair in enumerate(pairs)})
        return _Table(features, len(x), lambda: _by_place(x, columns, features))

    def _outputs(self, x: GivenRows) -> Tensor:
        if not hasattr(self, "model_"):
            raise InvalidInput("this estimator was not fitted; nothing was predicted. Call fit(X, y) first")
        rows, there = self._table(x, self.n_features_in_).read()
        if not bool(there.all()):
            raise InvalidInput(f"not all rows of X have {self.n_features_in_} columns; nothing was predicted")
        with torch.no_grad():
            outputs: Tensor = self.model_(rows)
        return outputs

    def _linear(self) -> tuple[Array, Array]:
        """Weights and constants of all outputs on the scale of the columns; there are none of a network with layers."""
        if not hasattr(self, "_features") or self.hidden:
            raise AttributeError("coef_ and intercept_ are those of a fitted model without hidden layers")
        last = cast("nn.Linear", cast("nn.Sequential", self.model_)[-1])
        weights, constants = last.weight.detach().double().numpy(), last.bias.detach().double().numpy()
        places = [middle(pair) for pair in self._features.bounds.values()]
        words = len(self._features.names) - len(places)
        centres = np.array([centre for centre, _ in places] + [0.0] * words)
        halves = np.array([half for _, half in places] + [1.0] * words)
        return weights / halves, constants - weights @ (centres / halves)

    def _network(self, width: int, outputs: int) -> nn.Sequential:
        return layered(width, [natural(size, "hidden") for size in self.hidden], outputs)


@renamed(words="categories", number="n_units", records="max_records_per_unit")
class DPClassifier(_Estimator):
    """A private classifier of tables: logistic regression, or a network with ``hidden`` layers.

    ``bounds`` holds the columns: one pair (low, high) for all, a pair each, or a mapping by name, with ``categories``
    (lists of what columns of words can hold) beside it. ``classes`` lists all labels; a row with another label counts
    nothing, and neither does one of a list of rows that is longer or shorter than declared. A cell that cannot be read,
    whatever it raises, is a missing one. A list of rows needs a pair of bounds for each column: its rows are not looked
    at before the charge, so not to see how many there are. ``n_units`` is the public number of units. In a vault of
    users, ``fit(X, y, groups=ids)`` trains on each person's rows together, at most ``max_records_per_unit`` of them.

    Guarantee: a fit is one charge of (ε, δ) for the unit of ``vault``, stated by ``certificate_``, and made before any
    row is read; what is refused follows from settings, types and shapes. Predictions for other rows cost nothing more.
    Assumes: bounds, categories, classes, n_units and all settings were not chosen by looking at the data, and the
    number of columns and their types are public; a search over settings is a charge for each fit. ``score`` on private
    rows is a reading of them that no budget covers: hold out rows that may be seen. Public: every parameter.
    Proof: docs/proofs/training.md

    >>> import numpy as np, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=3, delta=1e-6),
    ...                  name="trial")
    >>> x = np.linspace(-1, 1, 4000)[:, None]
    >>> model = DPClassifier(vault=vault, epsilon=2, delta=1e-6, bounds=(-1, 1), classes=["low", "high"],
    ...                      n_units=4000, epochs=2)
    >>> model.fit(x, np.where(x[:, 0] > 0, "high", "low")).predict([[-0.8], [0.8]]).tolist()
    ['low', 'high']
    >>> float(vault.left.epsilon)
    1.0
    """

    def __init__(
        self,
        *,
        vault: TrainingVault | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        bounds: Bounds = None,
        categories: Mapping[str, Sequence[Hashable]] | None = None,
        classes: Sequence[Hashable] | None = None,
        n_units: int | None = None,
        max_records_per_unit: int | None = None,
        hidden: Sequence[int] = (),
        epochs: int = 20,
        batch: int | None = None,
        clip: Exact = 1,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        name: str = "training rows",
        version: str | None = None,
    ) -> None:
        super().__init__(
            vault=vault, epsilon=epsilon, delta=delta, bounds=bounds, categories=categories, n_units=n_units,
            max_records_per_unit=max_records_per_unit, hidden=hidden, epochs=epochs, batch=batch, clip=clip,
            learning_rate=learning_rate, momentum=momentum, name=name, version=version,
        )  # fmt: skip
        self.classes = classes

    def fit(self, X: GivenRows, y: GivenRows, groups: GivenRows = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Charge, then train on the rows, with the persons whose they are in ``groups`` where users are protected."""
        self._check_declared()
        classes = self._classes()
        _check_kind(y, classes)
        places = {label: place for place, label in enumerate(classes)}

        def encode(labels: GivenRows) -> tuple[Tensor, Tensor]:
            found = torch.tensor([place_of(places, label) for label in cells(labels)], dtype=torch.long)
            return found, found >= 0

        self._fitted(
            X,
            y,
            groups,
            target=torch.tensor(0),
            outputs=len(classes),
            loss=nn.functional.cross_entropy,
            encode=encode,
        )
        self.classes_ = _as_they_are(classes)
        return self

    @property
    def coef_(self) -> Array:
        """Coefficients on the scale of the columns, a row for each class; of two classes one row, for the second.

        In the order of the declared columns, numbers first, then an indicator for each word of each category. They are
        part of the release and cost nothing; how exact they are is not stated.
        """
        weights, _ = self._linear()
        return weights[1:] - weights[:1] if len(weights) == 2 else weights

    @property
    def intercept_(self) -> Array:
        """Where all numbers are 0, a constant for each class; of two classes one, for the second."""
        _, constants = self._linear()
        return constants[1:] - constants[:1] if len(constants) == 2 else constants

    def predict_proba(self, X: GivenRows) -> Array:  # noqa: N803
        """How likely each class is for each row, in the order of ``classes_``."""
        return torch.softmax(self._outputs(X).double(), dim=1).numpy()

    def predict(self, X: GivenRows) -> Array:  # noqa: N803
        """The likeliest class of each row."""
        places = self._outputs(X).argmax(dim=1).numpy()  # refuses what was not fitted
        return self.classes_[places]

    def score(self, X: GivenRows, y: GivenRows) -> float:  # noqa: N803
        """The share of rows whose class is predicted. It reads ``y``: take rows that may be seen."""
        return float(np.mean([one == other for one, other in zip(self.predict(X).tolist(), cells(y), strict=True)]))

    def _classes(self) -> list[Hashable]:
        if self.classes is None:
            raise NotDeclared(
                "the classes are not declared, and are not read off the labels; nothing was read and nothing was "
                "spent. Say classes=[…], all that there can be."
            )
        if isinstance(self.classes, str | bytes | Iterator) or not hasattr(self.classes, "__len__"):
            raise InvalidInput("classes is a list, which every fit reads anew; nothing was read and nothing was spent")
        classes = cells(self.classes)
        if not all(isinstance(label, Hashable) for label in classes):
            raise InvalidInput("classes are words or numbers; nothing was read and nothing was spent")
        if len(set(classes)) != len(classes) or len(classes) < 2:
            raise InvalidInput("classes must be at least two, all different; nothing was read and nothing was spent")
        return classes


@renamed(words="categories", targets="target_bounds", number="n_units", records="max_records_per_unit")
class DPRegressor(_Estimator):
    """A private regression on tables: a linear model of least squares, or a network with ``hidden`` layers.

    ``target_bounds`` is the pair (low, high) that targets are held to and predictions lie in; the rest as for
    :class:`DPClassifier`, with the same guarantee and assumptions. A row whose target is no number counts nothing.

    >>> import numpy as np, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=3, delta=1e-6),
    ...                  name="trial")
    >>> x = np.linspace(0, 10, 4000)[:, None]
    >>> line = DPRegressor(vault=vault, epsilon=2, delta=1e-6, bounds=(0, 10), target_bounds=(0, 100), n_units=4000,
    ...                    epochs=5)
    >>> bool(abs(line.fit(x, 10 * x[:, 0]).predict([[5]]) - 50)[0] < 10)
    True
    """

    _usual = 0.25  # squares curve four times as much as logarithms of chances do

    def __init__(
        self,
        *,
        vault: TrainingVault | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        bounds: Bounds = None,
        categories: Mapping[str, Sequence[Hashable]] | None = None,
        target_bounds: tuple[float, float] | None = None,
        n_units: int | None = None,
        max_records_per_unit: int | None = None,
        hidden: Sequence[int] = (),
        epochs: int = 20,
        batch: int | None = None,
        clip: Exact = 1,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        name: str = "training rows",
        version: str | None = None,
    ) -> None:
        super().__init__(
            vault=vault, epsilon=epsilon, delta=delta, bounds=bounds, categories=categories, n_units=n_units,
            max_records_per_unit=max_records_per_unit, hidden=hidden, epochs=epochs, batch=batch, clip=clip,
            learning_rate=learning_rate, momentum=momentum, name=name, version=version,
        )  # fmt: skip
        self.target_bounds = target_bounds

    def fit(self, X: GivenRows, y: GivenRows, groups: GivenRows = None) -> Self:  # noqa: N803
        """Charge, then train on the rows, with the persons whose they are in ``groups`` where users are protected."""
        self._check_declared()
        pair = self._target_bounds()

        def encode(targets: GivenRows) -> tuple[Tensor, Tensor]:
            values = scaled(targets, pair).astype(np.float32)
            return torch.from_numpy(values)[:, None], torch.from_numpy(~np.isnan(values))

        self._fitted(X, y, groups, target=torch.zeros(1), outputs=1, loss=_half_squares, encode=encode)
        return self

    @property
    def coef_(self) -> Array:
        """Coefficients on the scale of the columns and the target, as those of :class:`DPClassifier`.

        They are part of the release and cost nothing; how exact they are is not stated. With standard errors:
        ``table.linear_regression``.
        """
        return self._linear()[0][0] * middle(self._target_bounds())[1]

    @property
    def intercept_(self) -> float:
        """The target where all numbers are 0; predictions are held to the declared bounds besides."""
        centre, half = middle(self._target_bounds())
        return float(centre + half * self._linear()[1][0])

    def predict(self, X: GivenRows) -> Array:  # noqa: N803
        """The target of each row, within the declared bounds."""
        centre, half = middle(self._target_bounds())
        return centre + self._outputs(X)[:, 0].double().clamp(-1, 1).numpy() * half

    def score(self, X: GivenRows, y: GivenRows) -> float:  # noqa: N803
        """R², the share of variance that is explained. It reads ``y``: take rows that may be seen."""
        truth = numbers(y)
        return float(1 - ((truth - self.predict(X)) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())

    def _target_bounds(self) -> tuple[float, float]:
        if self.target_bounds is None:
            raise NotDeclared(
                "the bounds of the targets are not declared, and are not read off them; nothing was read and nothing "
                "was spent. Say target_bounds=(low, high)."
            )
        return bounded(self.target_bounds, "the targets")


class _Table:
    """Rows that were not read yet: how many, which features they will have, and how to read them.

    ``read`` gives the features, and which rows have as many columns as the table. Sensitive: that, and ``rows``.
    """

    def __init__(self, features: Features, rows: int, read: Callable[[], tuple[Tensor, Tensor]]) -> None:
        self.features, self.rows, self.read = features, rows, read


def _by_place(x: GivenRows, width: int, features: Features) -> tuple[Tensor, Tensor]:
    """The features of rows without names of columns; a row of another width is all zeros, and does not count."""
    if hasattr(x, "__array__"):
        table = x if isinstance(x, Tensor) else np.asarray(x)
        return features({name: table[:, int(name)] for name in features.columns}), torch.ones(len(x), dtype=torch.bool)
    rows = [row_of(row, width) for row in x]
    columns = {name: [None if row is None else row[int(name)] for row in rows] for name in features.columns}
    return features(columns), torch.tensor([row is not None for row in rows], dtype=torch.bool)


def _check_kind(y: GivenRows, classes: list[Hashable]) -> None:
    """Refuse labels of a type that no class has: text against numbers, or numbers against text. Reads no label."""
    kind = _kind_of(y)
    if kind is not None and not {kind, None} & {_kind_of_class(label) for label in classes}:
        raise InvalidInput(
            f"y holds {kind} and no class is of that type, so that no row would count; nothing was read and nothing "
            "was spent. Give the classes as the labels are written."
        )


def _kind_of(column: GivenRows) -> str | None:
    """What the type of a column says that it holds, if it says so."""
    said = getattr(column, "dtype", getattr(column, "type", None))
    kind, name = getattr(said, "kind", ""), str(said).lower()
    if kind in tuple("US") or name in ("str", "string", "large_string", "string_view", "utf8"):
        return "bytes" if kind == "S" else "text"
    numeric = ("int", "uint", "float", "double", "halffloat", "bool", "torch.int", "torch.float", "torch.bool")
    return "numbers" if name.startswith(numeric) else None


def _kind_of_class(label: object) -> str | None:
    for kind, name in ((str, "text"), (bytes, "bytes"), (Number, "numbers")):
        if isinstance(label, kind):
            return name
    return None


def _as_they_are(classes: list[Hashable]) -> Array:
    """Classes as an array; one of objects where another type would change a class."""
    made = np.array(classes) if len({type(label) for label in classes}) == 1 else None
    if made is not None and made.ndim == 1:
        return made
    kept = np.empty(len(classes), dtype=object)
    kept[:] = classes
    return kept


def _half_squares(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.mse_loss(outputs, targets) / 2


def _said(kind: type) -> list[str]:
    return list(inspect.signature(kind).parameters)


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and not hasattr(value, "__array__") and value == default)


def _is_list_of_pairs(bounds: Bounds) -> bool:
    return all(hasattr(pair, "__len__") and not isinstance(pair, str) for pair in bounds)
