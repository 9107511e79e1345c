"""Serves a peer on Hypercorn or on uvicorn, as fast as either runs, and checks bearer tokens."""

import gc
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

App = Callable[[Any, Any, Any], Awaitable[None]]


def serve(app: Any, server: str, port: int) -> None:
    """Serve until SIGTERM."""
    gc.freeze()  # both as `tolsey serve` does
    gc.set_threshold(20_000, 20, 20)
    if server == "uvicorn":
        import uvicorn  # noqa: PLC0415 - one of the two runs

        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
        return
    import uvloop  # noqa: PLC0415 - as above
    from hypercorn.asyncio import serve as serve_app  # noqa: PLC0415 - as above
    from hypercorn.config import Config  # noqa: PLC0415 - as above

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.accesslog = None
    config.keep_alive_max_requests = 1_000_000
    uvloop.run(serve_app(app, config))


class Checked:
    """Lets in whoever has one of some tokens, kept in memory as their hashes."""

    def __init__(self, app: App, tokens: Iterable[str]) -> None:
        self._app = app
        self._admitted = {_hash(token.encode()) for token in tokens}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] == "http" and not self._admits(scope["headers"]):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)

    def _admits(self, headers: Any) -> bool:
        for name, value in headers:
            if name == b"authorization":
                scheme, _, token = value.partition(b" ")
                return scheme == b"Bearer" and _hash(token) in self._admitted
        return False


def _hash(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
