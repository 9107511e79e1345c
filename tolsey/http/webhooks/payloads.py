"""The body of a delivery as JSON, after its signature was proven."""

from typing import Any, Final

import orjson

DEEPEST: Final = 64
"""How deep JSON may be (rules/requests#sizes)."""
INDENTED_BYTES: Final = 64 * 1024
"""Larger bodies are walked: indenting them could take many times their size."""

_LINE: Final = b"\n" + b"  " * DEEPEST


class MalformedPayload(Exception):  # noqa: N818 - what a body is
    """A signed body that is not a JSON object of at most 64 levels."""


def parse(body: bytes) -> dict[str, Any]:
    """Read a JSON object (RFC 8259: no NaN, no byte order mark, no lone surrogate)."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedPayload("not JSON") from error
    if type(parsed) is not dict:
        raise MalformedPayload("not an object")
    if is_too_deep(body, parsed):
        raise MalformedPayload(f"deeper than {DEEPEST} levels")
    return parsed


def is_too_deep(body: bytes, parsed: Any) -> bool:
    """Tell whether containers nest deeper than the limit.

    Written out with indentation, depth is the longest indent, which one search finds: a third of
    the time of a walk. Brackets in the raw bytes may stand inside texts and prove nothing.
    """
    if len(body) <= 2 * DEEPEST:  # too short to open and close one level more
        return False
    if len(body) > INDENTED_BYTES:
        return _walk(parsed)
    try:
        written = orjson.dumps(parsed, option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError:  # it refuses 254 levels
        return True
    return _LINE in written and _walk(parsed)


def _walk(parsed: Any) -> bool:
    level = [parsed]
    for _ in range(DEEPEST):
        level = [
            child
            for holder in level
            for child in (holder.values() if type(holder) is dict else holder)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True
