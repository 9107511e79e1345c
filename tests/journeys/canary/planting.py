"""A world in which a person is told of through every way into the service."""

import hashlib
import io
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx

from tests.http.chat.visitor import grant
from tests.http.oauth.client import Client, boxes
from tests.http.payments.market import Market, opened
from tests.http.payments.shop import WEBHOOK_SECRET
from tests.http.people import PASSWORD, Person, settings_of
from tests.journeys.canary.spelling import DELIVERIES, personal, places
from tests.journeys.conftest import EVENTS, Seller, signed
from tests.journeys.strangers import LISTINGS, browsing, listing_of
from tests.mcp.wire import Agent
from tests.payees import verified
from tests.timing import until
from tolsey.actors.job.messages import RunNow, job
from tolsey.http.webhooks.table import PAYMENTS_PATH
from tolsey.runtime.ids import new_id
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.orders import Order
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES, ShopSpec
from tolsey.sandbox.model import Model
from tolsey.sandbox.payments.processor import SECRET_KEY
from tolsey.sandbox.server import listening
from tolsey.service import Running, running
from tolsey.storage.lifecycle.catalogue import declared
from tolsey.storage.money import payouts
from tolsey.storage.owners import OF_SHOP
from tolsey.storage.people import administrators
from tolsey.storage.records.commerce.compliance import PendingStep
from tolsey.storage.records.selling.deals import EVIDENCE

PLATFORM_SECRET = "platform-secret-of-the-service"
CREDITS = 10_000_000
OTHER, OTHER_SECRET = "second.myshopify.com", "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"
USED_KEYS = "table idempotency_keys.key"
"""What a caller called a request goes after a day."""
NAMELESS = {
    *("table facts.value", "table messages.text", "table agent_operations.after"),
    "table store_contexts.value",
}
"""What a store was told to remember goes with it: no request says the names that words go by."""

DUE = "SELECT FROM outbox WHERE due_at <= now() LIMIT 1"


@dataclass
class World:
    """A whole service with what it talks to, and all that it logged."""

    live: Running
    platform: Platform
    market: Market
    database_url: str
    log: io.StringIO
    operator: httpx.AsyncClient

    async def places(self, *people: Mapping[str, str]) -> list[dict[str, set[str]]]:
        return await places(self.live, self.database_url, self.log.getvalue(), *people)

    async def run(self, name: str) -> Any:
        """Run a job."""
        run = RunNow(new_id("run"), self.live.service.clock())
        ran = await self.live.service.runtime.ask(job(name), run, timeout=240)
        assert ran.status == "completed", ran
        return ran

    async def asked(self, topic: str, body: Mapping[str, Any]) -> None:
        """Have the platform ask for a person's data, or to forget."""
        raw = httpx.Request("POST", "http://x", json=body).content
        headers = signed(raw, topic, secret=PLATFORM_SECRET)
        path = f"/api/webhooks/commerce/{topic}"
        answer = await self.operator.post(path, content=raw, headers=headers)
        assert answer.json() == {"status": "accepted"}, answer.text

    async def settled(self) -> None:
        """Wait until nothing is under way; what is put off, or tried again later, is not."""
        await self.market.processor.webhooks.settled()
        runtime, database = self.live.service.runtime, self.live.service.database

        async def is_done() -> bool:
            return not (
                runtime.admin.effects_in_flight
                or runtime.admin.waiting
                or await database.fetch(DUE)
            )

        await until(is_done)


@asynccontextmanager
async def world(
    database_url: str, redis_url: str, folder: Path, log: io.StringIO, shops: Mapping[str, str]
) -> AsyncIterator[World]:
    """Serve it, with shops by their domains and secrets."""
    platform, model = Platform(), Model()
    for domain, secret in shops.items():
        platform.add_shop(
            ShopSpec(
                domain=domain,
                client_id="client-1",
                client_secret=secret,
                scopes=(*ALL_SCOPES, *WRITE_SCOPES),
            )
        )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(platform.serve())
        await stack.enter_async_context(model.serve())
        market = await stack.enter_async_context(opened(datetime.now(UTC)))
        settings = settings_of(
            database_url=database_url,
            redis_url=redis_url,
            data_dir=folder,
            commerce_client_secret=PLATFORM_SECRET,
            commerce_url_template=platform.url_template,
            payments_secret_key=SECRET_KEY,
            payments_webhook_secret=WEBHOOK_SECRET,
            payments_api_base=market.processor.url,
            **model.settings,
            **{name.lower(): id for name, id in market.prices.items()},
        )
        live = await stack.enter_async_context(running(settings, timers=False, poll_seconds=0.1))
        port = await stack.enter_async_context(listening(cast("Any", live.app)))
        address = f"http://127.0.0.1:{port}{PAYMENTS_PATH}"
        market.processor.open_endpoint(address, WEBHOOK_SECRET)
        await administrators.create_administrator(
            live.service.database, "operator@example.com", PASSWORD
        )
        operator = await stack.enter_async_context(browsing(live))
        login = {"email": "operator@example.com", "password": PASSWORD}
        assert (await operator.post("/api/auth/login", json=login)).status_code == 200
        yield World(live, platform, market, database_url, log, operator)


async def agent_of(seller: Seller) -> Agent:
    """Let an agent in that may do whatever an agent may."""
    client, person = Client(seller.browser, seller.store_id), cast("Person", seller)
    assert (await client.register()).status_code == 201
    page = await client.consent_page(person, scope=None)
    code = (await client.answered(person, page, "allow", list(boxes(page.text))))["code"]
    token = (await client.redeem(code)).json()["access_token"]
    bearer = {"Authorization": f"Bearer {token}", "User-Agent": "agent"}
    return Agent(seller.browser, client.resource, bearer)


async def deliveries(
    seller: Seller, shop: str, secret: str, buyer: Mapping[str, str]
) -> list[tuple[bytes, dict[str, str]]]:
    """Tell of a buyer in every topic, in its body, its free text and its headers; answer what was sent."""
    sent = []
    landing = f"/welcome/{quote(buyer['first_name'])}?utm_campaign={quote(buyer['last_name'])}"
    written: dict[str, Any] = {
        "tags": buyer["words"],
        "note_attributes": [{"name": "gift", "value": buyer["words"]}],
        "note": buyer["words"],
        "landing_site": landing,
        "referring_site": f"https://mail.example/{quote(buyer['email'])}",
    }
    for topic, body in DELIVERIES:
        # Tags of products are the shop's own words.
        told = written if topic.startswith(("orders/", "customers/", "checkouts/")) else {}
        if topic == "shop/update" and "shop_name" in buyer:
            told = {"name": buyer["shop_name"]}
        raw = personal(buyer, {**body, **told} if "name" in told else {**told, **body})
        more = {"User-Agent": buyer["email"], "X-Request-Id": buyer["email"][:20]}
        headers = signed(raw, topic, shop=shop, secret=secret, **more)
        answer = await seller.browser.post(EVENTS, content=raw, headers=headers)
        assert answer.status_code == 200, answer.text
        sent.append((raw, headers))
    return sent


async def notes_of_agents(agent: Agent, order: Order, buyer: Mapping[str, str]) -> None:
    """Have an agent write about a buyer wherever it can."""
    order_id, words = str(order.id), buyer["words"]
    refund = {
        "order_id": order_id,
        "amount": {"amount": "1.00", "currency": "USD"},
        "note": words,
    }
    calls: list[tuple[str, dict[str, Any]]] = [
        ("add_order_note", {"order_id": order_id, "note": words}),
        ("tag_order", {"order_id": order_id, "tags": [buyer["first_name"], buyer["phone"]]}),
        ("save_memory", {"key": "a.buyer", "text": words}),
        ("save_memory", {"text": f"{buyer['first_name']}: {words}"}),
        ("refund_order", {**refund, "dry_run": True}),
        ("search_memory", {"query": words}),
        ("no_such_tool", {"note": words}),
    ]
    for number, (tool, given) in enumerate(calls):
        key = {} if tool == "search_memory" else {"idempotency_key": f"key-{number:05}"}
        answer = (await agent.call(tool, **key, **given)).json()
        if tool == "refund_order":
            told = answer["result"]["structuredContent"]
            planned = {**refund, "plan_token": told["plan_token"]}
            answer = (await agent.call(tool, **key, **planned)).json()
        if tool != "no_such_tool":
            assert not answer["result"].get("isError"), (tool, answer)


async def words_of_people(world: World, seller: Seller, buyer: Mapping[str, str]) -> None:
    """Have a merchant write about a buyer wherever they can, and keep an export of it all."""
    path, words = f"/api/stores/{seller.store_id}", buyer["words"]
    browser = seller.browser
    key = {"Idempotency-Key": f"about-{buyer['first_name']}"}
    for name, said in (("best", words), ("mail", f"{words}: {buyer['email']}")):
        fact = await browser.put(f"{path}/memory/facts/buyer.{name}", json={"value": said})
        assert fact.status_code == 200, fact.text
    message = await browser.post(f"{path}/memory/messages", json={"text": words}, headers=key)
    assert message.status_code == 201, message.text
    await browser.get(f"{path}/memory/search", params={"query": words})
    await grant(world.live, cast("Any", seller), CREDITS)
    question = {"role": "user", "content": f"What does {buyer['first_name']} like? {words}"}
    asked = {"storeId": seller.store_id, "messages": [question], "tools": False}
    answer = await browser.post("/api/chat", json=asked)
    assert answer.status_code == 200, answer.text
    report = {"csp-report": {"document-uri": f"https://x/?q={quote(words)}"}}
    await browser.post("/api/security/csp-report", json=report)
    kept = await browser.post(f"{path}/exports", headers={"Idempotency-Key": "export"})
    assert kept.status_code in {201, 202}, kept.text


async def launch_of(seller: Seller, buyer: Mapping[str, str]) -> None:
    """Have a merchant begin a launch, and write about a buyer wherever it has a place for it."""
    words = f"{buyer['words']}: {buyer['email']}"
    spec = {
        "businessName": "The corner shop",
        "country": "US",
        "industry": words,
        "description": words,
        "contactEmail": "corner@shop.example",
        "location": {"name": buyer["last_name"], "phone": buyer["phone"]},
        "products": [{"title": buyer["words"], "price": "10"}],
    }
    kit = {"voice": buyer["words"], "tagline": buyer["words"]}
    begun = await seller.post(
        "/api/wizard/store/launch", storeId=seller.store_id, spec=spec, brandKit=kit
    )
    assert begun.status_code == 201, begun.text
    done = await seller.post(
        "/api/wizard/store/checkpoint",
        storeId=seller.store_id,
        milestone="foundation.plan",
        action="done",
        note=words,
    )
    assert done.status_code == 200, done.text


async def account_of(world: World, browser: httpx.AsyncClient, user: Mapping[str, str]) -> Seller:
    """Let someone have an account and leave their name wherever it has a place for it."""
    name = f"{user['first_name']} {user['last_name']}"
    browser.headers["User-Agent"] = f"Mozilla {name}"
    body = {"email": user["email"], "password": PASSWORD, "organizationName": f"{name} & Co"}
    made = (await browser.post("/api/auth/signup", json=body)).json()
    organization_id = made["organization"]["id"]
    store = {"organizationId": organization_id, "name": f"{name}'s"}
    store_id = (await browser.post("/api/stores", json=store)).json()["id"]
    seller = Seller(browser, organization_id, store_id)
    organization = f"/api/organizations/{organization_id}"
    for answer in (
        await browser.put(f"{organization}/rules", json={"contact": user["words"]}),
        await seller.post(f"{organization}/members", email=user["contact_email"], role="member"),
        await seller.post("/api/auth/password/forgot", email=user["email"]),
        await seller.post(
            LISTINGS,
            organizationId=organization_id,
            title=name,
            teaser=user["words"],
            reasonForSale=user["words"],
            includedAssets=[user["words"]],
        ),
        await seller.post(
            "/api/account/api-keys",
            organizationId=organization_id,
            name=user["words"][:40],
            scopes=["intelligence:read"],
        ),
    ):
        assert answer.status_code < 400, answer.text
    page = await seller.post(
        "/api/credits/purchase",
        organizationId=organization_id,
        amount={"amount": 5_000, "currency": "USD"},
    )
    await world.market.pay(page.json()["url"], email=user["email"], name=name)
    return seller


async def sign(who: Seller, signature_id: str, name: str) -> None:
    """Sign a document as it is shown."""
    path = f"/api/marketplace/signatures/{signature_id}"
    shown = await who.browser.get(f"{path}/document")
    wanted = (await who.browser.get(path)).json()
    signed = await who.post(
        path,
        typedName=name,
        consent=True,
        consentVersion=wanted["consentVersion"],
        documentSha256=hashlib.sha256(shown.content).hexdigest(),
    )
    assert signed.status_code == 200, signed.text


async def deal_between(
    world: World, seller: Seller, buyer: Seller, user: Mapping[str, str]
) -> None:
    """Have someone ask for a business, sign the NDA, offer and walk away, with their words at each step."""
    price = {"amount": 2_000_000, "currency": "USD"}
    whose = (await seller.browser.get("/api/auth/session")).json()["user"]["id"]
    now = datetime.now(UTC)
    await payouts.opened(world.live.service.database, whose, verified(), now)
    sold = await listing_of(seller, storeId=seller.store_id, askingPrice=price)
    shown = await seller.post(f"{LISTINGS}/{sold['id']}/publish")
    assert shown.json()["status"] == "ACTIVE", shown.text
    market = "/api/marketplace"
    asked = await buyer.post(
        f"{market}/listings/{sold['id']}/access",
        organizationId=buyer.organization_id,
        message=user["words"],
    )
    deal = f"{market}/deals/{asked.json()['id']}"
    let_in = {"event": "access.approve", "expectedStage": "INQUIRY"}
    answered = await seller.post(f"{deal}/advance", **let_in)
    signature_id = answered.json()["signatureId"]
    await sign(buyer, signature_id, f"{user['first_name']} {user['last_name']}")
    await sign(seller, signature_id, "Ann")
    offered = await buyer.post(f"{deal}/offers", amount=price, message=user["words"])
    offer = offered.json()["offer"]["id"]
    assert (await seller.post(f"{market}/offers/{offer}/reject")).status_code == 200
    leaves = {"event": "withdraw", "expectedStage": "NDA_SIGNED", "reason": user["words"]}
    left = await buyer.post(f"{deal}/advance", **leaves)
    assert left.json()["stage"] == "WITHDRAWN", left.text


async def plant(
    world: World, seller: Seller, shop: str, secret: str, buyer: Mapping[str, str]
) -> list[tuple[bytes, dict[str, str]]]:
    """Connect a store to a shop, and tell it of a buyer through every way in; answer what was delivered."""
    order = world.platform.place_order(shop, email=buyer["email"])
    assert order.customer is not None
    order.customer.first_name, order.customer.last_name = buyer["first_name"], buyer["last_name"]
    order.note, order.tags = buyer["words"], (buyer["words"],)
    assert (await seller.connect(shop, secret)).status_code == 200
    await world.settled()
    await notes_of_agents(await agent_of(seller), order, buyer)
    await world.settled()
    sent = await deliveries(seller, shop, secret, buyer)
    await launch_of(seller, buyer)
    await words_of_people(world, seller, buyer)
    await world.settled()
    return sent


EVIDENCE_OF_DEALS = {
    f"table {one.name}"
    for one in declared()
    if any(belongs.stays == EVIDENCE for belongs in one.belongs)
}
"""What two parties said and signed is kept for seven years, whoever of them leaves: the one exception."""

OF_THE_SHOP = {
    PendingStep.HISTORY: {one.name for one in declared() if OF_SHOP in one.belongs},
    PendingStep.STORE_RECORD: {"store_shops"},
}
"""What the open steps of a redacted shop name."""


def unnamed(places: Iterable[str], request: Mapping[str, Any]) -> set[str]:
    """Tell which places the open steps of a request do not name; free text of orders goes at once."""
    named = set().union(*(OF_THE_SHOP.get(one, set()) for one in request["pendingSteps"]))
    return {
        place
        for place in places
        if place == "table commerce_orders.metadata"
        or place.removeprefix("table ").partition(".")[0] not in named
    } - {USED_KEYS, "dump"}


async def carry_out_steps(world: World, request: Mapping[str, Any]) -> None:
    """Have an operator say that what is pending is to be done."""
    admin = f"/api/admin/compliance/{request['id']}"
    for step in request["pendingSteps"]:
        done = await world.operator.post(f"{admin}/steps/{step}/done", json={"reason": "Asked."})
        assert done.status_code == 202, done.text
    await world.run("gdpr-erasure")


async def requested(world: World) -> dict[str, Any]:
    """Read the one request of the platform."""
    (request,) = (await world.operator.get("/api/admin/compliance")).json()["items"]
    return cast("dict[str, Any]", request)


async def secrets_of(world: World, store_id: str, buyer: Mapping[str, str]) -> dict[str, str]:
    """Add to a person what a store knows them by, and what opens their shop: these go with them."""
    row = await world.live.service.database.fetchrow(
        """
        SELECT s.sealed_salt AS salt, c.access_token AS token, o.customer_hash AS pseudonym,
            c.metadata->>'clientSecretEncrypted' AS secret
        FROM stores s JOIN integration_connections c ON c.store_id = s.id
            JOIN commerce_orders o ON o.store_id = s.id AND o.metadata::text LIKE '%' || $2 || '%'
        WHERE s.id = $1 AND o.customer_hash IS NOT NULL LIMIT 1
        """,
        store_id,
        buyer["words"],
    )
    assert row is not None
    return {**buyer, **{name: str(value) for name, value in row.items()}}
