"""Changes of a subscription: taken at once, or waiting for their payment."""

from tolsey.sandbox.payments.account.books import Obj, whole
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.billing import subscriptions
from tolsey.sandbox.payments.billing.invoices import void
from tolsey.sandbox.payments.billing.proration import Change

PENDING_SECONDS = 23 * 3600
"""How long a change waits for its payment before it is dropped; no longer than its period runs."""


def applied(sub: Obj, changes: list[Change]) -> Obj:
    """Give the subscription's fields as they are after the changes."""
    by_id = {change.item["id"]: change for change in changes}
    items = []
    for item in sub["items"]["data"]:
        change = by_id.get(item["id"])
        copied = dict(item)
        if change is not None:
            subscriptions.set_price(copied, change.price)
            copied.update(
                quantity=change.quantity,
                current_period_start=change.start,
                current_period_end=change.end,
            )
        items.append(copied)
    fields: Obj = {"items": whole(items, sub["items"]["url"])}
    if any(change.anew for change in changes):
        fields["billing_cycle_anchor"] = min(c.start for c in changes if c.anew)
    return fields


def hold(merchant: Merchant, sub: Obj, changes: list[Change]) -> None:
    """Let changes wait for the payment of the latest invoice."""
    anchor = min((c.start for c in changes if c.anew), default=None)
    pending = {
        "billing_cycle_anchor": anchor,
        "expires_at": min(merchant.now() + PENDING_SECONDS, subscriptions.period_end(sub)),
        "subscription_items": [
            {**c.item, "price": dict(c.price), "quantity": c.quantity} for c in changes
        ],
        "trial_end": None,
        "trial_from_plan": None,
    }
    merchant.asked[sub["id"]] = {"changes": changes}
    subscriptions.change(merchant, sub, pending_update=pending)


def take_pending(merchant: Merchant, sub: Obj) -> None:
    """Take the changes that waited, now that they are paid."""
    changes: list[Change] = merchant.asked.pop(sub["id"])["changes"]
    sub["pending_update"] = None
    previous = {"items": sub["items"]}
    sub.update(applied(sub, changes))
    merchant.emit("customer.subscription.pending_update_applied", sub)
    merchant.emit("customer.subscription.updated", sub, previous)


def drop_pending(merchant: Merchant, sub: Obj) -> None:
    """Drop changes that were not paid in time, and the invoice with them."""
    if sub["pending_update"] is None:
        return
    merchant.asked.pop(sub["id"], None)
    sub["pending_update"] = None
    invoice = merchant.books.get("invoice", sub["latest_invoice"])
    if invoice["status"] == "open":
        void(merchant, invoice)
    merchant.emit("customer.subscription.pending_update_expired", sub)
