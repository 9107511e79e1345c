"""What a result looks like in each revision: newer words are left out for older clients."""

from collections.abc import Mapping
from typing import Any, Final

from tolsey.http.mcp import wire

CACHED: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
    }
)
"""The methods whose results say how long they hold."""
HOLDS: Final = {"ttlMs": 300_000, "cacheScope": "private"}
"""Lists only change with a new version of the service; they depend on who asks."""
HELD_FOR_NOTHING: Final = {"ttlMs": 0, "cacheScope": "private"}
"""What a resource holds is true when it is read."""

TITLED_SINCE: Final = "2025-06-18"
"""Titles, output schemas and structured content began here."""


def finish(
    result: Mapping[str, Any], method: str, revision: str, server_info: Mapping[str, Any]
) -> dict[str, Any]:
    """Complete a result for a client of a revision."""
    if revision != wire.MODERN:
        return dict(result) if revision >= TITLED_SINCE else _plain(result)
    done: dict[str, Any] = {"resultType": "complete", **result}
    if method in CACHED and done["resultType"] == "complete":
        done |= HELD_FOR_NOTHING if method == "resources/read" else HOLDS
    done["_meta"] = {**result.get("_meta", {}), wire.SERVER_INFO: dict(server_info)}
    return done


def _plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what 2025-03-26 does not know."""
    kept = {name: value for name, value in result.items() if name != "structuredContent"}
    for name in ("tools", "resources", "resourceTemplates", "prompts"):
        if name in kept:
            kept[name] = [
                {key: value for key, value in one.items() if key not in {"title", "outputSchema"}}
                for one in kept[name]
            ]
    return kept
