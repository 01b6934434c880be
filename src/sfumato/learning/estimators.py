"""Estimators in the manner of scikit-learn: tables in, predictions out, one guarantee for the fit."""

import importlib
import inspect
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.exact import Exact, natural
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.learning.features import Features, bounded, cells, numbers, place_of
from sfumato.learning.units import Units

__all__ = ["DPClassifier", "DPRegressor"]

SMALL = 256  # units up to which every step takes them all
SHARE = 10  # of more units, one in so many is in a step


class _Estimator:
    """What both have in common: parameters as scikit-learn wants them, public features, and a fit through a vault."""

    _usual, _gentle = 1.0, 0.25  # learning rates of a linear model, and of a network

    def __init__(
        self,
        *,
        vault: Any,
        epsilon: Exact | None,
        delta: Exact | None,
        bounds: Any,
        words: Mapping[str, Sequence[Hashable]] | None,
        number: int | None,
        records: int | None,
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
        self.bounds, self.words, self.number, self.records = bounds, words, number, records
        self.hidden, self.epochs, self.batch, self.clip = hidden, epochs, batch, clip
        self.learning_rate, self.momentum, self.name, self.version = learning_rate, momentum, name, version

    def get_params(self, deep: object = None) -> dict[str, Any]:
        """What was said when it was made, by name; ``deep`` changes nothing, as no part is an estimator."""
        return {name: getattr(self, name) for name in _said(type(self))}

    def set_params(self, **params: Any) -> Self:
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

    def _fitted(self, x: Any, targets: Tensor, kept: Tensor, groups: Any, outputs: int, loss: Any) -> None:
        """Train on the rows that are kept, and remember what may be known of it."""
        features, ids = self._features(x), None
        model = self._network(features.shape[1], outputs)
        if len(features) != len(targets):
            raise InvalidInput("X and y have different numbers of rows; nothing was trained and nothing was spent")
        if groups is not None:
            ids = np.asarray(groups).astype(str)
            if len(ids) != len(targets):
                raise InvalidInput("groups and y have different numbers of rows; nothing was trained and nothing spent")
            ids = ids[kept.numpy()]
        number = natural(self.number, "number")
        batch = self.batch if self.batch is not None else number if number <= SMALL else max(SMALL, number // SHARE)
        rate = self.learning_rate if self.learning_rate is not None else self._gentle if self.hidden else self._usual
        units = Units(
            features[kept],
            targets[kept],
            ids=ids,
            records=None if ids is None else self.records,
            number=number,
            name=self.name,
            version=self.version,
        )
        trainer = self.vault.trainer(model, loss, data=units, clip=self.clip)
        trained = trainer.fit(
            epsilon=self.epsilon,
            delta=self.delta,
            epochs=self.epochs,
            batch=batch,
            optimiser=torch.optim.SGD(model.parameters(), lr=float(rate), momentum=float(self.momentum)),
        )
        self.model_, self.release_ = trained.model.eval(), trained.release
        self.certificate_, self.epsilon_, self.delta_ = trained.release.certificate, trained.epsilon, trained.delta
        self.n_features_in_ = features.shape[1]

    def _check_declared(self) -> None:
        """Refuse to start where a public fact is missing; nothing has been looked at yet."""
        meant = {
            "vault": "the vault that is charged: vault=sf.Vault(…)",
            "epsilon": "how much of the budget to spend: epsilon=1",
            "delta": "the δ of that: delta=1e-6",
            "number": "how many units there are as far as the public knows: number=10_000",
        }
        missing = [words for name, words in meant.items() if getattr(self, name) is None]
        if self.bounds is None and self.words is None:
            missing.append("bounds of every column: bounds=[(0, 120), …], or (low, high) for all of them")
        if missing:
            raise NotDeclared(f"nothing was read and nothing was spent. Say {'; and '.join(missing)}.")

    def _features(self, x: Any) -> Tensor:
        """The rows as features: by name where columns were declared by name, else by place."""
        if isinstance(self.bounds, Mapping) or self.words is not None:
            return Features(bounds=self.bounds, words=self.words)(x)
        table = np.asarray(x)
        if table.ndim != 2 or table.shape[1] == 0:
            raise InvalidInput("X must have rows and columns; nothing was trained and nothing was spent")
        width = table.shape[1]
        pairs = self.bounds if _is_list_of_pairs(self.bounds) else [self.bounds] * width
        if len(pairs) != width:
            raise InvalidInput(
                f"X has {width} columns and bounds were declared for {len(pairs)}; nothing was trained and nothing was "
                "spent. Declare a pair (low, high) for each column, or one pair for all."
            )
        columns = {str(place): table[:, place] for place in range(width)}
        return Features(bounds={str(place): pair for place, pair in enumerate(pairs)})(columns)

    def _outputs(self, x: Any) -> Tensor:
        if not hasattr(self, "model_"):
            raise InvalidInput("this estimator was not fitted; nothing was predicted. Call fit(X, y) first")
        with torch.no_grad():
            outputs: Tensor = self.model_(self._features(x))
        return outputs

    def _network(self, width: int, outputs: int) -> nn.Sequential:
        """Layers with tanh between them; the last starts at zero, and no data decides where the others start."""
        sizes = [width, *(natural(size, "hidden") for size in self.hidden)]
        layers: list[nn.Module] = []
        for into, out in pairwise(sizes):
            layers += [nn.Linear(into, out), nn.Tanh()]
        last = nn.Linear(sizes[-1], outputs)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        return nn.Sequential(*layers, last)


class DPClassifier(_Estimator):
    """A private classifier of tables: logistic regression, or a network with ``hidden`` layers.

    ``bounds`` holds the columns: one pair (low, high) for all, a pair each, or a mapping by name, with ``words``
    (lists of what columns of words can hold) beside it. ``classes`` lists all labels; a row with another label counts
    nothing. ``number`` is the public number of units. In a vault of users, ``fit(X, y, groups=ids)`` trains on each
    person's rows together, at most ``records`` of them.

    Guarantee: a fit is one charge of (ε, δ) for the unit of ``vault``, stated by ``certificate_``; predictions for
    other rows cost nothing more. Assumes: bounds, words, classes, number and all settings were not chosen by looking at
    the data; a search over settings is a charge for each fit. ``score`` on private rows is a reading of them that no
    budget covers: hold out rows that may be seen. Public: every parameter. Proof: docs/proofs/training.md

    >>> import numpy as np, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=3, delta=1e-6),
    ...                  name="trial")
    >>> x = np.linspace(-1, 1, 4000)[:, None]
    >>> model = DPClassifier(vault=vault, epsilon=2, delta=1e-6, bounds=(-1, 1), classes=["low", "high"], number=4000,
    ...                      epochs=2)
    >>> model.fit(x, np.where(x[:, 0] > 0, "high", "low")).predict([[-0.8], [0.8]]).tolist()
    ['low', 'high']
    >>> float(vault.left.epsilon)
    1.0
    """

    def __init__(
        self,
        *,
        vault: Any = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        bounds: Any = None,
        words: Mapping[str, Sequence[Hashable]] | None = None,
        classes: Iterable[Hashable] | None = None,
        number: int | None = None,
        records: int | None = None,
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
            vault=vault, epsilon=epsilon, delta=delta, bounds=bounds, words=words, number=number, records=records,
            hidden=hidden, epochs=epochs, batch=batch, clip=clip, learning_rate=learning_rate, momentum=momentum,
            name=name, version=version,
        )  # fmt: skip
        self.classes = classes

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Charge, then train on the rows, with the persons whose they are in ``groups`` where users are protected."""
        self._check_declared()
        classes = self._classes()
        places = {label: place for place, label in enumerate(classes)}
        found = torch.tensor([place_of(places, label) for label in cells(y)], dtype=torch.long)
        self._fitted(X, found, found >= 0, groups, len(classes), nn.functional.cross_entropy)
        self.classes_ = np.array(classes)
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """How likely each class is for each row, in the order of ``classes_``."""
        return torch.softmax(self._outputs(X).double(), dim=1).numpy()

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest class of each row."""
        places = self._outputs(X).argmax(dim=1).numpy()  # refuses what was not fitted
        return self.classes_[places]

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The share of rows whose class is predicted. It reads ``y``: take rows that may be seen."""
        return float(np.mean([one == other for one, other in zip(self.predict(X).tolist(), cells(y), strict=True)]))

    def _classes(self) -> list[Any]:
        if self.classes is None:
            raise NotDeclared(
                "the classes are not declared, and are not read off the labels; nothing was read and nothing was "
                "spent. Say classes=[…], all that there can be."
            )
        classes = cells(self.classes)
        if len(set(classes)) != len(classes) or len(classes) < 2:
            raise InvalidInput("classes must be at least two, all different; nothing was read and nothing was spent")
        return classes


class DPRegressor(_Estimator):
    """A private regression on tables: a linear model of least squares, or a network with ``hidden`` layers.

    ``targets`` is the pair (low, high) that targets are held to and predictions lie in; the rest as for
    :class:`DPClassifier`, with the same guarantee and assumptions. A row whose target is no number counts nothing.

    >>> import numpy as np, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=3, delta=1e-6),
    ...                  name="trial")
    >>> x = np.linspace(0, 10, 4000)[:, None]
    >>> line = DPRegressor(vault=vault, epsilon=2, delta=1e-6, bounds=(0, 10), targets=(0, 100), number=4000, epochs=5)
    >>> bool(abs(line.fit(x, 10 * x[:, 0]).predict([[5]]) - 50)[0] < 10)
    True
    """

    _usual = 0.25  # squares curve four times as much as logarithms of chances do

    def __init__(
        self,
        *,
        vault: Any = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        bounds: Any = None,
        words: Mapping[str, Sequence[Hashable]] | None = None,
        targets: tuple[float, float] | None = None,
        number: int | None = None,
        records: int | None = None,
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
            vault=vault, epsilon=epsilon, delta=delta, bounds=bounds, words=words, number=number, records=records,
            hidden=hidden, epochs=epochs, batch=batch, clip=clip, learning_rate=learning_rate, momentum=momentum,
            name=name, version=version,
        )  # fmt: skip
        self.targets = targets

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Charge, then train on the rows, with the persons whose they are in ``groups`` where users are protected."""
        self._check_declared()
        low, high = self._targets()
        values = np.clip(numbers(y), low, high)
        kept = torch.from_numpy(~np.isnan(values))
        scaled = torch.from_numpy(((values - (low + high) / 2) / ((high - low) / 2)).astype(np.float32))
        self._fitted(X, scaled[:, None], kept, groups, 1, _half_squares)
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The target of each row, within the declared bounds."""
        low, high = self._targets()
        outputs = self._outputs(X)[:, 0].double().clamp(-1, 1).numpy()
        return (low + high) / 2 + outputs * ((high - low) / 2)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """R², the share of variance that is explained. It reads ``y``: take rows that may be seen."""
        truth = numbers(y)
        return float(1 - ((truth - self.predict(X)) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())

    def _targets(self) -> tuple[float, float]:
        if self.targets is None:
            raise NotDeclared(
                "the bounds of the targets are not declared, and are not read off them; nothing was read and nothing "
                "was spent. Say targets=(low, high)."
            )
        return bounded(self.targets, "the targets")


def _half_squares(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.mse_loss(outputs, targets) / 2


def _said(kind: type) -> list[str]:
    return list(inspect.signature(kind).parameters)


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not hasattr(value, "__array__") and value == default)


def _is_list_of_pairs(bounds: Any) -> bool:
    return all(hasattr(pair, "__len__") and not isinstance(pair, str) for pair in bounds)
