"""The drill of the runbook: the primary is lost under load, its standby is promoted, and nothing that was answered is gone."""

import itertools
from pathlib import Path

import anyio
import asyncpg
from anyio import to_thread

from tests.campaigns.cluster.link import Link
from tests.journeys.conftest import EVENTS, Seller, order_body, sign_up, signed
from tests.journeys.drills import PORT, Drill, drill
from tests.journeys.strangers import browsing, quiet
from tests.timing import LEASE_SECONDS, until
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import running
from tolsey.settings import Settings

__all__ = ["drill"]

CLIENTS = 4
BEFORE, AFTER = 40, 20
"""So many orders are taken before the primary is lost, and so many have to be taken afterwards."""
ORDERS = "SELECT order_id FROM commerce_orders WHERE order_id < 100000 ORDER BY order_id"
"""Those that were delivered: what the shop had before has other numbers."""


class Deliveries:
    """Orders that platforms deliver all the time: each until it is taken."""

    def __init__(self, seller: Seller) -> None:
        self._seller = seller
        self._numbers = itertools.count(1)
        self.taken: list[int] = []
        self.refused = 0
        self.over = False

    async def deliver(self) -> None:
        """Deliver one order after the other; what is refused is sent again, as a platform does."""
        while not self.over:
            number = next(self._numbers)
            body = order_body(number)
            headers = signed(body, delivery_id=f"delivery-{number}")
            while True:
                answer = await self._seller.browser.post(EVENTS, content=body, headers=headers)
                if answer.status_code == 200:
                    break
                assert answer.status_code == 503, answer.text
                self.refused += 1
                await anyio.sleep(0.05)
            self.taken.append(number)

    async def reach(self, taken: int) -> None:
        """Wait until so many are taken."""
        await until(lambda: len(self.taken) >= taken)


def socket_of(folder: Path) -> Path:
    return folder / f".s.PGSQL.{PORT}"


async def test_what_was_answered_is_there_after_the_primary_was_lost_and_its_standby_promoted(
    drill: Drill, settings: Settings, platform: Platform
) -> None:
    del platform
    async with Link(socket_of(drill.home.sockets)).standing() as link:
        address = f"postgresql://postgres@127.0.0.1:{link.port}/postgres?sslmode=disable"
        given = {"database_url": address, "lease_seconds": LEASE_SECONDS}
        async with (
            running(settings.model_copy(update=given), timers=False, poll_seconds=0.1) as live,
            browsing(live) as browser,
        ):
            seller = await sign_up(browser)
            assert (await seller.connect()).status_code == 200
            await quiet(live)
            await to_thread.run_sync(drill.run, "Set up a standby")
            try:
                await _synchronous(drill)
                await _failed_over(drill, link, deliveries := Deliveries(seller))
                await quiet(live)
                rows = await live.service.database.fetch(ORDERS)
            finally:
                drill.end()

    assert deliveries.refused
    assert [row["order_id"] for row in rows] == sorted(deliveries.taken)


async def _is_synchronous(primary: asyncpg.Connection) -> bool:
    state = await primary.fetchval("SELECT sync_state FROM pg_stat_replication")
    return bool(state == "sync")


async def _synchronous(drill: Drill) -> None:
    """Wait until the primary answers nothing that the standby does not have."""
    primary = await asyncpg.connect(drill.url)
    try:
        await until(lambda: _is_synchronous(primary))
    finally:
        await primary.close()


async def _failed_over(drill: Drill, link: Link, deliveries: Deliveries) -> None:
    """Lose the primary while orders come in, and lead to its standby."""
    async with anyio.create_task_group() as tasks:
        for _ in range(CLIENTS):
            tasks.start_soon(deliveries.deliver)
        await deliveries.reach(BEFORE)
        await to_thread.run_sync(drill.lose)
        answered = list(deliveries.taken)
        await until(lambda: deliveries.refused > 0)
        await to_thread.run_sync(drill.run, "Fail over PostgreSQL")
        promoted = await asyncpg.connect(drill.restored_url)
        try:
            there = {row["order_id"] for row in await promoted.fetch(ORDERS)}
        finally:
            await promoted.close()
        assert set(answered) <= there, "a synchronous standby has all that was answered"
        await link.redirect(socket_of(drill.restored))
        await deliveries.reach(len(answered) + AFTER)
        deliveries.over = True
