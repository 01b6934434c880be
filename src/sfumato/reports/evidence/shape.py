"""Whether a document has the shape that its JSON Schema states; ``jsonschema`` decides, and the words are ours."""

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["check", "problems", "schema"]

Schema = dict[str, Any]  # of JSON Schema, which jsonschema itself checks


@cache
def schema(name: str) -> Schema:
    """A schema that ships with this package: ``evidence``, ``fair`` or ``registry``."""
    file = resources.files("sfumato.reports.evidence").joinpath("schemas", f"{name}.schema.json")
    stated: Schema = json.loads(file.read_text("utf-8"))
    return stated


def check(document: object, name: str) -> None:
    """Refuse a document that has not the shape of its schema."""
    found = problems(document, schema(name))
    if found:
        raise InvalidInput(
            f"the {name} document does not match its schema; nothing was written. {'; '.join(found[:5])}"
        )


def problems(document: object, stated: Schema) -> list[str]:
    """Everything in which a document departs from a schema: where, and what is asked there; never the value itself.

    >>> problems({"a": 1}, {"type": "object", "required": ["b"], "properties": {"a": {"type": "string"}}})
    ['document.b is missing', 'document.a is not of type string']
    """
    from jsonschema import Draft202012Validator

    found = sorted(Draft202012Validator(stated).iter_errors(document), key=lambda error: len(error.absolute_path))
    return list(dict.fromkeys(line for error in found for line in _lines(error)))


def _lines(error: "ValidationError") -> Iterator[str]:
    """What is wrong at one place; a rule that has no words of its own here is quoted as the schema states it."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    path, asked = "document" + "".join(steps), error.validator_value
    match error.validator:
        case "required":
            yield from (f"{path}.{name} is missing" for name in asked if name not in error.instance)
        case "additionalProperties":
            known = error.schema.get("properties", {})
            yield from (f"{path}.{name} is not a field" for name in error.instance if name not in known)
        case "type":
            yield f"{path} is not of type {asked if isinstance(asked, str) else ' or '.join(asked)}"
        case "const":
            yield f"{path} is not {asked!r}"
        case "enum":
            yield f"{path} must be one of {', '.join(map(repr, asked))}"
        case "pattern":
            yield f"{path} does not match {asked}"
        case rule:
            yield f"{path} does not meet {rule} {asked!r}"
