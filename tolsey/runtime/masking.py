"""How values are shown to operators and kept for them: as JSON would hold them, without what is or may be a secret."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from itertools import islice
from typing import Any, Final, get_args

from tolsey.storage.tables import Personal, Sealed

MASK: Final = "•••"
SEALED_PREFIX: Final = "v1."
MOST_SHOWN: Final = 100
"""How many parts of a collection are shown; an organization may have ten thousand lots of credits."""
NO_END: Final = 1 << 62

Hidden = Callable[[Any], frozenset[str]]
"""Names the fields of a class of which only whether there is something is shown."""


@cache
def secret_fields(kind: type[Any]) -> frozenset[str]:
    """Name the fields of a class that are secret."""
    return frozenset(one.name for one in dataclasses.fields(kind) if one.metadata.get("secret"))


@cache
def unkept_fields(kind: type[Any]) -> frozenset[str]:
    """Name the fields of a class that are secret or say something of a person: what is kept of a state has neither."""
    fields = dataclasses.fields(kind)
    secret = secret_fields(kind)  # type: ignore[arg-type]  # a class can be hashed
    return secret | {one.name for one in fields if _is_personal(one.type)}


def _is_personal(hint: Any) -> bool:
    if isinstance(hint, str):  # an annotation in quotes
        return "Personal." in hint or "Sealed" in hint
    return any(
        isinstance(mark, Personal) or mark is Sealed or _is_personal(mark)
        for mark in (*getattr(hint, "__metadata__", ()), *get_args(hint))
    )


def masked(
    value: Any, *, secret: bool = False, hidden: Hidden = secret_fields, most: int = MOST_SHOWN
) -> Any:
    """Show a value as JSON would hold it, with whatever is or may be a secret masked."""
    if value is None or isinstance(value, bool | int | float):
        return MASK if secret and value is not None else value
    if secret or isinstance(value, bytes):
        return MASK
    if isinstance(value, str):
        return MASK if value.startswith(SEALED_PREFIX) else str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Enum):
        return value.value
    return _masked_parts(value, hidden, most)


def _masked_parts(value: Any, hidden: Hidden, most: int) -> Any:
    def part(item: Any, *, secret: bool = False) -> Any:
        return masked(item, secret=secret, hidden=hidden, most=most)

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        unseen = hidden(type(value))
        return {
            one.name: part(getattr(value, one.name), secret=one.name in unseen)
            for one in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        shown = {str(key): part(item) for key, item in islice(value.items(), most)}
        return shown | ({"more": len(value) - most} if len(value) > most else {})
    if isinstance(value, tuple | list | set | frozenset):
        listed = [part(item) for item in islice(value, most)]
        return listed + ([{"more": len(value) - most}] if len(value) > most else [])
    return json.loads(json.dumps(value, default=str))
