"""JSON Schemas of models (2020-12), as short as they can be: every agent reads all of them.

The whole list of tools is bounded (rules/agents#tools), so a schema says what a name does not.
"""

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
AMOUNT: Final = {"amount", "currency"}
"""What money is, the instructions say, once for all tools."""
NULL: Final = {"type": "null"}
ANYTHING: Final = ("additionalProperties", True)
"""What a schema allows that says nothing of it."""
NOTHING_BESIDE: Final = ("additionalProperties", False)
"""Said of all that a tool takes, not again of each part: clients with strict schemas add it themselves."""


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Write what a tool takes, without references: not every client makes strict schemas of those."""
    return _written(model, UNSAID)


@cache
def answer_schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Write what a tool answers: its fields by type, and what those hold by name.

    What always stands at its top is required; what is not known is left out.
    """
    written = _written(model, UNSAID_OF_ANSWERS)
    needed = _needed(model.model_json_schema(mode="validation")).get("required")
    held = {name: _listed(field) for name, field in written["properties"].items()}
    return {**written, "properties": held, **({"required": needed} if needed else {})}


def _listed(field: dict[str, Any]) -> dict[str, Any]:
    """List what the objects of a field hold: names tell a model as much as types, in a fifth of the bytes."""
    if "items" in field:
        return {**field, "items": _listed(field["items"])}
    if "properties" not in field:
        return field
    if field["properties"].keys() == AMOUNT:
        return {key: value for key, value in field.items() if key != "properties"}
    return {"type": "object", "description": _beside(field).removeprefix(": ")}


def _names(schema: dict[str, Any]) -> str:
    """Name the fields of an object, as `{id, price (of one), refunds: {id, amount}}`."""
    return f"{{{', '.join(f'{name}{_beside(one)}' for name, one in schema['properties'].items())}}}"


def _beside(field: dict[str, Any]) -> str:
    """Say what stands beside the name of a field: what it holds, and what is said of it."""
    one = field.get("items", field)
    held = one.get("properties", {})
    said = field.get("description", "").rstrip(".")
    within = f": {_names(one)}" if held and held.keys() != AMOUNT else ""
    return f"{within} ({said[0].lower()}{said[1:]})" if said else within


def _written(model: type[BaseModel], unsaid: frozenset[str]) -> dict[str, Any]:
    schema: dict[str, Any] = _shortened(model.model_json_schema(mode="validation"), unsaid)
    schema.setdefault("properties", {})
    definitions = {
        name: {key: value for key, value in one.items() if (key, value) != NOTHING_BESIDE}
        for name, one in schema.pop("$defs", {}).items()
    }
    written: dict[str, Any] = _inlined(schema, definitions)
    return {**written, "type": "object"}


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


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """Write each definition wherever it is referred to."""
    if isinstance(schema, list):
        return [_inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    target = schema.get("$ref")
    if isinstance(target, str):
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined({**definitions[target.removeprefix(DEFINED)], **beside}, definitions)
    return {key: _inlined(value, definitions) for key, value in schema.items()}
