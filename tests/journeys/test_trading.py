"""What somebody sells, buys and watches is in one place, and says whose turn it is."""

import re

from tests.actors.listing.deals.market import Market, requests
from tests.actors.listing.states import ID
from tests.journeys.conftest import Seller, sign_up
from tests.journeys.strangers import LISTINGS, browsing
from tests.timing import until
from tolsey.actors.listing.deals import ledger, turns
from tolsey.actors.listing.deals.messages import RequestAccess
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.selling import deals
from tolsey.storage.tables import table_of

HTML = {"Accept": "text/html"}
AMOUNT = {"amount": 2_000_000, "currency": "USD"}


async def for_sale(seller: Seller, title: str) -> str:
    made = await seller.post(
        LISTINGS, organizationId=seller.organization_id, title=title, askingPrice=AMOUNT
    )
    listing: str = made.json()["id"]
    assert (await seller.post(f"{LISTINGS}/{listing}/publish")).status_code == 200
    return listing


def sheet(page: str, name: str) -> str:
    """Read a part of the page by the id of its heading."""
    (found,) = re.findall(rf'aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    return str(found)


async def test_deals_own_listings_and_watched_ones_are_in_one_place(
    live: Running, seller: Seller
) -> None:
    async with browsing(live, address="192.0.2.7") as elsewhere:
        buyer = await sign_up(elsewhere, "buyer@example.com")
        empty = (await buyer.browser.get("/deals", headers=HTML)).text
        assert "None yet." in sheet(empty, "deals")
        wanted, watched = await for_sale(seller, "Kettles"), await for_sale(seller, "Candles")
        asked = await buyer.post(
            f"/api/marketplace/listings/{wanted}/access",
            organizationId=buyer.organization_id,
            message="Tell me more.",
        )
        deal = asked.json()["id"]
        seen = await buyer.browser.post(f"/api/marketplace/listings/{watched}/watch")
        assert seen.status_code == 204, seen.text

        theirs = (await seller.browser.get("/deals", headers=HTML)).text
        assert f'href="/deals/{deal}"' in sheet(theirs, "deals")
        assert "Your turn" in sheet(theirs, "deals")
        assert {"Kettles", "Candles"} <= set(re.findall(r"<bdi>(\w+)</bdi>", sheet(theirs, "own")))
        assert "Nothing yet." in sheet(theirs, "watched")

        own = (await buyer.browser.get("/deals", headers=HTML)).text
        assert "Seller's turn" in sheet(own, "deals").replace("&#39;", "'")
        assert "Candles" in sheet(own, "watched")
        assert "Kettles" not in sheet(own, "watched")
        assert "Nothing is shown or for sale yet." in sheet(own, "own")
        assert 'aria-current="page"' in own
        listings = (await seller.browser.get("/selling", headers=HTML)).text
        assert re.search(r'href="/deals" aria-current="true"', listings)


async def test_where_it_is_ones_turn_comes_before_newer_deals(
    live: Running, seller: Seller
) -> None:
    async with browsing(live, address="192.0.2.7") as elsewhere:
        buyer = await sign_up(elsewhere, "buyer@example.com")
        deals = []
        for title in ("Older", "Newer"):
            asked = await buyer.post(
                f"/api/marketplace/listings/{await for_sale(seller, title)}/access",
                organizationId=buyer.organization_id,
                message="Tell me more.",
            )
            deals.append(asked.json())
        let_in = await seller.post(
            f"/api/marketplace/deals/{deals[1]['id']}/advance",
            event="access.approve",
            expectedStage=deals[1]["stage"],
        )
        assert let_in.status_code == 200, let_in.text
        page = sheet((await seller.browser.get("/deals", headers=HTML)).text, "deals")
        assert re.findall(r'href="/deals/([^"]+)"', page)[0] in {one["id"] for one in deals}
        told = re.findall(r'<tr>.*?href="/deals/([^"]+)".*?</tr>', page, re.DOTALL)
        turns = [
            "Your turn" in row for row in re.findall(r"<tr><th scope=.row.*?</tr>", page, re.DOTALL)
        ]
        assert len(told) == 2
        assert turns == sorted(turns, reverse=True)
        assert turns[0]


async def leave_without_nda(database: Database) -> None:
    """Write a listing and deals as releases before left them when drawing up the NDA had failed."""
    market = Market()
    wishes = [
        RequestAccess(
            deal_id=f"deal_{number}",
            buyer_id=f"org_{number}",
            by="usr_2",
            message=None,
            may_sell=True,
            at=market.now,
        )
        for number in (2, 3, 4)
    ]
    for wish in wishes:
        assert market.take(requests, wish) is None
    turn = turns.DealTurn(market.state, market.now)
    for wish in wishes[:2]:
        turn.move(wish.deal_id, "access.approve", actor="S")
    market.follow(turn.decision("deal_2"))
    written = [head.deal for head in market.state.deals.values()]
    lines = [line for kept in market.lines.values() for line in kept]
    for record in (market.state.listing, *written, *lines):
        table = table_of(type(record))
        await database.execute(table.insert, *table.values_of(record))


async def has_every_nda(database: Database) -> bool:
    return not await deals.without_nda(database, "", 1)


async def test_a_start_draws_up_the_ndas_that_deals_never_got(
    settings: Settings, database: Database
) -> None:
    async with running(settings, timers=False):
        await leave_without_nda(database)

    for _ in range(2):
        async with running(settings, timers=False, poll_seconds=0.1):
            await until(lambda: has_every_nda(database))
        assert not await database.fetch("SELECT FROM outbox WHERE key LIKE 'deal_%/nda'")
        for number, wanted in ((2, ["NDA"]), (3, ["NDA"]), (4, [])):
            found = await deals.signatures_of(database, f"deal_{number}")
            assert [one.document_type for one in found] == wanted
            deal = await deals.find(database, f"deal_{number}")
            assert deal is not None
            assert deal.listing_id == ID
            lines = await deals.events(database, deal.id, 0, 100)
            assert ledger.broken_at(deal.id, lines, deal.hash) is None
            assert len(lines) == (3 if wanted else 1)
