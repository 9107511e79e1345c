"""A quick look whether a value is as a schema says: a tenth of the time that jsonschema takes.

It says yes where it is sure. What it does not know, or does not like, it doubts, and jsonschema decides.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

Look: TypeAlias = Callable[[Any], bool]

TYPES: Final[Mapping[str, Look]] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in {int, float},
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}
BOUNDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "minimum": lambda bound, value: type(value) not in {int, float} or value >= bound,
    "maximum": lambda bound, value: type(value) not in {int, float} or value <= bound,
    "exclusiveMinimum": lambda bound, value: type(value) not in {int, float} or value > bound,
    "minLength": lambda bound, value: type(value) is not str or len(value) >= bound,
    "maxLength": lambda bound, value: type(value) is not str or len(value) <= bound,
    "minItems": lambda bound, value: type(value) is not list or len(value) >= bound,
    "maxItems": lambda bound, value: type(value) is not list or len(value) <= bound,
    "const": lambda bound, value: type(value) is type(bound) and value == bound,
    "enum": lambda bound, value: any(type(value) is type(one) and value == one for one in bound),
}
NOTES: Final = frozenset({"title", "description", "default", "x-extensible-enum", "$defs"})
OF_OBJECTS: Final = frozenset({"properties", "required", "additionalProperties"})


class Quick:
    """Makes a look of each schema; those that are referred to are `schemas`, by how they are referred to."""

    def __init__(
        self, schemas: Mapping[str, Mapping[str, Any]], formats: Mapping[str, Look]
    ) -> None:
        self._schemas = schemas
        self._formats = formats
        self._made: dict[str, Look] = {}

    def look(self, schema: Mapping[str, Any]) -> Look:
        """Make a look that is sure of what fits a schema."""
        looks = [
            self._word(word, said)
            for word, said in schema.items()
            if word not in NOTES and word not in OF_OBJECTS
        ]
        if OF_OBJECTS & schema.keys():
            looks.append(self._object(schema))
        if len(looks) == 1:
            return looks[0]
        return lambda value: all(one(value) for one in looks)

    def _word(self, word: str, said: Any) -> Look:
        looks: Look = lambda _: False  # not known here  # noqa: E731
        match word, said:
            case _ if word in BOUNDS:
                looks = partial(BOUNDS[word], said)
            case "type", str():
                looks = TYPES[said]
            case "$ref", str():
                looks = partial(self._referred, said)
            case "anyOf", _:
                choices = [self.look(one) for one in said]
                looks = lambda value: any(one(value) for one in choices)  # noqa: E731
            case "items", dict():
                item = self.look(said)
                looks = lambda value: type(value) is not list or all(map(item, value))  # noqa: E731
            case "pattern", str():
                search = re.compile(said).search
                looks = lambda value: type(value) is not str or search(value) is not None  # noqa: E731
            case "format", str():
                looks = self._formats.get(said, lambda _: True)
        return looks

    def _referred(self, name: str, value: Any) -> bool:
        """Look when the schema is met: schemas hold themselves."""
        if name not in self._made:
            self._made[name] = self.look(self._schemas[name])
        return self._made[name](value)

    def _object(self, schema: Mapping[str, Any]) -> Look:
        fields = {name: self.look(one) for name, one in schema.get("properties", {}).items()}
        required = frozenset(schema.get("required", ()))
        others = schema.get("additionalProperties", True)
        other: Look = self.look(others) if isinstance(others, dict) else lambda _: bool(others)

        def fits(value: Any) -> bool:
            if type(value) is not dict:
                return True
            if not required <= value.keys():
                return False
            return all(fields.get(name, other)(one) for name, one in value.items())

        return fits
