"""What the e-signature and the escrow provider tell, as they tell it: early, twice, out of order, and forged."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import orjson
import pytest

from tests.http.deals.table import MARKET, PRICE, Table, signed
from tests.http.people import Clock, settings_of
from tolsey.sandbox.closing import EscrowDesk, SigningDesk
from tolsey.sandbox.server import listening
from tolsey.service import Running, running
from tolsey.settings import Settings

SIGNING_KEY = b"what signs envelopes"
SIGNERS = [
    {
        "roleName": role,
        "name": name,
        "email": f"{name}@example.com",
        "signedDateTime": "2036-06-15T12:00:00.000Z",
    }
    for role, name in (("buyer", "Ben"), ("seller", "Ann"))
]


@dataclass
class Desks:
    """Both providers."""

    signing: SigningDesk
    escrow: EscrowDesk
    settings: dict[str, Any]


@pytest.fixture
async def desks() -> AsyncIterator[Desks]:
    signing, escrow = SigningDesk("k1", SIGNING_KEY), EscrowDesk("us@example.com", "k2")
    async with signing.serve() as signing_url, escrow.serve() as escrow_url:
        given = {
            "esign_webhook_secret": SIGNING_KEY.decode(),
            "esign_api_url": signing_url,
            "esign_api_key": "k1",
            "escrow_api_url": escrow_url,
            "escrow_api_login": "us@example.com",
            "escrow_api_key": "k2",
        }
        yield Desks(signing, escrow, given)


@pytest.fixture
def settings(database_url: str, redis_url: str, desks: Desks) -> Settings:
    return settings_of(database_url=database_url, redis_url=redis_url, **desks.settings)


@pytest.fixture
async def live(settings: Settings, clock: Clock, desks: Desks) -> AsyncIterator[Running]:
    async with AsyncExitStack() as stack:
        started = await stack.enter_async_context(
            running(settings, clock=clock, timers=False, poll_seconds=0.1)
        )
        port = await stack.enter_async_context(listening(started.app))  # type: ignore[arg-type]
        desks.signing.events_url = f"http://127.0.0.1:{port}/api/webhooks/esign"
        desks.escrow.events_url = f"http://127.0.0.1:{port}/api/webhooks/escrow"
        yield started


@pytest.fixture
async def edge(live: Running) -> Any:
    return live.app


async def settled(live: Running, provider: str, state: str, count: int = 1) -> list[str | None]:
    """Wait until so many events of a provider came to a state; answers why."""
    with anyio.fail_after(60):
        while True:
            rows = await live.service.database.fetch(
                "SELECT why FROM provider_events WHERE provider = $1 AND state = $2 ORDER BY event_id",
                provider,
                state,
            )
            if len(rows) >= count:
                return [row["why"] for row in rows]
            await anyio.sleep(0.02)


async def at_purchase(table: Table, provider: str) -> dict[str, Any]:
    """Bring a deal to where its purchase agreement waits for signatures at a provider."""
    deal = await signed(table, table.ben)
    offers = f"{MARKET}/deals/{deal['id']}/offers"
    made = await table.ben.browser.post(offers, json={"amount": PRICE})
    assert made.status_code == 201, made.text
    taken = await table.ann.browser.post(f"{MARKET}/offers/{made.json()['offer']['id']}/accept")
    assert taken.status_code == 200, taken.text
    for who in (table.ben, table.ann):
        deal = await table.deal(who, deal["id"])
        agreed = await table.advance(who, deal, "fasttrack.agree")
        assert agreed.status_code == 200, agreed.text
    asked = await table.ann.browser.post(
        f"/api/vendor/marketplace/deals/{deal['id']}/request-signature",
        json={"documentType": "APA", "provider": provider},
    )
    assert (asked.status_code, asked.json()["hostedUrl"]) == (201, None)
    answer: dict[str, Any] = asked.json()
    return answer


async def events_of(table: Table, deal_id: str) -> list[str]:
    found = await table.ann.browser.get(f"{MARKET}/deals/{deal_id}/events?limit=200")
    return [one["event"] for one in found.json()["items"]]


async def test_a_deal_is_signed_and_paid_at_providers_whose_every_word_is_fetched_again(
    live: Running, desks: Desks, table: Table
) -> None:
    wanted = await at_purchase(table, "EXTERNAL_A")
    deal_id, sha256 = wanted["dealId"], wanted["documentSha256"]
    # Another document, and an envelope that does not say that it is complete, move nothing.
    desks.signing.complete(wanted["id"], "0" * 64, SIGNERS)
    assert await settled(live, "esign", "failed") == [
        "The document that was signed at the provider isn't this one. Request the signatures again."
    ]
    unsigned = desks.signing.open(wanted["id"], sha256, SIGNERS, status="sent")
    desks.signing.tell_completed(unsigned)
    whys = await settled(live, "esign", "failed", 2)
    assert "The provider's envelope has the status sent. Wait until it is completed." in whys
    assert (await table.deal(table.ben, deal_id))["stage"] == "UNDER_OFFER"

    desks.signing.deliveries.repeats = 0.5
    desks.signing.complete(wanted["id"], sha256, SIGNERS)
    await settled(live, "esign", "applied")
    deal = await table.deal(table.ben, deal_id)
    assert deal["stage"] == "APA_SIGNED"
    assert deal["apaSignedAt"] is not None
    checked = (await table.ben.browser.get(f"{MARKET}/signatures/{wanted['id']}/verify")).json()
    assert (checked["valid"], checked["firstBreak"]) == (True, None)
    assert [one["name"] for one in checked["signers"]] == ["B…", "A…"]

    id = desks.escrow.open("20000.00", "usd")
    desks.escrow.tell_of(id, "transaction.funded")  # of nothing that is ours yet
    opened = await table.advance(table.ann, deal, "escrow.open", escrowId=id, amount=PRICE)
    assert opened.status_code == 200, opened.text
    # Told before it is so: nothing moves, and it is looked at again when it comes again.
    desks.escrow.tell_of(id, "transaction.funded")
    assert await settled(live, "escrow", "failed") == [
        "The provider's transaction doesn't have this status. Check it at the provider."
    ]
    assert (await table.deal(table.ben, deal_id))["stage"] == "APA_SIGNED"
    desks.escrow.fund(id)
    await settled(live, "escrow", "applied")
    deal = await table.deal(table.ben, deal_id)
    assert (deal["stage"], deal["escrowId"]) == ("TRANSFERRING", id)
    desks.escrow.release(id)
    desks.escrow.tell_of(id, "transaction.funded")
    await settled(live, "escrow", "applied", 2)
    await desks.escrow.deliveries.settled()
    deal = await table.deal(table.ben, deal_id)
    assert deal["stage"] == "CLOSED"
    assert deal["escrowReleasedAt"] is not None
    moves = await events_of(table, deal_id)
    for one in ("escrow.funded", "transfer.start", "escrow.released", "apa.signed_by_all"):
        assert moves.count(one) == 1, moves
    shown = await table.ann.browser.get(f"/api/sell/listings/{table.listing_id}")
    assert shown.json()["status"] == "SOLD"


async def test_money_of_another_amount_or_a_release_that_overtook_moves_a_deal_only_as_far_as_it_is(
    live: Running, desks: Desks, table: Table
) -> None:
    wanted = await at_purchase(table, "EXTERNAL_B")
    desks.signing.complete(wanted["id"], wanted["documentSha256"], SIGNERS)
    await settled(live, "esign", "applied")
    deal = await table.deal(table.ben, wanted["dealId"])
    id = desks.escrow.open("19999.99", "usd")
    opened = await table.advance(table.ann, deal, "escrow.open", escrowId=id, amount=PRICE)
    assert opened.status_code == 200, opened.text
    desks.escrow.fund(id)
    (why,) = await settled(live, "escrow", "failed")
    assert why is not None
    assert why.startswith("The escrow's amount and currency")
    # The provider is away when the release is told, and back when it is told again: the funding came never.
    desks.escrow.things[id]["items"][0]["schedule"][0]["amount"] = "20000.00"
    desks.escrow.faults = [503]
    desks.escrow.release(id)
    assert "The provider returned status 503. Try again in a minute." in await settled(
        live, "escrow", "failed", 2
    )
    desks.escrow.release(id)
    await settled(live, "escrow", "applied")
    deal = await table.deal(table.ben, deal["id"])
    assert deal["stage"] == "CLOSED"
    assert deal["escrowFundedAt"] is not None


async def test_what_no_key_signed_and_what_is_not_set_is_refused(
    live: Running, desks: Desks, table: Table, database_url: str, redis_url: str
) -> None:
    body = orjson.dumps({"event": "envelope-completed", "data": {"envelopeId": "env_1"}})
    forged = await table.eve.browser.post("/api/webhooks/esign", content=body)
    assert (forged.status_code, forged.json()["code"]) == (401, "invalid_signature")
    named = {"transaction_id": 1, "event": "transaction.funded"}
    strange = await table.eve.browser.post("/api/webhooks/escrow", json=named)
    assert strange.json() == {"status": "accepted"}
    assert await live.service.database.fetch("SELECT FROM provider_events") == []
    assert desks.escrow.requests == []

    half = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        **{**desks.settings, "esign_api_key": None, "escrow_api_login": None},
    )
    async with running(half, timers=False) as other:
        transport = httpx.ASGITransport(other.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = [
                await client.post(f"/api/webhooks/{one}", json=named) for one in ("esign", "escrow")
            ]
    assert [(one.status_code, one.json()["variable"]) for one in answers] == [
        (503, "ESIGN_API_KEY"),
        (503, "ESCROW_API_LOGIN"),
    ]
