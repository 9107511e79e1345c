"""Sends signed deliveries of many shops in turn, as `bench/load.py` does for one.

A process of its own, started by `bench/behind_port.py`; takes one JSON object and prints one.
"""

import asyncio
import gc
import json
import sys
from collections import Counter, deque
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import uvloop

from bench import asking, load, orders

READY = "ready"
"""Printed when the requests are made; sending begins with a line of input."""


ACCEPTED = b'"accepted"'
"""What stands in the answer to a delivery that was taken."""


def shop(number: int) -> str:
    """Name one of the shops."""
    return f"bench-{number}.myshopify.com"


def requests(path: str, first: int, most: int, first_shop: int, shops: int) -> Iterator[bytes]:
    """Make signed requests, each of the next shop; the shop's name is no part of what is signed."""
    former = f"X-Shopify-Shop-Domain: {orders.SHOP}".encode()
    names = [f"X-Shopify-Shop-Domain: {shop(first_shop + n)}".encode() for n in range(shops)]
    for number, request in enumerate(orders.requests(path, first, most)):
        yield request.replace(former, names[number % shops], 1)


async def kept(given: dict[str, Any], waiting: deque[bytes]) -> asking.Result:
    """Send over connections that stay, each delivery when the one before it is answered."""
    warm = await load.send(
        waiting, given["port"], given["warm_seconds"], given["connections"], ACCEPTED
    )
    started = perf_counter()
    sent = await load.send(waiting, given["port"], given["seconds"], given["connections"], ACCEPTED)
    failed = Counter({sent.first_refusal: len(sent.seconds) - sent.accepted})
    failed["broken"] = sent.broken
    found = asking.seen(sent.seconds, perf_counter() - started, +failed)
    return {**found, "sent": len(warm.seconds) + len(sent.seconds)}


async def renewed(given: dict[str, Any], waiting: deque[bytes]) -> asking.Result:
    """Send each delivery over a connection of its own, as platforms may."""

    async def one(_: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", given["port"])
        try:
            writer.write(waiting.popleft().replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            answer = await reader.read()
        finally:
            writer.close()
        if not answer.startswith(b"HTTP/1.1 200") or ACCEPTED not in answer:
            raise Refused(answer[:200].decode("latin-1"))

    return await asking.asked(one, given["connections"], given["seconds"])


class Refused(Exception):  # noqa: N818 - it names what happened
    """A delivery was answered, but not accepted."""


async def main() -> None:
    given = json.loads(sys.argv[1])
    which = (given[name] for name in ("path", "first", "most", "first_shop", "shops"))
    waiting = deque(requests(*which))
    gc.freeze()
    gc.disable()
    print(READY, flush=True)
    sys.stdin.readline()
    print(json.dumps(await (renewed if given["new"] else kept)(given, waiting)))


if __name__ == "__main__":
    uvloop.run(main())
