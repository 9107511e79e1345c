"""A person told of through every way in is found nowhere once they are erased."""

from collections.abc import Mapping

import redis.asyncio

from tests.journeys.canary.planting import (
    EVIDENCE_OF_DEALS,
    NAMELESS,
    OTHER,
    OTHER_SECRET,
    World,
    account_of,
    carry_out_steps,
    deal_between,
    plant,
    requested,
    secrets_of,
    unnamed,
)
from tests.journeys.canary.spelling import pass_time, someone
from tests.journeys.conftest import SECRET, SHOP, Seller, sign_up
from tests.journeys.strangers import browsing


async def forget_what_expires(world: World) -> None:
    """Let Redis forget what it keeps for a time."""
    client = redis.asyncio.from_url(str(world.live.service.settings.redis_url))
    for key in [key async for key in client.scan_iter()]:
        if await client.ttl(key) > 0:
            await client.delete(key)
    await client.aclose()


SHOPS_OWN = {"shop_name": "Doraowner and Daughters"}


async def test_who_was_told_of_through_every_way_in_is_found_nowhere_once_they_are_erased(
    planted: World,
) -> None:
    dora, emil, fiona = (
        {**someone("dora", 17), **SHOPS_OWN},
        someone("emil", 23),
        someone("fiona", 42),
    )
    async with browsing(planted.live) as one, browsing(planted.live) as two:
        seller = await sign_up(one)
        await plant(planted, seller, SHOP, SECRET, dora)
        other = await account_of(planted, two, fiona)
        await plant(planted, other, OTHER, OTHER_SECRET, emil)
        await deal_between(planted, seller, other, fiona)
        for found in await planted.places(dora, emil, fiona):
            assert {"dump", "log"} & found.keys() == {"dump"}
            assert len(found) > 8
        known = await secrets_of(planted, seller.store_id, dora)
        await a_shop_is_redacted(planted, known)
        await a_customer_is_redacted(planted, emil)
        await an_account_is_deleted(planted, other, fiona, emil)


async def a_shop_is_redacted(world: World, buyer: Mapping[str, str]) -> None:
    await world.asked("redact", {"shop_id": 1, "shop_domain": SHOP})
    await world.run("gdpr-erasure")
    await world.run("retention-sweep")
    request = await requested(world)
    (found,) = await world.places(buyer)
    assert unnamed(found, request) == set(), found
    await carry_out_steps(world, request)
    await world.live.service.database.execute(
        "UPDATE idempotency_keys SET created_at = created_at - interval '1 day'"
    )
    await world.run("retention-sweep")
    assert await world.places(buyer) == [{}]


async def a_customer_is_redacted(world: World, buyer: Mapping[str, str]) -> None:
    customer = {"id": 7, "email": buyer["email"], "phone": buyer["phone"]}
    body = {"shop_id": 1, "shop_domain": OTHER, "customer": customer, "orders_to_redact": [1]}
    await world.asked("customer-redact", body)
    await world.run("gdpr-erasure")
    await world.run("retention-sweep")
    (found,) = await world.places(buyer)
    assert found.keys() - {"dump"} <= NAMELESS, found
    address = buyer["email"].lower()
    assert [place for place, hits in found.items() if address in hits] == []


async def an_account_is_deleted(
    world: World, seller: Seller, user: Mapping[str, str], buyer: Mapping[str, str]
) -> None:
    assert (await seller.browser.delete("/api/account")).status_code == 202
    for days in (31, 2, 366):
        await pass_time(world.live.service.database, days)
        await forget_what_expires(world)
        for job in ("gdpr-erasure", "retention-sweep", "prune-audit-log"):
            await world.run(job)
    left, none = await world.places(user, buyer)
    assert none == {}
    # What they said and signed as a party to a deal is evidence of the other party, and alone left.
    assert {one.partition(".")[0] for one in left.keys() - {"dump"}} <= EVIDENCE_OF_DEALS, left
    assert not {user["email"].lower(), user["phone"]} & set().union(*left.values())
