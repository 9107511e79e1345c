"""A sandbox shop with an order history, in a process of its own: `port orders`."""

import asyncio
import sys
from datetime import UTC, datetime

import uvloop

from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ShopSpec

DOMAIN = "bench.myshopify.com"
CLIENT_ID = "bench-client"
CLIENT_SECRET = "bench-client-secret"  # noqa: S105 - of a shop that exists only while the bench runs
UNTHROTTLED = 1e12
"""Points of a bucket that never runs dry: what is timed is work, not waiting."""


async def serve(port: int, orders: int) -> None:
    """Serve until ended."""
    platform = Platform(published_folder=None)
    platform.add_shop(
        ShopSpec(
            domain=DOMAIN,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            maximum_points=UNTHROTTLED,
            restore_rate=UNTHROTTLED,
            orders=make_history(seed=5, days=29, orders=orders, ending=datetime.now(UTC)),
        )
    )
    async with platform.serve(port=port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
