"""JSON Schemas of models (2020-12), as short as they can be: every agent reads all of them.

The whole list of tools is bounded (rules/agents#tools), so a schema says what a name does not.
"""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

DEFINED: Final = "#/$defs/"
OF_NAMES: Final = frozenset({"properties", "$defs"})
UNSAID: Final = frozenset({"title"})
"""Names repeat titles."""
UNSAID_OF_ANSWERS: Final = UNSAID | {
    "additionalProperties",
    "enum",
    "format",
    "pattern",
    "required",
}
"""An answer is made by us: it holds nothing beside, each time is RFC 3339, and its parts are whole."""
NULL: Final = {"type": "null"}
ANYTHING: Final = ("additionalProperties", True)
"""What a schema allows that says nothing of it."""


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Write what a tool takes, without references: not every client makes strict schemas of those."""
    return _written(model, UNSAID, most_uses=math.inf)


@cache
def answer_schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Write what a tool answers: what always stands at its top is required; what is not known is left out."""
    written = _written(model, UNSAID_OF_ANSWERS, most_uses=1)
    needed = _needed(model.model_json_schema(mode="validation")).get("required")
    return {**written, "required": needed} if needed else written


def _written(model: type[BaseModel], unsaid: frozenset[str], *, most_uses: float) -> dict[str, Any]:
    schema: dict[str, Any] = _shortened(model.model_json_schema(mode="validation"), unsaid)
    schema.setdefault("properties", {})
    definitions: dict[str, Any] = schema.pop("$defs", {})
    uses = Counter(_references([schema, *definitions.values()]))
    moved = {name: one for name, one in definitions.items() if uses[name] <= most_uses}
    kept = {name: _inlined(one, moved) for name, one in definitions.items() if name not in moved}
    written: dict[str, Any] = _inlined(schema, moved)
    written["type"] = "object"
    return {**written, "$defs": kept} if kept else written


def _shortened(schema: Any, unsaid: frozenset[str], *, names: bool = False) -> Any:
    """Leave out titles, words about models, and that what is absent may be null or is false.

    `names` says that keys are names of fields.
    """
    if isinstance(schema, list):
        return [_shortened(one, unsaid) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if names:
        return {key: _shortened(value, unsaid) for key, value in schema.items()}
    schema = _said_without_null(_needed(schema))
    left_out = unsaid | ({"description"} if "properties" in schema else set())
    return {
        key: _shortened(value, unsaid, names=key in OF_NAMES)
        for key, value in schema.items()
        if (key not in left_out or isinstance(value, dict)) and (key, value) != ANYTHING
    }


def _needed(schema: dict[str, Any]) -> dict[str, Any]:
    """Need no field that may be null: it is left out then."""
    needed = [
        name
        for name in schema.get("required", ())
        if NULL not in schema["properties"][name].get("anyOf", ())
    ]
    kept = {key: value for key, value in schema.items() if key != "required"}
    return {**kept, "required": needed} if needed else kept


def _said_without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Say of what may be left out what it is when it is there.

    Null says the same as nothing to us, but schemas with two types are refused by some clients.
    """
    options = [one for one in schema.get("anyOf", ()) if one != NULL]
    kept = {
        key: value
        for key, value in schema.items()
        if key != "anyOf" and not (key == "default" and (value is None or value is False))
    }
    if len(options) == 1:
        return {**options[0], **kept}
    return {"anyOf": options, **kept} if options else kept


def _references(schema: Any) -> Iterator[str]:
    """Name the definitions that a schema refers to, each time it does."""
    if isinstance(schema, list):
        for one in schema:
            yield from _references(one)
    elif isinstance(schema, dict):
        target = schema.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(DEFINED)
        for one in schema.values():
            yield from _references(one)


def _inlined(schema: Any, moved: dict[str, Any]) -> Any:
    """Write a definition of `moved` wherever it is referred to."""
    if isinstance(schema, list):
        return [_inlined(one, moved) for one in schema]
    if not isinstance(schema, dict):
        return schema
    target = schema.get("$ref")
    name = target.removeprefix(DEFINED) if isinstance(target, str) else None
    if name in moved:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined({**moved[name], **beside}, moved)
    return {key: _inlined(value, moved) for key, value in schema.items()}
