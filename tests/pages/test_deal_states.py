"""A deal's page at every stage, as both parties and an operator see it: axe finds nothing, light or dark, wide or narrow."""

from datetime import datetime, timedelta
from typing import Any, Final

import httpx
import orjson

from tests.http.people import PASSWORD
from tests.journeys.conftest import Seller, sign_up
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_axe import enter, look
from tests.pages.test_money import photograph
from tolsey.actors.listing.deals import ledger
from tolsey.actors.listing.deals.marks import DILIGENCE
from tolsey.storage.database import Database
from tolsey.storage.people import administrators
from tolsey.storage.records.selling.deals import (
    DealOffer,
    DealStage,
    DealThread,
    OfferStatus,
    Side,
)
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus
from tolsey.storage.tables import table_of

AFTER_LETTER: Final = tuple(DealStage)[tuple(DealStage).index(DealStage.LOI_SIGNED) :]
HANDED: Final = (
    *(DealStage.TRANSFERRING, DealStage.CLOSED, DealStage.DISPUTED),
    *(DealStage.REFUND_REQUESTED, DealStage.REFUNDED),
)


def thread(stage: DealStage, seller: Seller, buyer: Seller, at: datetime) -> DealThread:
    """Make a deal as it is at a stage, with what came before."""
    later = [one for one in ("LOI_SIGNED", "DUE_DILIGENCE", "APA_SIGNED") if one == stage]
    is_bound = stage in AFTER_LETTER and stage.value not in ("DECLINED", "WITHDRAWN", "EXPIRED")
    items = [
        {
            "id": f"asset-{n}",
            "title": title,
            "deliveredAt": at.isoformat() if n < 3 else None,
            "verdict": verdict,
            "reason": "The theme is missing." if verdict == "rejected" else None,
        }
        for n, (title, verdict) in enumerate(
            (("The store", "accepted"), ("The domain", "rejected"), ("Mail list", None)), 1
        )
    ]
    looked: list[dict[str, Any]] = [
        {
            "id": id,
            "title": title,
            "blocking": blocking,
            "resolvedAt": at.isoformat() if n else None,
        }
        for n, (id, title, blocking) in enumerate(DILIGENCE)
    ]
    is_handed = stage in HANDED
    return DealThread(
        id=f"deal_{stage.lower()}",
        listing_id=f"lst_{stage.lower()}",
        seller_id=seller.organization_id,
        buyer_id=buyer.organization_id,
        requested_by="usr_1",
        stage=stage,
        entered_at=at,
        created_at=at,
        moved_at=at,
        hash=ledger.first_of(f"deal_{stage.lower()}"),
        message="I keep three shops.",
        reason="Another shop." if stage.value in ("DECLINED", "DISPUTED") else None,
        nda_signed_at=at,
        loi_signed_at=at if is_bound else None,
        apa_signed_at=at if is_bound and not later else None,
        price=2_000_000 if is_bound or stage is DealStage.UNDER_OFFER else None,
        currency="USD",
        exclusivity_until=at + timedelta(days=30) if is_bound else None,
        exclusivity_proposed_by="buyer" if stage is DealStage.LOI_SIGNED else None,
        exclusivity_proposed_until=at + timedelta(days=40),
        diligence=orjson.dumps(looked if is_bound else []).decode(),
        escrow_id="4471" if is_bound and not later else None,
        escrow_funded_at=at if is_handed else None,
        transfer=orjson.dumps(items if is_handed else []).decode(),
        inspection_ends_at=at + timedelta(days=7) if is_handed else None,
        closed_at=at if stage.value in ("CLOSED", "REFUND_REQUESTED", "REFUNDED") else None,
        refund_requested_at=at if stage is DealStage.REFUND_REQUESTED else None,
        escalated=stage is DealStage.REFUND_REQUESTED,
        cancel_proposed_by="seller" if stage is DealStage.APA_SIGNED else None,
        cancel_proposed_at=at if stage is DealStage.APA_SIGNED else None,
    )


async def at_every_stage(database: Database, seller: Seller, buyer: Seller, at: datetime) -> None:
    """Keep a deal at each stage, about a listing of its own, with an offer."""
    for stage in DealStage:
        deal = thread(stage, seller, buyer, at)
        records: list[Any] = [
            ListingRecord(
                id=deal.listing_id,
                organization_id=seller.organization_id,
                slug=deal.listing_id,
                title=f"Enamel kettles {stage.lower()}",
                status=ListingStatus.ACTIVE,
                asking_price=2_200_000,
                currency="USD",
                created_by="usr_1",
                created_at=at,
                seller_active_at=at,
            ),
            deal,
            DealOffer(
                id=f"offer_{stage.lower()}",
                deal_id=deal.id,
                side=Side.BUYER,
                status=OfferStatus.PENDING if deal.price is None else OfferStatus.ACCEPTED,
                amount=2_000_000,
                currency="USD",
                type="cash",
                inventory="included",
                contingencies='["The domain moves first"]',
                message="In escrow.",
                valid_until=at + timedelta(days=3),
                made_by="usr_1",
                made_at=at,
                ended_at=None if deal.price is None else at,
            ),
        ]
        for record in records:
            table = table_of(type(record))
            await database.execute(table.insert, *table.values_of(record))


async def test_axe_finds_nothing_on_a_deal_at_any_stage(
    live_site: ServedSite, page: Page, axe: str
) -> None:
    database, url = live_site.running.service.database, live_site.url
    headers = {"Origin": url}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers) as one,
        httpx.AsyncClient(base_url=url, headers=headers) as two,
        httpx.AsyncClient(base_url=url, headers=headers) as three,
    ):
        seller, buyer = await sign_up(one), await sign_up(two, "buyer@example.com")
        await administrators.create_administrator(database, "operator@example.com", PASSWORD)
        who = {"email": "operator@example.com", "password": PASSWORD}
        assert (await three.post("/api/auth/login", json=who)).status_code == 200
        await at_every_stage(database, seller, buyer, live_site.clock.now)
        deals = [f"/deals/deal_{stage.lower()}" for stage in DealStage]
        wrong: dict[str, list[str]] = {}
        for browser, language, width, addresses in (
            (one, "en", 1440, deals),
            (two, "de", 360, deals),
            (three, "en", 360, ["/admin/disputes", "/deals/deal_disputed"]),
        ):
            await enter(page, url, browser)
            await page.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
            for address in addresses:
                found = await look(page, url + address, width, axe)
                assert await page.read("document.querySelector('h1').innerText"), address
                if found:
                    wrong[f"{address} {language} {width}"] = found
                await photograph(page, f"state-{address.strip('/').replace('/', '-')}-{width}")
                # One that is not there would be a page without faults, too.
                assert (await browser.get(address)).status_code == 200, address
        assert wrong == {}, "\n".join(f"{where}: {what}" for where, what in wrong.items())
