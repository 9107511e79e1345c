"""Sends requests over kept-alive connections, each waiting for its answer, and times them.

A process of its own, started by `bench/webhooks.py`, `bench/payments.py` and `bench/mcp.py`: requests
are made and signed before the clock starts. Takes one JSON object as its argument and prints one as
its result; `proof` is the text that stands in every answer to a request that was accepted.
"""

import asyncio
import gc
import json
import sys
from collections import deque
from time import perf_counter

import uvloop

from bench import calls, events, orders

LENGTH = b"content-length:"
CHUNKED = b"transfer-encoding: chunked"
BODIES = {"orders": orders.requests, "events": events.requests, **calls.BODIES}


class Sender(asyncio.Protocol):
    """One connection that sends the next request when the last is answered."""

    def __init__(self, load: "Load") -> None:
        self.load = load
        self.got = b""
        self.sent_at = 0.0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = transport  # type: ignore[assignment]  # uvloop's own class
        self.next()

    def next(self) -> None:
        """Send the next request, or end."""
        if not self.load.waiting or perf_counter() > self.load.until:
            self.transport.close()
            self.load.ended()
            return
        self.sent_at = perf_counter()
        self.transport.write(self.load.waiting.popleft())

    def data_received(self, data: bytes) -> None:
        """Read an answer, which says its length or comes in chunks."""
        self.got += data
        if not self._is_whole():
            return
        self.load.answered(perf_counter() - self.sent_at, self.got)
        self.got = b""
        self.next()

    def _is_whole(self) -> bool:
        head = self.got.find(b"\r\n\r\n")
        if head < 0:
            return False
        lower = self.got[:head].lower()
        if CHUNKED in lower:
            return self.got.endswith(b"\r\n0\r\n\r\n")
        at = lower.find(LENGTH) + len(LENGTH)
        until = lower.find(b"\r\n", at)
        length = int(lower[at : until if until > 0 else head])
        return len(self.got) >= head + 4 + length

    def connection_lost(self, exc: Exception | None) -> None:
        """Count a connection that broke."""
        if exc is not None or not self.transport.is_closing():
            self.load.broken += 1
            self.load.ended()


class Load:
    """One run."""

    def __init__(
        self, waiting: deque[bytes], seconds: float, connections: int, proof: bytes
    ) -> None:
        self.waiting = waiting
        self.proof = proof
        self.until = perf_counter() + seconds
        self.seconds: list[float] = []
        self.accepted = 0
        self.broken = 0
        self.first_refusal = ""
        self._open = connections
        self.done = asyncio.get_running_loop().create_future()

    def answered(self, seconds: float, answer: bytes) -> None:
        """Count an answer."""
        self.seconds.append(seconds)
        if answer.startswith(b"HTTP/1.1 200") and self.proof in answer:
            self.accepted += 1
        elif not self.first_refusal:
            self.first_refusal = answer[:400].decode("latin-1")

    def ended(self) -> None:
        """Count a connection that ended."""
        self._open -= 1
        if self._open <= 0 and not self.done.done():
            self.done.set_result(None)


async def send(
    waiting: deque[bytes], port: int, seconds: float, connections: int, proof: bytes
) -> Load:
    """Send until the time is over or nothing is left."""
    loop = asyncio.get_running_loop()
    load = Load(waiting, seconds, connections, proof)
    for _ in range(connections):
        await loop.create_connection(lambda: Sender(load), "127.0.0.1", port)
    await load.done
    return load


async def main() -> None:
    given = json.loads(sys.argv[1])
    port, connections = given["port"], given["connections"]
    requests = BODIES[given.get("bodies", "orders")]
    waiting = deque(requests(given["path"], given["first"], given["most"]))
    proof = given.get("proof", '"accepted"').encode()
    gc.freeze()
    gc.disable()
    warm = await send(waiting, port, given["warm_seconds"], connections, proof)
    started = perf_counter()
    load = await send(waiting, port, given["seconds"], connections, proof)
    elapsed = perf_counter() - started
    ordered = sorted(load.seconds) or [0.0]
    print(
        json.dumps(
            {
                "accepted": load.accepted,
                "answered": len(warm.seconds) + len(load.seconds),
                "refused": len(load.seconds) - load.accepted + load.broken,
                "per_second": load.accepted / elapsed,
                "p50_ms": ordered[len(ordered) // 2] * 1000,
                "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
                "first_refusal": load.first_refusal,
            }
        )
    )


if __name__ == "__main__":
    uvloop.run(main())
