"""The whole service reads a seller's account at the payment processor, without a key of its own."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.http.account_books import RESTRICTED_KEY, Account
from tests.journeys.conftest import Seller
from tests.journeys.strangers import LISTINGS, PUBLIC, browsing, listing_of, quiet
from tolsey.sandbox.payments.processor import Processor
from tolsey.service import Running
from tolsey.settings import Settings


@pytest.fixture
async def account() -> AsyncIterator[Account]:
    processor = Processor()
    async with processor.serve():
        opened = Account(processor)
        opened.pay("cus_a", 2_500)
        opened.pay("cus_a", 2_500, days_ago=40)
        opened.subscribe("cus_a")
        yield opened


@pytest.fixture
def settings(settings: Settings, account: Account) -> Settings:
    return settings.model_copy(update={"payments_api_base": account.processor.url})


async def test_a_buyer_sees_what_the_processor_proves(live: Running, seller: Seller) -> None:
    listing = await listing_of(seller, askingPrice={"amount": 10**6, "currency": "USD"})
    path = f"{LISTINGS}/{listing['id']}"
    assert (await seller.post(f"{path}/publish")).status_code == 200
    answer = await seller.post(f"{path}/verify/payments", restrictedKey=RESTRICTED_KEY)
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification"]["source"] == "payments"
    await quiet(live)

    async with browsing(live) as buyer:
        proof = (await buyer.get(f"{PUBLIC}/{listing['slug']}/verification")).json()
        badge = await buyer.get(f"{PUBLIC}/{listing['slug']}/badge.svg")
    assert (proof["state"], proof["revenue30d"], proof["mrr"]) == ("verified", 2_500, 1_000)
    assert "USD 25.00 in 30 days" in badge.text


async def test_operators_see_the_listing_without_its_key(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    listing = await listing_of(seller)
    await seller.post(f"{LISTINGS}/{listing['id']}/verify/payments", restrictedKey=RESTRICTED_KEY)
    await quiet(live)
    seen = await operator.get(f"/api/admin/actors/listing/{listing['id']}")

    assert seen.status_code == 200
    assert "acct_1Corner" in seen.text
    sealed = await live.service.database.fetch("SELECT sealed_secret FROM revenue_sources")
    for secret in (RESTRICTED_KEY, sealed[0]["sealed_secret"]):
        assert secret not in seen.text
