"""A business is sold once, through whichever process its offers are accepted, and whatever becomes of that process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx

from tests.http.deals.table import MARKET, PRICE, Table, signed
from tests.http.people import PASSWORD, Person
from tests.journeys.conftest import ServiceProcess
from tests.journeys.neighbours import browsing
from tests.timing import until
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.database import Database

AWAY = (429, 502, 503, 504)


async def person(client: httpx.AsyncClient, name: str) -> Person:
    body = {"email": f"{name}@example.com", "password": PASSWORD, "organizationName": name}
    made = await client.post("/api/auth/signup", json=body)
    assert made.status_code == 201, made.text
    organization_id = made.json()["organization"]["id"]
    return Person(client, made.json()["user"]["id"], organization_id, f"{name}@example.com")


async def offered(
    stack: AsyncExitStack, process: Running, *, listings: int
) -> tuple[Person, list[Table], list[list[str]]]:
    """Put businesses on the market, each with the offers of two buyers; answers the seller too."""
    clients = [await stack.enter_async_context(browsing(process)) for _ in range(3)]
    # Signing up is bounded by address, so that all three come as people do: one after the other.
    ann, ben, cleo = [
        await person(client, name)
        for client, name in zip(clients, ("ann", "ben", "cleo"), strict=True)
    ]
    tables, offers = [], []
    for n in range(listings):
        body = {"organizationId": ann.organization_id, "title": f"Shop {n}", "askingPrice": PRICE}
        made = await ann.browser.post("/api/sell/listings", json=body)
        assert made.status_code == 201, made.text
        shown = await ann.browser.post(f"/api/sell/listings/{made.json()['id']}/publish")
        assert shown.json()["status"] == "ACTIVE", shown.text
        table = Table(ann, ben, cleo, cleo, "", made.json()["id"])
        found = []
        for buyer in (ben, cleo):
            deal = await signed(table, buyer)
            path = f"{MARKET}/deals/{deal['id']}/offers"
            offer = await buyer.browser.post(path, json={"amount": PRICE})
            assert offer.status_code == 201, offer.text
            found.append(offer.json()["offer"]["id"])
        tables.append(table)
        offers.append(found)
    return ann, tables, offers


async def accepted(client: httpx.AsyncClient, offer_id: str) -> int:
    """Accept an offer, again while nobody answers for its listing; the status that came in the end."""

    async def status() -> int | None:
        answer = await client.post(f"{MARKET}/offers/{offer_id}/accept")
        return None if answer.status_code in AWAY else answer.status_code

    return await until(status) or 0


async def sold_once(seller: Person, database: Database) -> None:
    """Hold every deal, ledger and listing against the rule that a business is sold once."""
    seen = (await seller.browser.get("/api/vendor/marketplace/deals?limit=200")).json()["items"]
    by_listing: dict[str, list[str]] = {}
    for deal in seen:
        by_listing.setdefault(deal["listingId"], []).append(deal["stage"])
        checked = await seller.browser.get(f"{MARKET}/deals/{deal['id']}/verify")
        assert (checked.json()["valid"], checked.json()["follows"]) == (True, True)
    assert {tuple(sorted(stages)) for stages in by_listing.values()} == {
        ("NDA_SIGNED", "UNDER_OFFER")
    }
    lines = await database.fetch(
        "SELECT d.listing_id, count(*) AS times FROM deal_events e JOIN deal_threads d ON d.id = e.deal_id"
        ' WHERE position(\'"event":"offer.accepted"\' IN e.body) > 0 GROUP BY d.listing_id'
    )
    assert {row["listing_id"]: row["times"] for row in lines} == dict.fromkeys(by_listing, 1)


async def race(
    ways: list[tuple[Callable[[str], Awaitable[int]], str]], meanwhile: Callable[[], Awaitable[Any]]
) -> list[int]:
    """Accept everything at once while something else happens."""
    answers = [0] * len(ways)

    async def one(place: int) -> None:
        accept, offer_id = ways[place]
        answers[place] = await accept(offer_id)

    async with anyio.create_task_group() as tasks:
        for place in range(len(ways)):
            tasks.start_soon(one, place)
        await meanwhile()
    return answers


@asynccontextmanager
async def as_seller(url_or_process: str | Running) -> AsyncIterator[httpx.AsyncClient]:
    """Come as the seller by another process."""
    if isinstance(url_or_process, str):
        opening: Any = httpx.AsyncClient(
            base_url=url_or_process, headers={"Origin": url_or_process}, timeout=20
        )
    else:
        opening = browsing(url_or_process)
    async with opening as client:
        login = {"email": "ann@example.com", "password": PASSWORD}
        assert (await client.post("/api/auth/login", json=login)).status_code == 200
        yield client


async def test_two_processes_that_accept_the_same_business_while_one_hands_it_over_sell_it_once(
    pair: tuple[Running, Running], database: Database
) -> None:
    async with AsyncExitStack() as stack:
        ann, tables, offers = await offered(stack, pair[0], listings=2)
        other = await stack.enter_async_context(as_seller(pair[1]))
        slot = slot_of(tables[0].listing_id)
        owner = next(one for one in pair if slot in one.service.runtime.slots.epochs)
        ways: list[tuple[Callable[[str], Awaitable[int]], str]] = []
        for first, second in offers:
            ways.append((lambda id: accepted(ann.browser, id), first))
            ways.append((lambda id: accepted(other, id), second))
        answers = await race(ways, owner.service.shard.leave)

        assert sorted(answers) == [200, 200, 409, 409]
        stays = ann if owner is pair[1] else Person(other, "", "", "")
        await sold_once(stays, database)


async def test_a_process_killed_while_it_accepts_sells_no_business_twice_and_loses_no_answer(
    process: ServiceProcess, brisk: Settings, database: Database
) -> None:
    async with AsyncExitStack() as stack:
        survivor = await stack.enter_async_context(running(brisk, timers=False, poll_seconds=0.1))
        ann, _, offers = await offered(stack, survivor, listings=2)
        await asyncio.to_thread(process.start)
        dying = await stack.enter_async_context(as_seller(process.url))

        async def by_dying(offer_id: str) -> int:
            try:
                answer = await dying.post(f"{MARKET}/offers/{offer_id}/accept")
            except httpx.HTTPError:
                return 0
            return answer.status_code

        ways: list[tuple[Callable[[str], Awaitable[int]], str]] = []
        for first, second in offers:
            ways.append((by_dying, first))
            ways.append((lambda id: accepted(ann.browser, id), second))

        async def kill() -> None:
            await asyncio.to_thread(process.kill)

        answers = await race(ways, kill)
        # What was not answered is asked again, of who is left.
        again = [
            await accepted(ann.browser, offer_id) if status in (0, *AWAY) else status
            for status, (_, offer_id) in zip(answers, ways, strict=True)
        ]

        assert sorted(again) == [200, 200, 409, 409]
        await sold_once(ann, database)
