"""Invoices: their lines, their tax, and the attempts to have them paid."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, whole
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.routes import Call, Route, plays, retrieved
from tolsey.sandbox.payments.money.catalog import billed_in
from tolsey.sandbox.payments.money.intents import attempt, make_intent

DAY = 86_400
_NOTES = {
    "subscription_create": "Subscription creation",
    "subscription_cycle": "Subscription update",
    "subscription_update": "Subscription update",
}


def make_line(
    merchant: Merchant,
    price: Obj,
    quantity: int,
    period: tuple[int, int],
    *,
    amount: int | None = None,
    currency: str | None = None,
    item: Obj | None = None,
    proration: bool = False,
    note: str | None = None,
) -> Obj:
    """Make one line of an invoice; with `item` it is of a subscription, and in its currency."""
    if item is not None:
        currency = merchant.books.get("subscription", item["subscription"])["currency"]
    billed = billed_in(merchant, price, currency or price["currency"])
    total = billed["unit_amount"] * quantity if amount is None else amount
    product = merchant.books.get("product", price["product"])
    of_item = item and {
        "invoice_item": None,
        "proration": proration,
        "proration_details": {"credited_items": None},
        "subscription": item["subscription"],
        "subscription_item": item["id"],
    }
    kind = "subscription_item_details" if item else "invoice_item_details"
    return {
        "id": merchant.books.new_id("il"),
        "object": "line_item",
        "amount": total,
        "currency": billed["currency"],
        "description": note or f"{quantity} x {product['name']}",
        "discount_amounts": [],
        "discountable": not proration,
        "discounts": [],
        "invoice": None,
        "livemode": False,
        "metadata": {},
        "parent": {
            "type": kind,
            "invoice_item_details": None if item else {"proration": False, "subscription": None},
            "subscription_item_details": of_item,
        },
        "period": {"start": period[0], "end": period[1]},
        "pretax_credit_amounts": [],
        "pricing": {
            "type": "price_details",
            "price_details": {"price": price["id"], "product": price["product"]},
            "unit_amount_decimal": billed["unit_amount_decimal"],
        },
        "quantity": quantity,
        "quantity_decimal": str(quantity),
        "subtotal": total,
        "taxes": [],
    }


def tax_of(merchant: Merchant, price: Obj, amount: int, *, automatic: bool) -> tuple[int, int]:
    """Give the tax on top of an amount and the tax within it; one of them is zero."""
    rate = merchant.tax_basis_points if automatic else 0
    if price["tax_behavior"] == "inclusive":
        return 0, round(amount * rate / (10_000 + rate))
    return round(amount * rate / 10_000), 0


def build(
    merchant: Merchant,
    customer: Obj | None,
    lines: list[Obj],
    reason: str,
    *,
    subscription: Obj | None = None,
    automatic_tax: bool = False,
    metadata: dict[str, str] | None = None,
) -> Obj:
    """Make an invoice that is not kept yet: a draft, or a preview."""
    added = within = 0
    for line in lines:
        price = merchant.books.get("price", line["pricing"]["price_details"]["price"])
        billed = billed_in(merchant, price, line["currency"])
        more, inside = tax_of(merchant, billed, line["amount"], automatic=automatic_tax)
        added, within = added + more, within + inside
        line["taxes"] = _taxes(line["amount"] - inside, more, inside) if automatic_tax else []
    subtotal = sum(line["amount"] for line in lines)
    total = subtotal + added
    balance = customer["balance"] if customer else 0
    due = max(total + balance, 0)
    now = merchant.now()
    invoice = merchant.make(
        "invoice",
        "in",
        amount_due=due,
        amount_overpaid=0,
        amount_paid=0,
        amount_remaining=due,
        amount_shipping=0,
        attempt_count=0,
        attempted=False,
        billing_reason=reason,
        currency=lines[0]["currency"],
        ending_balance=None,
        lines=whole(lines, ""),
        metadata=metadata or {},
        next_payment_attempt=None,
        number=None,
        parent=_parent(subscription),
        period_end=max((line["period"]["end"] for line in lines), default=now),
        period_start=min((line["period"]["start"] for line in lines), default=now),
        starting_balance=balance,
        status="draft",
        subtotal=subtotal,
        subtotal_excluding_tax=subtotal - within,
        total=total,
        total_discount_amounts=[],
        total_excluding_tax=total - added - within,
        total_pretax_credit_amounts=[],
        total_taxes=_taxes(subtotal - within, added, within) if automatic_tax else [],
        **_static(customer, automatic_tax),
    )
    invoice["lines"]["url"] = f"/v1/invoices/{invoice['id']}/lines"
    for line in lines:
        line["invoice"] = invoice["id"]
    return invoice


def _parent(subscription: Obj | None) -> Obj | None:
    if subscription is None:
        return None
    details = {
        "metadata": dict(subscription["metadata"]),
        "subscription": subscription["id"],
        "subscription_proration_date": None,
    }
    return {
        "type": "subscription_details",
        "quote_details": None,
        "subscription_details": details,
    }


def _static(customer: Obj | None, automatic_tax: bool) -> Obj:
    who: Obj = customer or {}
    return {
        "account_country": "US",
        "account_name": "Sandbox",
        "account_tax_ids": None,
        "application": None,
        "auto_advance": True,
        "automatic_tax": {
            "disabled_reason": None,
            "enabled": automatic_tax,
            "liability": {"type": "self"} if automatic_tax else None,
            "provider": "stripe" if automatic_tax else None,
            "status": "complete" if automatic_tax else None,
        },
        "collection_method": "charge_automatically",
        "custom_fields": None,
        "customer": who.get("id"),
        "customer_address": who.get("address"),
        "customer_email": who.get("email"),
        "customer_name": who.get("name"),
        "customer_phone": who.get("phone"),
        "customer_tax_exempt": who.get("tax_exempt", "none"),
        "customer_tax_ids": [],
        "default_payment_method": None,
        "description": None,
        "discounts": [],
        "due_date": None,
        "footer": None,
        "from_invoice": None,
        "hosted_invoice_url": None,
        "invoice_pdf": None,
        "issuer": {"type": "self"},
        "last_finalization_error": None,
        "on_behalf_of": None,
        "post_payment_credit_notes_amount": 0,
        "pre_payment_credit_notes_amount": 0,
        "receipt_number": None,
        "statement_descriptor": None,
        "status_transitions": dict.fromkeys(
            ("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")
        ),
        "test_clock": None,
    }


def _taxes(taxable: int, added: int, within: int) -> list[Obj]:
    behaviour = "inclusive" if within else "exclusive"
    return [
        {
            "amount": added or within,
            "tax_behavior": behaviour,
            "taxability_reason": "standard_rated",
            "taxable_amount": taxable,
            "tax_rate_details": {"tax_rate": "txr_sandbox"},
            "type": "tax_rate_details",
        }
    ]


def finalize(merchant: Merchant, invoice: Obj) -> Obj:
    """Keep an invoice, number it, and settle it against the customer's balance."""
    merchant.books.add(invoice)
    merchant.emit("invoice.created", invoice)
    invoice.update(
        status="open",
        hosted_invoice_url=f"{merchant.url}/i/{invoice['id']}",
        invoice_pdf=f"{merchant.url}/i/{invoice['id']}",
        ending_balance=min(invoice["total"] + invoice["starting_balance"], 0),
    )
    invoice["status_transitions"]["finalized_at"] = merchant.now()
    if invoice["customer"]:
        customer = merchant.books.get("customer", invoice["customer"])
        invoice["number"] = f"{customer['invoice_prefix']}-{customer['next_invoice_sequence']:04}"
        customer["next_invoice_sequence"] += 1
        customer["balance"] = invoice["ending_balance"]
    merchant.emit("invoice.finalized", invoice)
    return invoice


def pay(merchant: Merchant, invoice: Obj, method: str | None, *, off_session: bool) -> str:
    """Try to have an invoice paid, tell of what happened, and give the outcome."""
    invoice["attempted"] = True
    if not invoice["amount_remaining"]:
        mark_paid(merchant, invoice)
        return "ok"
    intent = intent_of(merchant, invoice) or _ask(merchant, invoice)
    invoice["attempt_count"] += 1
    outcome = attempt(merchant, intent, method, off_session=off_session)
    if outcome == "ok":
        mark_paid(merchant, invoice)
    elif outcome != "later":
        mark_failed(merchant, invoice, action=outcome == "authenticate")
    return outcome


def mark_paid(merchant: Merchant, invoice: Obj, payment: Obj | None = None) -> None:
    """Let an invoice be paid, and tell of it under both of its names."""
    now = merchant.now()
    found = payment or _payment_of(merchant, invoice)
    if found is not None:
        found.update(status="paid", amount_paid=invoice["amount_remaining"])
        found["status_transitions"]["paid_at"] = now
        merchant.emit("invoice_payment.paid", found)
    invoice.update(
        status="paid",
        attempted=True,
        amount_paid=invoice["amount_due"],
        amount_remaining=0,
        next_payment_attempt=None,
        auto_advance=False,
    )
    invoice["status_transitions"]["paid_at"] = now
    merchant.emit("invoice.paid", invoice)
    merchant.emit("invoice.payment_succeeded", invoice)


def mark_failed(merchant: Merchant, invoice: Obj, *, action: bool = False) -> None:
    """Let an attempt fail; the next one comes after the account's waiting days, if any is left."""
    tried = invoice["attempt_count"] - 1
    days = merchant.retry_days
    wait = merchant.now() + days[tried] * DAY if 0 <= tried < len(days) else None
    invoice["next_payment_attempt"] = wait
    if action:
        merchant.emit("invoice.payment_action_required", invoice)
    merchant.emit("invoice.payment_failed", invoice)


def void(merchant: Merchant, invoice: Obj) -> None:
    """Withdraw an invoice that nobody has to pay any more."""
    invoice.update(status="void", next_payment_attempt=None, auto_advance=False)
    invoice["status_transitions"]["voided_at"] = merchant.now()
    merchant.emit("invoice.voided", invoice)


def attach_payment(merchant: Merchant, invoice: Obj, intent: Obj) -> Obj:
    """Say that an invoice is paid by an intent; this is how one is found from the other."""
    return merchant.new(
        "invoice_payment",
        "inpay",
        amount_paid=None,
        amount_requested=invoice["amount_due"],
        currency=invoice["currency"],
        invoice=invoice["id"],
        is_default=True,
        payment={"type": "payment_intent", "payment_intent": intent["id"]},
        status="open",
        status_transitions={"canceled_at": None, "paid_at": None},
    )


def intent_of(merchant: Merchant, invoice: Obj) -> Obj | None:
    """Give the intent that pays an invoice, if there is one."""
    payment = _payment_of(merchant, invoice)
    if payment is None:
        return None
    return merchant.books.get("payment_intent", payment["payment"]["payment_intent"])


def invoice_of(merchant: Merchant, intent: Obj) -> Obj | None:
    """Give the invoice that an intent pays, if it pays one."""
    for payment in merchant.books.each("invoice_payment"):
        if payment["payment"]["payment_intent"] == intent["id"]:
            return merchant.books.get("invoice", payment["invoice"])
    return None


def _payment_of(merchant: Merchant, invoice: Obj) -> Obj | None:
    found = (p for p in merchant.books.each("invoice_payment") if p["invoice"] == invoice["id"])
    return next(found, None)


def _ask(merchant: Merchant, invoice: Obj) -> Obj:
    intent = make_intent(
        merchant,
        invoice["amount_remaining"],
        invoice["currency"],
        invoice["customer"],
        description=_NOTES.get(invoice["billing_reason"]),
    )
    attach_payment(merchant, invoice, intent)
    return intent


def _subscription_of(invoice: Obj) -> Any:
    parent = invoice["parent"]
    return parent["subscription_details"]["subscription"] if parent else None


def _list(call: Call) -> Obj:
    params = call.params

    def keep(invoice: Obj) -> bool:
        return (
            params.get("customer", invoice["customer"]) == invoice["customer"]
            and params.get("status", invoice["status"]) == invoice["status"]
            and params.get("subscription") in (None, _subscription_of(invoice))
        )

    return call.merchant.books.page("invoice", params, "/v1/invoices", keep)


def _list_payments(call: Call) -> Obj:
    asked = call.params.get("payment", {})

    def keep(payment: Obj) -> bool:
        return (
            call.params.get("invoice", payment["invoice"]) == payment["invoice"]
            and call.params.get("status", payment["status"]) == payment["status"]
            and all(payment["payment"].get(name) == value for name, value in asked.items())
        )

    return call.merchant.books.page("invoice_payment", call.params, "/v1/invoice_payments", keep)


ROUTES = (
    Route("GET", "/v1/invoices/{id}", "InvoiceRetrieveParams", "invoice", retrieved("invoice")),
    Route(
        "GET",
        "/v1/invoices",
        "InvoiceListParams",
        "invoice",
        _list,
        plays("customer status subscription"),
    ),
    Route(
        "GET",
        "/v1/invoice_payments/{id}",
        "InvoicePaymentRetrieveParams",
        "invoice",
        retrieved("invoice_payment"),
    ),
    Route(
        "GET",
        "/v1/invoice_payments",
        "InvoicePaymentListParams",
        "invoice",
        _list_payments,
        plays("invoice payment status"),
    ),
)
