"""The state of a request that waits for input: it travels with the client, sealed.

Whoever brings it back must be who was given it, for the same method and arguments, within ten minutes
(rules/agents#protocol).
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from tolsey.http.mcp import wire
from tolsey.http.mcp.wire import RpcError

LIFE_SECONDS: Final = 600
CARRIED: Final = frozenset({"_meta", "inputResponses", "requestState"})
"""What changes between the first try and the next; the rest must be the same."""


class Sealer(Protocol):
    """Seals texts for one place; raises ValueError when a text was not sealed for it."""

    def seal(self, plain: str, bound_to: str) -> str:
        """Seal a text so that only `bound_to` opens it."""
        ...

    def open(self, sealed: str, bound_to: str) -> str:
        """Open a sealed text."""
        ...


class RequestStates:
    """Gives states out and takes them back."""

    def __init__(self, sealer: Sealer, now: Callable[[], float]) -> None:
        self._sealer = sealer
        self._now = now

    def give(self, state: Any, method: str, params: Mapping[str, Any], principal: str) -> str:
        """Seal a state for its way to the client and back."""
        kept = json.dumps({"until": self._now() + LIFE_SECONDS, "state": state})
        return self._sealer.seal(kept, _bound(method, params, principal))

    def take(self, sealed: str, method: str, params: Mapping[str, Any], principal: str) -> Any:
        """Open a state that came back. Raises RpcError when it is not ours, not theirs, or old."""
        try:
            kept = json.loads(self._sealer.open(sealed, _bound(method, params, principal)))
        except ValueError as error:
            raise RpcError(
                wire.INVALID_PARAMS,
                "requestState doesn't belong to this request. Send the string from the"
                " earlier response.",
            ) from error
        if kept["until"] < self._now():
            raise RpcError(
                wire.INVALID_PARAMS, "requestState has expired. Send the request again without it."
            )
        return kept["state"]


def _bound(method: str, params: Mapping[str, Any], principal: str) -> str:
    asked = {name: value for name, value in params.items() if name not in CARRIED}
    text = json.dumps([principal, method, asked], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
