"""A service with listings, a platform with a shop to read, and a processor with an account."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from tests.http.account_books import RESTRICTED_KEY, Account
from tests.http.listings.seller_side import CREDENTIALS, SECRET, SHOP, Seller, listed, sell_on
from tests.http.people import Clock, SignUp
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.listing.effects import ListingEffects
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.http.app import create_app
from tolsey.http.clients.commerce.admin import API_VERSION, ShopifyAdmin
from tolsey.http.clients.payments.revenue import RestrictedAccounts
from tolsey.http.deals import papers
from tolsey.http.people import auth, organizations
from tolsey.http.selling import public, reviews, sell
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.runtime.clock import Time
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.sandbox.payments.processor import Processor
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault


@pytest.fixture
async def platform(clock: Clock) -> AsyncIterator[Platform]:
    opened = Platform(now=clock.now, frozen_clock=True, published_folder=None)
    spec = ShopSpec(domain=SHOP, client_id="corner-app", client_secret=SECRET)
    opened.add_shop(replace(spec, primary_domain="corner.example"))
    sell_on(opened, 40, 5_000)
    sell_on(opened, 10, 12_345)
    sell_on(opened, 3, 2_000)
    async with opened.serve():
        yield opened


@pytest.fixture
async def commerce(
    platform: Platform, request: pytest.FixtureRequest
) -> AsyncIterator[ShopifyAdmin]:
    client = ShopifyAdmin(
        platform.url_template,
        getattr(request, "param", API_VERSION),
        sleep=lambda _: anyio.lowlevel.checkpoint(),
    )
    yield client
    await client.close()


@pytest.fixture
async def account(clock: Clock) -> AsyncIterator[Account]:
    processor = Processor(now=clock.now, frozen_clock=True)
    async with processor.serve():
        opened = Account(processor)
        opened.pay("cus_a", 1_000)
        opened.pay("cus_a", 14_000, days_ago=20)
        opened.pay("cus_a", 12_000, days_ago=45)
        opened.subscribe("cus_a")
        yield opened


@pytest.fixture
async def seller_accounts(account: Account) -> AsyncIterator[RestrictedAccounts]:
    client = RestrictedAccounts(account.processor.url)
    yield client
    await client.close()


@pytest.fixture
async def runtime(
    database: Database,
    commerce: ShopifyAdmin,
    seller_accounts: RestrictedAccounts,
    settings: Settings,
    clock: Clock,
) -> AsyncIterator[Runtime]:
    journal = Journal(database)
    vault = Vault.from_keys(str(settings.encryption_keys))
    async with Runtime(
        [
            OrganizationActor(database),
            ListingActor(database, partial(papers.nda_writer, database, settings.base_url)),
        ],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
        handlers=ListingEffects(commerce, seller_accounts, vault, database, clock).handlers(),
        time=Time(clock),
        poll_seconds=0.05,
        backoff_seconds=(0.0, 0.0, 0.0, 0.0),
    ) as running:
        yield running
    await journal.close()


@pytest.fixture
def service(
    service: Service, commerce: ShopifyAdmin, seller_accounts: RestrictedAccounts
) -> Service:
    return replace(service, commerce=commerce, seller_accounts=seller_accounts)


@pytest.fixture
def edge(service: Service) -> Edge:
    parts = (auth, organizations, stores, sell, public, reviews)
    return create_app(service, [part.routes for part in parts], {})


@pytest.fixture
async def seller(sign_up: SignUp) -> Seller:
    ann = await sign_up("ann@example.com")
    return await listed(ann)


@pytest.fixture
async def verified(seller: Seller) -> Seller:
    await seller.post("publish")
    answer = await seller.post("verify/commerce", CREDENTIALS)
    assert answer.status_code == 200, answer.text
    found = await seller.synced()
    assert found["verification"]["state"] == "verified", found
    return seller


@pytest.fixture
async def paid(seller: Seller, account: Account) -> Seller:
    """A listing whose revenue the payment processor proves."""
    await seller.post("publish")
    account.answer_next("/v1/account", account.own())
    account.answer_next("/v1/account", account.own())
    answer = await seller.post("verify/payments", {"restrictedKey": RESTRICTED_KEY})
    assert answer.status_code == 200, answer.text
    found = await seller.synced()
    assert found["verification"]["state"] == "verified", found
    return seller
