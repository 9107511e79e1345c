from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from typing import Any, cast

import httpx
import pytest

from tests.http.people import KEYRING, PASSWORD, Browser, Clock, Person, SignUp, settings_of
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.effects import PaymentInbox
from tolsey.actors.ports import CommercePlatform, Unset
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.storefront.observed import StorefrontScanner
from tolsey.http.app import create_app
from tolsey.http.chat.answering import AnswerService
from tolsey.http.chat.terms import Terms
from tolsey.http.clients.model import ChatModel
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.http.clients.payments.revenue import RestrictedAccounts
from tolsey.http.files.keeping import FileKeeper
from tolsey.http.mail.office import PostOffice
from tolsey.http.memory.finding import MemorySearch
from tolsey.http.oauth.agents import Agents
from tolsey.http.people import auth, organizations
from tolsey.http.status.webhooks import StatusWebhooks
from tolsey.http.stores import exports
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.runtime.clock import Time
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.shard import Shard
from tolsey.settings import Settings
from tolsey.storage.cache import Cache
from tolsey.storage.chat.vectors import DatabaseVectors
from tolsey.storage.database import Database
from tolsey.storage.limits import Limits
from tolsey.storage.reports.pool import Reports
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault


class UnusedPlatform:
    """The commerce platform of tests that never call it."""


async def nobody_else() -> None:
    """Tell other processes: there are none."""


@pytest.fixture(scope="session")
def settings() -> Settings:
    return settings_of()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def cache(redis_url: str) -> AsyncIterator[Cache]:
    opened = Cache(redis_url)
    yield opened
    await opened.close()


@pytest.fixture
async def runtime(database: Database, clock: Clock) -> AsyncIterator[Runtime]:
    journal = Journal(database)
    async with Runtime(
        [OrganizationActor(database), StoreActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
        time=Time(clock),
    ) as running:
        yield running
    await journal.close()


@pytest.fixture
async def reports(database: Database) -> AsyncIterator[Reports]:
    opened = Reports(database.dsn)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def service(
    settings: Settings,
    database: Database,
    cache: Cache,
    runtime: Runtime,
    clock: Clock,
    *,
    reports: Reports,
) -> Service:
    return Service(
        settings=settings,
        runtime=runtime,
        shard=cast("Shard", None),  # this process is alone, and no route here looks at the others
        database=database,
        reports=reports,
        cache=cache,
        limits=Limits(cache),
        vault=Vault.from_keys(KEYRING),
        commerce=cast("CommercePlatform", UnusedPlatform()),
        payments=StripePayments(None, settings.sold_prices),
        seller_accounts=RestrictedAccounts(),
        vectors=DatabaseVectors(database),
        chat=AnswerService(
            cast("ChatModel", Unset("LLM_BASE_URL")),
            Terms.of(settings),
            runtime.ask,
            database,
            clock,
            post=runtime.post,
            place=partial(runtime.admin.lanes.place, "model"),
        ),
        memory=MemorySearch(database, runtime.ask, clock),
        agents=Agents.of(settings, database, clock, nobody_else),
        mail=PostOffice(database, Vault.from_keys(KEYRING), None, settings, clock),
        status_webhooks=StatusWebhooks(database, Vault.from_keys(KEYRING), settings, clock),
        files=cast("FileKeeper", None),  # no route here has files
        payment_inbox=cast("PaymentInbox", None),  # nobody has an event applied again here
        storefronts=cast("StorefrontScanner", None),  # no route here looks at any
        clock=clock,
    )


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(
        service, [auth.routes, organizations.routes, stores.routes, exports.routes], {}
    )


@pytest.fixture
async def browser(edge: Edge) -> AsyncIterator[Browser]:
    """Open browsers, each at an address of its own unless it is given one."""
    addresses = count(1)
    async with AsyncExitStack() as stack:

        def opened(address: str | None = None, **headers: str) -> httpx.AsyncClient:
            peer = address or f"198.51.100.{next(addresses)}"
            transport = httpx.ASGITransport(cast("Any", edge), client=(peer, 50_000))
            base = "http://127.0.0.1:8000"
            client = httpx.AsyncClient(
                transport=transport, base_url=base, headers={"Origin": base, **headers}
            )
            stack.push_async_callback(client.aclose)
            return client

        yield opened


@pytest.fixture
async def sign_up(browser: Browser) -> SignUp:
    """Sign people up through the real interface."""

    async def signed_up(email: str = "ann@example.com", **options: Any) -> Person:
        client = browser(**options)
        body = {"email": email, "password": PASSWORD, "organizationName": "Ann's"}
        response = await client.post("/api/auth/signup", json=body)
        assert response.status_code == 201, response.text
        made = response.json()
        return Person(client, made["user"]["id"], made["organization"]["id"], email)

    return signed_up
