"""Measures: what can be asked of the rows of a group, each one column of the answer.

Each file here is one measure. All of them are found by themselves: a new measure is a new file, and its words in the
catalogues of messages.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

from sfumato.tables.measure import Asked, Measure

__all__ = ["ASKED", "MEASURES"]


def _found() -> Iterator[type[Measure]]:
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        for _, found in inspect.getmembers(module, inspect.isclass):
            if found.__module__ == module.__name__ and issubclass(found, Measure):
                yield found


MEASURES: tuple[type[Measure], ...] = tuple(_found())
ASKED: dict[str, Callable[..., Asked]] = {name: ask for measure in MEASURES for name, ask in measure.ASKED.items()}
