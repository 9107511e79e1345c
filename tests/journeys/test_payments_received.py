"""The payment processor posts to a whole service."""

import time
from collections.abc import AsyncIterator

import httpx
import orjson
import pytest

from tests.actors.organization.processor import CREDITS, account, checkout, dispute, event
from tests.journeys.conftest import ServiceProcess, sign_up
from tolsey.http.webhooks.payments.signatures import sign
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage import payment_events
from tolsey.storage.database import Database

PAYMENTS = "/api/webhooks/payments"
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


async def test_a_purchase_waits_for_its_organization_to_be_credited(
    paid: httpx.AsyncClient, paid_house: Running
) -> None:
    seller = await sign_up(paid)
    bought = checkout(metadata={**CREDITS, "org_id": seller.organization_id})
    purchase = event("checkout.session.completed", bought)
    disputed = event("charge.dispute.created", dispute())
    answers = [await post(paid, one) for one in (disputed, purchase, purchase)]

    assert [answer.json()["status"] for answer in answers] == ["accepted", "accepted", "duplicate"]
    waiting = await payment_events.waiting(paid_house.service.database, 10)
    assert {(one.event_id, one.organization_id) for one in waiting} == {
        (disputed["id"], seller.organization_id),
        (purchase["id"], seller.organization_id),
    }


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


async def test_an_event_that_was_answered_outlives_the_process(
    process: ServiceProcess, database: Database
) -> None:
    process.environment["PAYMENTS_WEBHOOK_SECRET"] = PLATFORM
    process.start()
    events = [event("account.updated", account(), account="acct_1") for _ in range(20)]
    async with httpx.AsyncClient(base_url=process.url, trust_env=False) as client:
        for one in events:
            assert (await post(client, one)).json() == {"status": "accepted"}
    process.kill()

    waiting = await payment_events.waiting(database, 100)
    assert {one.event_id for one in waiting} == {one["id"] for one in events}
