"""Whether a document has the shape that its schema states: the part of JSON Schema that our own schemas use.

A keyword that this code does not know is refused, so that no schema promises more than is checked. The tests hold it
against a complete validator.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from sfumato.errors import InvalidInput

__all__ = ["check", "problems", "schema"]

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_SILENT = {"$schema", "$id", "$defs", "title", "description"}
_KNOWN = {
    *("$ref", "type", "const", "enum", "pattern", "minLength", "minimum", "minItems"),
    *("items", "required", "properties", "additionalProperties"),
}


@cache
def schema(name: str) -> dict[str, Any]:
    """A schema that ships with this package: ``evidence``, ``fair`` or ``registry``."""
    file = resources.files("sfumato.reports.evidence").joinpath("schemas", f"{name}.schema.json")
    return json.loads(file.read_text("utf-8"))  # type: ignore[no-any-return]


def check(document: object, name: str) -> None:
    """Refuse a document that has not the shape of its schema."""
    found = list(problems(document, schema(name)))
    if found:
        raise InvalidInput(f"the {name} document has not its shape; nothing was written. {'; '.join(found[:5])}")


def problems(document: object, stated: dict[str, Any]) -> Iterator[str]:
    """Everything in which a document departs from a schema.

    >>> list(problems({"a": 1}, {"type": "object", "required": ["b"], "properties": {"a": {"type": "string"}}}))
    ['document.b is missing', 'document.a is not of type string']
    """
    return _problems(document, stated, "document", stated)


def _problems(value: Any, rule: dict[str, Any], path: str, root: dict[str, Any]) -> Iterator[str]:
    unknown = set(rule) - _KNOWN - _SILENT
    if unknown:
        raise InvalidInput(f"the schema says {', '.join(sorted(unknown))} at {path}, which nothing here checks.")
    if "$ref" in rule:
        yield from _problems(value, root["$defs"][rule["$ref"].removeprefix("#/$defs/")], path, root)
    if "type" in rule:
        names = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        if not any(_is(value, name) for name in names):
            yield f"{path} is not of type {' or '.join(names)}"
            return
    if "const" in rule and not _same(value, rule["const"]):
        yield f"{path} is not {rule['const']!r}"
    if "enum" in rule and not any(_same(value, each) for each in rule["enum"]):
        yield f"{path} is none of {', '.join(map(repr, rule['enum']))}"
    match value:
        case str():
            if "pattern" in rule and not re.search(rule["pattern"], value):
                yield f"{path} does not match {rule['pattern']}"
            if len(value) < rule.get("minLength", 0):
                yield f"{path} is too short"
        case list():
            if len(value) < rule.get("minItems", 0):
                yield f"{path} has fewer than {rule['minItems']} items"
            for place, item in enumerate(value if "items" in rule else ()):
                yield from _problems(item, rule["items"], f"{path}[{place}]", root)
        case dict():
            yield from _fields(value, rule, path, root)
        case int() | float() if not isinstance(value, bool) and value < rule.get("minimum", value):
            yield f"{path} is less than {rule['minimum']}"


def _fields(value: dict[str, Any], rule: dict[str, Any], path: str, root: dict[str, Any]) -> Iterator[str]:
    fields = rule.get("properties", {})
    for name in rule.get("required", ()):
        if name not in value:
            yield f"{path}.{name} is missing"
    for name, item in value.items():
        if name in fields:
            yield from _problems(item, fields[name], f"{path}.{name}", root)
        elif rule.get("additionalProperties") is False:
            yield f"{path}.{name} is not a field"
        elif isinstance(rule.get("additionalProperties"), dict):
            yield from _problems(item, rule["additionalProperties"], f"{path}.{name}", root)


def _is(value: object, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _same(value: object, stated: object) -> bool:
    return value == stated and isinstance(value, bool) is isinstance(stated, bool)
