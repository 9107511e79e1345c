"""Verified figures are frozen by the letter of intent, and compared when the purchase agreement is asked for."""

from datetime import timedelta
from typing import Any

import httpx
import orjson

from tests.http.deals.table import MARKET, PRICE, Table, signed
from tests.http.people import Clock
from tests.timing import until
from tolsey.actors.mail import TellPeople
from tolsey.storage.database import Database

REQUEST = "/api/vendor/marketplace/deals/{}/request-signature"


async def proven(database: Database, listing_id: str, clock: Clock, revenue: int) -> None:
    """Have a sync find a revenue now."""
    clock.advance(timedelta(seconds=1))
    figures = {"USD": {"revenue30d": revenue, "mrr": 0, "annualised": 12 * revenue, "orders": 3}}
    await database.execute(
        "INSERT INTO revenue_snapshots (listing_id, window_end, window_start, source, shop_domain, definition,"
        " shop_currency, verified, figures, orders, skipped, flags) VALUES"
        " ($1, $2, $2, 'commerce', 's.example', 'rv2', 'USD', true, $3::text::jsonb, 3, '{}', '[]')",
        listing_id,
        clock.now,
        orjson.dumps(figures).decode(),
    )
    await database.execute(
        "INSERT INTO listing_verifications (listing_id, provider, state, generation, shop_domain, keeps_badge, since,"
        " accepted_at, last_ok_at, verified_at)"
        " VALUES ($1, 'commerce', 'verified', 1, 's.example', false, $2, $2, $2, $2)"
        " ON CONFLICT (listing_id, provider) DO UPDATE SET last_ok_at = $2, verified_at = $2",
        listing_id,
        clock.now,
    )


async def asked_for(table: Table, deal_id: str, document_type: str) -> dict[str, Any]:
    body = {"documentType": document_type}
    answer = await table.ann.browser.post(REQUEST.format(deal_id), json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def text_of(table: Table, signature_id: str) -> str:
    shown: httpx.Response = await table.ben.browser.get(
        f"{MARKET}/signatures/{signature_id}/document"
    )
    return shown.text


async def in_due_diligence(table: Table) -> dict[str, Any]:
    """Bring a deal to where the purchase agreement can be asked for."""
    deal = await signed(table, table.ben)
    path = f"{MARKET}/deals/{deal['id']}/offers"
    offer = (await table.ben.browser.post(path, json={"amount": PRICE})).json()["offer"]
    await table.ann.browser.post(f"{MARKET}/offers/{offer['id']}/accept")
    letter = await asked_for(table, deal["id"], "LOI")
    for who in (table.ann, table.ben):
        assert (await table.sign(who, letter["id"])).status_code == 200
    deal = await table.deal(table.ann, deal["id"])
    deal = (await table.advance(table.ann, deal, "diligence.open")).json()
    for item in deal["diligence"]:
        done = await table.advance(table.ben, deal, "diligence.resolve", item=item["id"])
        assert done.status_code == 200, done.text
    return {**deal, "letter": letter}


async def test_revenue_that_moved_is_seen_by_both_mailed_and_acknowledged_and_blocks_nothing(
    table: Table, database: Database, clock: Clock, told: list[TellPeople]
) -> None:
    await proven(database, table.listing_id, clock, 1_000_000)
    deal = await in_due_diligence(table)
    assert deal["letter"]["metrics"]["figures"]["revenue30d"] == 1_000_000
    assert deal["letter"]["metrics"]["agreed"] is None
    assert "USD 10,000.00 in the 30 days before" in await text_of(table, deal["letter"]["id"])

    await proven(database, table.listing_id, clock, 850_000)
    agreement = await asked_for(table, deal["id"], "APA")
    metrics = agreement["metrics"]
    assert (metrics["moved"], metrics["percent"]) == (True, "-15.0")
    assert metrics["agreed"]["revenue30d"] == 1_000_000
    text = await text_of(table, agreement["id"])
    assert "USD 8,500.00" in text
    assert "-15.0%" in text
    await until(
        lambda: (
            len({one.organization_id for one in told if one.facts["event"] == "revenue.moved"}) >= 2
        )
    )

    refused = await table.sign(table.ben, agreement["id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "revenue_moved")
    for who in (table.ben, table.ann):
        given = await table.sign(who, agreement["id"], revenueAcknowledged=True)
        assert given.status_code == 200, given.text
    assert (await table.deal(table.ben, deal["id"]))["stage"] == "APA_SIGNED"
    checked = (await table.ben.browser.get(f"{MARKET}/signatures/{agreement['id']}/verify")).json()
    assert checked["valid"]
    said = [orjson.loads(one["body"])["data"] for one in checked["events"]]
    assert [one.get("revenueAcknowledged") for one in said if "name" in one] == [True, True]
    lines = (await table.ann.browser.get(f"{MARKET}/deals/{deal['id']}/events")).json()["items"]
    asked = [
        orjson.loads(one["body"])["facts"] for one in lines if one["event"] == "signature.requested"
    ]
    assert [one.get("revenueMoved") for one in asked] == [None, False, True]


async def test_revenue_that_stayed_asks_for_nothing(
    table: Table, database: Database, clock: Clock
) -> None:
    await proven(database, table.listing_id, clock, 1_000_000)
    deal = await in_due_diligence(table)
    await proven(database, table.listing_id, clock, 1_100_000)
    agreement = await asked_for(table, deal["id"], "APA")
    assert (agreement["metrics"]["moved"], agreement["metrics"]["percent"]) == (False, "10.0")
    assert (await table.sign(table.ben, agreement["id"])).status_code == 200
