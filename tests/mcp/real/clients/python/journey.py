"""What every client does at a store: list the tools, call each, and write down what came of it.

usage: python -m tests.mcp.real.clients.python.<client> ADDRESS CALLS REPORT, in the client's own environment.
"""

import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

ADDRESS, CALLS, REPORT = sys.argv[1:]

Make = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Calls a tool; answers its text or its value, and raises what went wrong."""


async def travel(package: str, names: Iterable[str], call: Make) -> None:
    """Call every listed tool of which it is said how, and write down what became of each."""
    listed = list(names)
    wanted: Mapping[str, Any] = json.loads(Path(CALLS).read_text())
    answers = {name: await trouble(call, name, wanted[name]) for name in listed if name in wanted}
    answered = {"version": version(package), "tools": listed, "answers": answers}
    Path(REPORT).write_text(json.dumps(answered))


async def trouble(call: Make, name: str, given: dict[str, Any]) -> str | None:
    """Say what went wrong with a call; None when it went well. A planned change is made, too."""
    try:
        answer = await call(name, given)
        value = json.loads(answer) if isinstance(answer, str) else answer
    except Exception as error:  # noqa: BLE001 - each client has errors of its own
        return repr(error)
    if not given.get("dry_run") or "plan_token" not in value:
        return None
    made = {**given, "dry_run": False, "plan_token": value["plan_token"]}
    return await trouble(call, name, made)


def text_of(answer: Any, *, failed: bool) -> str:
    """Read the text of a result; raises when the tool says that it failed."""
    text: str = answer.content[0].text
    if failed:
        raise ValueError(text)
    return text
