"""An application that first plays what the platform's faults say, then answers."""

from typing import Any

import anyio
import orjson
from quart import Quart

from tolsey.sandbox.commerce.course.faults import Fault
from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.server import Receive, Send, whole


def _kind(path: str) -> str:
    if path.endswith("/graphql.json"):
        return "graphql"
    return "bulk" if "/bulk/" in path else "token"


class Faulty:
    """An ASGI application that misbehaves first when the platform's faults say so."""

    def __init__(self, platform: Shops, app: Quart) -> None:
        self._platform = platform
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, or let a fault answer it."""
        if scope["type"] == "http":
            self._platform.requests += 1
            kind = _kind(scope["path"])
            if kind == "graphql" and self._platform.faults.waiting.get("mutation"):
                body = await whole(receive)
                receive = _again(body, receive)
                kind = "mutation" if _is_mutation(body) else kind
            fault = self._platform.faults.take(kind)
            if fault is not None and fault.kind == "lost":
                await self._app(scope, receive, _unheard)  # type: ignore[arg-type]
            if fault is not None and fault.kind == "cut":
                send = _cut(send, fault.after)
            elif fault is not None and await _misbehave(fault, send):
                return
        await self._app(scope, receive, send)  # type: ignore[arg-type]


def _again(body: bytes, receive: Receive) -> Receive:
    """Let a body that was read be read once more."""
    events = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> dict[str, Any]:
        return events.pop() if events else await receive()

    return replayed


def _is_mutation(body: bytes) -> bool:
    return str(orjson.loads(body).get("query", "")).lstrip().startswith("mutation")


async def _unheard(message: dict[str, Any]) -> None:
    """Let nobody hear an answer."""


def _cut(send: Send, after: int) -> Send:
    """Let an answer be heard up to so many bytes; what has no end is cut off by the server."""
    left = after

    async def sent(message: dict[str, Any]) -> None:
        nonlocal left
        if message["type"] == "http.response.body":
            body = message.get("body", b"")[:left]
            left -= len(body)
            is_last = left > 0 and not message.get("more_body", False)
            message = {**message, "body": body, "more_body": not is_last}
        await send(message)

    return sent


async def _misbehave(fault: Fault, send: Send) -> bool:
    """Play a fault; a slow or held answer still has to be given afterwards."""
    if fault.kind == "slow":
        await anyio.sleep(fault.seconds)
        return False
    if fault.released is not None:
        await fault.released.wait()
        return False
    cut = fault.kind in {"reset", "lost"}
    size = 1_000_000 if cut else len(fault.body)
    headers = [*fault.headers, (b"content-length", str(size).encode())]
    status = 200 if cut else fault.status
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = b'{"data":' if cut else fault.body
    await send({"type": "http.response.body", "body": body, "more_body": cut})
    return True
