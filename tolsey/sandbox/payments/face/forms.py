"""Form bodies with brackets in their names, read into nested values."""

from typing import Any
from urllib.parse import parse_qsl

_FREE = "metadata"


def read_form(text: str) -> dict[str, Any]:
    """Read `a[b][0]=c` into `{"a": {"b": ["c"]}}`; every leaf stays a string."""
    tree: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        _put(tree, _parts(name), value)
    return {name: _lists(name, value) for name, value in tree.items()}


def _parts(name: str) -> list[str]:
    head, *rest = name.split("[")
    return [head, *(part.removesuffix("]") for part in rest)]


def _put(tree: dict[str, Any], parts: list[str], value: str) -> None:
    for part in parts[:-1]:
        below = tree.get(part)
        if not isinstance(below, dict):
            below = tree[part] = {}
        tree = below
    # `types[]=a&types[]=b` is the other way to write a list
    last = parts[-1] or str(len(tree))
    tree[last] = value


def _lists(name: str, value: Any) -> Any:
    """Turn mappings numbered from zero into lists; what a caller names freely stays as it is."""
    if not isinstance(value, dict):
        return value
    numbered = bool(value) and all(key.isdigit() for key in value)
    if numbered and name != _FREE:
        return [_lists("", value[key]) for key in sorted(value, key=int)]
    return {key: _lists(key, below) for key, below in value.items()}
