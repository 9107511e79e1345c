from typing import Any

import pytest
import stripe

from tests.sandbox.payments.stage import STRIPE, Shop
from tests.sandbox.payments.test_connect import EXPRESS

pytestmark = STRIPE
HANDLED = frozenset(
    {
        "account.updated",
        "charge.dispute.closed",
        "charge.dispute.created",
        "charge.refunded",
        "checkout.session.completed",
        "customer.subscription.created",
        "customer.subscription.deleted",
        "customer.subscription.updated",
        "invoice.paid",
        "invoice.payment_action_required",
        "invoice.payment_failed",
        "payment_intent.payment_failed",
        "payment_intent.succeeded",
        "payout.failed",
    }
)
KINDS: dict[str, Any] = {
    "account": stripe.Account,
    "charge": stripe.Charge,
    "checkout.session": stripe.checkout.Session,
    "dispute": stripe.Dispute,
    "invoice": stripe.Invoice,
    "payment_intent": stripe.PaymentIntent,
    "payout": stripe.Payout,
    "subscription": stripe.Subscription,
}


async def lived(shop: Shop) -> None:
    """Let a customer, a buyer and a paid person go through everything once."""
    sub = await shop.subscribe(await shop.price(), card="4000002500003155")
    shop.processor.advance(days=31)
    await shop.client.v1.subscriptions.cancel_async(sub.id)
    session = await shop.credits()
    await shop.pay(session.url, "decline")
    await shop.pay(session.url)
    charge = shop.last("charge.succeeded")["id"]
    await shop.client.v1.refunds.create_async({"charge": charge, "amount": 100})
    dispute = shop.processor.open_dispute(charge)
    shop.processor.close_dispute(dispute["id"], "lost")
    account = await shop.client.v1.accounts.create_async(EXPRESS)
    shop.processor.onboard(account.id)
    shop.processor.fail_payout(account.id, 25_000, withdrawal_id="w_1")


async def test_all_types_that_the_service_handles_are_produced(shop: Shop) -> None:
    await lived(shop)
    assert set(shop.types()) >= HANDLED


async def test_every_field_sent_is_one_the_package_knows(shop: Shop) -> None:
    await lived(shop)
    events = list(shop.processor.platform.books.each("event"))
    for event in events:
        obj = event["data"]["object"]
        if event["type"] in HANDLED:
            known = set(KINDS[obj["object"]].__annotations__)
            assert set(obj) <= known, (event["type"], set(obj) - known)


@pytest.mark.parametrize("count", [3])
async def test_events_are_listed_by_type(shop: Shop, count: int) -> None:
    for _ in range(count):
        await shop.client.v1.customers.create_async({})
    found = await shop.client.v1.events.list_async({"type": "customer.created"})
    assert len(found.data) == count
    again = await shop.client.v1.events.retrieve_async(found.data[0].id)
    assert again.id == found.data[0].id
