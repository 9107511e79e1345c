"""What is read of the bodies that others send, alike for every sender.

Absent and null are the same; a wrong type is refused by name.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

Body: TypeAlias = Mapping[str, Any]

TEXT_CHARACTERS = 1_000
NUL, REPLACEMENT = "\0", "\ufffd"


class Unreadable(Exception):  # noqa: N818 - what a body is
    """A field that we keep is not what its sender documents; `field` names it."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field}: {wanted}")
        self.field = field
        self.wanted = wanted


def text(body: Body, field: str, limit: int = TEXT_CHARACTERS) -> str | None:
    """Read a text, cut at a limit; NUL becomes U+FFFD, since no text column holds it."""
    value = body.get(field)
    if value is None:
        return None
    if type(value) is not str:
        raise Unreadable(field, "not a text")
    return clean(value, limit)


def clean(value: str, limit: int) -> str:
    """Make a text that every column can hold."""
    if NUL in value:
        value = value.replace(NUL, REPLACEMENT)
    return value[:limit] if len(value) > limit else value


def lenient(value: object) -> Body:
    """Take an object; what is none has no fields, where nothing depends on it."""
    return value if isinstance(value, dict) else {}


def table(body: Body, field: str) -> Body:
    """Read an object; empty when absent."""
    value = body.get(field)
    if value is None:
        return {}
    if type(value) is not dict:
        raise Unreadable(field, "not an object")
    return value


def rows(body: Body, field: str, most: int | None = None) -> list[Body]:
    """Read a list of objects; empty when absent, refused when it holds more than `most`."""
    value = body.get(field)
    if value is None:
        return []
    if type(value) is not list or not all(type(row) is dict for row in value):
        raise Unreadable(field, "not a list of objects")
    if most is not None and len(value) > most:
        raise Unreadable(field, f"more than {most}")
    return value


def short_texts(body: Body, field: str) -> list[str]:
    """Read a list of texts; empty when absent."""
    value = body.get(field)
    if value is None:
        return []
    if type(value) is not list or not all(type(one) is str for one in value):
        raise Unreadable(field, "not a list of texts")
    return value
