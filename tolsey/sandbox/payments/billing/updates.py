"""Requests about subscriptions: created, changed with proration, canceled, previewed, listed."""

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, missing_param, not_built
from tolsey.sandbox.payments.account.routes import Call, Route, plays, retrieved
from tolsey.sandbox.payments.billing import subscriptions
from tolsey.sandbox.payments.billing.invoices import pay
from tolsey.sandbox.payments.billing.pending import applied, drop_pending, hold
from tolsey.sandbox.payments.billing.proration import Change, change_lines, plan_change
from tolsey.sandbox.payments.money.catalog import billed_in, price_of
from tolsey.sandbox.payments.money.customers import method_named
from tolsey.sandbox.payments.money.intents import decline_of, outcome_of

_WITH_PENDING = frozenset(
    {
        "billing_cycle_anchor",
        "expand",
        "items",
        "off_session",
        "payment_behavior",
        "proration_behavior",
        "proration_date",
    }
)


def plan_changes(merchant: Merchant, sub: Obj, given: Obj) -> tuple[list[Change], int]:
    """Plan what a request changes, and give the moment that proration counts from."""
    at = given.get("proration_date", merchant.now())
    anchor = given.get("billing_cycle_anchor", {})
    now = (anchor if isinstance(anchor, str) else anchor.get("type")) == "now"
    asked = {_item_id(sub, item, n): item for n, item in enumerate(given.get("items", []))}
    changes = []
    for item in sub["items"]["data"]:
        wanted = asked.get(item["id"], {})
        price, quantity = item["price"], wanted.get("quantity", item["quantity"])
        if "price" in wanted or "price_data" in wanted:
            price = price_of(merchant, wanted, "items[0]")
            billed_in(merchant, price, sub["currency"])
            quantity = wanted.get("quantity", 1)
        changes.append(plan_change(item, price, quantity, at, now=now))
    start = min(c.item["current_period_start"] for c in changes)
    if not start <= at <= max(c.item["current_period_end"] for c in changes):
        raise Refused(
            "Cannot specify `proration_date` outside of current subscription period.",
            param="proration_date",
        )
    return changes, at


def _item_id(sub: Obj, item: Obj, number: int) -> str:
    for name in item:
        if name not in ("id", "price", "price_data", "quantity"):
            raise not_built(f"`items[{number}][{name}]`", "items")
    known = [held["id"] for held in sub["items"]["data"]]
    if "id" not in item:
        raise not_built("items added to a subscription", "items")
    if item["id"] not in known:
        raise Refused(
            f"No such subscription_item: '{item['id']}'",
            code="resource_missing",
            param=f"items[{number}][id]",
        )
    found: str = item["id"]
    return found


def _update(call: Call) -> Obj:
    sub = call.merchant.books.get("subscription", call.id)
    return update_subscription(call.merchant, sub, call.params)


def update_subscription(merchant: Merchant, sub: Obj, given: Obj) -> Obj:
    """Change a subscription as a request, or the portal, asks."""
    if sub["status"] in subscriptions.ENDED:
        raise Refused(
            "A canceled subscription can only update its cancellation_details and metadata.",
            code="resource_missing",
        )
    behaviour = given.get("payment_behavior", "allow_incomplete")
    _check_update(sub, given, behaviour)
    if "items" in given or "billing_cycle_anchor" in given:
        drop_pending(merchant, sub)
        _change(merchant, sub, given, behaviour)
    fields: Obj = {}
    if "metadata" in given:
        fields["metadata"] = merged(sub["metadata"], given["metadata"])
    if "default_payment_method" in given:
        named, customer = given["default_payment_method"], sub["customer"]
        method = method_named(merchant, named, customer, "default_payment_method")
        fields["default_payment_method"] = method["id"]
    fields |= _cancellation(merchant, sub, given)
    subscriptions.change(merchant, sub, **fields)
    return sub


def _check_update(sub: Obj, given: Obj, behaviour: str) -> None:
    if behaviour == "default_incomplete":
        raise not_built("`default_incomplete`", "payment_behavior")
    if behaviour == "pending_if_incomplete":
        refused = sorted(set(given) - _WITH_PENDING)
        if refused:
            raise Refused(
                "The following parameters are not supported when payment_behavior is"
                f" pending_if_incomplete: {', '.join(refused)}.",
                param=refused[0],
            )
    if sub["schedule"] is None:
        return
    if "cancel_at_period_end" in given:
        raise Refused(
            f"The subscription is managed by the subscription schedule `{sub['schedule']}`, and"
            " updating any cancelation behavior directly is not allowed. Please update the"
            " schedule instead."
        )
    if "items" in given or "billing_cycle_anchor" in given:
        raise not_built("a change of items under a schedule; release it first", "items")


def _cancellation(merchant: Merchant, sub: Obj, given: Obj) -> Obj:
    details = {**sub["cancellation_details"], **given.get("cancellation_details", {})}
    wanted = given.get("cancel_at_period_end")
    if wanted is None:
        return {"cancellation_details": details} if "cancellation_details" in given else {}
    return {
        "cancel_at_period_end": wanted,
        "cancel_at": subscriptions.period_end(sub) if wanted else None,
        "canceled_at": merchant.now() if wanted else None,
        "cancellation_details": {
            **details,
            "reason": "cancellation_requested" if wanted else None,
        },
    }


def _change(merchant: Merchant, sub: Obj, given: Obj, behaviour: str) -> None:
    """Change items, and bill the difference as the request says."""
    changes, at = plan_changes(merchant, sub, given)
    mode = given.get("proration_behavior", "create_prorations")
    lines = change_lines(merchant, changes, at, prorate=mode != "none")
    at_once = bool(lines) and (mode == "always_invoice" or any(c.anew for c in changes))
    method = subscriptions.method_of(merchant, sub)
    off_session = given.get("off_session", False)
    if at_once:
        lines = [*merchant.waiting_lines.pop(sub["id"], []), *lines]
        # A card that wants its owner makes such a request fail: it is paid at once or not at all.
        absent = off_session or behaviour == "error_if_incomplete"
        outcome = outcome_of(merchant, method, off_session=absent)
        owed = subscriptions.draft(merchant, sub, lines, "subscription_update")["amount_due"]
        if behaviour == "error_if_incomplete" and owed and outcome not in ("ok", "later"):
            raise decline_of(outcome)
    if not at_once:
        subscriptions.change(merchant, sub, **applied(sub, changes))
        merchant.waiting_lines.setdefault(sub["id"], []).extend(lines)
        return
    before = sub["latest_invoice"]
    if behaviour == "pending_if_incomplete" and owed and outcome != "ok":
        invoice = subscriptions.bill(merchant, sub, lines, "subscription_update")
        pay(merchant, invoice, method, off_session=off_session)
        hold(merchant, sub, changes)
        return
    previous = {"items": sub["items"], "latest_invoice": before}
    sub.update(applied(sub, changes))
    invoice = subscriptions.bill(merchant, sub, lines, "subscription_update")
    merchant.emit("customer.subscription.updated", sub, previous)
    paid = pay(merchant, invoice, method, off_session=off_session)
    if paid != "later":
        subscriptions.after_payment(merchant, invoice, paid=paid == "ok")


def _create(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    if "customer" not in given:
        raise missing_param("customer")
    customer = merchant.books.get("customer", given["customer"], "customer")
    wanted = [
        (price_of(merchant, item, f"items[{n}]"), item.get("quantity", 1))
        for n, item in enumerate(given.get("items", []))
    ]
    if not wanted:
        raise missing_param("items")
    if not all(price["recurring"] for price, _ in wanted):
        raise Refused("The price specified is set to `type=one_time`.", param="items[0][price]")
    currency = str(given.get("currency") or wanted[0][0]["currency"]).lower()
    for price, _ in wanted:
        billed_in(merchant, price, currency)
    behaviour = given.get("payment_behavior", "allow_incomplete")
    if behaviour not in ("allow_incomplete", "error_if_incomplete"):
        raise not_built(f"`{behaviour}` on creation", "payment_behavior")
    named = given.get("default_payment_method")
    method = (
        method_named(merchant, named, customer["id"], "default_payment_method")["id"]
        if named
        else customer["invoice_settings"]["default_payment_method"]
    )
    if method is None:
        raise Refused(
            "This customer has no attached payment source or default payment method. Please"
            " consider adding a default payment method.",
            code="resource_missing",
        )
    off_session = given.get("off_session", False)
    outcome = outcome_of(merchant, method, off_session=off_session)
    if behaviour == "error_if_incomplete" and outcome not in ("ok", "later"):
        raise decline_of(outcome)
    sub = subscriptions.make_subscription(
        merchant,
        customer,
        wanted,
        currency=currency,
        metadata=merged({}, given.get("metadata")),
        automatic_tax=bool(given.get("automatic_tax", {}).get("enabled")),
        method=method,
    )
    subscriptions.begin(merchant, sub, [], off_session=off_session)
    return sub


def _cancel(call: Call) -> Obj:
    sub = call.merchant.books.get("subscription", call.id)
    if sub["status"] in subscriptions.ENDED:
        raise Refused(f"No such subscription: {sub['id']}", status=404, code="resource_missing")
    details = call.params.get("cancellation_details", {})
    sub["cancellation_details"] = {**sub["cancellation_details"], **details}
    subscriptions.end(call.merchant, sub, "cancellation_requested")
    return sub


def _list(call: Call) -> Obj:
    params = call.params
    status = params.get("status")

    def keep(sub: Obj) -> bool:
        if params.get("customer", sub["customer"]) != sub["customer"]:
            return False
        prices = [item["price"]["id"] for item in sub["items"]["data"]]
        if "price" in params and params["price"] not in prices:
            return False
        if status is None:
            return bool(sub["status"] != "canceled")
        ended: bool = sub["status"] in subscriptions.ENDED
        same: bool = sub["status"] == status
        return bool(status == "all" or same or (status == "ended" and ended))

    return call.merchant.books.page("subscription", params, "/v1/subscriptions", keep)


def _list_items(call: Call) -> Obj:
    found = call.merchant.books.get("subscription", call.params["subscription"], "subscription")
    items: Obj = found["items"]
    return items


def _preview(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    if "subscription" not in given:
        raise not_built("a preview without a subscription", "subscription")
    sub = merchant.books.get("subscription", given["subscription"], "subscription")
    details = given.get("subscription_details", {})
    played = ("items", "proration_behavior", "proration_date", "billing_cycle_anchor")
    for name in details:
        if name not in played:
            raise not_built(f"`subscription_details[{name}]`", "subscription_details")
    changes, at = plan_changes(merchant, sub, details)
    prorate = details.get("proration_behavior") != "none"
    lines = change_lines(merchant, changes, at, prorate=prorate)
    at_once = details.get("proration_behavior") == "always_invoice" or any(c.anew for c in changes)
    if not at_once or not lines:
        lines = [*lines, *subscriptions.period_lines(merchant, sub)]
    invoice = subscriptions.draft(merchant, sub, lines, "upcoming")
    invoice["id"] = merchant.books.new_id("upcoming_in")
    return invoice


_PATH = "/v1/subscriptions"
_CHANGES = "automatic_tax default_payment_method items metadata off_session payment_behavior"
ROUTES = (
    Route(
        "POST",
        _PATH,
        "SubscriptionCreateParams",
        "subscription",
        _create,
        plays(_CHANGES + " currency customer"),
    ),
    Route(
        "GET",
        _PATH + "/{id}",
        "SubscriptionRetrieveParams",
        "subscription",
        retrieved("subscription"),
    ),
    Route(
        "POST",
        _PATH + "/{id}",
        "SubscriptionUpdateParams",
        "subscription",
        _update,
        plays(
            "billing_cycle_anchor cancel_at_period_end cancellation_details default_payment_method"
            " items metadata off_session payment_behavior proration_behavior proration_date"
        ),
    ),
    Route(
        "DELETE",
        _PATH + "/{id}",
        "SubscriptionCancelParams",
        "subscription",
        _cancel,
        plays("cancellation_details"),
    ),
    Route(
        "GET",
        _PATH,
        "SubscriptionListParams",
        "subscription",
        _list,
        plays("customer price status"),
    ),
    Route(
        "GET",
        "/v1/subscription_items",
        "SubscriptionItemListParams",
        "subscription",
        _list_items,
        plays("subscription"),
    ),
    Route(
        "POST",
        "/v1/invoices/create_preview",
        "InvoiceCreatePreviewParams",
        "invoice",
        _preview,
        plays("customer subscription subscription_details"),
    ),
)
