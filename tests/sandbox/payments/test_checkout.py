import re
from typing import Any

import pytest
import stripe

from tests.sandbox.payments.stage import STRIPE, Receiver, Shop, error_of, in_order

pytestmark = STRIPE


async def test_credits_are_paid_on_a_page_without_script(shop: Shop) -> None:
    session = await shop.credits(customer_creation="always", invoice_creation={"enabled": True})
    form = await shop.browser.get(session.url)
    assert "50.00 USD" in form.text
    assert "<script" not in form.text
    paid = await shop.pay(session.url, email="a@example.com", name="Ada")
    assert paid.status_code == 303
    assert paid.headers["location"] == f"https://shop.test/ok?id={session.id}"
    done = await shop.client.v1.checkout.sessions.retrieve_async(
        session.id, {"expand": ["payment_intent.latest_charge", "invoice", "line_items"]}
    )
    assert (done.status, done.payment_status) == ("complete", "paid")
    intent: Any = done.payment_intent
    assert intent.status == "succeeded"
    assert intent.metadata.to_dict() == {"kind": "credits", "credits_cents": "5000"}
    assert intent.latest_charge.amount_captured == 5_000
    invoice: Any = done.invoice
    assert (invoice.status, invoice.parent, invoice.total) == ("paid", None, 5_000)
    assert done.line_items
    assert done.line_items.data[0].amount_total == 5_000
    assert done.customer_details
    assert done.customer_details.email == "a@example.com"
    order = ["payment_intent.succeeded", "invoice.paid", "checkout.session.completed"]
    assert in_order(order, shop.types())


async def test_the_pages_own_form_pays_as_it_is(shop: Shop) -> None:
    line = {
        "price_data": {"currency": "usd", "unit_amount": 500, "product_data": {"name": "Thanks"}},
        "quantity": 1,
    }
    session = await shop.session(
        mode="payment", line_items=[line], submit_type="pay", metadata={"kind": "sponsor"}
    )
    page = (await shop.browser.get(session.url)).text
    fields = dict(re.findall('<input name="(.*?)" value="(.*?)">', page))
    name, value = re.findall('<button name="(.*?)" value="(.*?)">', page)[0]
    answer = await shop.browser.post(session.url, data={**fields, name: value})
    assert answer.status_code == 303
    completed = shop.last("checkout.session.completed")
    assert completed["metadata"] == {"kind": "sponsor"}
    assert completed["customer"] is None


async def test_a_subscription_is_asked_for_with_everything_the_service_sends(shop: Shop) -> None:
    customer = await shop.client.v1.customers.create_async({"email": "a@example.com"})
    session = await shop.session(
        mode="subscription",
        customer=customer.id,
        customer_update={"name": "auto", "address": "auto"},
        line_items=[{"price": await shop.price(), "quantity": 1}],
        tax_id_collection={"enabled": True},
        automatic_tax={"enabled": True},
        consent_collection={"terms_of_service": "required"},
        metadata={"org_id": "org_1", "kind": "subscription", "plan": "pro"},
        subscription_data={"metadata": {"org_id": "org_1"}, "billing_mode": {"type": "flexible"}},
        client_reference_id="org_1",
        cancel_url="https://shop.test/back",
    )
    await shop.pay(session.url, terms="yes", name="Ada Ltd", tax_id="DE123456789")
    completed = shop.last("checkout.session.completed")
    assert completed["client_reference_id"] == "org_1"
    assert completed["consent"]["terms_of_service"] == "accepted"
    assert completed["customer_details"]["tax_ids"] == [{"type": "eu_vat", "value": "DE123456789"}]
    assert shop.last("customer.updated")["name"] == "Ada Ltd"


async def test_tax_is_on_top_of_an_exclusive_price(shop: Shop) -> None:
    shop.processor.platform.tax_basis_points = 2_000
    session = await shop.credits(automatic_tax={"enabled": True})
    assert (session.amount_subtotal, session.amount_total) == (5_000, 6_000)
    await shop.pay(session.url)
    assert shop.last("payment_intent.succeeded")["amount"] == 6_000
    assert shop.last("checkout.session.completed")["total_details"]["amount_tax"] == 1_000


async def test_a_declined_card_leaves_the_session_open(shop: Shop) -> None:
    session = await shop.credits()
    answer = await shop.pay(session.url, "decline")
    assert "Your card was declined." in answer.text
    assert shop.last("payment_intent.payment_failed")["last_payment_error"]["decline_code"]
    assert "checkout.session.completed" not in shop.types()
    assert (await shop.pay(session.url)).status_code == 303
    assert len(list(shop.processor.platform.books.each("payment_intent"))) == 1


async def test_going_back_leads_to_the_cancel_address(shop: Shop) -> None:
    session = await shop.credits(cancel_url="https://shop.test/back")
    answer = await shop.pay(session.url, "cancel")
    assert answer.headers["location"] == "https://shop.test/back"
    assert "payment_intent.created" not in shop.types()


@pytest.mark.parametrize(("paid", "end"), [(True, "succeeded"), (False, "failed")])
async def test_a_bank_debit_ends_later(shop: Shop, paid: bool, end: str) -> None:
    session = await shop.credits()
    await shop.pay(session.url, "later")
    completed = shop.last("checkout.session.completed")
    assert completed["payment_status"] == "unpaid"
    shop.processor.settle(completed["payment_intent"], paid=paid)
    assert shop.types()[-1] == f"checkout.session.async_payment_{end}"
    wanted = "payment_intent.succeeded" if paid else "payment_intent.payment_failed"
    assert wanted in shop.types()


async def test_a_bank_debit_settles_by_itself_in_time(shop: Shop) -> None:
    session = await shop.credits()
    await shop.pay(session.url, "later")
    shop.processor.advance(days=5)
    assert "payment_intent.succeeded" in shop.types()


async def test_terms_have_to_be_accepted_where_that_is_asked(shop: Shop) -> None:
    session = await shop.credits(consent_collection={"terms_of_service": "required"})
    assert "agree to the terms" in (await shop.pay(session.url)).text
    assert (await shop.pay(session.url, terms="yes")).status_code == 303


async def test_an_existing_customers_tax_id_needs_both_updates(shop: Shop) -> None:
    customer = await shop.client.v1.customers.create_async({"email": "a@example.com"})
    asked: Any = {"customer": customer.id, "tax_id_collection": {"enabled": True}}
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await shop.credits(**asked)
    assert str(refused.value.user_message) == (
        "Tax ID collection requires updating business name on the customer. To enable tax ID"
        " collection for an existing customer, please set `customer_update[name]` to `auto`."
    )
    with pytest.raises(stripe.InvalidRequestError, match=r"customer_update\[address\]"):
        await shop.credits(**asked, customer_update={"name": "auto"})
    update = {"name": "auto", "address": "auto"}
    session = await shop.credits(**asked, customer_update=update)
    assert session.customer == customer.id


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"customer_update": {"name": "auto"}}, "`customer_update` can only be provided when"),
        ({"mode": "subscription", "customer_creation": "always"}, "can only be set in `payment`"),
        ({"mode": "subscription"}, "at least one recurring price"),
        ({"subscription_data": {"metadata": {"a": "b"}}}, "You can not pass `subscription_data`"),
        ({"customer": "cus_nobody"}, "No such customer: 'cus_nobody'"),
        ({"success_url": ""}, "Missing required param: success_url"),
        ({"mode": "setup"}, "does not play"),
    ],
)
async def test_a_session_follows_the_processors_rules(
    shop: Shop, given: dict[str, Any], message: str
) -> None:
    line = {
        "price_data": {"currency": "usd", "unit_amount": 500, "product_data": {"name": "A"}},
        "quantity": 1,
    }
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await shop.session(**{"mode": "payment", "line_items": [line], **given})
    assert message in str(refused.value)


async def test_a_customer_and_its_creation_exclude_each_other(shop: Shop) -> None:
    customer = await shop.client.v1.customers.create_async({})
    with pytest.raises(stripe.InvalidRequestError, match="You may only specify one of"):
        await shop.credits(customer=customer.id, customer_creation="always")


async def test_a_session_expires(shop: Shop) -> None:
    session = await shop.credits()
    shop.processor.advance(days=2)
    assert shop.last("checkout.session.expired")["id"] == session.id
    assert "expired" in (await shop.browser.get(session.url)).text


async def test_refunds_add_up_on_the_charge(shop: Shop) -> None:
    session = await shop.credits()
    await shop.pay(session.url)
    intent = shop.last("payment_intent.succeeded")["id"]
    refunds = shop.client.v1.refunds
    await refunds.create_async({"payment_intent": intent, "amount": 2_000})
    assert shop.last("charge.refunded")["amount_refunded"] == 2_000
    with pytest.raises(stripe.InvalidRequestError, match="greater than unrefunded amount"):
        await refunds.create_async({"payment_intent": intent, "amount": 3_001})
    await refunds.create_async({"payment_intent": intent, "reason": "requested_by_customer"})
    charge = shop.last("charge.refunded")
    assert (charge["amount_refunded"], charge["refunded"]) == (5_000, True)
    assert "refunds" not in charge
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await refunds.create_async({"payment_intent": intent})
    assert refused.value.code == "charge_already_refunded"
    found = await shop.client.v1.charges.retrieve_async(charge["id"], {"expand": ["refunds"]})
    assert found.refunds
    assert [refund.amount for refund in found.refunds.data] == [3_000, 2_000]


async def test_a_dispute_is_opened_and_closed(shop: Shop) -> None:
    session = await shop.credits()
    await shop.pay(session.url)
    charge = shop.last("charge.succeeded")
    dispute = shop.processor.open_dispute(charge["id"])
    assert shop.last("charge.dispute.created")["status"] == "needs_response"
    with pytest.raises(stripe.InvalidRequestError, match="charged back"):
        await shop.client.v1.refunds.create_async({"charge": charge["id"]})
    shop.processor.close_dispute(dispute["id"], "won")
    closed = await shop.client.v1.disputes.retrieve_async(dispute["id"])
    assert closed.status == "won"
    assert shop.types()[-1] == "charge.dispute.closed"


async def test_an_inquiry_closes_as_a_warning(shop: Shop) -> None:
    session = await shop.credits()
    await shop.pay(session.url)
    dispute = shop.processor.open_dispute(shop.last("charge.succeeded")["id"], inquiry=True)
    assert dispute["status"] == "warning_needs_response"
    with pytest.raises(ValueError, match="does not end as won"):
        shop.processor.close_dispute(dispute["id"], "won")
    shop.processor.close_dispute(dispute["id"], "warning_closed")
    assert shop.last("charge.dispute.closed")["status"] == "warning_closed"


async def test_a_payment_off_session_is_declined_with_its_intent(shop: Shop) -> None:
    customer = await shop.client.v1.customers.create_async({})
    with pytest.raises(stripe.CardError) as refused:
        await shop.client.v1.payment_intents.create_async(
            {
                "amount": 5_000,
                "currency": "usd",
                "customer": customer.id,
                "confirm": True,
                "off_session": True,
                "payment_method": "pm_card_authenticationRequired",
            }
        )
    assert refused.value.code == "authentication_required"
    assert error_of(refused.value)["payment_intent"]["status"] == "requires_action"


async def test_another_process_can_do_what_a_test_does(shop: Shop, receiver: Receiver) -> None:
    session = await shop.credits()
    await shop.pay(session.url)
    charge = shop.last("charge.succeeded")["id"]
    control = f"{shop.processor.url}/sandbox"
    dispute = (await shop.browser.post(f"{control}/open_dispute", data={"charge": charge})).json()
    data = {"dispute": dispute["id"], "status": "lost"}
    await shop.browser.post(f"{control}/close_dispute", data=data)
    await shop.browser.post(f"{control}/advance", data={"days": "1"})
    await shop.processor.webhooks.settled()
    assert receiver.types[-1] == "charge.dispute.closed"
