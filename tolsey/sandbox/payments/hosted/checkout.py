"""Checkout sessions: opened by a request, paid or left on the hosted page."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, merged, page_of
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused
from tolsey.sandbox.payments.account.routes import Call, Route, plays, retrieved
from tolsey.sandbox.payments.billing import invoices, subscriptions
from tolsey.sandbox.payments.hosted.checkout_rules import check_prices, check_session
from tolsey.sandbox.payments.money import intents
from tolsey.sandbox.payments.money.catalog import billed_in, price_of
from tolsey.sandbox.payments.money.customers import (
    NO_ADDRESS,
    make_customer,
    make_debit,
    make_method,
    set_default,
)

DAY = 86_400
_PLAIN = [
    "allow_promotion_codes",
    "billing_address_collection",
    "cancel_url",
    "client_reference_id",
    "consent_collection",
    "customer_creation",
    "customer_email",
    "locale",
    "submit_type",
    "success_url",
]


def _create(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    check_session(merchant, given)
    mode = given["mode"]
    automatic = bool(given.get("automatic_tax", {}).get("enabled"))
    currency = given.get("currency")
    lines, prices = _lines(merchant, given["line_items"], automatic, currency and currency.lower())
    subtotal = sum(line["amount_subtotal"] for line in lines)
    total = sum(line["amount_total"] for line in lines)
    check_prices(mode, prices, total)
    creation = given.get("invoice_creation")
    session = merchant.make(
        "checkout.session",
        "cs_test",
        **{name: given.get(name) for name in _PLAIN},
        **_nothing(),
        amount_subtotal=subtotal,
        amount_total=total,
        automatic_tax={
            "enabled": automatic,
            "liability": {"type": "self"} if automatic else None,
            "provider": "stripe" if automatic else None,
            "status": "complete" if automatic else None,
        },
        currency=prices[0]["currency"],
        customer=given.get("customer"),
        expires_at=given.get("expires_at", merchant.now() + DAY),
        invoice_creation=creation and {"enabled": creation["enabled"], "invoice_data": {}},
        metadata=merged({}, given.get("metadata")),
        mode=mode,
        payment_status="unpaid",
        status="open",
        tax_id_collection=given.get("tax_id_collection", {"enabled": False}),
        total_details={
            "amount_discount": 0,
            "amount_shipping": 0,
            "amount_tax": sum(line["amount_tax"] for line in lines),
        },
        ui_mode="hosted_page",
    )
    if mode == "payment":
        session["customer_creation"] = given.get("customer_creation", "if_required")
        if given.get("customer"):
            session["customer_creation"] = None
    session["url"] = f"{merchant.url}/c/pay/{session['id']}"
    merchant.lines[session["id"]] = lines
    merchant.asked[session["id"]] = given.get("payment_intent_data") or given.get(
        "subscription_data", {}
    )
    return merchant.books.add(session)


def _nothing() -> Obj:
    """Name the fields of a session that nothing here fills."""
    names = (
        "after_expiration client_secret collected_information consent currency_conversion"
        " customer_details invoice payment_intent payment_link recovered_from setup_intent"
        " shipping_address_collection shipping_cost subscription"
    )
    return {
        **dict.fromkeys(names.split()),
        "custom_fields": [],
        "custom_text": {},
        "discounts": [],
        "payment_method_collection": "always",
        "payment_method_options": {},
        "payment_method_types": ["card", "us_bank_account"],
        "phone_number_collection": {"enabled": False},
        "shipping_options": [],
    }


def _lines(
    merchant: Merchant, items: list[Obj], automatic: bool, currency: str | None
) -> tuple[list[Obj], list[Obj]]:
    """Make the lines of a session, and the prices as they are billed in its currency."""
    lines, prices = [], []
    for number, item in enumerate(items):
        price = price_of(merchant, item, f"line_items[{number}]")
        quantity = item.get("quantity", 1)
        billed = billed_in(merchant, price, currency or price["currency"])
        subtotal = billed["unit_amount"] * quantity
        added, within = invoices.tax_of(merchant, billed, subtotal, automatic=automatic)
        product = merchant.books.get("product", price["product"])
        line = {
            "id": merchant.books.new_id("li"),
            "object": "item",
            "amount_discount": 0,
            "amount_subtotal": subtotal,
            "amount_tax": added + within,
            "amount_total": subtotal + added,
            "currency": billed["currency"],
            "description": product["name"],
            "metadata": {},
            "price": dict(price),
            "quantity": quantity,
        }
        lines.append(line)
        prices.append(billed)
    return lines, prices


def complete(merchant: Merchant, session: Obj, form: dict[str, str]) -> str:
    """Pay a session as its page was filled in; give the outcome of the payment."""
    if session["status"] != "open":
        raise Refused(f"This Checkout Session is {session['status']}.")
    customer = _customer(merchant, session, form)
    id = customer["id"] if customer else None
    later = form.get("action") == "later"
    number = form.get("card", "4242424242424242").replace(" ", "")
    method = make_debit(merchant, id) if later else make_method(merchant, number, id)
    if session["mode"] == "payment":
        outcome = _pay(merchant, session, customer, method["id"])
    else:
        outcome = _subscribe(merchant, session, customer, method["id"])
    if outcome in ("ok", "later"):
        _finish(merchant, session, customer, form, paid=outcome == "ok")
    return outcome


def settled(merchant: Merchant, intent: Obj, *, paid: bool) -> None:
    """Tell the session of a payment whose end is known only later."""
    invoice = invoices.invoice_of(merchant, intent)
    for session in merchant.books.each("checkout.session"):
        mine = session["payment_intent"] == intent["id"]
        if session["status"] == "complete" and session["payment_status"] == "unpaid":
            if not mine and (invoice is None or session["invoice"] != invoice["id"]):
                continue
            if paid:
                session["payment_status"] = "paid"
                if session["mode"] == "payment":
                    _invoice(merchant, session, intent)
            end = "succeeded" if paid else "failed"
            merchant.emit(f"checkout.session.async_payment_{end}", session)


def expire(merchant: Merchant, session: Obj) -> None:
    """End a session that nobody paid."""
    session.update(status="expired", url=None)
    merchant.emit("checkout.session.expired", session)


def _customer(merchant: Merchant, session: Obj, form: dict[str, str]) -> Obj | None:
    """Give the customer who pays: the one that was named, or a new one if the mode makes one."""
    email = form.get("email") or session["customer_email"] or "buyer@example.com"
    name = form.get("name") or None
    address = {**NO_ADDRESS, "country": form.get("country") or "US"}
    if session["customer"]:
        customer = merchant.books.get("customer", session["customer"])
        merchant.change("customer.updated", customer, name=name or customer["name"])
        return customer
    if session["mode"] == "payment" and session["customer_creation"] != "always":
        return None
    customer = make_customer(merchant, email=email, name=name, address=address)
    session["customer"] = customer["id"]
    return customer


def _pay(merchant: Merchant, session: Obj, customer: Obj | None, method: str) -> str:
    intent = merchant.books.find(session["payment_intent"] or "")
    if intent is None:
        data = merchant.asked[session["id"]]
        intent = intents.make_intent(
            merchant,
            session["amount_total"],
            session["currency"],
            customer["id"] if customer else None,
            **data,
        )
        session["payment_intent"] = intent["id"]
    return intents.attempt(merchant, intent, method, off_session=False)


def _subscribe(merchant: Merchant, session: Obj, customer: Obj | None, method: str) -> str:
    if customer is None:  # pragma: no cover - a subscription's session always makes one
        raise AssertionError
    outcome = intents.outcome_of(merchant, method, off_session=False)
    if outcome not in ("ok", "later"):
        # The page asks for another card before there is a subscription.
        amount, currency = session["amount_total"], session["currency"]
        intent = intents.make_intent(merchant, amount, currency, customer["id"])
        return intents.attempt(merchant, intent, method, off_session=False)
    lines = merchant.lines[session["id"]]
    data = merchant.asked[session["id"]]
    wanted = [(ln["price"], ln["quantity"]) for ln in lines if ln["price"]["recurring"]]
    sub = subscriptions.make_subscription(
        merchant,
        customer,
        wanted,
        currency=session["currency"],
        metadata=merged({}, data.get("metadata")),
        automatic_tax=session["automatic_tax"]["enabled"],
        method=method,
    )
    set_default(merchant, customer, method)
    now = merchant.now()
    extra = [
        invoices.make_line(
            merchant, line["price"], line["quantity"], (now, now), currency=line["currency"]
        )
        for line in lines
        if not line["price"]["recurring"]
    ]
    outcome = subscriptions.begin(merchant, sub, extra, off_session=False)
    session.update(subscription=sub["id"], invoice=sub["latest_invoice"])
    return outcome


def _finish(
    merchant: Merchant, session: Obj, customer: Obj | None, form: dict[str, str], *, paid: bool
) -> None:
    tax_id = form.get("tax_id")
    details = {
        "address": customer["address"] if customer else {**NO_ADDRESS, "country": "US"},
        "business_name": form.get("name") or None,
        "email": form.get("email") or (customer["email"] if customer else "buyer@example.com"),
        "name": form.get("name") or (customer["name"] if customer else None),
        "phone": None,
        "tax_exempt": "none",
        "tax_ids": [{"type": "eu_vat", "value": tax_id}] if tax_id else [],
    }
    wanted: Any = session["consent_collection"]
    session.update(
        status="complete",
        payment_status="paid" if paid else "unpaid",
        customer_details=details,
        url=None,
    )
    if wanted and wanted.get("terms_of_service") == "required":
        session["consent"] = {"promotions": None, "terms_of_service": "accepted"}
    if paid and session["mode"] == "payment":
        intent = merchant.books.get("payment_intent", session["payment_intent"])
        _invoice(merchant, session, intent)
    merchant.emit("checkout.session.completed", session)


def _invoice(merchant: Merchant, session: Obj, intent: Obj) -> None:
    """Write the invoice of a purchase that was paid already; it has no parent."""
    if not session["invoice_creation"] or not session["invoice_creation"]["enabled"]:
        return
    now = merchant.now()
    customer = merchant.books.find(session["customer"] or "")
    lines = [
        invoices.make_line(
            merchant, line["price"], line["quantity"], (now, now), currency=line["currency"]
        )
        for line in merchant.lines[session["id"]]
    ]
    automatic = session["automatic_tax"]["enabled"]
    made = invoices.build(merchant, customer, lines, "manual", automatic_tax=automatic)
    made.update(amount_due=intent["amount"], amount_remaining=intent["amount"])
    made["starting_balance"] = 0
    balance = customer["balance"] if customer else 0
    invoice = invoices.finalize(merchant, made)
    if customer:
        customer["balance"] = balance  # the card paid; a credit balance stays what it was
    payment = invoices.attach_payment(merchant, invoice, intent)
    invoices.mark_paid(merchant, invoice, payment)
    session["invoice"] = invoice["id"]


def _expire(call: Call) -> Obj:
    session = call.merchant.books.get("checkout.session", call.id)
    if session["status"] != "open":
        raise Refused(
            'Only Checkout Sessions with a status in ["open"] can be expired. This Checkout'
            f" Session has a status of `{session['status']}`."
        )
    expire(call.merchant, session)
    return session


def _list(call: Call) -> Obj:
    names = ("customer", "payment_intent", "subscription", "status")
    wanted = {name: call.params[name] for name in names if name in call.params}

    def keep(session: Obj) -> bool:
        return all(session[name] == value for name, value in wanted.items())

    return call.merchant.books.page("checkout.session", call.params, "/v1/checkout/sessions", keep)


def _list_lines(call: Call) -> Obj:
    session = call.merchant.books.get("checkout.session", call.id)
    url = f"/v1/checkout/sessions/{session['id']}/line_items"
    return page_of(call.merchant.lines[session["id"]], call.params, url)


_CREATE = (
    "automatic_tax currency customer customer_update expires_at invoice_creation line_items metadata mode"
    " payment_intent_data subscription_data tax_id_collection ui_mode "
) + " ".join(_PLAIN)
_PATH = "/v1/checkout/sessions"
ROUTES = (
    Route(
        "POST", _PATH, "checkout.SessionCreateParams", "checkout_session", _create, plays(_CREATE)
    ),
    Route(
        "GET",
        _PATH + "/{id}",
        "checkout.SessionRetrieveParams",
        "checkout_session",
        retrieved("checkout.session"),
    ),
    Route(
        "POST",
        _PATH + "/{id}/expire",
        "checkout.SessionExpireParams",
        "checkout_session",
        _expire,
    ),
    Route(
        "GET",
        _PATH,
        "checkout.SessionListParams",
        "checkout_session",
        _list,
        plays("customer payment_intent subscription status"),
    ),
    Route(
        "GET",
        _PATH + "/{id}/line_items",
        "checkout.SessionLineItemListParams",
        "checkout_session",
        _list_lines,
    ),
)
