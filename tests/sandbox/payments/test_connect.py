from typing import Any

import pytest
import stripe

from tests.sandbox.payments.stage import SECRET, STRIPE, Receiver, Shop

pytestmark = STRIPE
EXPRESS: Any = {
    "controller": {
        "stripe_dashboard": {"type": "express"},
        "fees": {"payer": "application"},
        "losses": {"payments": "application"},
        "requirement_collection": "stripe",
    },
    "capabilities": {"transfers": {"requested": True}},
    "metadata": {"user_id": "user_1"},
}


async def linked(shop: Shop, account: str) -> str:
    link = await shop.client.v1.account_links.create_async(
        {
            "account": account,
            "type": "account_onboarding",
            "refresh_url": "https://shop.test/again",
            "return_url": "https://shop.test/done",
            "collection_options": {"fields": "eventually_due", "future_requirements": "include"},
        }
    )
    return link.url


async def test_an_account_is_opened_on_the_processors_page(shop: Shop, receiver: Receiver) -> None:
    shop.processor.open_endpoint(f"{receiver.uri}/connect", SECRET, connect=True)
    account = await shop.client.v1.accounts.create_async(EXPRESS)
    assert (account.details_submitted, account.payouts_enabled) == (False, False)
    transfer: Any = {"amount": 100, "currency": "usd", "destination": account.id}
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await shop.client.v1.transfers.create_async(transfer)
    assert refused.value.code == "insufficient_capabilities_for_transfer"
    url = await linked(shop, account.id)
    assert account.id in (await shop.browser.get(url)).text
    answer = await shop.browser.post(url)
    assert answer.headers["location"] == "https://shop.test/done"
    opened = await shop.client.v1.accounts.retrieve_async(account.id)
    assert opened.requirements
    assert opened.requirements.disabled_reason is None
    assert opened.payouts_enabled
    assert opened.details_submitted
    assert (await shop.client.v1.transfers.create_async(transfer)).destination == account.id
    dashboard = (await shop.client.v1.accounts.login_links.create_async(account.id)).url
    assert "payouts are enabled" in (await shop.browser.get(dashboard)).text
    await shop.processor.webhooks.settled()
    (updated,) = [e for e in receiver.events if e["type"] == "account.updated"]
    assert updated["account"] == account.id


async def test_a_link_grows_old(shop: Shop) -> None:
    account = await shop.client.v1.accounts.create_async(EXPRESS)
    url = await linked(shop, account.id)
    shop.processor.advance(600)
    assert (await shop.browser.get(url)).headers["location"] == "https://shop.test/again"


async def test_an_account_may_be_refused(shop: Shop) -> None:
    account = await shop.client.v1.accounts.create_async(EXPRESS)
    shop.processor.onboard(account.id, disabled_reason="rejected.fraud")
    found = await shop.client.v1.accounts.retrieve_async(account.id)
    assert found.requirements
    assert found.requirements.disabled_reason == "rejected.fraud"
    assert not found.payouts_enabled


async def test_another_kind_of_account_is_not_played(shop: Shop) -> None:
    with pytest.raises(stripe.InvalidRequestError, match="does not play"):
        await shop.client.v1.accounts.create_async({"type": "custom"})


async def test_a_sellers_account_opens_no_accounts(shop: Shop) -> None:
    merchant = shop.processor.add_merchant("acct_seller")
    shop.processor.add_key(merchant, "sk_test_seller")
    with pytest.raises(stripe.InvalidRequestError, match="signed up for Connect"):
        await shop.client.v1.accounts.create_async(EXPRESS, {"api_key": "sk_test_seller"})
