"""Messages and calls as JSON text, so that they can wait in the outbox."""

from typing import Any

from pydantic import TypeAdapter

from tolsey.runtime.messages import REGISTERED

_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    adapter = _adapters.get(kind)
    if adapter is None:
        adapter = _adapters[kind] = TypeAdapter(kind)
    return adapter


def encode(value: Any) -> str:
    """Write a registered message or call as JSON text."""
    return _adapter(type(value)).dump_json(value).decode()


def decode(name: str, payload: str) -> Any:
    """Read a message or call back by its class name. Raises LookupError for an unknown name."""
    return _adapter(REGISTERED[name]).validate_json(payload)
