"""Chains of what happened, each line over the one before: how a line is hashed, and how a changed one is found.

A ledger of a deal and the events of a signature are such chains. A line is kept as its exact bytes, so
that `sha256sum` alone follows them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson


def canonical(document: Mapping[str, Any]) -> bytes:
    """Write text, integers, null, lists and objects as canonical JSON (RFC 8785)."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def sha256(content: bytes) -> str:
    """Hash content, as hex digits."""
    return hashlib.sha256(content).hexdigest()


def genesis(*names: str) -> str:
    """Say what the first line of a chain follows: the hash of what it is a chain of."""
    return sha256(":".join(names).encode())


def broken_at(first: str, lines: Iterable[tuple[str, str]], head: str | None = None) -> int | None:
    """Find the line of a chain that is missing or is not what was written; None when it is whole.

    A line is its text and its hash. `head` is the hash that the chain ends in, by which lines that were cut
    off its end are missed.
    """
    seq, last = 0, first
    for body, said in lines:
        if said != sha256(body.encode()) or not _follows(body, seq + 1, last):
            return seq + 1
        seq, last = seq + 1, said
    return seq + 1 if head is not None and head != last else None


def _follows(body: str, seq: int, previous: str) -> bool:
    try:
        line = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(line, dict) and (line.get("seq"), line.get("prevHash")) == (seq, previous)
