"""The payment processor posts to a whole service."""

import time
from collections.abc import AsyncIterator

import httpx
import orjson
import pytest

from tests.actors.organization.processor import (
    CREDITS,
    account,
    checkout,
    dispute,
    event,
    payment,
    subscription,
)
from tests.journeys.conftest import ServiceProcess, sign_up
from tests.timing import until
from tolsey.http.webhooks.payments.signatures import sign
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.database import Database, Row
from tolsey.storage.people import administrators

PAYMENTS = "/api/webhooks/payments"
OPERATED = "/api/admin/payment-events"
PLATFORM, CONNECT = "whsec_platform", "whsec_connect"


@pytest.fixture
async def paid_house(settings: Settings) -> AsyncIterator[Running]:
    given = settings.model_copy(update={"payments_webhook_secret": f"{PLATFORM},{CONNECT}"})
    async with running(given, timers=False, poll_seconds=0.1) as service:
        yield service


@pytest.fixture
async def paid(paid_house: Running, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(paid_house.app)
    async with httpx.AsyncClient(
        transport=transport, base_url=settings.base_url, headers={"Origin": settings.base_url}
    ) as client:
        yield client


async def post(client: httpx.AsyncClient, parsed: object, secret: str = PLATFORM) -> httpx.Response:
    body = orjson.dumps(parsed)
    signature = sign(body, secret.encode(), int(time.time())).decode()
    return await client.post(PAYMENTS, content=body, headers={"Stripe-Signature": signature})


async def settled(live: Running) -> list[Row]:
    """Wait until everything that arrived is applied."""

    async def find() -> list[Row] | None:
        rows = await live.service.database.fetch(
            "SELECT event_id, organization_id, state, why FROM payment_events"
        )
        return rows if not any(row["state"] == "new" for row in rows) else None

    return await until(find)


async def test_a_purchase_is_credited_to_its_organization_and_its_dispute_takes_it_back(
    paid: httpx.AsyncClient, paid_house: Running
) -> None:
    seller = await sign_up(paid)
    bought = checkout(metadata={**CREDITS, "org_id": seller.organization_id})
    purchase = event("checkout.session.completed", bought)
    disputed = event("charge.dispute.created", dispute())
    answers = [await post(paid, one) for one in (disputed, purchase, purchase)]

    assert [answer.json()["status"] for answer in answers] == ["accepted", "accepted", "duplicate"]
    assert {(row["event_id"], row["organization_id"]) for row in await settled(paid_house)} == {
        (disputed["id"], seller.organization_id),
        (purchase["id"], seller.organization_id),
    }
    seen = await paid.get("/api/credits", params={"organizationId": seller.organization_id})
    assert (seen.status_code, seen.json()["balance"]) == (200, 0)
    rows = await paid_house.service.database.fetch(
        "SELECT event FROM audit_log WHERE organization_id = $1 ORDER BY id", seller.organization_id
    )
    assert [row["event"] for row in rows][-3:] == [
        "purchase.completed",
        "chargeback.received",
        "clawback.applied",
    ]


async def test_an_operator_lists_what_failed_and_has_it_applied_again(
    paid: httpx.AsyncClient, paid_house: Running, settings: Settings
) -> None:
    seller = await sign_up(paid)
    about = subscription(metadata={"org_id": seller.organization_id})
    unsold = event("customer.subscription.created", about)
    await post(paid, unsold)
    await settled(paid_house)
    listed = f"{OPERATED}?state=failed&organizationId={seller.organization_id}"
    retried = f"{OPERATED}/{unsold['id']}/retry"
    assert (await paid.get(listed)).status_code == 403
    assert (await paid.post(retried, json={})).status_code == 403

    email, password = "operator@example.com", "correct horse battery"
    database = paid_house.service.database
    await administrators.create_administrator(database, email, password)
    transport = httpx.ASGITransport(paid_house.app)
    async with httpx.AsyncClient(
        transport=transport, base_url=settings.base_url, headers={"Origin": settings.base_url}
    ) as operator:
        await operator.post("/api/auth/login", json={"email": email, "password": password})
        (item,) = (await operator.get(listed)).json()["items"]
        assert (item["id"], item["state"], item["why"]) == (unsold["id"], "failed", "unknown_price")
        assert "facts" not in item
        again = await operator.post(retried, json={"reason": "the price is set"})
        assert again.json() == {"id": unsold["id"], "state": "new"}
        assert (
            await operator.post(f"{OPERATED}/evt_none/retry", json={"reason": "x"})
        ).status_code == 404
        first = (await operator.get(f"{OPERATED}?limit=1")).json()
        assert [one["id"] for one in first["items"]] == [unsold["id"]]
        assert first["nextCursor"] is None
    (row,) = await database.fetch(
        "SELECT subject, metadata->>'reason' AS reason FROM audit_log"
        " WHERE event = 'admin.payment_event.retry'"
    )
    assert tuple(row) == (unsold["id"], "the price is set")


async def test_both_secrets_are_believed_and_no_third(paid: httpx.AsyncClient) -> None:
    updated = event("account.updated", account(), account="acct_1")

    assert (await post(paid, updated, "whsec_third")).status_code == 401
    assert (await post(paid, updated, CONNECT)).json() == {"status": "accepted"}
    assert (await post(paid, updated, PLATFORM)).json() == {"status": "duplicate"}


async def test_a_problem_is_answered_as_everywhere(paid: httpx.AsyncClient) -> None:
    answer = await paid.post(PAYMENTS, content=b"{}", headers={"X-Request-Id": "req-7"})

    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["requestId"]) == ("invalid_signature", "req-7")
    assert (await paid.get(PAYMENTS)).status_code == 405
    huge = await paid.post(PAYMENTS, content=b" " * (5 * 1024 * 1024 + 1))
    assert huge.status_code == 413


async def test_without_its_secret_only_this_route_is_closed(browser: httpx.AsyncClient) -> None:
    closed = await post(browser, event("account.updated", account()), "")

    assert (closed.status_code, closed.json()["code"]) == (503, "missing_credential")
    assert closed.json()["variable"] == "PAYMENTS_WEBHOOK_SECRET"
    assert (await browser.get("/api/health")).status_code == 200


async def test_the_route_is_described(browser: httpx.AsyncClient) -> None:
    described = (await browser.get("/openapi.json")).json()

    operation = described["paths"][PAYMENTS]["post"]
    assert [one["name"] for one in operation["parameters"]] == ["Stripe-Signature"]


async def test_what_was_answered_is_credited_once_however_often_the_process_is_killed(
    process: ServiceProcess, database: Database
) -> None:
    process.environment["PAYMENTS_WEBHOOK_SECRET"] = PLATFORM
    process.start()
    await database.execute("INSERT INTO organizations (id, name) VALUES ('org_1', 'Corner')")
    for n in range(3):
        await buy(process, [f"pi_{n}_{k}" for k in range(8)])
        process.kill()
        process.start()

    async def is_done() -> bool:
        return not await database.fetchrow("SELECT 1 FROM payment_events WHERE state <> 'applied'")

    await until(is_done)
    process.terminate()

    (row,) = await database.fetch(
        "SELECT count(*) AS lots, sum(amount) AS granted FROM credit_lots WHERE kind = 'purchase'"
    )
    assert tuple(row) == (24, 24 * 50_000_000)


async def buy(process: ServiceProcess, payments: list[str]) -> None:
    """Tell of purchases of 50 dollars, each by both of its events."""
    async with httpx.AsyncClient(base_url=process.url, trust_env=False) as client:
        for id in payments:
            reported = (
                event("checkout.session.completed", checkout(id=f"cs_{id}", payment_intent=id)),
                event("payment_intent.succeeded", payment(id=id, latest_charge=f"ch_{id}")),
            )
            for one in reported:
                assert (await post(client, one)).json() == {"status": "accepted"}
