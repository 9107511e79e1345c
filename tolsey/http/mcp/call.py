"""A request on its way: who asks, and what can be told them before the answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tolsey.http.mcp import wire
from tolsey.http.mcp.envelope import Request
from tolsey.http.mcp.wire import RpcError

Emit = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Sends one notification to the client, ahead of the answer."""


@dataclass(slots=True)
class Call:
    """One request as a handler sees it.

    `principal` is who the gate admitted. `responses` and `state` are what the client brought back
    after an InputRequired; the state is exactly what was given out, or the request was refused.
    """

    request: Request
    principal: Any
    emit: Emit
    responses: Mapping[str, Any] = field(default_factory=dict)
    state: Any = None
    _progress: float | None = None

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell how far the work is, when the client asked; it only ever grows."""
        token = self.request.progress_token
        if token is None or (self._progress is not None and progress <= self._progress):
            return
        self._progress = progress
        said: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            said["total"] = total
        if message is not None:
            said["message"] = message
        await self.emit({"method": "notifications/progress", "params": said})

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message, when the client wants messages of this severity.

        Before 2026-07-28 a client said so once for a session; without one it is sent everything.
        """
        least = self.request.log_level if self.request.is_modern else wire.LEVELS[0]
        if least is None or wire.LEVELS.index(level) < wire.LEVELS.index(least):
            return
        said: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            said["logger"] = logger
        await self.emit({"method": "notifications/message", "params": said})

    def can(self, capability: str) -> bool:
        """Whether the client declared a capability in this very request."""
        return capability in self.request.capabilities

    def require(self, capability: str) -> None:
        """Refuse a request that cannot be answered without a capability of the client."""
        if not self.can(capability):
            raise RpcError(
                wire.MISSING_CAPABILITY,
                f"The client does not declare the capability {capability}.",
                {"requiredCapabilities": {capability: {}}},
            )
