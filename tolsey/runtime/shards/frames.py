"""Frames as bytes: what stands in one, by name, and how releases before wrote it, by position."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from tolsey.runtime.codec import WireForm

Entry = dict[str, Any]
"""One line of a frame: `is` says what it is, `FIELDS` what else it holds."""

FIELDS: Final = {
    "ask": (
        "number",
        "kind",
        "key",
        "message",
        "payload",
        "id",
        "seconds",
        "chain",
        "request_id",
        "again",
        "epoch",
    ),
    "operation": ("number", "name", "payload"),
    "row": ("key", "slot", "kind", "actor_key", "name", "payload", "request_id"),
    "reply": ("number", "payload"),
    "error": ("number", "error"),
    "moved": ("number",),
}
"""`ask`: the epoch is that of the slot, as who asks knows it. `operation`: of the process itself;
number 0 wants no answer. `row`: of the outbox, it is on disk, look at it. `reply` and `error`
answer. `moved`: not the owner."""

_LETTERS: Final = {
    "a": "ask",
    "o": "operation",
    "r": "row",
    "k": "reply",
    "e": "error",
    "m": "moved",
}
_WORDS: Final = {word: letter for letter, word in _LETTERS.items()}


def operation_entry(name: str, payload: Any) -> Entry:
    """Let a process do something of its own; who waits for it gives the entry a number."""
    return {"is": "operation", "number": 0, "name": name, "payload": payload}


def write(form: WireForm, sender: str, entries: Sequence[Entry]) -> bytes:
    """Write a frame. Raises TypeError for what is no JSON."""
    if form == "1":
        return orjson.dumps([sender, [_positions(entry) for entry in entries]])
    return orjson.dumps({"from": sender, "entries": entries})


def read(body: bytes) -> tuple[str, list[Entry]]:
    """Read a frame of either form. Raises ValueError, LookupError or TypeError for another."""
    frame = orjson.loads(body)
    if isinstance(frame, list):
        sender, entries = frame
        return sender, [_names(entry) for entry in entries]
    return frame["from"], frame["entries"]


def _positions(entry: Entry) -> list[Any]:
    if entry["is"] == "error":
        entry = {**entry, "error": orjson.dumps(list(entry["error"].values())).decode()}
    elif entry["is"] == "ask":
        entry = {**entry, "message": entry["message"].rpartition(".")[2]}
    return [_WORDS[entry["is"]], *(entry[name] for name in FIELDS[entry["is"]])]


def _names(entry: Sequence[Any]) -> Entry:
    word = _LETTERS.get(entry[0], entry[0])
    named = {"is": word, **dict(zip(FIELDS.get(word, ()), entry[1:], strict=False))}
    if word == "error":
        named["error"] = dict(
            zip(("name", "args", "fields"), orjson.loads(named["error"]), strict=True)
        )
    return named
