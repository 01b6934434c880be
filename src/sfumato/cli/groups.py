"""Options that belong together: a command takes them as one value, and the command line has each of them."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints  # a dataclass of options

__all__ = ["grouped"]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command as Typer reads it: each parameter that is a dataclass stands for its fields, in their place.

    >>> @dataclasses.dataclass(kw_only=True)
    ... class Spend:
    ...     epsilon: str
    ...     delta: str = "0"
    >>> def ask(question: str, *, spend: Spend) -> None:
    ...     print(question, spend.epsilon, spend.delta)
    >>> print(inspect.signature(grouped(ask)))
    (question: str, *, epsilon: str, delta: str = '0') -> None
    >>> grouped(ask)(question="count", epsilon="1", delta="0")
    count 1 0
    """
    stated = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: given.annotation
        for name, given in stated.parameters.items()
        if dataclasses.is_dataclass(given.annotation)
    }

    @functools.wraps(command)
    def run(**said: object) -> None:
        made = {
            name: group(**{field.name: said.pop(field.name) for field in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        command(**said, **made)

    options = [
        option
        for name, given in stated.parameters.items()
        for option in (_options(groups[name]) if name in groups else (given,))
    ]
    run.__signature__ = stated.replace(parameters=options)  # type: ignore[attr-defined]  # what inspect looks for
    return run


def _options(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )
