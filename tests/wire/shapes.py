"""What a class looks like as JSON, field by field, and what of a change another release could not read."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

Shape = dict[str, str]
"""The type of each field by its path; `order.refunds[].id` is a field of each item of a list."""

OPTIONAL = ", optional"
"""What follows the type of a field that has a default."""

INSTANT = "2026-01-02T03:04:05.678901Z"
SAMPLES: Mapping[tuple[str | None, str | None], Any] = {
    ("string", "date-time"): INSTANT,
    ("string", "date"): INSTANT[:10],
    ("string", "duration"): "PT5S",
    ("string", None): "text",
    ("integer", None): 7,
    ("number", None): 1.5,
    ("boolean", None): True,
    ("null", None): None,
}
"""A value of each type and format."""


def shape_of(found: Any) -> Shape:
    """Say of what type every field is that a class, or what a message is answered with, has as JSON."""
    schema = TypeAdapter(found).json_schema(mode="validation")
    return dict(_fields(schema, schema, ""))


def sample_of(found: Any) -> Any:
    """Make one value as JSON that has every field; the first of several types that is not null."""
    schema = TypeAdapter(found).json_schema(mode="validation")
    adapter: TypeAdapter[Any] = TypeAdapter(found)
    return adapter.dump_python(adapter.validate_python(_sample(schema, schema)), mode="json")


def breaks(before: Shape, now: Shape) -> Iterator[str]:
    """Say of each field what a process of the release before could not read, and what to do instead."""
    for path, was in before.items():
        if path not in now:
            yield (
                f"{path or 'The whole'} is gone, and the release before still needs it. Keep it for a"
                " release, with a default, and take it away in the next."
            )
        elif _type(was) != _type(now[path]):
            yield (
                f"{path or 'The whole'} was {_type(was)} and is {_type(now[path])}: what waits could be"
                " misread. Keep it as it was, and give the new meaning a field of another name with"
                " a default, or a class of a new name."
            )
        elif was.endswith(OPTIONAL) and not now[path].endswith(OPTIONAL):
            yield f"{path} has lost its default: what waits may lack it. Give it a default again."
    for path in sorted(now.keys() - before.keys()):
        if not now[path].endswith(OPTIONAL) and _parent(path) in {"", *before}:
            yield (
                f"{path} is new without a default: what the release before wrote lacks it. Give it a"
                " default."
            )


def _type(said: str) -> str:
    return said.removesuffix(OPTIONAL)


def _parent(path: str) -> str:
    """Name the field that a field is in, as its shape has it."""
    return re.sub(r"(\[\d*\]|\{\}|\.?[^.\[\]{}]+)$", "", path)


def _fields(schema: Any, part: Any, path: str, end: str = "") -> Iterator[tuple[str, str]]:
    part = _resolved(schema, part)
    yield path, _kind(schema, part) + end
    for one in part.get("anyOf", part.get("oneOf", ())):
        yield from ((at, kind) for at, kind in _fields(schema, one, path) if at != path)
    if "items" in part:
        yield from _fields(schema, part["items"], f"{path}[]")
    for n, one in enumerate(part.get("prefixItems", ())):
        yield from _fields(schema, one, f"{path}[{n}]")
    if isinstance(part.get("additionalProperties"), dict):
        yield from _fields(schema, part["additionalProperties"], path + "{}")
    for name, one in part.get("properties", {}).items():
        optional = "" if name in part.get("required", ()) else OPTIONAL
        yield from _fields(schema, one, f"{path}.{name}".removeprefix("."), optional)


def _resolved(schema: Any, part: Any) -> Any:
    return schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part


def _kind(schema: Any, part: Any) -> str:
    if "const" in part or "enum" in part:
        return " | ".join(f"'{one}'" for one in part.get("enum", (part.get("const"),)))
    several = part.get("anyOf", part.get("oneOf"))
    if several is not None:
        return " | ".join(_kind(schema, _resolved(schema, one)) for one in several)
    kind = str(part.get("type", "anything"))
    return f"{kind} ({part['format']})" if "format" in part else kind


def _sample(schema: Any, part: Any) -> Any:
    part = _resolved(schema, part)
    if "const" in part or "enum" in part:
        return part.get("enum", (part.get("const"),))[0]
    several = part.get("anyOf", part.get("oneOf"))
    if several is not None:
        return _sample(schema, next(one for one in several if one.get("type") != "null"))
    if part.get("type") == "array":
        items = part.get("prefixItems") or ([part["items"]] if "items" in part else [])
        return [_sample(schema, one) for one in items]
    if part.get("type") == "object":
        named = {name: _sample(schema, one) for name, one in part.get("properties", {}).items()}
        more = part.get("additionalProperties")
        return {"key": _sample(schema, more), **named} if isinstance(more, dict) else named
    return SAMPLES.get((part.get("type"), part.get("format")), "anything")
