"""Messages, calls, replies and errors as JSON text: they wait in the outbox and cross processes."""

import typing
from collections.abc import Mapping
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter

from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import RuntimeFault, ShardUnavailable
from tolsey.runtime.messages import NAMES, Message, class_named

WireForm = Literal["1", "2"]
"""How a release writes rows and entries: 1 by the class alone and by position, 2 by `kind.Name` and
named fields. Both are read; a release that knows only the former leaves the latter alone."""

_adapters: dict[type[Any], TypeAdapter[Any]] = {}
_replies: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    adapter = _adapters.get(kind)
    if adapter is None:
        adapter = _adapters[kind] = TypeAdapter(kind)
    return adapter


def name_in(form: WireForm, found: type[Any]) -> str:
    """Name a class as rows of this form do."""
    return found.__name__ if form == "1" else NAMES[found]


def encode(value: Any) -> str:
    """Write a registered message or call as JSON text."""
    return _adapter(type(value)).dump_json(value).decode()


def decode(name: str, kind: str, payload: str) -> Any:
    """Read a message or call of an actor of this kind. Raises LookupError for an unknown name."""
    return _adapter(class_named(name, kind)).validate_json(payload)


def _reply_adapter(message: type[Message[Any]]) -> TypeAdapter[Any]:
    adapter = _replies.get(message)
    if adapter is None:
        adapter = _replies[message] = TypeAdapter(reply_type(message))
    return adapter


def reply_type(message: type[Any]) -> Any:
    """Name the type that a message says it is answered with. Raises LookupError where it says none."""
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


def encode_error(error: BaseException) -> dict[str, Any]:
    """Write an answer that is an error as JSON; what is no answer of ours becomes ShardUnavailable."""
    if not isinstance(error, RuntimeFault | Refused):
        error = ShardUnavailable(type(error).__name__, outcome="unknown")
    written = {"name": _crossing_name(type(error)), "args": error.args, "fields": vars(error)}
    return dict(orjson.loads(orjson.dumps(written, default=str)))


def decode_error(written: Mapping[str, Any]) -> BaseException:
    """Read an error back, of the class it had."""
    kind = error_kinds().get(written["name"])
    if kind is None:
        unknown = f"an answer of an unknown kind: {written['name']}"
        return ShardUnavailable(unknown, outcome="unknown")
    error = kind.__new__(kind, *written["args"])
    error.args = tuple(written["args"])
    error.__dict__.update(written["fields"])
    return error


def error_kinds() -> dict[str, type[BaseException]]:
    """Name the classes of errors that cross."""
    found: dict[str, type[BaseException]] = {}
    waiting: list[type[BaseException]] = [RuntimeFault, Refused]
    while waiting:
        kind = waiting.pop()
        found[_crossing_name(kind)] = kind
        waiting += kind.__subclasses__()
    return found


def _crossing_name(kind: type[BaseException]) -> str:
    """Name a class of errors as every release does that meets it; no class inherits another's name."""
    return str(vars(kind).get("crosses_as", f"{kind.__module__}:{kind.__qualname__}"))
