"""A model that a few public facts describe, so that it reaches sites as a declaration and not as code."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.documents import canonical, encode, parse
from sfumato.core.exact import natural
from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.reports.declarations import DECLARATIONS
from sfumato.tables.feature_columns import FeatureColumn, feature_column

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import nn

    from sfumato.tables.schema import Schema

__all__ = ["MOST_PARAMETERS", "DeclaredNetwork"]

MOST_COLUMNS, MOST_LAYERS, MOST_PARAMETERS = 1_000, 8, 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredNetwork:
    """A classifier of the rows of a declared table: logistic regression, or a network with ``hidden`` layers and tanh.

    ``inputs`` are columns with the public facts that make numbers of them, numbers before lists; ``target`` is a column
    with a list of classes. The loss is the cross-entropy of a row, and its mean over the rows of a person. Sizes are
    bounded before anything is made of them. Public: every field.

    >>> sex, died = FeatureColumn(name="sex", keys=("F", "M")), FeatureColumn(name="died", keys=(False, True))
    >>> DeclaredNetwork(inputs=(sex,), target=died, hidden=(8,)).parameters
    42
    """

    KIND: ClassVar[str] = "federated.declared_network"
    VERSION: ClassVar[int] = 1
    inputs: tuple[FeatureColumn, ...]
    target: FeatureColumn
    hidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in (*self.inputs, self.target)]
        if not self.inputs or len(names) > MOST_COLUMNS or len(set(names)) != len(names):
            raise InvalidInput(
                f"a network reads up to {MOST_COLUMNS:,} different columns, and its target is none of them; nothing "
                "was done."
            )
        if self.target.bounds is not None or self.target.rest or len(self.target.keys) < 2:
            raise InvalidInput(
                f"the target {self.target.name!r} needs a list of at least two classes; nothing was done. Declare its "
                "keys."
            )
        if any(later.bounds and not first.bounds for first, later in pairwise(self.inputs)):
            raise InvalidInput("columns with bounds come before those with keys; nothing was done.")
        if len(self.hidden) > MOST_LAYERS:
            raise InvalidInput(f"a network has at most {MOST_LAYERS} hidden layers; nothing was done.")
        for size in self.hidden:
            natural(size, "the width of a layer", most=MOST_PARAMETERS)
        if self.parameters > MOST_PARAMETERS:
            raise InvalidInput(
                f"this network has {self.parameters:,} parameters, and at most {MOST_PARAMETERS:,} are trained across "
                "sites; nothing was done. Take fewer or narrower layers."
            )

    @classmethod
    def of_schema(
        cls, schema: "Schema", *, inputs: Sequence[str], target: str, hidden: Sequence[int] = ()
    ) -> "DeclaredNetwork":
        """The network over columns of a schema, by the facts that it declares; who is protected is no input."""
        facts = {column.name: column for column in schema.columns}

        def column(name: str, *, as_class: bool) -> FeatureColumn:
            if name not in facts:
                raise InvalidInput(
                    f"the schema has no column {name!r}; nothing was asked or spent.{did_you_mean(name, facts)}"
                )
            if name == schema.unit:
                raise NotDeclared(f"column {name!r} says whose rows they are, and is no input; nothing was asked.")
            found = facts[name]
            return feature_column(name, found.type, bounds=found.bounds, keys=found.keys, as_class=as_class)

        made = [column(name, as_class=False) for name in inputs]
        ordered = sorted(made, key=lambda each: each.bounds is None)
        return cls(inputs=tuple(ordered), target=column(target, as_class=True), hidden=tuple(hidden))

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return sum(column.width for column in self.inputs)

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum((into + 1) * out for into, out in pairwise((self.width, *self.hidden, self.target.width)))

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text, as hexadecimal digits: what certificates call the model's form."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """The canonical text."""
        return canonical(encode(self))

    @classmethod
    def from_json(cls, text: str) -> "DeclaredNetwork":
        """Read a network; what is not exactly a text of :meth:`to_json` is refused."""
        found = DECLARATIONS.decode(parse(text), "network")
        if not isinstance(found, cls):
            raise InvalidInput("this is not the declaration of a network; it was not read.")
        return found

    def model(self) -> "nn.Sequential":
        """A torch model of this form; the last layer is zero, the others begin at random."""
        from sfumato.learning.layered import layered

        return layered(self.width, self.hidden, self.target.width)

    def features(self, table: "Mapping[str, object]") -> "npt.NDArray[np.float32]":
        """Rows of a table, a mapping of columns or a frame, as the model reads them. Sensitive as the rows are."""
        from sfumato.learning.features import Features

        made = Features(
            bounds={column.name: column.pair for column in self.inputs if column.pair is not None},
            categories={column.name: column.keys for column in self.inputs if column.keys},
        )
        found: npt.NDArray[np.float32] = made(table).numpy()
        return found

    def probabilities(self, model: "nn.Module", table: "Mapping[str, object]") -> "npt.NDArray[np.float32]":
        """How likely a model says each class of the target is, in the order of its keys, for each row of a table."""
        from sfumato.learning.layered import class_probabilities

        return class_probabilities(model, self.features(table))
