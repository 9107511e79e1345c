"""A platform whose every answer is written by the test, over real HTTP."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc

from tolsey.actors.ports import Shop
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.http.clients.commerce.calls import CallLimits

SHOP = Shop("demo.myshopify.com", "shpat_canary")


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def variables(self) -> dict[str, Any]:
        variables: dict[str, Any] = json.loads(self.body)["variables"]
        return variables

    @property
    def document(self) -> str:
        return str(json.loads(self.body)["query"])


@dataclass
class Says:
    """An answer to send; `raw` is sent as it is and the connection closed."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    stall: bool = False

    def encoded(self) -> bytes:
        if self.raw is not None:
            return self.raw
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        lines = [f"HTTP/1.1 {self.status} x", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Time:
    """A clock that only moves when someone waits."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await anyio.lowlevel.checkpoint()


@dataclass
class Wire:
    """The script, what was asked of it, and the client under test."""

    url: str
    script: list[Says | Callable[[Asked], Says]]
    asked: list[Asked] = field(default_factory=list)
    time: Time = field(default_factory=Time)

    def client(self, **limits: Any) -> ShopifyAdmin:
        return ShopifyAdmin(
            self.url + "/{shop}",
            clock=lambda: self.time.now,
            sleep=self.time.sleep,
            luck=lambda: 1.0,
            limits=CallLimits(**limits),
        )

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            asked = await read(stream)
            if asked is None:
                return
            self.asked.append(asked)
            step = self.script.pop(0)
            says = step(asked) if callable(step) else step
            if says.stall:
                await anyio.sleep_forever()
            await stream.send(says.encoded())


async def read(stream: anyio.abc.SocketStream) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            data += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return None
    head, body = data.split(b"\r\n\r\n", 1)
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, body)


@asynccontextmanager
async def wired(*script: Says | Callable[[Asked], Says]) -> AsyncIterator[Wire]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django's
    wire = Wire(f"http://127.0.0.1:{port}", list(script))
    failure: Exception | None = None
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, wire.serve)
        try:
            with anyio.fail_after(60):
                yield wire
        except Exception as error:  # noqa: BLE001 - it reaches the test as it is, not in a group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def data(**fields: Any) -> Says:
    return Says(body={"data": fields})


def cost(requested: float, available: float, rate: float = 50.0, maximum: float = 1000.0) -> Any:
    return {
        "cost": {
            "requestedQueryCost": requested,
            "actualQueryCost": None,
            "throttleStatus": {
                "maximumAvailable": maximum,
                "currentlyAvailable": available,
                "restoreRate": rate,
            },
        }
    }


def throttled(requested: float, available: float, rate: float = 50.0) -> Says:
    error = {"message": "Throttled", "extensions": {"code": "THROTTLED"}}
    return Says(body={"errors": [error], "extensions": cost(requested, available, rate)})
