"""A program signs up, connects a shop, lists it, proves its revenue and buys a plan, by the generated client."""

import importlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.client import NAME, generate
from tests.http.people import PASSWORD, settings_of
from tests.journeys.conftest import CRON_SECRET, free_port
from tests.journeys.strangers import quiet
from tests.pages.conftest import ServedSite, served
from tolsey.demo.browser import send_form
from tolsey.demo.standins import Ports, StandIns, standing_in


class Client:
    """The generated package: its operations by tag and name, its shapes by name."""

    def __init__(self, web: httpx.AsyncClient) -> None:
        self._called = self._named("client").Client(base_url=str(web.base_url))
        self._called.set_async_httpx_client(web)

    async def __call__(self, operation: str, /, *given: Any, **more: Any) -> Any:
        answer = await self._named(f"api.{operation}").asyncio(*given, client=self._called, **more)
        problem = self._named("models").Problem
        assert not isinstance(answer, (type(None), problem)), answer
        return answer

    def body(self, name: str, /, **fields: Any) -> Any:
        return getattr(self._named("models"), name).from_dict(fields)

    @staticmethod
    def _named(module: str) -> Any:
        return importlib.import_module(f"{NAME}.{module}")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("client"))


@pytest.fixture
async def standins() -> AsyncIterator[StandIns]:
    ports = Ports(*(free_port() for _ in range(4)))
    async with standing_in(ports, orders=120) as running:
        running.settings["base_url"] = ports.base
        yield running


@pytest.fixture
async def live_site(
    database_url: str, redis_url: str, standins: StandIns
) -> AsyncIterator[ServedSite]:
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        cron_secret=CRON_SECRET,
        **standins.settings,
    )
    async with served(settings, int(settings.base_url.rpartition(":")[2])) as opened:
        yield opened


@pytest.fixture
async def client(
    package: Path, live_site: ServedSite, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Client]:
    monkeypatch.syspath_prepend(str(package.parent))
    for name in [one for one in sys.modules if one.partition(".")[0] == NAME]:
        monkeypatch.delitem(sys.modules, name)
    origin = {"Origin": live_site.url}
    async with httpx.AsyncClient(
        base_url=live_site.url, headers=origin, timeout=60, trust_env=False
    ) as web:
        yield Client(web)


async def test_a_program_does_the_main_job_with_the_generated_client(
    client: Client, live_site: ServedSite, standins: StandIns
) -> None:
    account = {"email": "ann@example.com", "password": PASSWORD, "organizationName": "Ann's"}
    made = await client("accounts.signup", body=client.body("Signup", **account))
    whose = made.organization.id
    named = {"organizationId": whose, "name": "A store"}
    store = await client("stores.create_store", body=client.body("StoreBody", **named))
    spec = standins.trade.shop.spec
    app = {
        "shopDomain": spec.domain,
        "clientId": spec.client_id,
        "clientSecret": spec.client_secret,
    }
    custom = client.body("CustomApp", storeId=store.id, **app)
    connected = await client("integrations.connect_custom_app", body=custom)
    assert (connected.connection.status, connected.connection.shop_domain) == (
        "active",
        spec.domain,
    )

    payouts = await client("payouts.open_account")
    await send_form(payouts.url, action="submit")
    assert (await client("payouts.get_account")).state == "verified"
    price = {"amount": 12_000_000, "currency": "USD"}
    offer = {"organizationId": whose, "storeId": store.id, "title": "A shop", "askingPrice": price}
    draft = await client("selling.create_listing", body=client.body("NewListing", **offer))
    listed = await client("selling.publish_listing", draft.id)
    assert listed.status == "ACTIVE"
    merchant = client.body("MerchantApp", **app)
    await client("selling.verify_commerce", draft.id, body=merchant)
    await quiet(live_site.running)
    proof = await client("public_listings.get_verification", draft.slug)
    assert (proof.state, proof.revenue30d > 0) == ("verified", True)
    assert proof.window_end.tzinfo is not None

    plans = await client("billing.list_plans", organization_id=whose)
    assert (plans.organization.plan, "pro" in {one.code for one in plans.items}) == ("free", True)
    choice = client.body("Choice", organizationId=whose, plan="pro", cadence="monthly")
    page = await client("billing.check_out", body=choice, idempotency_key="first")
    assert page.url.startswith(standins.settings["payments_api_base"])
    assert (await client("stores.list_stores")).items[0].id == store.id
