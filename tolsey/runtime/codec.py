"""Messages, calls, replies and errors as JSON text: they wait in the outbox and cross processes."""

import typing
from typing import Any

import orjson
from pydantic import TypeAdapter

from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import RuntimeFault, Unavailable
from tolsey.runtime.messages import REGISTERED, Message

_adapters: dict[type[Any], TypeAdapter[Any]] = {}
_replies: dict[type[Any], TypeAdapter[Any]] = {}


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


def _reply_adapter(message: type[Message[Any]]) -> TypeAdapter[Any]:
    adapter = _replies.get(message)
    if adapter is None:
        adapter = _replies[message] = TypeAdapter(_reply_type(message))
    return adapter


def _reply_type(message: type[Any]) -> Any:
    for base in getattr(message, "__orig_bases__", ()):
        if typing.get_origin(base) is Message:
            return typing.get_args(base)[0]
    raise LookupError(f"{message.__name__} does not say what it is answered with")


def encode_reply(message: type[Message[Any]], reply: Any) -> str:
    """Write what a message was answered with, by the type that the message names."""
    return _reply_adapter(message).dump_json(reply).decode()


def decode_reply(message: type[Message[Any]], payload: str) -> Any:
    """Read a reply back."""
    return _reply_adapter(message).validate_json(payload)


def encode_error(error: BaseException) -> str:
    """Write an answer that is an error; what is no answer of ours becomes Unavailable."""
    if not isinstance(error, RuntimeFault | Refused):
        error = Unavailable(type(error).__name__, outcome="unknown")
    kind = type(error)
    parts = (f"{kind.__module__}:{kind.__qualname__}", error.args, vars(error))
    return orjson.dumps(parts, default=str).decode()


def decode_error(payload: str) -> BaseException:
    """Read an error back, of the class it had."""
    name, args, fields = orjson.loads(payload)
    kind = _error_kinds().get(name)
    if kind is None:
        return Unavailable(f"an answer of an unknown kind: {name}", outcome="unknown")
    error = kind.__new__(kind, *args)
    error.args = tuple(args)
    error.__dict__.update(fields)
    return error


def _error_kinds() -> dict[str, type[BaseException]]:
    found: dict[str, type[BaseException]] = {}
    waiting: list[type[BaseException]] = [RuntimeFault, Refused]
    while waiting:
        kind = waiting.pop()
        found[f"{kind.__module__}:{kind.__qualname__}"] = kind
        waiting += kind.__subclasses__()
    return found
