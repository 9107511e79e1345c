"""The service with cables to its servers, and what goes wrong with it: each trouble made for real."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import asyncpg
import pytest

from tests.campaigns.cluster.link import Link
from tests.http.launch.merchant import SPEC
from tests.journeys.conftest import (
    EVENTS,
    SECRET,
    SHOP,
    Seller,
    order_body,
    signed,
)
from tests.timing import LEASE_SECONDS, TestTime, until
from tolsey.actors.organization.ledger.messages import AdjustCredits, SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.store.state import StoreState, filed
from tolsey.runtime.outbox.lanes import PLACES
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import (
    ALL_SCOPES,
    LAUNCH_SCOPES,
    WRITE_SCOPES,
    ShopSpec,
)
from tolsey.server import serve_app
from tolsey.service import Running, running
from tolsey.settings import Settings

PATIENCE_SECONDS = 60
CHANGED = "shpss_changed0000000000000000000000"
SLOW_SECONDS = 0.08


class ShiftedClock:
    """The clock of the process, which somebody may have set wrongly."""

    ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Stage:
    """The whole service on a port, its servers and the platform at the ends of cables, and who sells there."""

    url: str
    live: Running
    platform: Platform
    platform_up: AsyncExitStack
    """Closed, the platform is down."""
    redis: Link
    postgres: Link
    clock: ShiftedClock
    database_url: str
    """Past the cable."""
    seller: Seller = field(init=False)

    async def edited(self, number: int) -> None:
        """Deliver that an order was edited: what it is now has to be read from its shop."""
        order_id = sorted(self.platform.shop(SHOP).orders)[number]
        body = json.dumps({"order_edit": {"id": number, "order_id": order_id}}).encode()
        headers = signed(body, "orders/edited", delivery_id=f"edit-{number}")
        answer = await self.seller.browser.post(EVENTS, content=body, headers=headers)
        assert answer.status_code == 200, answer.text

    async def ordered(self, number: int, delivery_id: str) -> None:
        """Deliver an order."""
        body = order_body(number)
        headers = signed(body, delivery_id=delivery_id)
        answer = await self.seller.browser.post(EVENTS, content=body, headers=headers)
        assert answer.status_code == 200, answer.text

    async def until(self, found: str) -> None:
        """Wait until a query finds something."""
        await until(lambda: self.live.service.database.fetch(found))


@asynccontextmanager
async def on_port(
    settings: Settings, clock: Callable[[], datetime], port: int
) -> AsyncIterator[Running]:
    """Run the whole service on a port of this machine."""
    async with (
        running(
            settings,
            clock=clock,
            timers=False,
            poll_seconds=0.1,
            backoff_seconds=(0.05,) * 4,
            time=TestTime(runs=True),
        ) as live,
        anyio.create_task_group() as tasks,
    ):
        stop, ready = anyio.Event(), anyio.Event()
        tasks.start_soon(partial(serve_app, ready=ready.set), live.app, "127.0.0.1", port, stop)
        await ready.wait()
        yield live
        stop.set()


def a_platform() -> Platform:
    made = Platform()
    made.add_shop(
        ShopSpec(
            domain=SHOP,
            client_id="client-1",
            client_secret=SECRET,
            scopes=(*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES),
            orders=make_history(seed=3, days=60, orders=20),
        )
    )
    return made


# The troubles. Each lasts for as long as its block.

Trouble = Callable[[Stage], Any]


@asynccontextmanager
async def platform_down(stage: Stage) -> AsyncIterator[None]:
    await stage.platform_up.aclose()
    await stage.edited(1)
    yield


@asynccontextmanager
async def token_refused(stage: Stage) -> AsyncIterator[None]:
    stage.platform.rotate_secret(SHOP, CHANGED)
    stage.platform.revoke_tokens(SHOP)
    await stage.edited(1)
    yield


@asynccontextmanager
async def scope_taken(stage: Stage) -> AsyncIterator[None]:
    kept = [one for one in ALL_SCOPES if one != "read_customers"]
    stage.platform.set_scopes(SHOP, *kept)
    yield


@asynccontextmanager
async def poison(stage: Stage) -> AsyncIterator[None]:
    """An order makes every turn of the store fail: a bug of ours. What comes of it later waits, others go on."""
    with pytest.MonkeyPatch.context() as given:
        given.setattr("tolsey.actors.store.deliveries.events.filed", _fails_of_seven)
        await stage.ordered(7, "one")
        await stage.until("SELECT FROM dead_letters")
    await stage.ordered(7, "two")
    await stage.ordered(8, "three")
    await stage.until("SELECT FROM commerce_orders WHERE order_id = 8")
    assert not await stage.live.service.database.fetch(
        "SELECT FROM commerce_orders WHERE order_id = 7"
    )
    yield


def _fails_of_seven(state: StoreState, *rows: Any) -> tuple[Any, ...]:
    if any(getattr(row, "order_id", None) == 7 for row in rows):
        raise KeyError("tax_lines")
    return filed(state, *rows)


@asynccontextmanager
async def poisoned_answer(stage: Stage) -> AsyncIterator[None]:
    """What the platform answered makes every turn of the store fail that is told of it: a bug of ours."""
    with pytest.MonkeyPatch.context() as given:
        given.setattr("tolsey.actors.store.deliveries.events.filed", _fails)
        await stage.edited(1)
        await stage.until("SELECT FROM dead_letters")
    yield


def _fails(*_: Any) -> None:
    raise KeyError("tax_lines")


@asynccontextmanager
async def lane_full(stage: Stage) -> AsyncIterator[None]:
    """Other organizations' calls hold every place of the lane."""
    lanes = stage.live.service.runtime.admin.lanes
    async with AsyncExitStack() as stack:
        for number in range(PLACES["platform"]):
            await stack.enter_async_context(lanes.place("platform", f"org_{number}"))
        await stage.edited(1)
        yield


@asynccontextmanager
async def database_slow(stage: Stage) -> AsyncIterator[None]:
    stage.postgres.delay_seconds = SLOW_SECONDS
    yield


@asynccontextmanager
async def redis_lost(stage: Stage) -> AsyncIterator[None]:
    await stage.redis.cut()
    yield


@asynccontextmanager
async def lease_lost(stage: Stage) -> AsyncIterator[None]:
    """Somebody holds a lock on the table in which processes beat."""
    somebody = await asyncpg.connect(stage.database_url)
    try:
        async with somebody.transaction():
            await somebody.execute("LOCK TABLE process_beats IN EXCLUSIVE MODE")
            time = stage.live.service.runtime.time
            assert isinstance(time, TestTime)
            time.advance(LEASE_SECONDS)
            assert not stage.live.service.shard.leased
            yield
    finally:
        await somebody.close()


@asynccontextmanager
async def clock_off(stage: Stage) -> AsyncIterator[None]:
    stage.clock.ahead = timedelta(minutes=1)
    yield


@asynccontextmanager
async def credits_at_zero(stage: Stage) -> AsyncIterator[None]:
    ask, to = stage.live.service.runtime.ask, organization(stage.seller.organization_id)
    given = AdjustCredits(
        key="given", amount=1_000, reason="to begin with", user_id="usr_1", at=datetime.now(UTC)
    )
    await ask(to, given)
    found = await stage.live.service.database.fetchrow(
        "SELECT sum(remaining)::bigint AS n FROM credit_lots WHERE organization_id = $1", to.key
    )
    assert found is not None
    await ask(to, SpendCredits(key="all", amount=found["n"], reason="chat", at=datetime.now(UTC)))
    yield


@asynccontextmanager
async def milestone_blocked(stage: Stage) -> AsyncIterator[None]:
    shop = stage.platform.shop(SHOP)
    shop.scopes = tuple(one for one in shop.scopes if one != "write_locations")
    begun = await stage.seller.post(
        "/api/wizard/store/launch", storeId=stage.seller.store_id, spec=SPEC, brandKit={}
    )
    assert begun.status_code == 201, begun.text
    yield


TROUBLES: dict[str, tuple[Trouble, str, str | None]] = {
    "platform_down": (platform_down, "does not answer for this shop", "/admin/incidents/open"),
    "token_refused": (token_refused, "refuses a new access token", None),
    "scope_taken": (scope_taken, "lacks read_customers", None),
    "message_given_up": (poison, "wait behind it: 1", "/admin/dead-letters"),
    "call_given_up": (poisoned_answer, "KeyError", "/admin/dead-letters"),
    "lane_full": (lane_full, "Every place of the lane platform is taken", "/admin/calls"),
    "database_slow": (database_slow, "to read nothing", None),
    "redis_lost": (redis_lost, "Redis is out of reach", "/admin/shards"),
    "lease_lost": (lease_lost, "has lapsed", "/admin/shards"),
    "clock_off": (clock_off, "60 seconds ahead of PostgreSQL's", "/admin/shards"),
    "credits_used_up": (credits_at_zero, "no credits left", None),
    "milestone_blocked": (milestone_blocked, "write_locations", None),
}
"""What is made, by the cause that is told: how, what the page says of it, and where its button leads."""
