"""Orders in the demo shop, each a few signed webhooks, some sent twice and out of order."""

import asyncio
from collections.abc import Callable

from tolsey.demo.telling import Teller
from tolsey.storage.database import Database

BURST = 30
QUIET_LOOKS = 10
"""A second without a delivery is the end of the burst."""


async def deliver(teller: Teller, database: Database, place_order: Callable[[], object]) -> None:
    """Place orders and watch their webhooks being applied."""
    before = await _applied(database)
    with teller.counting() as progress:
        placed = progress.add_task("orders placed", total=BURST)
        for _ in range(BURST):
            place_order()
            progress.advance(placed)
            await asyncio.sleep(0.05)
        arrived = progress.add_task("webhooks applied", total=None)
        quiet, last = 0, before
        while quiet < QUIET_LOOKS:
            await asyncio.sleep(0.1)
            now = await _applied(database)
            quiet, last = (quiet + 1, last) if now == last else (0, now)
            progress.update(arrived, completed=now - before)
        progress.update(arrived, total=last - before)
    teller.done(f"{last - before} deliveries of {BURST} orders were applied once each")


async def _applied(database: Database) -> int:
    row = await database.fetchrow("SELECT count(*) AS n FROM commerce_webhook_events")
    return int(row["n"]) if row else 0
