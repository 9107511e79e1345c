"""Run by `test_recipes.py` in a copy of the project that has every recipe in it: each does what it is for."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import anyio
import httpx
import pytest

from tests.http.people import NOON, Clock, settings_of
from tests.mcp.tools.two_stores import BASE, TwoStores, result, settle
from tolsey import __version__
from tolsey.actors.codes import CODES
from tolsey.actors.organization.ledger import messages as of_organizations
from tolsey.actors.organization.messages import organization
from tolsey.http.oauth.scopes import DEFAULT
from tolsey.http.webhooks.headers import HeaderReader
from tolsey.http.webhooks.table import PAYMENTS_PATH
from tolsey.runtime.errors import Duplicate
from tolsey.runtime.messages import REGISTERED, ActorId
from tolsey.service import Running, running

CRON_SECRET = "c" * 40
SIGNING_SECRET = "whsec_of_the_recipe"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def started(database_url: str, redis_url: str, clock: Clock) -> AsyncIterator[Running]:
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        cron_secret=CRON_SECRET,
        cron_wait_seconds=0.001,
        payments_secret_key="sk_test_recipe",
        payments_webhook_secret=SIGNING_SECRET,
        payments_api_base="http://127.0.0.1:9",
        payments_price_pro_monthly="price_pro",
    )
    async with running(settings, clock=clock, timers=False, poll_seconds=0.1) as one:
        yield one


@pytest.fixture
async def two_stores(started: Running, clock: Clock) -> TwoStores:
    service = started.service
    ann = await settle(service, "ann", 1_000_000, clock.now)
    return TwoStores(service, ann, await settle(service, "bob", 2_000_000, clock.now))


@pytest.fixture
async def browser(started: Running) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(started.app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


async def test_a_route_answers_and_is_described(browser: httpx.AsyncClient, clock: Clock) -> None:
    told = (await browser.get("/api/clock")).json()["now"]
    described = (await browser.get("/openapi.json")).json()

    assert datetime.fromisoformat(told).date() == clock.now.date()
    assert "get" in described["paths"]["/api/clock"]


async def test_a_tool_is_listed_and_answers(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    listed = (await agent.ask("tools/list")).json()["result"]["tools"]

    assert "get_store_age" in {one["name"] for one in listed}
    assert result(await agent.call("get_store_age")) == {"days": 0}


async def test_a_page_is_shown_in_the_layout_of_all(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/about")

    assert page.headers["Content-Type"].startswith("text/html")
    assert f"This is tolsey {__version__}." in page.text
    assert "<main" in page.text


async def test_a_scope_can_be_granted_and_is_published(browser: httpx.AsyncClient) -> None:
    published = (await browser.get("/.well-known/oauth-authorization-server")).json()

    assert "reviews:read" in DEFAULT
    assert "reviews:read" in published["scopes_supported"]


def test_a_header_of_deliveries_is_read_in_every_family() -> None:
    for family in (b"X-Commerce-", b"X-Shopify-", b"Shopify-"):
        said = HeaderReader().read(
            [(family + b"Hmac-Sha256", b"x"), (family + b"Api-Version", b"2026-07")]
        )
        assert getattr(said, "api_version") == b"2026-07"  # noqa: B009 - only the copy has it


def test_an_error_code_is_listed_with_its_status() -> None:
    assert CODES["too_young"].statuses == (403,)


async def test_a_setting_changes_what_the_service_does(browser: httpx.AsyncClient) -> None:
    run = await browser.post(
        "/api/cron/expire-credits", headers={"Authorization": f"Bearer {CRON_SECRET}"}
    )

    assert run.json()["outcome"] == {"status": "running"}, run.text


async def test_a_payment_event_is_applied(
    browser: httpx.AsyncClient, two_stores: TwoStores
) -> None:
    about = {"object": "review", "id": "prv_1", "reason": "rule", "payment_intent": "pi_1"}
    body = event("review.opened", {**about, "metadata": {"org_id": two_stores.ann.organization_id}})
    answer = await browser.post(PAYMENTS_PATH, content=body, headers=signed(body))

    assert answer.status_code == 200, answer.text
    with anyio.fail_after(60):
        while not (found := await audited(two_stores, "subscription.payment_reviewed")):
            await anyio.sleep(0.02)
    assert [json.loads(row["metadata"])["reason"] for row in found] == ["rule"]


async def test_a_kind_of_actor_takes_messages_and_remembers(started: Running) -> None:
    append, ann = REGISTERED["note.AppendLine"], ActorId("note", "usr_ann")
    runtime = started.service.runtime

    assert await runtime.ask(ann, append("milk")) == "milk\n"
    assert await runtime.ask(ann, append("eggs")) == "milk\neggs\n"
    await runtime.admin.passivate(ann)
    assert await runtime.ask(ann, append("tea")) == "milk\neggs\ntea\n"


async def test_a_ledger_entry_moves_credits_and_keeps_the_chain(
    two_stores: TwoStores, clock: Clock
) -> None:
    gift: Any = getattr(of_organizations, "GiftCredits")  # noqa: B009 - only the copy has it
    whose = organization(two_stores.ann.organization_id)
    given = gift(key="gift:1", amount=500, giver="usr_bob", at=clock.now)
    stands = await two_stores.service.runtime.ask(whose, given)
    with pytest.raises(Duplicate):
        await two_stores.service.runtime.ask(whose, given)
    assert stands.available == 500

    entries = await two_stores.database.fetch(
        "SELECT kind, reference FROM credit_entries WHERE organization_id = $1",
        two_stores.ann.organization_id,
    )
    assert [tuple(row.values()) for row in entries] == [("gift", "usr_bob")]


async def audited(two_stores: TwoStores, event: str) -> list[Any]:
    return await two_stores.database.fetch(
        "SELECT metadata::text AS metadata FROM audit_log WHERE event = $1", event
    )


def event(type_: str, about: dict[str, Any]) -> bytes:
    created = int(NOON.timestamp())
    outside = {"object": "event", "id": "evt_1", "livemode": False, "created": created}
    return json.dumps({**outside, "type": type_, "data": {"object": about}}).encode()


def signed(body: bytes) -> dict[str, str]:
    at = int(NOON.timestamp())
    digest = hmac.new(SIGNING_SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return {"Stripe-Signature": f"t={at},v1={digest.hexdigest()}"}
