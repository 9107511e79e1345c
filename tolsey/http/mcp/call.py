"""A request on its way: who asks, and what they brought."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tolsey.http.mcp import wire
from tolsey.http.mcp.envelope import Request
from tolsey.http.mcp.wire import RpcError


@dataclass(slots=True)
class ToolCall:
    """One request as a handler sees it.

    `principal` is who the gate admitted. `responses` and `state` are what the client brought back
    after an InputRequired; the state is exactly what was given out, or the request was refused.
    """

    request: Request
    principal: Any
    responses: Mapping[str, Any] = field(default_factory=dict)
    state: Any = None

    def require(self, capability: str) -> None:
        """Refuse a request that cannot be answered without a capability of the client."""
        if capability not in self.request.capabilities:
            raise RpcError(
                wire.MISSING_CAPABILITY,
                f"The client doesn't declare the capability {capability}. Use a client that supports it.",
                {"requiredCapabilities": {capability: {}}},
            )
