"""Subscriptions: how they begin, what their payments do to them, and how they end."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, whole
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.billing.invoices import build, finalize, make_line, pay, void
from tolsey.sandbox.payments.billing.periods import end_of
from tolsey.sandbox.payments.money.customers import default_method

ENDED = ("canceled", "incomplete_expired")
_PLAN = ("active", "currency", "livemode", "metadata", "nickname", "product")


def tax_settings(*, enabled: bool) -> Obj:
    """Say whether tax is worked out by the processor."""
    liability = {"type": "self"} if enabled else None
    return {"disabled_reason": None, "enabled": enabled, "liability": liability}


def make_subscription(
    merchant: Merchant,
    customer: Obj,
    wanted: list[tuple[Obj, int]],
    *,
    currency: str,
    metadata: dict[str, str],
    automatic_tax: bool,
    method: str | None,
) -> Obj:
    """Open a subscription that waits for its first payment."""
    now = merchant.now()
    end = end_of(now, wanted[0][0]["recurring"])
    sub = merchant.new(
        "subscription",
        "sub",
        automatic_tax=tax_settings(enabled=automatic_tax),
        billing_cycle_anchor=now,
        billing_mode={"type": "flexible", "flexible": {"proration_discounts": "included"}},
        cancel_at=None,
        cancel_at_period_end=False,
        canceled_at=None,
        cancellation_details={"comment": None, "feedback": None, "reason": None},
        collection_method="charge_automatically",
        currency=currency,
        customer=customer["id"],
        default_payment_method=method,
        default_tax_rates=[],
        discounts=[],
        ended_at=None,
        invoice_settings={"account_tax_ids": None, "issuer": {"type": "self"}},
        latest_invoice=None,
        metadata=metadata,
        payment_settings={
            "payment_method_options": None,
            "payment_method_types": None,
            "save_default_payment_method": "off",
        },
        pending_update=None,
        schedule=None,
        start_date=now,
        status="incomplete",
        trial_settings={"end_behavior": {"missing_payment_method": "create_invoice"}},
    )
    items = [make_item(merchant, sub, price, quantity, (now, end)) for price, quantity in wanted]
    sub["items"] = whole(items, f"/v1/subscription_items?subscription={sub['id']}")
    return sub


def make_item(
    merchant: Merchant, sub: Obj, price: Obj, quantity: int, period: tuple[int, int]
) -> Obj:
    """Make one item of a subscription; its period is its own."""
    item = merchant.make(
        "subscription_item",
        "si",
        billing_thresholds=None,
        current_period_start=period[0],
        current_period_end=period[1],
        discounts=[],
        metadata={},
        quantity=quantity,
        subscription=sub["id"],
        tax_rates=[],
    )
    del item["livemode"]
    set_price(item, price)
    return item


def set_price(item: Obj, price: Obj) -> None:
    """Let an item be of a price, and of the plan that stands for it."""
    item["price"] = dict(price)
    item["plan"] = {
        **{name: price[name] for name in _PLAN},
        "id": price["id"],
        "object": "plan",
        "amount": price["unit_amount"],
        "amount_decimal": price["unit_amount_decimal"],
        "billing_scheme": "per_unit",
        "created": price["created"],
        "interval": price["recurring"]["interval"],
        "interval_count": price["recurring"]["interval_count"],
        "meter": None,
        "tiers_mode": None,
        "transform_usage": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }


def period_end(sub: Obj) -> int:
    """Tell when the subscription's current period ends."""
    ends: list[int] = [item["current_period_end"] for item in sub["items"]["data"]]
    return min(ends)


def method_of(merchant: Merchant, sub: Obj) -> str | None:
    """Name the payment method that a subscription is charged to."""
    return sub["default_payment_method"] or default_method(merchant, sub["customer"])


def period_lines(merchant: Merchant, sub: Obj) -> list[Obj]:
    """Make the lines for the whole current period of each item."""
    return [
        make_line(
            merchant,
            item["price"],
            item["quantity"],
            (item["current_period_start"], item["current_period_end"]),
            item=item,
        )
        for item in sub["items"]["data"]
    ]


def bill(merchant: Merchant, sub: Obj, lines: list[Obj], reason: str) -> Obj:
    """Make the invoice of a subscription final and the latest one, still to be paid."""
    invoice = finalize(merchant, draft(merchant, sub, lines, reason))
    sub["latest_invoice"] = invoice["id"]
    return invoice


def draft(merchant: Merchant, sub: Obj, lines: list[Obj], reason: str) -> Obj:
    """Make an invoice of a subscription without keeping it."""
    return build(
        merchant,
        merchant.books.get("customer", sub["customer"]),
        lines,
        reason,
        subscription=sub,
        automatic_tax=sub["automatic_tax"]["enabled"],
    )


def begin(merchant: Merchant, sub: Obj, one_time: list[Obj], *, off_session: bool) -> str:
    """Bill the first period and tell of the subscription; give the outcome of the payment."""
    lines = [*period_lines(merchant, sub), *one_time]
    invoice = bill(merchant, sub, lines, "subscription_create")
    outcome = pay(merchant, invoice, method_of(merchant, sub), off_session=off_session)
    # The processor tells of a subscription that is active from the first moment on.
    sub["status"] = "active" if outcome in ("ok", "later") else "incomplete"
    merchant.emit("customer.subscription.created", sub)
    return outcome


def after_payment(merchant: Merchant, invoice: Obj, *, paid: bool) -> None:
    """Let the payment of an invoice, or its failure, reach its subscription."""
    sub = subscription_of(merchant, invoice)
    if sub is None or sub["status"] in ENDED:
        return
    if paid and _settled(merchant, sub):
        change(merchant, sub, status="active")
    elif not paid and sub["status"] == "active":
        change(merchant, sub, status="past_due")


def change(merchant: Merchant, sub: Obj, **fields: Any) -> None:
    """Set fields of a subscription and tell what they were before."""
    merchant.change("customer.subscription.updated", sub, **fields)


def end(merchant: Merchant, sub: Obj, reason: str | None = None) -> None:
    """End a subscription for good; what was not paid of it is withdrawn."""
    now = merchant.now()
    release_schedule(merchant, sub)
    for invoice in merchant.books.each("invoice"):
        if invoice["status"] == "open" and subscription_of(merchant, invoice) is sub:
            void(merchant, invoice)
    details = sub["cancellation_details"]
    sub.update(
        status="canceled",
        ended_at=now,
        canceled_at=sub["canceled_at"] or now,
        pending_update=None,
        cancellation_details={**details, "reason": details["reason"] or reason},
    )
    merchant.waiting_lines.pop(sub["id"], None)
    merchant.emit("customer.subscription.deleted", sub)


def release_schedule(merchant: Merchant, sub: Obj) -> None:
    """Let a subscription go on without its schedule."""
    if sub["schedule"] is None:
        return
    schedule = merchant.books.get("subscription_schedule", sub["schedule"])
    schedule.update(
        status="released",
        released_at=merchant.now(),
        released_subscription=sub["id"],
        subscription=None,
        current_phase=None,
    )
    sub["schedule"] = None
    merchant.emit("subscription_schedule.released", schedule)


def _settled(merchant: Merchant, sub: Obj) -> bool:
    """Tell whether the latest invoice is paid; older debts no longer hold a subscription back."""
    if sub["status"] not in ("incomplete", "past_due", "unpaid"):
        return False
    latest = merchant.books.get("invoice", sub["latest_invoice"])
    return bool(latest["status"] == "paid")


def subscription_of(merchant: Merchant, invoice: Obj) -> Obj | None:
    """Give the subscription that an invoice is of, if it is of one."""
    if invoice["parent"] is None:
        return None
    id = invoice["parent"]["subscription_details"]["subscription"]
    return merchant.books.get("subscription", id)
