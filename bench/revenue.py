"""How long it takes to verify a store of 50,000 orders, and how that grows from 5,000.

Ours is the service's own client and its revenue definition rv2, over HTTP from a sandbox shop in a
process of its own; the peer (`bench/peers/paging.py`) pages through fifty orders at a time and sums
afterwards, without the lines and transactions that rv2 needs. The shop does not throttle here; a real
one gives back 100 points a second, and the last columns say how long a run would then have to wait
for its points, and so last at least (a bulk export's own time on the platform's side is not in it).
The seconds hold the sandbox's own work; what the client's processor did is told apart, and the calls.
"""

import gzip
import json
import re
import statistics
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from time import perf_counter, process_time
from typing import Any

import httpx

from bench import measure
from bench.asking import collect_seldom
from bench.peers import paging
from bench.peers.shop import CLIENT_ID, CLIENT_SECRET, DOMAIN
from tolsey.actors.listing.effects import measure_shop
from tolsey.actors.listing.verification.revenue import window_of
from tolsey.actors.ports import Shop
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.http.clients.guard import guarded_client

RESTORED = 100
"""Points that a shop of the platform's usual plan gives back each second."""
BUCKET = 2_000

MEGABYTE = 1024 * 1024


COST = re.compile(rb'"actualQueryCost":\s*([\d.]+)')


class Meter(httpx.AsyncBaseTransport):
    """Counts the platform's calls, and adds up the points that answers say they cost."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.points = 0.0
        self.calls = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass a request on."""
        self.calls += 1
        response = await self.inner.handle_async_request(request)
        if not request.url.path.endswith("/graphql.json"):
            return response
        assert isinstance(response.stream, httpx.AsyncByteStream)
        raw = b"".join([part async for part in response.stream])
        await response.stream.aclose()
        status, headers = response.status_code, response.headers
        said = COST.search(gzip.decompress(raw) if "content-encoding" in headers else raw)
        self.points += float(said[1]) if said else 0
        return httpx.Response(
            status, headers=headers, stream=httpx.ByteStream(raw), extensions=response.extensions
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()


async def ours(url: str) -> dict[str, Any]:
    """Verify as the service does."""
    client = guarded_client([f"{url}/{{shop}}"])
    meter = client._transport = Meter(client._transport)  # noqa: SLF001 - no public way in
    async with ShopifyAdmin(f"{url}/{{shop}}", http=client) as platform:
        grant = await platform.exchange(DOMAIN, CLIENT_ID, CLIENT_SECRET)
        shop = Shop(DOMAIN, grant.access_token)
        facts = await platform.connect_probe(shop)
        start, end = window_of(datetime.now(UTC))
        measured, _ = await measure_shop(platform, shop, facts, start, end)
    return {
        "orders": measured.orders + sum(each.orders for each in measured.skipped),
        "revenue": {figures.currency: figures.revenue30d for figures in measured.figures},
        "points": meter.points,
        "calls": meter.calls,
    }


async def timed(which: str, url: str) -> dict[str, Any]:
    """Run one and say what it took."""
    collect_seldom()
    before, started, worked = measure.rss_bytes(), perf_counter(), process_time()
    if which == "tolsey":
        found = await ours(url)
    else:
        found = await paging.verify(f"{url}/{DOMAIN}", CLIENT_ID, CLIENT_SECRET)
    seconds, worked = perf_counter() - started, process_time() - worked
    peak = measure.peak_rss_bytes()
    return {"seconds": seconds, "worked": worked, "grew": peak - before, "peak": peak, **found}


def in_child(which: str, url: str, loop: str) -> dict[str, Any]:
    """Run one in a fresh process."""
    answer = subprocess.run(  # noqa: S603 - this file
        [sys.executable, "-m", "bench.revenue", "--loop", loop, "--measure", which, "--url", url],
        cwd=measure.ROOT,
        check=True,
        stdout=subprocess.PIPE,
        timeout=170,
    )
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    measure.say(
        f"{which}: {found['orders']:,} orders in {found['seconds']:.1f} s, {found['revenue']}"
    )
    return found


def waits(points: float) -> float:
    """Give the seconds a shop that throttles would add."""
    return max(0.0, points - BUCKET) / RESTORED


def compare(loop: str, *, quick: bool) -> None:
    sizes = (1_000, 4_000) if quick else (5_000, 50_000)
    medians: dict[str, list[float]] = {"tolsey": [], "paging": []}
    lasts: dict[str, float] = {}
    rows = []
    for orders in sizes:
        with ExitStack() as stack:
            port = measure.free_port()
            measure.say(f"opening a shop with {orders:,} orders")
            process = stack.enter_context(
                measure.child([sys.executable, "-m", "bench.peers.shop", str(port), str(orders)])
            )
            measure.await_port(port, process, seconds=90)
            rounds = 3 if orders <= 5_000 and not quick else 1
            runs = {"tolsey": [], "paging": []}  # type: dict[str, list[dict[str, Any]]]
            for _ in range(rounds):
                for which, found in runs.items():
                    found.append(in_child(which, f"http://127.0.0.1:{port}", loop))
        for which, found in runs.items():
            seconds = statistics.median(one["seconds"] for one in found)
            medians[which].append(seconds)
            grew = max(one["grew"] for one in found) / MEGABYTE
            peak = max(one["peak"] for one in found) / MEGABYTE
            points = found[0]["points"]
            lasts[which] = seconds + waits(points)
            worked = statistics.median(one["worked"] for one in found)
            row = [f"{which}, {orders:,} orders", seconds, worked, worked / orders * 1e6]
            calls = found[0]["calls"]
            rows.append([*row, grew, peak, calls, points, waits(points), lasts[which]])
    measure.table(
        "Verifying a store",
        [
            *("", "seconds", "worked s", "µs/order", "grew by MB", "peak MB"),
            *("calls", "points", "waits s", "lasts s"),
        ],
        rows,
    )
    for which, (small, large) in medians.items():
        print(f"{which}: {sizes[1] // sizes[0]} times the orders take {large / small:.2f} times")
    print(
        f"{sizes[1]:,} orders: the peer takes {medians['paging'][1] / medians['tolsey'][1]:.2f} times"
        f" as long as ours unthrottled, {lasts['paging'] / lasts['tolsey']:.0f} times at a real shop"
    )


def main() -> None:
    parser = measure.arguments(__doc__ or "")
    parser.add_argument("--measure", choices=("tolsey", "paging"))
    parser.add_argument("--url", default="")
    given = parser.parse_args()
    if given.measure is None:
        measure.machine(given.loop)
        compare(given.loop, quick=given.quick)
        return

    async def measured() -> None:
        print(json.dumps(await timed(given.measure, given.url)))

    measure.run(measured, given.loop)


if __name__ == "__main__":
    main()
