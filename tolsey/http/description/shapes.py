"""The shapes of an OpenAPI document as tables of fields: each that an operation names, once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

Schema = Mapping[str, Any]

LIMITS: Final = (
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "default",
)
"""What a schema says of a value besides its type, in its own words."""
CHOICES: Final = ("anyOf", "oneOf", "allOf")
ANYTHING: Final = "any"


@dataclass(frozen=True, slots=True)
class Word:
    """A part of the name of a type, which may be a shape that stands on the same page."""

    text: str
    shape: str = ""


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field of a shape, or one parameter."""

    name: str
    type: Sequence[Word]
    limits: Sequence[str]
    is_required: bool
    about: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """An object: what it is, and its fields."""

    name: str
    about: str
    fields: Sequence[FieldLine]


@dataclass(slots=True)
class Shapes:
    """The shapes that are met while types are written, in the order in which they are met."""

    named: Mapping[str, Schema]
    """The document's own, by their names."""
    _met: dict[str, Schema] = field(default_factory=dict)

    def line(self, name: str, schema: Schema, *, required: bool, **more: str) -> FieldLine:
        """Write a field or a parameter."""
        return FieldLine(
            name=name,
            type=list(self.type_of(schema, name)),
            limits=[f"{key} {_written(value)}" for key, value in _limits(schema)],
            is_required=required,
            about=more.pop("about", "") or schema.get("description", ""),
            **more,
        )

    def type_of(self, schema: Schema, name: str) -> Iterator[Word]:
        """Write the type of a value; `name` is what an object is called that has no name of its own."""
        if "$ref" in schema:
            called = schema["$ref"].rpartition("/")[2]
            yield self._meet(called, self.named[called])
        elif one_of := next((schema[key] for key in CHOICES if key in schema), None):
            for at, one in enumerate(one_of):
                yield from [Word(" | ")] if at else []
                yield from self.type_of(one, name)
        elif "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            yield Word(" | ".join(_written(one) for one in values))
        elif "properties" in schema:
            yield self._meet(schema.get("title", name), schema)
        elif schema.get("type") == "array":
            yield Word("[")
            yield from self.type_of(schema.get("items", {}), name)
            yield Word("]")
        elif isinstance(schema.get("additionalProperties"), dict):
            yield Word("{string: ")
            yield from self.type_of(schema["additionalProperties"], name)
            yield Word("}")
        else:
            kinds = schema.get("type", ANYTHING)
            yield Word(kinds if isinstance(kinds, str) else " | ".join(kinds))

    def met(self) -> Iterator[Shape]:
        """Write each shape that was met, and those that they hold."""
        written = set[str]()
        while waiting := [name for name in self._met if name not in written]:
            for name in waiting:
                written.add(name)
                schema = self._met[name]
                must = schema.get("required", ())
                fields = [
                    self.line(key, one, required=key in must)
                    for key, one in schema.get("properties", {}).items()
                ]
                if isinstance(schema.get("additionalProperties"), dict):
                    fields.append(self.line("…", schema["additionalProperties"], required=False))
                yield Shape(name, schema.get("description", ""), fields)

    def _meet(self, name: str, schema: Schema) -> Word:
        """Name a shape that has a table; what is no object is written where it stands."""
        if "properties" not in schema:
            return Word("".join(word.text for word in self.type_of(schema, name)))
        called, n = name, 1
        while self._met.setdefault(called, schema) != schema:
            n += 1
            called = f"{name} {n}"
        return Word(called, called.replace(" ", "-"))


def _limits(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Find what a schema, or one of those that it may be, says of its value."""
    for one in (schema, *(one for key in CHOICES for one in schema.get(key, ()))):
        yield from ((key, one[key]) for key in LIMITS if one.get(key) is not None)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
