"""What a payment's end does to everything that hangs on it: invoice, subscription, session."""

from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused
from tolsey.sandbox.payments.account.routes import Call, Route, plays
from tolsey.sandbox.payments.billing import invoices, subscriptions
from tolsey.sandbox.payments.billing.pending import drop_pending, take_pending
from tolsey.sandbox.payments.hosted import checkout
from tolsey.sandbox.payments.money import intents
from tolsey.sandbox.payments.money.customers import method_named


def settle(merchant: Merchant, intent: Obj, *, paid: bool) -> None:
    """End a payment that was on its way, such as a bank debit."""
    if intent["status"] != "processing":
        raise ValueError(f"{intent['id']} is {intent['status']}, not processing")
    invoice = invoices.invoice_of(merchant, intent)
    if paid:
        intents.succeed(merchant, intent)
    else:
        intents.fail(merchant, intent)
    # An invoice that was withdrawn meanwhile stays so; the money is there all the same.
    if invoice is not None and invoice["status"] == "open":
        if paid:
            invoices.mark_paid(merchant, invoice)
        else:
            invoices.mark_failed(merchant, invoice)
        after(merchant, invoice, paid=paid)
    checkout.settled(merchant, intent, paid=paid)


def pay_invoice(merchant: Merchant, invoice: Obj, method: str | None, *, off_session: bool) -> str:
    """Try again to have an invoice paid, and let its subscription know."""
    outcome = invoices.pay(merchant, invoice, method, off_session=off_session)
    if outcome != "later":
        after(merchant, invoice, paid=outcome == "ok")
    return outcome


def after(merchant: Merchant, invoice: Obj, *, paid: bool) -> None:
    """Let a payment reach the subscription: a change that waited for it, then its status."""
    sub = subscriptions.subscription_of(merchant, invoice)
    if sub is not None and sub["pending_update"] and sub["latest_invoice"] == invoice["id"]:
        if paid:
            take_pending(merchant, sub)
        return
    subscriptions.after_payment(merchant, invoice, paid=paid)


def _pay(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    invoice = merchant.books.get("invoice", call.id)
    if invoice["status"] == "paid":
        raise Refused("Invoice is already paid", code="invoice_already_paid")
    if invoice["status"] != "open":
        raise Refused(f"This invoice is {invoice['status']} and can no longer be paid.")
    if given.get("paid_out_of_band"):
        invoices.mark_paid(merchant, invoice)
        after(merchant, invoice, paid=True)
        return invoice
    named = given.get("payment_method")
    method = (
        method_named(merchant, named, invoice["customer"], "payment_method")["id"]
        if named
        else _method(merchant, invoice)
    )
    off_session = given.get("off_session", True)
    outcome = pay_invoice(merchant, invoice, method, off_session=off_session)
    if outcome in ("ok", "later"):
        return invoice
    raise intents.decline_of(outcome)


def _method(merchant: Merchant, invoice: Obj) -> str | None:
    sub = subscriptions.subscription_of(merchant, invoice)
    if sub is None:
        raise Refused("There is no default payment method for this invoice.", code="missing")
    return subscriptions.method_of(merchant, sub)


def _void(call: Call) -> Obj:
    merchant = call.merchant
    invoice = merchant.books.get("invoice", call.id)
    if invoice["status"] != "open":
        raise Refused(f"You can only void open invoices; this one is {invoice['status']}.")
    invoices.void(merchant, invoice)
    sub = subscriptions.subscription_of(merchant, invoice)
    if sub is not None and sub["latest_invoice"] == invoice["id"]:
        drop_pending(merchant, sub)
    return invoice


ROUTES = (
    Route(
        "POST",
        "/v1/invoices/{id}/pay",
        "InvoicePayParams",
        "invoice",
        _pay,
        plays("off_session paid_out_of_band payment_method"),
    ),
    Route("POST", "/v1/invoices/{id}/void", "InvoiceVoidInvoiceParams", "invoice", _void),
)
